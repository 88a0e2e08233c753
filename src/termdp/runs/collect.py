"""Algorithm 2, line 4: play T steps of B environments, on the device.

A rollout is data: `termdp.runs.improve` does not depend on where it comes from.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from termdp.agents.actor_critic import Actor, PolicyInput, forget
from termdp.agents.method_params import MethodParams
from termdp.layers import precompute_weights
from termdp.runs import cost_features

# Values after ends are computed in at most this many blocks of rows.
BLOCKS = 16


@struct.dataclass
class Rollout:
    """T steps of B environments, time-major `[T, B, ...]`, as they were played.

    Attributes:
        inputs: o_t and the cost features acted on.
        starts: first steps of episodes.
        carry: the network's memory before the first row, `[B, ...]`.
        actions: a_t.
        dist_params: parameters of the action distribution at o_t.
        values: V(o_t), on the network's scale.
        next_values: V of what followed, before any reset, on the same scale.
        rewards: r_t.
        game_over: the game itself ended at t.
        stopped: the observer stopped the agent at t.
        truncated: the time limit was reached at t.
        episode_returns: sum of rewards so far, this step included.
        episode_lengths: steps so far, this one included.
        truth: true costs and stop probabilities; None if unknown.
    """

    inputs: PolicyInput
    starts: jax.Array
    carry: Any
    actions: jax.Array
    dist_params: jax.Array
    values: jax.Array
    next_values: jax.Array
    rewards: jax.Array
    game_over: jax.Array
    stopped: jax.Array
    truncated: jax.Array
    episode_returns: jax.Array
    episode_lengths: jax.Array
    truth: "Truth | None"

    @property
    def ended(self) -> jax.Array:
        """Any kind of end."""
        return self.game_over | self.stopped | self.truncated


@struct.dataclass
class Truth:
    """The observer's side of a rollout, `[T, B]`; for reports and for the oracle.

    Attributes:
        costs: c(s_t, a_t).
        window_costs: C_t.
        stop_probabilities: P(stop) at t.
    """

    costs: jax.Array
    window_costs: jax.Array
    stop_probabilities: jax.Array


@struct.dataclass
class RolloutState:
    """The state of B environments between two rollouts.

    Attributes:
        env_states: their states.
        observations: what the agent sees next.
        starts: whether that is an episode's first observation.
        carry: the network's memory.
        recent_costs: recent learned costs of this episode, the environments last
            (`cost_features.empty_memory`); zeros before its start. None if no method of
            the program learns costs.
        true_window_cost: C so far, `[B]`.
        episode_returns: reward so far.
        episode_lengths: steps so far.
    """

    env_states: Any
    observations: Any
    starts: jax.Array
    carry: Any
    recent_costs: jax.Array | None
    true_window_cost: jax.Array
    episode_returns: jax.Array
    episode_lengths: jax.Array


def initial_rollout_state(
    actor: Actor,
    env: Any,
    params: Any,
    key: jax.Array,
    num_envs: int,
    recent_costs: jax.Array | None,
) -> RolloutState:
    """B environments at the start of an episode.

    Args:
        actor: the agent's networks, for the shape of their memory.
        env: an observed environment.
        params: its parameters.
        key: random key.
        num_envs: B.
        recent_costs: an empty memory of learned costs, or None.
    """
    keys = jax.random.split(key, num_envs)
    observations, states = jax.vmap(env.reset, (0, None))(keys, params)
    return RolloutState(
        env_states=states,
        observations=observations,
        starts=jnp.ones(num_envs, bool),
        carry=actor.network.initial_carry((num_envs,)),
        recent_costs=recent_costs,
        true_window_cost=jnp.zeros(num_envs),
        episode_returns=jnp.zeros(num_envs),
        episode_lengths=jnp.zeros(num_envs, jnp.int32),
    )


class Mind(NamedTuple):
    """What an agent needs to decide: weights, learned costs, its method's numbers."""

    weights: Any
    costs: Any
    method_params: MethodParams


class _Moment(NamedTuple):
    """The environments' state between two steps, and the network's outputs for it."""

    state: RolloutState
    cost: jax.Array
    next_carry: Any
    dist_params: jax.Array
    value: jax.Array


class Final(NamedTuple):
    """What followed a step before any reset, and the network's memory then."""

    inputs: PolicyInput
    carry: Any


def collect(
    actor: Actor,
    mind: Mind,
    env: Any,
    params: Any,
    state: RolloutState,
    key: jax.Array,
    num_steps: int,
    deterministic: bool = False,
) -> tuple[RolloutState, Rollout]:
    """Play `num_steps` steps of every environment.

    The network is called once per step, on what the agent sees next. Where an episode
    ended, the value of what followed *before* the reset is computed afterwards.

    Args:
        actor: how the agent acts.
        mind: its weights, learned costs and numbers.
        env: an observed environment.
        params: its parameters.
        state: of the environments.
        key: random key.
        num_steps: T.
        deterministic: take the most probable action instead of sampling one.

    Returns:
        The environments' state after the last step, and the rollout.
    """
    bias = params.observer.bias
    inputs = PolicyInput(state.observations, _visible_costs(mind, state, bias))
    weights = precompute_weights(actor.network, mind.weights, state.carry, inputs)
    carry, (dist_params, values) = actor.network.apply(weights, state.carry, inputs)
    if mind.costs is not None:
        actions = actor.distribution.mode(dist_params)
        costs = cost_features.prepared(mind.costs, state.observations, actions)
        mind = mind._replace(costs=costs)
    mind = mind._replace(weights=weights)
    everywhere = jnp.ones_like(state.starts)
    first = _begin_anew(state, state.carry, everywhere)
    first_cost = _visible_costs(mind, first, bias)
    moment = _Moment(state, inputs.cost, carry, dist_params, values)

    def step(moment: _Moment, key: jax.Array) -> tuple[_Moment, Any]:
        return _step(actor, mind, env, params, first_cost, moment, key, deterministic)

    moment, (rollout, finals) = jax.lax.scan(
        step, moment, jax.random.split(key, num_steps)
    )
    at_ends = values_where(actor, weights, finals, rollout.ended)
    next_values = jnp.where(rollout.ended, at_ends, rollout.next_values)
    return moment.state, replace(rollout, carry=state.carry, next_values=next_values)


