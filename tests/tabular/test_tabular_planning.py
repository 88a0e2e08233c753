"""Planning: against full histories, against plain loops, and within its bounds."""

import jax.numpy as jnp
import numpy as np
import pytest
from slow_reference import best_value, logistic, random_model

from termdp import tabular
from termdp.tabular import TerMDP, evaluate, exact, plan
from termdp.tabular.bounds import clip_level, clipped_resolution, signed_resolution
from termdp.tabular.quantised import (
    Lattice,
    backward_induction,
    floor_to_lattice,
    make_lattice,
    plan_bytes,
)


def test_two_steps_by_hand():
    """Action 1 pays 1 now and makes a stop likely; action 0 pays ½ and is free."""
    model = TerMDP([[[1.0], [1.0]]], [[0.5, 1.0]], [[0.0, 2.0]], 1.0, 2, 0)
    greedy = 1.0 + (1 - logistic(2.0 - 1.0)) * 1.0
    patient = 0.5 + (1 - logistic(0.0 - 1.0)) * 1.0
    best = plan(model)
    assert best.value == pytest.approx(max(greedy, patient), abs=1e-12)
    assert best.act(1, 0) == int(greedy > patient)
    assert best.value_at(2, 0, 2.0) == 1.0
    assert best.act(2, 0, 2.0) == 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [None, 1, 2, 3])
def test_the_accumulated_cost_is_a_sufficient_statistic(seed, window):
    """Nothing is gained by looking at the whole history (appendix B)."""
    model = random_model(seed, window=window)
    best = plan(model)
    assert best.value == pytest.approx(best_value(model), abs=1e-10)
    assert evaluate(model, best) == pytest.approx(best.value, abs=1e-10)


def test_values_and_actions_at_reachable_pairs():
    model = random_model(1)
    best = plan(model, exact=True)
    first = best.act(1, 0, 0.0)
    cost = model.costs[0, 0, first]
    value = best_value(model, 2, 1, (cost,))
    assert best.value_at(2, 1, cost) == pytest.approx(value, abs=1e-10)
    windowed = random_model(1, window=3)
    value = best_value(windowed, 2, 1, (cost,))
    forgetful = plan(windowed)
    found = forgetful.value_at(2, 1, [0.0, cost])
    assert found == pytest.approx(value, abs=1e-10)
    start = best_value(windowed, 1, 0)
    assert forgetful.value_at(1, 0) == pytest.approx(start, abs=1e-10)
    # Step 1: 3 states. Step 2: 3 states × 6 sums, step 3: × 36, step 4: × 216.
    assert best.num_pairs == 3 * (1 + 6 + 36 + 216)


def test_exact_plans_say_what_they_do_not_know():
    best = plan(random_model(1))
    with pytest.raises(ValueError, match="cannot be reached"):
        best.value_at(2, 0, 123.0)
    with pytest.raises(ValueError, match="from 1 to 4, got 0"):
        best.act(0, 0)
    with pytest.raises(ValueError, match="last 2 costs"):
        plan(random_model(1, window=3)).value_at(1, 0, [1.0])


def test_too_many_reachable_costs_are_an_error_that_says_how_to_quantise(monkeypatch):
    monkeypatch.setattr(exact, "MAX_MOVES", 50)
    with pytest.raises(ValueError, match=r"plan\(model, resolution=Δ\)"):
        plan(random_model(0))


def plain_loops(transition, reward, lattice, bias):
    """The quantised planner as four nested loops."""
    horizon, num_states, num_actions = reward.shape
    num_bins = lattice.num_bins
    value = np.zeros((horizon + 1, num_states, num_bins))
    action = np.zeros((horizon, num_states, num_bins), int)
    for h in reversed(range(horizon)):
        for s in range(num_states):
            for n in range(num_bins):
                best = -np.inf
                for a in range(num_actions):
                    target = min(max(n + lattice.shift[h, s, a], 0), num_bins - 1)
                    total = (lattice.low + target) * lattice.resolution
                    go_on = 1 - logistic(min(total, lattice.clip) - bias)
                    ahead = transition[h, s, a] @ value[h + 1, :, target]
                    if reward[h, s, a] + go_on * ahead > best + 1e-13:
                        best, action[h, s, n] = reward[h, s, a] + go_on * ahead, a
                value[h, s, n] = best
    return value[:-1], action


@pytest.mark.parametrize(("low", "clip"), [(-0.6, np.inf), (0.0, np.inf), (0.0, 0.83)])
def test_the_dense_products_do_what_plain_loops_do(low, clip):
    model = random_model(2, low=low)
    lattice = make_lattice(model.costs, 0.07, clip)
    values, actions = backward_induction(
        model.transition, model.rewards, lattice, model.bias, np.full(4, np.inf)
    )
    expected, chosen = plain_loops(
        model.transitions, model.rewards, lattice, model.bias
    )
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_array_equal(actions, chosen)


def test_values_are_capped_on_request():
    model = random_model(2)
    lattice = make_lattice(model.costs, 0.1)
    caps = np.array([0.9, 0.7, 0.5, 0.3])
    values, _ = backward_induction(
        model.transition, model.rewards, lattice, model.bias, caps
    )
    assert (values.max(axis=(1, 2)) == caps).all()


