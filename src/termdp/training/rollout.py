"""Play: T steps of B environments in one scan, nothing else."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from termdp.agents.actor_critic import PolicyInput, forget
from termdp.agents.methods import MethodSwitches
from termdp.agents.update import Learner, PolicyState
from termdp.costs import ensemble
from termdp.layers import ready
from termdp.training import cost_features
from termdp.training.types import Rollout, Scene

# A rollout's ends are looked at in this many parts, or in as few as hold them all.
BLOCKS = 16


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

    The network is called once per step, on what is seen next. Where an episode ended,
    the value of what followed *before* the reset is asked for afterwards.
    """
    seen = PolicyInput(scene.observations, _seen_costs(world, switches, costs, scene))
    params = ready(learner.network, policy.params, scene.carry, seen)
    carry, (parameters, values) = learner.network.apply(params, scene.carry, seen)
    if costs is not None:
        actions = learner.distribution.mode(parameters)
        costs = ensemble.made_ready(costs, scene.observations, actions)
    everywhere = jnp.ones_like(scene.starts)
    first = _begin_anew(scene, scene.carry, everywhere)
    first_cost = _seen_costs(world, switches, costs, first)
    moment = _Moment(scene, seen.cost, carry, parameters, values)

    def step(moment: _Moment, key: jax.Array) -> tuple[_Moment, Any]:
        return _step(world, learner, params, costs, switches, first_cost, moment, key)

    moment, (rollout, finals) = jax.lax.scan(
        step, moment, jax.random.split(key, num_steps)
    )
    at_ends = values_where(learner, params, finals, rollout.ended)
    next_values = jnp.where(rollout.ended, at_ends, rollout.next_values)
    return moment.scene, replace(rollout, carry=scene.carry, next_values=next_values)


class Final(NamedTuple):
    """What followed a step before any reset, and the network's memory then."""

    seen: PolicyInput
    carry: Any


def values_where(
    learner: Learner, params: Any, finals: Final, wanted: jax.Array
) -> jax.Array:
    """V of those rows that are wanted, `[T, B]`; 0 elsewhere.

    Ends are few: the wanted rows are put first and the network works on them block by
    block, as long as there are any, instead of on all rows.
    """
    rows = wanted.size
    block = -(-rows // BLOCKS)
    flat = jax.tree.map(lambda x: x.reshape(rows, *x.shape[2:]), finals)
    # Padded, so that the last block is whole; those rows are written nowhere.
    order = jnp.argsort(~wanted.reshape(-1), stable=True)
    order = jnp.pad(order, (0, block * BLOCKS - rows), constant_values=rows)
    count = jnp.sum(wanted)

    def evaluate(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        done, values = carry
        at = jax.lax.dynamic_slice(order, (done,), (block,))
        some = jax.tree.map(lambda x: x[at], flat)
        _, (_, found) = learner.network.apply(params, some.carry, some.seen)
        return done + block, values.at[at].set(found, mode="drop")

    _, values = jax.lax.while_loop(
        lambda carry: carry[0] < count, evaluate, (jnp.int32(0), jnp.zeros(rows))
    )
    return jnp.where(wanted, values.reshape(wanted.shape), 0.0)


def _step(
    world: World,
    learner: Learner,
    params: Any,
    costs: Any,
    switches: MethodSwitches,
    first_cost: jax.Array,
    before: _Moment,
    key: jax.Array,
) -> tuple[_Moment, tuple[Rollout, Final]]:
    scene = before.scene
    num_envs = scene.starts.shape[0]
    key_act, key_env = jax.random.split(key)
    actions = learner.distribution.sample(key_act, before.policy)
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
    cleared = _begin_anew(after, before.next_carry, ended)

    final_cost = _seen_costs(world, switches, costs, after)
    next_cost = jnp.where(ended[:, None], first_cost, final_cost)
    seen = PolicyInput(observations, next_cost)
    carry, (parameters, values) = learner.network.apply(params, cleared.carry, seen)
    rollout = Rollout(
        seen=PolicyInput(scene.observations, before.cost),
        starts=scene.starts,
        carry=(),
        actions=actions,
        policy=before.policy,
        values=before.value,
        next_values=values,
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
    moment = _Moment(cleared, seen.cost, carry, parameters, values)
    final = PolicyInput(info["final_observation"], final_cost)
    return moment, (rollout, Final(final, before.next_carry))


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
