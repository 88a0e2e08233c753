"""Rewards of every method, and what rules on rewards remember, by hand."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import termdp
from termdp.agents.actor_critic import PolicyInput, make_actor
from termdp.agents.distributions import Discrete
from termdp.agents.method_params import method_params
from termdp.agents.methods import find_method
from termdp.observer import watch
from termdp.runs import shaping
from termdp.runs.collect import Rollout
from termdp.runs.cost_features import Accumulated, FreshCosts
from termdp.wrappers.observe import ObservedParams

# Four environments: goes on, game over, stopped, truncated.
SURVIVAL = 0.6
LOGIT = math.log((1 - SURVIVAL) / SURVIVAL)
COST = -math.log(SURVIVAL)
LIMIT = -math.log(0.9)


def played(**changes):
    fields = {field.name: None for field in dataclasses.fields(Rollout)}
    flags = np.eye(4, dtype=bool)[:, None]
    ends = {
        "rewards": jnp.ones((1, 4)),
        "game_over": jnp.asarray(flags[1]),
        "stopped": jnp.asarray(flags[2]),
        "truncated": jnp.asarray(flags[3]),
    }
    return Rollout(**fields | ends | changes)


def fresh(logit=LOGIT, shape=(1, 4)):
    full = lambda value: jnp.full(shape, value, jnp.float32)  # noqa: E731
    accumulated = Accumulated(full(logit), full(5.0), full(2.0), full(0.0))
    return FreshCosts(accumulated, members=None, bias=None)


def numbers_of(name, **changes):
    return method_params(find_method(name, **changes), 30)


def remembered(**changes):
    changes = {name: jnp.float32(value) for name, value in changes.items()}
    return dataclasses.replace(shaping.initial(), **changes)


LOW = {"reward_min": -0.5, "value_min": -2.0, "value_max": 3.0}
PRICED = (1 - 3 * COST) / 4
REWARDS = [
    # method, its numbers, what is remembered, rewards: goes on, game over, stop, limit
    ("pg", {}, LOW, [1, 1, 1, 1]),
    ("pg_rs", {}, {}, [1, 1, 0, 1]),
    ("pg_rs", {"stop_penalty": 2.5}, {}, [1, 1, -1.5, 1]),
    ("termpg", {}, {}, [1, 1, 1, 1]),
    ("termpg_rs", {}, {}, [1, 1, 0, 1]),
    ("termpg_penalty", {}, {}, [0.5, 0.5, 0.5, 0.5]),  # 1 − 0.1·5
    ("termpg_bonus_0.1", {}, {}, [1.2, 1.2, 1.2, 1.2]),  # 1 + 0.1·2
    ("termpg_bonus_1", {}, {}, [3, 3, 3, 3]),
    ("oracle", {}, {}, [1, 1, 1, 1]),
    ("rosarl", {}, LOW, [1, 1, -5, 1]),  # V_min − V_max, in place of the reward
    ("rosarl", {}, LOW | {"reward_min": -7.0}, [1, 1, -7, 1]),
    ("rlif", {}, LOW, [0, 0, -1, 0]),
    ("rlif_task", {"stop_penalty": 4.0}, {}, [1, 1, -3, 1]),
    ("ppo_lagrangian", {}, {}, [1, 1, 1, 1]),
    ("ppo_lagrangian", {}, {"multiplier": 3.0}, [PRICED] * 4),
    ("traces_lagrangian", {}, {"multiplier": 3.0}, [PRICED] * 4),
    ("traces", {}, {}, [1, 1, 1, 1]),
    ("ct", {}, {}, [1, 1, 1, 1]),
]


@pytest.mark.parametrize(("method", "changes", "state", "expected"), REWARDS)
def test_rewards_by_hand(method, changes, state, expected):
    numbers, state = numbers_of(method, **changes), remembered(**state)
    found = shaping.shaped_rewards(numbers, state, played(), fresh())
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    if not find_method(method).learns_costs:
        # The same in a program in which nobody learns costs.
        found = shaping.shaped_rewards(numbers, state, played(), None)
        np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def test_divergence_from_the_reference_is_taken_from_the_reward():
    numbers = numbers_of("rift", kl_penalty=0.25)
    state = shaping.initial()
    divergence = jnp.asarray([[0.0, 2.0, 2.0, 4.0]])
    found = shaping.shaped_rewards(numbers, state, played(), None, divergence)
    np.testing.assert_allclose(found[0], [1, 0.5, -0.5, 0], rtol=1e-6)


# ---- ROSARL's extremes ----------------------------------------------------------------

finite = st.floats(-100, 100, width=32, allow_subnormal=False)
rollouts = st.lists(
    st.tuples(st.lists(finite, min_size=3, max_size=3), st.lists(finite, min_size=3)),
    min_size=1,
    max_size=5,
)


@settings(max_examples=50, deadline=None)
@given(rollouts)
def test_extremes_are_those_of_everything_seen_so_far(seen):
    state = shaping.initial()
    rewards, values = [0.0], [0.0]
    for new_rewards, new_values in seen:
        state = shaping.with_extremes(
            state, jnp.asarray(new_rewards), jnp.asarray(new_values)
        )
        rewards, values = rewards + new_rewards, values + new_values
        low, high = min(rewards + values), max(rewards + values)
        assert float(state.reward_min) == min(rewards)
        assert (float(state.value_min), float(state.value_max)) == (low, high)
        expected = min(min(rewards), low - high)
        assert float(shaping.minmax_penalty(state)) == pytest.approx(expected)


def test_replaced_rewards_are_not_remembered():
    """The penalty would otherwise feed on itself: extremes are the task's."""
    numbers = numbers_of("rosarl")
    rollout = played(values=jnp.zeros((1, 4)))
    state = shaping.updated(numbers, shaping.initial(), rollout, None)
    again = shaping.updated(numbers, state, rollout, None)
    assert float(shaping.minmax_penalty(state)) == -1.0
    assert float(shaping.minmax_penalty(again)) == -1.0


