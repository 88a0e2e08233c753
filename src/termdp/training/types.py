"""What flows through the training loop."""

from typing import Any

import jax
from flax import struct

from termdp.agents.actor_critic import PolicyInput
from termdp.agents.update import PolicyState


@struct.dataclass
class Rollout:
    """T steps of B environments, time-major `[T, B, ...]`, as they were played.

    Attributes:
        seen: o_t and the cost features acted on.
        starts: first steps of episodes.
        carry: the network's memory before the first row, `[B, ...]`.
        actions: a_t.
        policy: distribution parameters at o_t.
        values: V(o_t).
        next_values: V of what followed, before any reset.
        rewards: r_t.
        game_over: the game itself ended at t.
        stopped: the observer stopped the agent at t.
        truncated: the time limit was reached at t.
        true_costs: c(s_t, a_t); for reports and for methods that know it.
        true_window_costs: C_t.
        true_stop_probabilities: P(stop) at t.
        episode_returns: sum of rewards so far, this step included.
        episode_lengths: decisions so far, this one included.
    """

    seen: PolicyInput
    starts: jax.Array
    carry: Any
    actions: jax.Array
    policy: jax.Array
    values: jax.Array
    next_values: jax.Array
    rewards: jax.Array
    game_over: jax.Array
    stopped: jax.Array
    truncated: jax.Array
    true_costs: jax.Array
    true_window_costs: jax.Array
    true_stop_probabilities: jax.Array
    episode_returns: jax.Array
    episode_lengths: jax.Array

    @property
    def ended(self) -> jax.Array:
        """Some end, of whatever kind."""
        return self.game_over | self.stopped | self.truncated


@struct.dataclass
class Scene:
    """Where B environments stand between two rollouts.

    Attributes:
        env_states: their states.
        observations: what the agent sees next.
        starts: whether that is an episode's first observation.
        carry: the network's memory.
        recent_costs: the last learned costs of this episode, `[W, K, B]`, oldest
            first: K = one for each ensemble member and one for the optimistic cost;
            zeros before its start. None when no method of the program learns costs.
        true_window_cost: C so far, `[B]`.
        episode_returns: reward so far.
        episode_lengths: decisions so far.
    """

    env_states: Any
    observations: Any
    starts: jax.Array
    carry: Any
    recent_costs: jax.Array | None
    true_window_cost: jax.Array
    episode_returns: jax.Array
    episode_lengths: jax.Array


@struct.dataclass
class TrainState:
    """All that training changes: save this, and training goes on as if never stopped.

    Attributes:
        key: of all randomness to come.
        iteration: how many are done.
        scene: where the environments stand.
        policy: the agent.
        costs: the cost ensemble; None when no method of the program learns costs.
        buffer: past trajectories for it; None likewise.
    """

    key: jax.Array
    iteration: jax.Array
    scene: Scene
    policy: PolicyState
    costs: Any
    buffer: Any