@pytest.mark.parametrize("low", [-0.6, 0.0])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_quantisation_is_optimistic_and_within_epsilon(seed, low, epsilon):
    model = random_model(seed, low=low)
    best, rough = plan(model), plan(model, epsilon=epsilon)
    played = evaluate(model, rough)
    assert rough.error_bound == epsilon
    assert rough.value >= best.value - 1e-9
    assert best.value - played <= epsilon
    assert rough.value - played >= -1e-9
    assert rough.value - played <= epsilon


@pytest.mark.parametrize("low", [-0.6, 0.0])
def test_any_policy_looks_better_on_the_lattice_by_at_most_the_bound(low):
    """V ≤ V_q ≤ V + H³Δ/2, for a policy that has nothing to do with the lattice."""
    model = random_model(7, low=low)
    policy = np.random.default_rng(0).dirichlet(np.ones(2), (4, 3))
    for resolution in (0.3, 0.1, 0.01):
        rounded = floor_to_lattice(model.costs, resolution) * resolution
        coarse = TerMDP(
            model.transition, model.reward, rounded, model.bias, 4, model.initial
        )
        gain = evaluate(coarse, policy) - evaluate(model, policy)
        assert -1e-9 <= gain <= 4**3 * resolution / 2
    assert gain < 0.05, "a fine lattice is nearly exact"


def test_both_regimes_choose_the_papers_lattice():
    signed, positive = random_model(0), random_model(0, low=0.0)
    assert plan(signed, epsilon=0.1).lattice.resolution == pytest.approx(0.2 / 64)
    assert plan(positive, epsilon=0.1).lattice.resolution == pytest.approx(0.1 / 64)
    assert signed_resolution(0.1, 4) == 0.2 / 64
    assert clipped_resolution(0.1, 4) == 0.1 / 64
    assert np.isinf(plan(signed, epsilon=0.1).lattice.clip)
    clip = plan(positive, epsilon=0.1).lattice.clip
    assert clip == pytest.approx(positive.bias + np.log(4 * 16 / 0.1))
    assert clip_level(0.1, 4) == pytest.approx(np.log(640))


def test_clipping_saves_bins_when_costs_are_large():
    model = random_model(0, low=0.0)
    heavy = TerMDP(
        model.transition, model.reward, 50 * model.cost, 1.0, 4, model.initial
    )
    rough = plan(heavy, epsilon=0.1)
    clipped = int(np.ceil((1.0 + clip_level(0.1, 4)) / rough.lattice.resolution)) + 1
    assert rough.lattice.num_bins == clipped
    assert rough.lattice.sums[-1] == pytest.approx(1.0 + clip_level(0.1, 4))
    assert plan(heavy).value <= rough.value <= plan(heavy).value + 0.1


def test_a_hopeless_bias_needs_one_bin_only():
    model = random_model(0, low=0.0)
    hopeless = TerMDP(
        model.transition, model.reward, model.cost, -30.0, 4, model.initial
    )
    rough = plan(hopeless, epsilon=0.1)
    assert rough.lattice.num_bins == 1
    assert rough.value == pytest.approx(plan(hopeless).value, abs=0.1)


def test_the_bias_is_not_rounded():
    model = tabular.random(bias=1.2345)
    on_lattice = plan(model, resolution=0.25)
    assert on_lattice.value == pytest.approx(plan(model).value, abs=1e-12)


def test_bins_of_decimal_fractions():
    assert floor_to_lattice(np.array([0.3, -0.1, 0.25]), 0.1).tolist() == [3, -1, 2]
    lattice = Lattice(0.1, np.zeros((1, 1, 1), int), low=-5, num_bins=11)
    assert lattice.bin_of(0.3) == 8
    assert lattice.bin_of(-99.0) == 0
    assert lattice.bin_of(99.0) == 10


def test_memory_is_linear_in_bins_and_limited_to_a_gigabyte():
    one, two = plan_bytes(50, 4, 30, 1000), plan_bytes(50, 4, 30, 2000)
    assert two == 2 * one
    with pytest.raises(ValueError, match=r"more than 1 GB; a resolution of about"):
        plan(tabular.random(10, 3, 10), epsilon=1e-4)


def test_contradicting_or_impossible_requests_are_refused():
    model = random_model(0)
    with pytest.raises(ValueError, match="got both"):
        plan(model, resolution=0.1, epsilon=0.1)
    with pytest.raises(ValueError, match="got two"):
        plan(model, exact=True, epsilon=0.1)
    with pytest.raises(ValueError, match="exact=False"):
        plan(model, exact=False)
    with pytest.raises(ValueError, match="> 0"):
        plan(model, resolution=0.0)
    with pytest.raises(ValueError, match="window of 2"):
        plan(random_model(0, window=2), resolution=0.1)
    with pytest.raises(ValueError, match="count from 1"):
        plan(model, resolution=0.1).value_at(5, 0, 0.0)


def test_planning_in_double_leaves_the_users_precision_alone():
    assert plan(random_model(0), resolution=0.1).values.dtype == np.float64
    assert jnp.ones(1).dtype == jnp.float32


def test_quantised_plans_answer_between_lattice_points():
    model = random_model(0)
    rough = plan(model, resolution=0.1)
    assert rough.value_at(2, 1, 0.35) == rough.value_at(2, 1, 0.3)
    assert rough.act(2, 1, 0.35) == rough.act(2, 1, 0.3)
    assert rough.value == pytest.approx(
        sum(p * rough.value_at(1, s) for s, p in enumerate(model.initial))
    )