# ---- the multiplier -------------------------------------------------------------------


def ends(count, shape=(2, 4)):
    flags = jnp.arange(math.prod(shape)).reshape(shape) < count
    none = jnp.zeros(shape, bool)
    return played(game_over=none, stopped=none, truncated=flags)


def test_the_multiplier_by_hand():
    numbers = numbers_of("ppo_lagrangian", multiplier_rate=0.5, stop_rate_target=0.1)
    state = remembered(multiplier=0.25)
    costs = fresh(shape=(2, 4))  # 8 · COST in all
    waiting = shaping.with_multiplier(numbers, state, ends(0), costs)
    assert float(waiting.multiplier) == 0.25
    assert float(waiting.pending_cost) == pytest.approx(8 * COST)
    after = shaping.with_multiplier(numbers, waiting, ends(4), costs)
    expected = 0.25 + 0.5 * (16 * COST / 4 - LIMIT)
    assert float(after.multiplier) == pytest.approx(expected, rel=1e-5)
    assert float(after.pending_cost) == 0.0


def test_the_multiplier_falls_when_stops_are_rare_but_never_below_zero():
    numbers = numbers_of("ppo_lagrangian", multiplier_rate=2.0, stop_rate_target=0.1)
    harmless = fresh(logit=-30.0, shape=(2, 4))
    state = remembered(multiplier=0.25)
    state = shaping.with_multiplier(numbers, state, ends(1), harmless)
    assert float(state.multiplier) == pytest.approx(0.25 - 2.0 * LIMIT, rel=1e-4)
    state = shaping.with_multiplier(numbers, state, ends(1), harmless)
    assert float(state.multiplier) == 0.0


