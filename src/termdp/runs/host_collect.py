"""Algorithm 2, line 4, for environments that are not JAX: the device's part of a rollout.

The host steps the environments. Once per step it asks for the actions of all copies: one
compiled call, which also keeps on the device what the update needs later. Only
observations and actions travel in between. At the end the host passes rewards and ends,
and the rollout has the same form as that of `termdp.runs.collect`.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from termdp.agents.actor_critic import Actor, PolicyInput, forget
from termdp.layers import precompute_weights
from termdp.runs import cost_features
from termdp.runs.collect import (
    Final,
    Mind,
    Rollout,
    RolloutState,
    Truth,
    values_where,
)
from termdp.runs.observation_scale import ObservationScale, scaled, updated


@struct.dataclass
class Notes:
    """What the device keeps of T steps, `[T, B, ...]`.

    Attributes:
        inputs: o_t as the networks saw it, and the cost features acted on.
        actions: a_t, as drawn.
        dist_params: parameters of the action distribution.
        values: V(o_t).
        final_costs: cost features after the step, before any reset.
        carries: the network's memory after the step, before any reset.
    """

    inputs: PolicyInput
    actions: jax.Array
    dist_params: jax.Array
    values: jax.Array
    final_costs: jax.Array
    carries: Any


@struct.dataclass
class Present:
    """The agent's state in its B episodes between two steps.

    Attributes:
        carry: the network's memory.
        recent_costs: recent learned costs; None if no costs are learned.
        scale: the scale of observations; None for no scaling.
        step: t.
    """

    carry: Any
    recent_costs: jax.Array | None
    scale: ObservationScale | None
    step: jax.Array


class Fixed(NamedTuple):
    """What does not change during a rollout.

    Attributes:
        mind: the agent's weights, learned costs and numbers.
        first_cost: cost features at the start of an episode, `[B, 2]`.
        keys: random keys, one per step.
    """

    mind: Mind
    first_cost: jax.Array
    keys: jax.Array


class Heard(NamedTuple):
    """What the host learned from T steps of the environments, `[T, B, ...]`.

    Attributes:
        finals: encoded observations after each step, before any reset; used only for
            steps at which an episode ended.
        starts: first steps of episodes.
        rewards: r_t.
        game_over: the game itself ended at t.
        stopped: somebody stopped the agent at t.
        truncated: a time limit was reached at t.
        episode_returns: sum of rewards so far, this step included.
        episode_lengths: steps so far, this one included.
        truth: costs, window costs and stop probabilities, `[T, 3, B]`; None if unknown.
        observations: what the agent sees next, encoded, `[B, ...]`.
    """

    finals: Any
    starts: Any
    rewards: Any
    game_over: Any
    stopped: Any
    truncated: Any
    episode_returns: Any
    episode_lengths: Any
    truth: Any
    observations: Any


def blank(
    num_steps: int, num_envs: int, observations: np.ndarray, has_truth: bool
) -> Heard:
    """Empty arrays for what the host records, step by step."""
    shape = (num_steps, num_envs)
    no, zeros = np.zeros(shape, bool), np.zeros(shape, np.float32)
    return Heard(
        finals=np.zeros((num_steps, *observations.shape), observations.dtype),
        starts=no,
        rewards=zeros,
        game_over=no.copy(),
        stopped=no.copy(),
        truncated=no.copy(),
        episode_returns=zeros.copy(),
        episode_lengths=np.zeros(shape, np.int32),
        truth=np.zeros((num_steps, 3, num_envs), np.float32) if has_truth else None,
        observations=observations,
    )


def begin(
    actor: Actor,
    mind: Mind,
    state: RolloutState,
    scale: ObservationScale | None,
    key: jax.Array,
    num_steps: int,
) -> tuple[Fixed, Notes, Present]:
    """Prepare a rollout: precompute weights, draw keys, make empty notes."""
    num_envs = state.starts.shape[0]
    observations = state.observations
    no_cost = jnp.zeros((num_envs, cost_features.NUM_FEATURES))
    inputs = PolicyInput(observations, no_cost)
    weights = precompute_weights(actor.network, mind.weights, state.carry, inputs)
    _, (dist_params, values) = actor.network.apply(weights, state.carry, inputs)
    actions = actor.distribution.mode(dist_params)
    if mind.costs is not None:
        costs = cost_features.prepared(mind.costs, observations, actions)
        mind = mind._replace(costs=costs)
    mind = mind._replace(weights=weights)
    nothing = state.recent_costs
    nothing = None if nothing is None else jnp.zeros_like(nothing)
    fixed = Fixed(
        mind, _visible(mind, nothing, no_cost), jax.random.split(key, num_steps)
    )
    row = Notes(inputs, actions, dist_params, values, no_cost, state.carry)
    notes = jax.tree.map(lambda x: jnp.zeros((num_steps, *x.shape), x.dtype), row)
    return fixed, notes, Present(state.carry, state.recent_costs, scale, jnp.int32(0))


def step(
    actor: Actor,
    counts: bool,
    fixed: Fixed,
    notes: Notes,
    present: Present,
    observations: Any,
    ended: Any,
) -> tuple[jax.Array, Notes, Present]:
    """Choose the actions of all copies.

    Args:
        actor: how the agent acts.
        counts: whether the scale is updated with these observations.
        fixed: what does not change during the rollout.
        notes: of this rollout.
        present: the agent's state.
        observations: encoded, `[B, ...]`.
        ended: which episodes ended in the step before, `[B]`.

    Returns:
        The actions for the environments, `[B, ...]`, the notes, and the agent's state.
    """
    mind, scale, at = fixed.mind, present.scale, present.step
    if counts and scale is not None:
        scale = updated(scale, observations)
    seen = scaled(scale, observations)
    final_cost = _visible(mind, present.recent_costs, fixed.first_cost)
    cost = jnp.where(ended[:, None], fixed.first_cost, final_cost)
    carry = forget(present.carry, ended)
    recent = present.recent_costs
    recent = None if recent is None else jnp.where(ended, 0.0, recent)
    inputs = PolicyInput(seen, cost)
    next_carry, (dist_params, values) = actor.network.apply(mind.weights, carry, inputs)
    actions = actor.distribution.sample(fixed.keys[at], dist_params)
    executed = actor.distribution.executed(actions)
    if recent is not None:
        recent = cost_features.after_step(
            mind.method_params, mind.costs, recent, seen, executed
        )
    row = (inputs, actions, dist_params, values, final_cost, next_carry)
    notes = _noted(notes, Notes(*row), at)
    return executed, notes, Present(next_carry, recent, scale, at + 1)


def _noted(notes: Notes, row: Notes, at: jax.Array) -> Notes:
    """The notes with one more row; its `final_costs` belong to the row before."""
    write = jax.lax.dynamic_update_index_in_dim
    final_costs = write(notes.final_costs, row.final_costs, jnp.maximum(at - 1, 0), 0)
    notes = jax.tree.map(lambda page, line: write(page, line, at, 0), notes, row)
    return replace(notes, final_costs=final_costs)


def finish(
    actor: Actor,
    mind: Mind,
    first_cost: jax.Array,
    notes: Notes,
    present: Present,
    first_carry: Any,
    heard: Heard,
) -> tuple[RolloutState, Rollout]:
    """The rollout, and the environments' state after it."""
    scale = present.scale
    ended = heard.game_over | heard.stopped | heard.truncated
    final_cost = _visible(mind, present.recent_costs, first_cost)
    last = notes.final_costs.shape[0] - 1
    final_costs = notes.final_costs.at[last].set(final_cost)
    seen = scaled(scale, heard.observations)
    cost = jnp.where(ended[-1][:, None], first_cost, final_cost)
    carry = forget(present.carry, ended[-1])
    _, (_, value) = actor.network.apply(mind.weights, carry, PolicyInput(seen, cost))
    finals = Final(PolicyInput(scaled(scale, heard.finals), final_costs), notes.carries)
    at_ends = values_where(actor, mind.weights, finals, ended)
    following = jnp.concatenate([notes.values[1:], value[None]])
    rollout = Rollout(
        inputs=notes.inputs,
        starts=heard.starts,
        carry=first_carry,
        actions=notes.actions,
        dist_params=notes.dist_params,
        values=notes.values,
        next_values=jnp.where(ended, at_ends, following),
        rewards=heard.rewards,
        game_over=heard.game_over,
        stopped=heard.stopped,
        truncated=heard.truncated,
        episode_returns=heard.episode_returns,
        episode_lengths=heard.episode_lengths,
        truth=None if heard.truth is None else Truth(*jnp.moveaxis(heard.truth, 1, 0)),
    )
    state = RolloutState(
        env_states=(),
        observations=seen,
        starts=ended[-1],
        carry=carry,
        recent_costs=present.recent_costs,
        true_window_cost=jnp.zeros(ended.shape[1:]),
        episode_returns=jnp.where(ended[-1], 0.0, heard.episode_returns[-1]),
        episode_lengths=jnp.where(ended[-1], 0, heard.episode_lengths[-1]),
    )
    return state, rollout


def _visible(mind: Mind, recent: jax.Array | None, like: jax.Array) -> jax.Array:
    nothing = jnp.zeros(like.shape[:1])
    return cost_features.visible_costs(
        mind.method_params, mind.costs, recent, nothing, 0.0
    )
