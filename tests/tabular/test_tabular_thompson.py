"""Thompson sampling: its posteriors, and how it learns."""

import numpy as np
import pytest
from scipy.special import expit
from slow_reference import design_matrix, random_model

from termdp import tabular
from termdp.tabular import Thompson, simulate
from termdp.tabular.episodes import flatten
from termdp.tabular.learner import Counts
from termdp.tabular.likelihood import maximise
from termdp.tabular.thompson import cost_posterior, draw_rewards, draw_transitions


def test_draws_of_the_costs_have_the_explicit_hessians_spread():
    seen = simulate(random_model(0), np.full((4, 3, 2), 0.5), 300, 0)
    rows, _ = design_matrix(seen, 3, 2, 4, None, False)
    data = flatten(seen, 3, 2, None, False)
    best = maximise(data, 0.3)
    chance = expit(rows @ best.costs)
    hessian = rows.T @ ((chance * (1 - chance))[:, None] * rows) + 0.6 * np.eye(24)
    covariance = np.linalg.inv(hessian)
    posterior = cost_posterior(data, best, 0.3)
    np.testing.assert_allclose(
        posterior.standard_deviations, np.sqrt(np.diag(covariance))
    )
    random = np.random.default_rng(0)
    draws = np.array([posterior.draw(random) for _ in range(20_000)])
    np.testing.assert_allclose(draws.mean(axis=0), best.costs, atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.03)
    # Neighbours along a path: what one cost more, the other cost less.
    seen_costs = np.cov(draws.T)[:18, :18]
    np.testing.assert_allclose(seen_costs, covariance[:18, :18], atol=0.005)
    assert seen_costs[:6, 6:12].min() < -0.03


def test_rewards_and_transitions_are_drawn_from_their_posteriors():
    """7 of 10 rewards: Beta(8, 4). Moves 5, 0, 1: Dirichlet(5⅓, ⅓, 1⅓)."""
    counts = Counts.empty((1, 3, 1))
    counts.visits[0, 0, 0], counts.rewards[0, 0, 0] = 10, 7
    counts.moves[0, 0, 0] = 5, 0, 1
    random = np.random.default_rng(0)
    rewards = np.array([draw_rewards(counts, random) for _ in range(20_000)])
    assert rewards[:, 0, 0, 0].mean() == pytest.approx(8 / 12, abs=0.005)
    assert rewards[:, 0, 0, 0].var() == pytest.approx(8 * 4 / 144 / 13, rel=0.05)
    assert rewards[:, 0, 1, 0].mean() == pytest.approx(0.5, abs=0.01)
    moves = np.array([draw_transitions(counts, random) for _ in range(20_000)])
    np.testing.assert_allclose(moves.sum(axis=-1), 1)
    expected = np.array([16, 1, 4]) / 21
    np.testing.assert_allclose(moves[:, 0, 0, 0].mean(axis=0), expected, atol=0.01)
    spread = expected * (1 - expected) / 8
    np.testing.assert_allclose(moves[:, 0, 0, 0].var(axis=0), spread, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("sampled", ["everything", "costs"])
def test_thompson_learns_and_its_intervals_cover(sampled):
    model = tabular.random(4, 2, 4)
    agent = Thompson(model.radius, sampled=sampled, bonus_scale=0.02)
    runs = [agent.run(model, 1000, seed) for seed in range(3)]
    for run in runs:
        assert run.is_exact
        early, late = run.per_episode[:100].mean(), run.per_episode[-100:].mean()
        assert late < 0.7 * early
        assert not run.good_events.any(), "a draw promises nothing"
    inside = np.mean([np.nanmean(run.cost_coverage[20:]) for run in runs])
    assert 0.9 < inside < 0.99


def test_plans_last_at_most_one_episode_longer_than_the_last():
    model = tabular.paper_example()
    regret = Thompson(model.radius).run(model, 600, 0)
    lengths = np.diff(regret.planned_at)
    assert (lengths[1:] <= lengths[:-1] + 1).all()
    assert lengths.max() > 10


def test_runs_are_decided_by_their_key():
    model = tabular.random(4, 2, 4)
    one, same, other = (
        Thompson(model.radius).run(model, 60, seed).cumulative for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Thompson(0.0), "radius > 0"),
        (lambda: Thompson(1.0, sampled="rewards"), "everything or costs"),
        (lambda: Thompson(1.0, replan="sometimes"), "growing"),
    ],
)
def test_bad_settings_are_refused_with_a_reason(make, message):
    with pytest.raises(ValueError, match=message):
        make()
