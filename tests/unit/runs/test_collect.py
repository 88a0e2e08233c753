"""Values of what followed a step, before any reset, against one call per step."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import termdp
from termdp.agents.actor_critic import PolicyInput, forget
from termdp.agents.methods import find_method
from termdp.runs import cost_features
from termdp.runs.collect import Final, Mind, collect, values_where
from termdp.runs.program import Job, TrainProgram
from tiny_config import tiny
from tiny_envs import Counter, CounterParams, action_is_cost

pytestmark = pytest.mark.slow

BIAS, STEPS = 3.0, 25


def play(method, deterministic=False):
    """25 steps of four environments that end for every reason there is."""
    env = termdp.observe(Counter(), termdp.Observer(action_is_cost, bias=BIAS))
    inner = CounterParams(max_steps_in_episode=7, game_over_at=9)
    params = env.default_params.replace(game=inner)
    program = TrainProgram(Job(env, params, (find_method(method),), (0,), tiny(), 1))
    state = jax.tree.map(lambda x: x[0], program.init())
    method_params = jax.tree.map(lambda x: x[0], program.method_params)
    mind = Mind(state.policy.params, state.costs, method_params)
    learner = program.recipe.learner
    _, played = jax.jit(
        lambda: collect(
            learner,
            mind,
            env,
            params,
            state.rollout_state,
            jax.random.key(1),
            STEPS,
            deterministic,
        )
    )()
    return learner, state, method_params, played


@pytest.mark.parametrize("method", ["pg", "pg_recurrent", "oracle"])
def test_next_values_are_of_what_followed_before_any_reset(method):
    learner, state, method_params, played = play(method)
    apply = jax.jit(learner.network.apply)
    ended = np.asarray(played.ended)
    assert ended.any()
    assert not ended.all()
    if method == "oracle":
        assert np.asarray(played.inputs.cost).any()
    carry = state.rollout_state.carry
    for t in range(STEPS):
        # The counter goes up by one and adds the action, whether or not it ends there.
        step = jnp.stack([jnp.ones(4), played.actions[t].astype(jnp.float32)], axis=-1)
        cost = played.truth.window_costs[t]
        seen = jax.tree.map(lambda x, t=t: x[t], played.inputs)
        followed = PolicyInput(
            seen.observation + step,
            method_params.knows_costs
            * cost_features.features(method_params, cost - BIAS, cost),
        )
        carry, (_, here) = apply(state.policy.params, carry, seen)
        _, (_, there) = apply(state.policy.params, carry, followed)
        np.testing.assert_allclose(played.values[t], here, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(played.next_values[t], there, rtol=1e-4, atol=1e-5)
        carry = forget(carry, played.ended[t])


def sum_of_observation(params, carry, seen):
    """A network whose value is a multiple of what it sees."""
    return carry, (seen.cost, params * seen.observation.sum(-1))


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    st.integers(0, 2**31),
)
@settings(max_examples=20, deadline=None)
def test_values_are_asked_for_where_they_are_wanted(rows, envs, share, seed):
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(rows, envs, 2)).astype(np.float32)
    wanted = rng.random((rows, envs)) < share
    learner = SimpleNamespace(network=SimpleNamespace(apply=sum_of_observation))
    seen = PolicyInput(jnp.asarray(observations), jnp.zeros((rows, envs, 1)))
    found = values_where(learner, 2.0, Final(seen, ()), jnp.asarray(wanted))
    expected = np.where(wanted, 2.0 * observations.sum(-1), 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_deterministic_actions_are_the_most_probable_ones():
    _, _, _, played = play("pg", deterministic=True)
    np.testing.assert_array_equal(
        played.actions, np.argmax(np.asarray(played.dist_params), axis=-1)
    )
    _, _, _, drawn = play("pg")
    assert not np.array_equal(
        drawn.actions, np.argmax(np.asarray(drawn.dist_params), axis=-1)
    )