def test_methods_without_a_constraint_keep_their_multiplier_at_zero():
    state = shaping.initial()
    for name in ("pg", "termpg", "rosarl", "oracle", "traces"):
        after = shaping.with_multiplier(numbers_of(name), state, ends(4), fresh())
        assert float(after.multiplier) == 0.0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-6, 3, width=32, allow_subnormal=False), st.integers(0, 8)),
        min_size=1,
    ),
    st.sampled_from([0.05, 0.5]),
)
def test_the_multiplier_equals_the_twin(steps, target):
    rate = 0.1
    numbers = numbers_of("ppo_lagrangian", stop_rate_target=target)
    state, multiplier, pending = shaping.initial(), 0.0, 0.0
    for logit, count in steps:
        costs = fresh(logit=logit, shape=(2, 4))
        state = shaping.with_multiplier(numbers, state, ends(count), costs)
        pending += 8 * -math.log(1 - 1 / (1 + math.exp(-logit)))
        if count:
            excess = pending / count + math.log(1 - target)
            multiplier, pending = max(0.0, multiplier + rate * excess), 0.0
        assert float(state.multiplier) == pytest.approx(multiplier, rel=1e-3, abs=1e-5)


# ---- the unobserved phase -------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("total", [1, 2, 5, 8])
def test_the_observer_watches_from_the_planned_iteration_on(share, total):
    numbers = numbers_of("rift", unobserved_share=share)
    unobserved = math.floor(share * total)
    state = shaping.initial({"w": jnp.float32(-1)})
    for iteration in range(total + 3):  # a run may go on beyond its planned end
        planned = total if iteration < total else 4 * total
        policy = {"w": jnp.float32(iteration)}
        state = shaping.begin_iteration(
            numbers, state, policy, jnp.int32(iteration), planned
        )
        assert bool(state.observed) == (iteration >= unobserved)
        if bool(state.observed):
            assert float(state.reference["w"]) == unobserved
        else:
            assert float(state.reference["w"]) == -1.0


def test_nobody_is_stopped_in_the_unobserved_phase():
    observer = termdp.Observer(lambda o, a: 5.0, window=3, bias=1.0, background=0.5)
    params = ObservedParams(None, observer)
    state = shaping.initial({})
    memory = observer.initial_memory()
    for observed, expected in ((False, 0.0), (True, 0.5 + 0.5 / (1 + math.exp(-4)))):
        state = dataclasses.replace(state, observed=jnp.asarray(observed))
        watching = shaping.watched(state, params).observer
        step = watch(watching, memory, jnp.float32(5.0), jnp.float32(0.3))[1]
        assert float(step.stop_probability) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_divergence_is_from_the_policy_to_the_reference():
    actor = make_actor(Discrete(2), False, ("vector", 1, 4, "float32"), 1)
    inputs = PolicyInput(jnp.ones((3, 2, 5)), jnp.zeros((3, 2, 2)))
    first = PolicyInput(inputs.observation[0], inputs.cost[0])
    weights = actor.network.init(jax.random.key(0), (), first)
    bias = jnp.asarray([math.log(0.9), math.log(0.1), 0.0])
    heads = {"kernel": jnp.zeros((4, 3)), "bias": bias}
    reference = {"params": {**weights["params"], "heads": heads}}
    rollout = played(
        inputs=inputs, carry=(), starts=None, dist_params=jnp.zeros((3, 2, 2))
    )
    state = dataclasses.replace(shaping.initial(reference), observed=jnp.asarray(True))
    found = shaping.reference_divergence(actor, state, rollout)
    # KL(½, ½ ‖ 0.9, 0.1); the other way round it would be 0.3681.
    expected = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    np.testing.assert_allclose(found, np.full((3, 2), expected), rtol=1e-5)
    before = dataclasses.replace(state, observed=jnp.asarray(False))
    assert not np.any(shaping.reference_divergence(actor, before, rollout))
    assert shaping.reference_divergence(actor, shaping.initial(), rollout) is None