def values_where(
    actor: Actor, weights: Any, finals: Final, wanted: jax.Array
) -> jax.Array:
    """V of the wanted rows, `[T, B]`; 0 elsewhere.

    Ends are few: the wanted rows are put first, and the network works on them block by
    block until none are left, instead of on all rows.
    """
    rows = wanted.size
    block = -(-rows // BLOCKS)
    flat = jax.tree.map(lambda x: x.reshape(rows, *x.shape[2:]), finals)
    # Padded, so that the last block is whole; the padding is dropped.
    order = jnp.argsort(~wanted.reshape(-1), stable=True)
    order = jnp.pad(order, (0, block * BLOCKS - rows), constant_values=rows)
    count = jnp.sum(wanted)

    def evaluate(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        done, values = carry
        at = jax.lax.dynamic_slice(order, (done,), (block,))
        some = jax.tree.map(lambda x: x[at], flat)
        _, (_, found) = actor.network.apply(weights, some.carry, some.inputs)
        return done + block, values.at[at].set(found, mode="drop")

    _, values = jax.lax.while_loop(
        lambda carry: carry[0] < count, evaluate, (jnp.int32(0), jnp.zeros(rows))
    )
    return jnp.where(wanted, values.reshape(wanted.shape), 0.0)


def _step(
    actor: Actor,
    mind: Mind,
    env: Any,
    params: Any,
    first_cost: jax.Array,
    before: _Moment,
    key: jax.Array,
    deterministic: bool,
) -> tuple[_Moment, tuple[Rollout, Final]]:
    state = before.state
    num_envs = state.starts.shape[0]
    key_act, key_env = jax.random.split(key)
    actions = (
        actor.distribution.mode(before.dist_params)
        if deterministic
        else actor.distribution.sample(key_act, before.dist_params)
    )
    executed = actor.distribution.executed(actions)
    observations, env_states, rewards, _, truncated, info = jax.vmap(
        env.step, (0, 0, 0, None)
    )(jax.random.split(key_env, num_envs), state.env_states, executed, params)
    ended = info["game_over"] | info["stopped"] | truncated

    recent = state.recent_costs
    if recent is not None:
        recent = cost_features.after_step(
            mind.method_params, mind.costs, recent, state.observations, executed
        )
    after = replace(
        state,
        env_states=env_states,
        observations=observations,
        recent_costs=recent,
        true_window_cost=info["window_cost"],
        episode_returns=state.episode_returns + rewards,
        episode_lengths=state.episode_lengths + 1,
    )
    cleared = _begin_anew(after, before.next_carry, ended)

    final_cost = _visible_costs(mind, after, params.observer.bias)
    next_cost = jnp.where(ended[:, None], first_cost, final_cost)
    inputs = PolicyInput(observations, next_cost)
    carry, (dist_params, values) = actor.network.apply(
        mind.weights, cleared.carry, inputs
    )
    rollout = Rollout(
        inputs=PolicyInput(state.observations, before.cost),
        starts=state.starts,
        carry=(),
        actions=actions,
        dist_params=before.dist_params,
        values=before.value,
        next_values=values,
        rewards=rewards,
        game_over=info["game_over"],
        stopped=info["stopped"],
        truncated=truncated,
        episode_returns=after.episode_returns,
        episode_lengths=after.episode_lengths,
        truth=Truth(info["cost"], info["window_cost"], info["stop_probability"]),
    )
    moment = _Moment(cleared, inputs.cost, carry, dist_params, values)
    final = PolicyInput(info["final_observation"], final_cost)
    return moment, (rollout, Final(final, before.next_carry))


def _begin_anew(state: RolloutState, carry: Any, ended: jax.Array) -> RolloutState:
    """Clear the memory where episodes ended."""
    recent = state.recent_costs
    return replace(
        state,
        starts=ended,
        carry=forget(carry, ended),
        recent_costs=None if recent is None else jnp.where(ended, 0.0, recent),
        true_window_cost=jnp.where(ended, 0.0, state.true_window_cost),
        episode_returns=jnp.where(ended, 0.0, state.episode_returns),
        episode_lengths=jnp.where(ended, 0, state.episode_lengths),
    )


def _visible_costs(mind: Mind, state: RolloutState, bias: Any) -> jax.Array:
    return cost_features.visible_costs(
        mind.method_params,
        mind.costs,
        state.recent_costs,
        state.true_window_cost,
        bias,
    )
