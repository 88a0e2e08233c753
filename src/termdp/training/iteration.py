"""One iteration of TermPG, line by line (Algorithm 2, arXiv:2205.15376).

Every other method is this one with other switches: see `termdp.agents.methods`.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from termdp.advantages import gae
from termdp.agents.methods import MethodSwitches
from termdp.agents.update import Examples, Learner, PolicyUpdate
from termdp.costs import buffer as cost_buffer
from termdp.costs import ensemble, fit
from termdp.costs.optimism import dynamic_discount
from termdp.training import cost_features, metrics, rollout
from termdp.training.config import TrainConfig
from termdp.training.cost_features import FreshCosts
from termdp.training.rollout import World
from termdp.training.types import Rollout, TrainState


class Program(NamedTuple):
    """The parts of training that are fixed when it is compiled."""

    world: World
    learner: Learner
    policy_update: PolicyUpdate
    config: TrainConfig
    learns_costs: bool


def train_iteration(
    program: Program, switches: MethodSwitches, state: TrainState
) -> tuple[TrainState, metrics.Metrics]:
    """Algorithm 2, arXiv:2205.15376: roll out, learn costs, augment, improve."""
    key, key_play, key_costs, key_policy = jax.random.split(state.key, 4)

    # Line 4: roll out the policy.
    scene, played = rollout.collect(
        program.world,
        program.learner,
        state.policy,
        state.costs,
        switches,
        state.scene,
        key_play,
        program.config.rollout_steps,
    )
    # Lines 5–9: label the steps, train the bootstrap ensemble.
    costs, buffer, cost_report = learn_costs(
        program, switches, state, played, key_costs
    )
    # Line 10: accumulated costs, with the fresh networks. The inputs of the policy keep
    # the C that was acted on.
    fresh, scene = reconsider(program, switches, costs, state, scene, played)
    # Line 11: improve the policy with the dynamic discount.
    examples = as_examples(program, switches, played, fresh)
    policy, policy_report = program.policy_update(
        program.learner, state.policy, examples, key_policy
    )
    report = metrics.of_iteration(played, fresh)
    report |= {name: jnp.mean(value) for name, value in policy_report.items()}
    new_state = TrainState(key, state.iteration + 1, scene, policy, costs, buffer)
    return new_state, report | cost_report


def learn_costs(
    program: Program,
    switches: MethodSwitches,
    state: TrainState,
    played: Rollout,
    key: jax.Array,
) -> tuple[Any, Any, metrics.Metrics]:
    """Add the rollout to the buffer and train the cost networks on it."""
    if not program.learns_costs:
        return None, None, {}
    config = program.config.costs
    key_add, key_fit = jax.random.split(key)
    labels = cost_buffer.step_labels(played.stopped, played.game_over)
    buffer = cost_buffer.add(
        key_add,
        state.buffer,
        played.seen.observation,
        program.learner.distribution.executed(played.actions),
        played.starts,
        labels,
        config,
    )
    costs = ensemble.with_initial_bias(
        state.costs, jnp.sum(played.stopped), jnp.sum(~played.game_over), config
    )
    costs, report = fit.update(key_fit, costs, buffer, switches.window, config)
    return costs, buffer, {"cost_loss": report.loss, "bias": report.bias}


def reconsider(
    program: Program,
    switches: MethodSwitches,
    costs: Any,
    state: TrainState,
    scene: Any,
    played: Rollout,
) -> tuple[FreshCosts | None, Any]:
    """C after each step by the fresh networks, and the memory to go on with."""
    recent = state.scene.recent_costs
    if costs is None or recent is None:
        return None, scene
    executed = program.learner.distribution.executed(played.actions)
    newest = cost_features.channel_costs(
        switches, costs, played.seen.observation, executed
    )
    sums = cost_features.sums_with_history(
        recent, newest, played.starts, switches.window
    )
    memory = cost_features.memory_after(recent, newest, played.starts, played.ended[-1])
    fresh = FreshCosts(
        accumulated=cost_features.accumulate(switches, costs, sums),
        members=newest[:, :-1],
        bias=jnp.mean(ensemble.biases(costs)),
    )
    return fresh, replace(scene, recent_costs=memory)


def as_examples(
    program: Program,
    switches: MethodSwitches,
    played: Rollout,
    fresh: FreshCosts | None,
) -> Examples:
    """Rewards as the method shapes them, its discounts, and the advantages."""
    advantages = gae(
        shaped_rewards(switches, played, fresh),
        played.values,
        played.next_values,
        step_discounts(switches, played, fresh),
        played.ended,
        program.config.gae_lambda,
    )
    return Examples(
        seen=played.seen,
        starts=played.starts,
        carry=played.carry,
        actions=played.actions,
        policy=played.policy,
        values=played.values,
        advantages=advantages,
        targets=advantages + played.values,
    )


def step_discounts(
    switches: MethodSwitches, played: Rollout, fresh: FreshCosts | None
) -> jax.Array:
    """γ_t of the method, 0 where it lets nothing follow.

    The dynamic discount is 1 − ρ(z_t) (section 4.2, arXiv:2205.15376). A truncation
    always bootstraps; a stop does unless the method cuts there; the game's own end
    never does, except for the method that ignores all endings.
    """
    survival = 1.0 - played.true_stop_probabilities
    if fresh is not None:
        learned = dynamic_discount(fresh.accumulated.logit)
        survival = jnp.where(switches.knows_costs > 0, survival, learned)
    dynamic = switches.horizon * survival
    discounts = jnp.where(switches.dynamic_discount > 0, dynamic, switches.discount)
    discounts = jnp.where(
        played.stopped, switches.stop_bootstraps * discounts, discounts
    )
    return jnp.where(
        played.game_over, switches.game_over_bootstraps * discounts, discounts
    )


def shaped_rewards(
    switches: MethodSwitches, played: Rollout, fresh: FreshCosts | None
) -> jax.Array:
    """r_t − p on a stop − α·C_optimistic + α·U(C)."""
    rewards = played.rewards - switches.stop_penalty * played.stopped
    if fresh is None:
        return rewards
    rewards = rewards - switches.cost_penalty * fresh.accumulated.policy_input
    return rewards + switches.bonus * fresh.accumulated.uncertainty
