"""TermCRL and what it is compared with."""

import jax
import numpy as np
import pytest
from slow_reference import random_model

from termdp import tabular
from termdp.tabular import (
    IgnoreStops,
    KnownCosts,
    MarkovPolicy,
    TermCRL,
    WholeHistory,
    evaluate,
    learner,
    plan,
    simulate,
)
from termdp.tabular.learner import Counts, _until_replan
from termdp.tabular.termcrl import default_resolution, value_caps


def test_counts_are_those_of_a_plain_loop():
    model = tabular.random(4, 2, 5)
    batch = simulate(model, np.full((5, 4, 2), 0.5), 200, 0)
    counts = Counts.empty(model.shape)
    counts.add(batch.first(80))
    rest = simulate(model, np.full((5, 4, 2), 0.5), 30, 1)
    counts.add(rest)
    visits, rewards = np.zeros(model.shape), np.zeros(model.shape)
    moves = np.zeros((*model.shape, 4))
    for part in (batch.first(80), rest):
        for row, (states, actions, _) in enumerate(part):
            for t, (s, a) in enumerate(zip(states, actions, strict=True)):
                visits[t, s, a] += 1
                rewards[t, s, a] += part.rewards[row, t]
                if t + 1 < len(states):
                    moves[t, s, a, states[t + 1]] += 1
    np.testing.assert_array_equal(counts.visits, visits)
    np.testing.assert_array_equal(counts.rewards, rewards)
    np.testing.assert_array_equal(counts.moves, moves)
    np.testing.assert_allclose(counts.mean_transitions.sum(axis=3), 1)
    unseen = counts.moves_seen == 0
    assert (counts.mean_transitions[unseen] == 0.25).all()
    assert (counts.moves_seen[:-1] <= visits[:-1]).all()


def test_a_plan_ends_with_the_episode_that_doubles_a_count():
    model = tabular.random(4, 2, 5)
    policy = np.full((5, 4, 2), 0.5)
    counts = Counts.empty(model.shape)
    counts.add(simulate(model, policy, 300, 0))
    before = counts.visits.copy()
    counts.add(simulate(model, policy, 20, 1))
    batch = simulate(model, policy, 500, 2)
    kept, is_time = _until_replan("doubling", batch, before, counts.visits, 20, 21)
    running, expected = counts.visits.copy(), None
    for number, (states, actions, _) in enumerate(batch):
        for t, (s, a) in enumerate(zip(states, actions, strict=True)):
            running[t, s, a] += 1
        if (running - before >= np.maximum(before, 1)).any():
            expected = number + 1
            break
    assert is_time
    assert kept == expected
    short = batch.first(max(kept - 1, 0))
    assert _until_replan("doubling", short, before, counts.visits, 20, 21) == (
        kept - 1,
        False,
    )
    for longest, expected in ((21, (1, True)), (20 + kept + 1, (kept, True))):
        found = _until_replan("growing", batch, before, counts.visits, 20, longest)
        assert found == expected
    found = _until_replan("growing", short, before, counts.visits, 20, 20 + kept)
    assert found == (kept - 1, False)


def test_a_fixed_schedule_plans_every_so_many_episodes():
    regret = IgnoreStops(bonus_scale=0.01, replan=7).run(tabular.random(), 30, 0)
    assert regret.planned_at.tolist() == [0, 7, 14, 21, 28]


@pytest.mark.parametrize("scale", [(1.0, None), (0.3, 1e-5), (0.3, 5e-6)])
def test_optimism_whenever_the_good_event_holds(scale):
    """V̄ ≥ V* at every plan where the truth lies within the bonuses."""
    checked = 0
    for seed in range(3):
        model = tabular.random(4, 2, 4, seed=seed)
        agent = TermCRL(model.radius, bonus_scale=scale[0], cost_bonus_scale=scale[1])
        regret = agent.run(model, 2000, seed)
        good = regret.good_events
        assert (regret.optimistic_values[good] >= regret.optimal_value - 1e-9).all()
        assert (regret.optimistic_values <= model.horizon).all()
        checked += good.sum()
        if scale == (1.0, None):
            assert good.all()
    assert checked > 10


