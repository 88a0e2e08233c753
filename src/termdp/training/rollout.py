"""Play: T steps of B environments in one scan, nothing else."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from termdp.agents.actor_critic import PolicyInput, forget
from termdp.agents.methods import MethodSwitches
from termdp.agents.update import Learner, PolicyState
from termdp.training import cost_features
from termdp.training.types import Rollout, Scene


class World(NamedTuple):
    """An observed environment and its parameters."""

    env: Any
    params: Any


def initial_scene(
    world: World, learner: Learner, key: jax.Array, num_envs: int, memory: Any
) -> Scene:
    """B environments at the start of an episode.

    Args:
        world: what is played.
        learner: whose memory is carried along.
        key: random key.
        num_envs: B.
        memory: an empty memory of learned costs `[W, K, B]`, or None.
    """
    keys = jax.random.split(key, num_envs)
    observations, states = jax.vmap(world.env.reset, (0, None))(keys, world.params)
    return Scene(
        env_states=states,
        observations=observations,
        starts=jnp.ones(num_envs, bool),
        carry=learner.network.initial_carry((num_envs,)),
        recent_costs=memory,
        true_window_cost=jnp.zeros(num_envs),
        episode_returns=jnp.zeros(num_envs),
        episode_lengths=jnp.zeros(num_envs, jnp.int32),
    )


class _Moment(NamedTuple):
    """Between two steps: the scene, and what the network made of it."""

    scene: Scene
    cost: jax.Array
    next_carry: Any
    policy: jax.Array
    value: jax.Array


def collect(
    world: World,
    learner: Learner,
    policy: PolicyState,
    costs: Any,
    switches: MethodSwitches,
    scene: Scene,
    key: jax.Array,
    num_steps: int,
) -> tuple[Scene, Rollout]:
    """Play `num_steps` steps of every environment (Algorithm 2, line 4).

    The network is called once per step, on the next observation and on the one before
    any reset together: the second gives the value that an end bootstraps from.
    """
    seen = PolicyInput(scene.observations, _seen_costs(world, switches, costs, scene))
    carry, (parameters, values) = learner.network.apply(
        policy.params, scene.carry, seen
    )
    moment = _Moment(scene, seen.cost, carry, parameters, values)

    def step(moment: _Moment, key: jax.Array) -> tuple[_Moment, Rollout]:
        return _step(world, learner, policy, costs, switches, moment, key)

    moment, rollout = jax.lax.scan(step, moment, jax.random.split(key, num_steps))
    return moment.scene, replace(rollout, carry=scene.carry)


def _step(
    world: World,
    learner: Learner,
    policy: PolicyState,
    costs: Any,
    switches: MethodSwitches,
    moment: _Moment,
    key: jax.Array,
) -> tuple[_Moment, Rollout]:
    scene = moment.scene
    num_envs = scene.starts.shape[0]
    key_act, key_env = jax.random.split(key)
    actions = learner.distribution.sample(key_act, moment.policy)
    executed = learner.distribution.executed(actions)
    observations, states, rewards, _, truncated, info = jax.vmap(
        world.env.step, (0, 0, 0, None)
    )(jax.random.split(key_env, num_envs), scene.env_states, executed, world.params)
    ended = info["game_over"] | info["stopped"] | truncated

    recent = scene.recent_costs
    if recent is not None:
        newest = cost_features.channel_costs(
            switches, costs, scene.observations, executed
        )
        recent = cost_features.remember(recent, newest)
    after = replace(
        scene,
        env_states=states,
        observations=observations,
        recent_costs=recent,
        true_window_cost=info["window_cost"],
        episode_returns=scene.episode_returns + rewards,
        episode_lengths=scene.episode_lengths + 1,
    )
    cleared = _begin_anew(after, moment.next_carry, ended)

    final_cost = _seen_costs(world, switches, costs, after)
    next_cost = _seen_costs(world, switches, costs, cleared)
    both = PolicyInput(
        jnp.concatenate([observations, info["final_observation"]]),
        jnp.concatenate([next_cost, final_cost]),
    )
    carries = jax.tree.map(
        lambda a, b: jnp.concatenate([a, b]), cleared.carry, moment.next_carry
    )
    carries, (parameters, values) = learner.network.apply(policy.params, carries, both)
    rollout = Rollout(
        seen=PolicyInput(scene.observations, moment.cost),
        starts=scene.starts,
        carry=(),
        actions=actions,
        policy=moment.policy,
        values=moment.value,
        next_values=values[num_envs:],
        rewards=rewards,
        game_over=info["game_over"],
        stopped=info["stopped"],
        truncated=truncated,
        true_costs=info["cost"],
        true_window_costs=info["window_cost"],
        true_stop_probabilities=info["stop_probability"],
        episode_returns=after.episode_returns,
        episode_lengths=after.episode_lengths,
    )
    next_carry = jax.tree.map(lambda c: c[:num_envs], carries)
    moment = _Moment(
        cleared, next_cost, next_carry, parameters[:num_envs], values[:num_envs]
    )
    return moment, rollout


def _begin_anew(scene: Scene, carry: Any, ended: jax.Array) -> Scene:
    """Where episodes ended, nothing of them is remembered."""
    recent = scene.recent_costs
    return replace(
        scene,
        starts=ended,
        carry=forget(carry, ended),
        recent_costs=None if recent is None else jnp.where(ended, 0.0, recent),
        true_window_cost=jnp.where(ended, 0.0, scene.true_window_cost),
        episode_returns=jnp.where(ended, 0.0, scene.episode_returns),
        episode_lengths=jnp.where(ended, 0, scene.episode_lengths),
    )


def _seen_costs(
    world: World, switches: MethodSwitches, costs: Any, scene: Scene
) -> jax.Array:
    """The cost features before acting: learned, or true for who knows them."""
    bias = world.params.observer.bias
    true_cost = scene.true_window_cost
    known = cost_features.features(switches, true_cost - bias, true_cost)
    if scene.recent_costs is None:
        return switches.knows_costs * known
    sums = cost_features.recent_sums(scene.recent_costs, switches.window)
    learned = cost_features.accumulate(switches, costs, sums)
    estimate = cost_features.features(switches, learned.logit, learned.policy_input)
    return jnp.where(switches.knows_costs > 0, known, estimate)