@pytest.mark.parametrize("cost_set", ["ofuglb", "mixture"])
def test_later_sets_cover_at_every_plan_and_are_optimistic(cost_set):
    for seed in range(2):
        model = tabular.random(4, 2, 4, seed=seed)
        agent = TermCRL(model.radius, bonus_scale=1.0, cost_set=cost_set)
        regret = agent.run(model, 1000, seed)
        assert regret.good_events.all()
        assert (regret.cost_coverage[1:] == 1).all()
        assert np.isnan(regret.cost_coverage[0]), "nothing was visited yet"
        assert (regret.optimistic_values >= regret.optimal_value - 1e-9).all()
        assert 0.05 < regret.needed_scales[:, 2].max() < 1, "not absurdly wide"


def test_later_sets_let_go_of_the_greatest_optimism_untuned():
    """With the theory's constants the paper's bonus never notices the observer."""
    model = tabular.paper_example()
    last = {
        name: TermCRL(
            model.radius, bonus_scale=0.02, cost_bonus_scale=1.0, cost_set=name
        )
        .run(model, 5000, 0)
        .per_episode[-1]
        for name in ("bonus", "ofuglb", "mixture")
    }
    assert last["bonus"] > 0.05
    assert last["ofuglb"] == pytest.approx(0.0, abs=1e-9)
    assert last["mixture"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_a_tuned_bonus_pays_with_its_coverage():
    model = tabular.random(4, 2, 4)
    regret = TermCRL(model.radius, bonus_scale=0.02, cost_bonus_scale=1e-8).run(
        model, 500, 0
    )
    assert np.nanmean(regret.cost_coverage) < 0.5


def test_without_bonuses_optimism_fails_somewhere():
    """The property above can fail: without bonuses the values are too small."""
    model = tabular.random(4, 2, 4, seed=0)
    regret = TermCRL(model.radius, bonus_scale=0.0).run(model, 500, 0)
    assert not regret.good_events.all()
    assert (regret.optimistic_values < regret.optimal_value - 0.05).any()


def test_regret_is_the_exact_loss_of_what_was_played():
    model = tabular.paper_example()
    regret = IgnoreStops(bonus_scale=0.01).run(model, 300, 0)
    ignoring = evaluate(model, np.zeros((3, 3), int))
    assert regret.is_exact
    assert regret.per_episode[-1] == pytest.approx(plan(model).value - ignoring)
    assert (regret.per_episode >= -1e-9).all()
    np.testing.assert_allclose(regret.cumulative, np.cumsum(regret.per_episode))


@pytest.mark.slow
def test_termcrl_learns_the_costs_and_beats_ignoring_stops():
    model = tabular.chain()
    settings = {"bonus_scale": 0.01}
    cumulative, agents = (
        {},
        {
            "termcrl": TermCRL(model.radius, cost_bonus_scale=1e-8, **settings),
            "known": KnownCosts(**settings),
            "ignore": IgnoreStops(**settings),
        },
    )
    for name, agent in agents.items():
        runs = [agent.run(model, 4000, seed) for seed in range(2)]
        cumulative[name] = np.mean([run.cumulative for run in runs], axis=0)
        if name == "termcrl":
            errors = np.mean([run.cost_error[[10, -1]] for run in runs], axis=0)
            assert errors[1] < errors[0] / 2
            assert runs[0].estimate.standard_errors.min() < 0.2
    assert cumulative["termcrl"][-1] < 0.4 * cumulative["ignore"][-1]
    late = {name: c[-1] - c[2000] for name, c in cumulative.items()}
    early = {name: c[2000] for name, c in cumulative.items()}
    assert late["termcrl"] < 0.75 * early["termcrl"], "regret grows slower and slower"
    assert late["ignore"] > 0.9 * early["ignore"], "and this one does not"


def test_the_whole_history_as_state_learns_too_but_only_tiny_cases():
    model = tabular.paper_example()
    regret = WholeHistory(bonus_scale=0.03).run(model, 10_000, 0)
    assert regret.per_episode[-1] == pytest.approx(0.0, abs=1e-9)
    assert regret.is_exact
    with pytest.raises(ValueError, match="fewer states"):
        WholeHistory().run(tabular.random(), 10, 0)


def test_the_whole_history_is_optimistic_too():
    model = tabular.paper_example()
    regret = WholeHistory().run(model, 300, 0)
    assert regret.good_events.all()
    assert (regret.optimistic_values >= regret.optimal_value).all()


def test_exact_planning_inside_termcrl_agrees_with_a_fine_lattice():
    model = tabular.paper_example()
    runs = [
        TermCRL(
            model.radius, bonus_scale=0.1, cost_bonus_scale=1e-7, resolution=how
        ).run(model, 300, 0)
        for how in ("exact", 1e-4)
    ]
    gap = np.abs(runs[0].cumulative[-1] - runs[1].cumulative[-1])
    assert gap < 0.05 * max(runs[0].cumulative[-1], 1.0)


def test_runs_are_decided_by_their_key():
    model = tabular.random(4, 2, 4)
    agent = TermCRL(model.radius, bonus_scale=0.01)
    one, same, other = (
        agent.run(model, 60, jax.random.key(seed)).cumulative for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_one_step_teaches_nothing_of_the_costs_and_does_no_harm():
    model = random_model(0, horizon=1)
    for agent in (
        TermCRL(model.radius, bonus_scale=0.05),
        TermCRL(model.radius, bonus_scale=0.05, cost_set="ofuglb"),
        TermCRL(model.radius, bonus_scale=0.05, cost_set="mixture"),
        tabular.Thompson(model.radius),
    ):
        regret = agent.run(model, 200, 0)
        assert np.isnan(regret.cost_coverage).all()
        assert regret.per_episode[-50:].mean() < regret.per_episode[:10].mean()


def test_values_too_large_to_be_exact_are_sampled(monkeypatch):
    def refuse(*_, **__):
        raise ValueError("too many")

    model = tabular.paper_example()
    long_way = MarkovPolicy(np.zeros((3, 3), int), 2)
    truth = evaluate(model, long_way)
    monkeypatch.setattr(learner, "evaluate", refuse)
    random = np.random.default_rng(0)
    value, is_exact = learner._policy_value(model, long_way, random, True)
    assert not is_exact
    assert value == pytest.approx(truth, abs=0.02)
    monkeypatch.setattr(
        learner, "plan", lambda model, **how: plan(model, **how or {"epsilon": -1})
    )
    optimal, is_exact = learner._optimal_value(model)
    assert not is_exact
    assert optimal == pytest.approx(plan(model).value, abs=1e-3)
    assert not IgnoreStops(bonus_scale=0.01).run(model, 20, 0).is_exact


def test_small_parts():
    assert value_caps(3).tolist() == [3, 2, 1]
    pitch = default_resolution(4.0, 10)
    assert np.log2(pitch) == int(np.log2(pitch))
    assert 4096 <= 2 * 10 * 4.0 / pitch <= 8192


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TermCRL(0.0), "radius > 0"),
        (lambda: TermCRL(1.0, delta=0.0), "delta"),
        (lambda: TermCRL(1.0, bonus_scale=-1.0), "bonus scale"),
        (lambda: TermCRL(1.0, replan="sometimes"), "replan"),
        (lambda: TermCRL(1.0, resolution="fine"), "resolution"),
        (lambda: TermCRL(1.0, cost_set="ball"), "bonus, ofuglb, mixture"),
        (lambda: TermCRL(1.0, kappa=9.0, cost_set="mixture"), "no kappa"),
        (lambda: KnownCosts(replan=0), "replan"),
        (lambda: IgnoreStops().run(tabular.random(), 0, 0), "1 episode"),
        (lambda: IgnoreStops().run(random_model(0, window=2), 5, 0), "window=2"),
    ],
)
def test_bad_settings_are_refused_with_a_reason(make, message):
    with pytest.raises(ValueError, match=message):
        make()
