"""Algorithm 2, lines 5–11 (arXiv:2205.15376): from a rollout to a better policy.

A pure function of the training state and a rollout. It does not know the environment, so
it takes rollouts from anywhere. Every method is this function with other numbers: see
`termdp.agents.methods`.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.advantages import gae
from termdp.agents.method_params import MethodParams
from termdp.agents.update import Examples, Learner, PolicyState
from termdp.agents.value_scale import ValueScale, to_values
from termdp.costs import ensemble, fit
from termdp.costs import experience as experiences
from termdp.costs.buffer import step_labels
from termdp.costs.optimism import dynamic_discount
from termdp.runs import cost_features, metrics, shaping, time_limit
from termdp.runs.collect import Rollout, RolloutState
from termdp.runs.config import TrainConfig
from termdp.runs.cost_features import FreshCosts
from termdp.runs.observation_scale import ObservationScale
from termdp.runs.shaping import ShapingState
from termdp.runs.time_limit import TimeLimit


@dataclass(frozen=True)
class Recipe:
    """What is fixed when training is compiled: networks, optimiser, sizes.

    Attributes:
        learner: how the agent acts and its optimiser.
        config: sizes and rates.
        learns_costs: whether any method of the program learns costs.
        num_iterations: planned iterations of a run.
        has_reference: whether the methods have an unobserved phase, or keep a policy.
    """

    learner: Learner
    config: TrainConfig
    learns_costs: bool
    num_iterations: int
    has_reference: bool = False


@struct.dataclass
class TrainState:
    """Everything that training changes; enough to resume exactly.

    Attributes:
        key: for all later randomness.
        iteration: how many are done.
        rollout_state: the environments' state.
        policy: the agent.
        costs: the cost ensemble; None if no method of the program learns costs.
        experience: its training data; None in the same case.
        shaping: the state of rules that change rewards.
        time_limit: how often steps reach the time limit.
        observation_scale: the scale of observations; None for no scaling.
    """

    key: jax.Array
    iteration: jax.Array
    rollout_state: RolloutState
    policy: PolicyState
    costs: Any
    experience: Any
    shaping: ShapingState
    time_limit: TimeLimit = struct.field(default_factory=time_limit.unknown)
    observation_scale: ObservationScale | None = None


def improve(
    recipe: Recipe,
    method_params: MethodParams,
    state: TrainState,
    rollout: Rollout,
    rollout_state: RolloutState,
    key: jax.Array,
) -> tuple[TrainState, metrics.Metrics]:
    """Label the rollout, learn costs from it, recompute C, improve the policy.

    Args:
        recipe: networks, optimiser, sizes.
        method_params: the method.
        state: before the rollout.
        rollout: the steps played.
        rollout_state: the environments' state after it.
        key: random key of this iteration's updates.

    Returns:
        The state after the iteration, and sums for the reports.
    """
    key_costs, key_policy = jax.random.split(key)
    rollout = in_units_of_rewards(state.policy.value_scale, rollout)
    # Lines 5–9: label the steps, train the bootstrap ensemble.
    costs, experience, cost_report = learn_costs(
        recipe, method_params, state, rollout, key_costs
    )
    # Line 10: accumulated costs, with the fresh networks. The inputs of the policy keep
    # the C that was acted on.
    recent = state.rollout_state.recent_costs
    fresh, recent = recompute_costs(recipe, method_params, costs, recent, rollout)
    # Line 11: improve the policy with the dynamic discount.
    shaped = shaping.updated(method_params, state.shaping, rollout, fresh)
    divergence = shaping.reference_divergence(recipe.learner, shaped, rollout)
    rewards = shaping.shaped_rewards(method_params, shaped, rollout, fresh, divergence)
    limit = updated_time_limit(recipe, state.time_limit, rollout)
    discounts = step_discounts(method_params, rollout, fresh, limit.share)
    examples = as_examples(recipe, rollout, rewards, discounts)
    policy, policy_report = recipe.config.algorithm.update(
        recipe.learner, state.policy, examples, key_policy
    )
    report = metrics.of_iteration(rollout, fresh)
    report |= {name: jnp.mean(value) for name, value in policy_report.items()}
    report["multiplier"] = shaped.multiplier
    report |= metrics.troubles(
        rollout_state.observations, (policy.params, costs and costs.average)
    )
    new_state = replace(
        state,
        iteration=state.iteration + 1,
        rollout_state=replace(rollout_state, recent_costs=recent),
        policy=policy,
        costs=costs,
        experience=experience,
        shaping=shaped,
        time_limit=limit,
    )
    return new_state, report | cost_report


def in_units_of_rewards(scale: ValueScale, rollout: Rollout) -> Rollout:
    """The rollout with values on the scale of rewards instead of the network's."""
    return replace(
        rollout,
        values=to_values(scale, rollout.values),
        next_values=to_values(scale, rollout.next_values),
    )


def learn_costs(
    recipe: Recipe,
    method_params: MethodParams,
    state: TrainState,
    rollout: Rollout,
    key: jax.Array,
) -> tuple[Any, Any, metrics.Metrics]:
    """Add the rollout to the experience and train the cost networks on it."""
    if not recipe.learns_costs:
        return None, None, {}
    config = recipe.config.costs
    key_add, key_fit = jax.random.split(key)
    labels = step_labels(rollout.stopped, rollout.game_over)
    experience = experiences.add(
        key_add,
        state.experience,
        rollout.inputs.observation,
        recipe.learner.distribution.executed(rollout.actions),
        rollout.starts,
        labels,
        config,
    )
    costs = ensemble.with_initial_bias(
        state.costs, jnp.sum(rollout.stopped), jnp.sum(~rollout.game_over), config
    )
    costs, report = fit.update(key_fit, costs, experience, method_params.window, config)
    return costs, experience, {"cost_loss": report.loss, "bias": report.bias}


def recompute_costs(
    recipe: Recipe,
    method_params: MethodParams,
    costs: Any,
    recent: jax.Array | None,
    rollout: Rollout,
) -> tuple[FreshCosts | None, jax.Array | None]:
    """C after each step by the fresh networks, and the memory after it."""
    if costs is None or recent is None:
        return None, None
    executed = recipe.learner.distribution.executed(rollout.actions)
    return cost_features.of_rollout(
        method_params,
        costs,
        recent,
        rollout.inputs.observation,
        executed,
        rollout.starts,
        rollout.ended[-1],
    )


def as_examples(
    recipe: Recipe, rollout: Rollout, rewards: jax.Array, discounts: jax.Array
) -> Examples:
    """The rollout with the advantages of these rewards and discounts."""
    advantages = gae(
        rewards,
        rollout.values,
        rollout.next_values,
        discounts,
        rollout.ended,
        recipe.config.gae_lambda,
    )
    return Examples(
        inputs=rollout.inputs,
        starts=rollout.starts,
        carry=rollout.carry,
        actions=rollout.actions,
        dist_params=rollout.dist_params,
        values=rollout.values,
        advantages=advantages,
        targets=advantages + rollout.values,
    )


def updated_time_limit(recipe: Recipe, limit: TimeLimit, rollout: Rollout) -> TimeLimit:
    """How often steps reach the time limit, if the discount shall count that."""
    rate = recipe.config.time_limit_rate
    if rate is None:
        return limit
    ended_before = rollout.game_over | rollout.stopped
    return time_limit.updated(limit, rollout.truncated, ended_before, rate)


def step_discounts(
    method_params: MethodParams,
    rollout: Rollout,
    fresh: FreshCosts | None,
    limit_share: jax.Array | float = 0.0,
) -> jax.Array:
    """γ_t = discount × (1 − ρ(z_t) if dynamic) × (1 − τ), 0 where nothing follows.

    1 − ρ(z_t) is the dynamic discount of section 4.2, arXiv:2205.15376. A truncation
    always bootstraps. A stop does, unless the method cuts there. The game's own end never
    does, except for methods that ignore all ends.

    With a weight β, γ_t = discount × ((1 − β)·(1 − ρ(z_t)) + β·[not stopped]). If ρ is
    right, the mean of γ_t is the same for any β. If it is wrong, a share β of γ_t still
    follows the actual stops.

    τ is the share of steps that reach the time limit (`termdp.runs.time_limit`). Methods
    that ignore all ends ignore this one, too.
    """
    survival = _survival(method_params, rollout, fresh)
    weight = method_params.stop_weight
    survival = (1.0 - weight) * survival + weight * ~rollout.stopped
    dynamic = jnp.where(method_params.dynamic_discount > 0, survival, 1.0)
    limit_share = limit_share * (1.0 - method_params.game_over_bootstraps)
    discounts = method_params.discount * dynamic * (1.0 - limit_share)
    discounts = jnp.where(
        rollout.stopped, method_params.stop_bootstraps * discounts, discounts
    )
    return jnp.where(
        rollout.game_over, method_params.game_over_bootstraps * discounts, discounts
    )


def _survival(
    method_params: MethodParams, rollout: Rollout, fresh: FreshCosts | None
) -> jax.Array:
    """1 − P(stop) of each step: learned, or true for the method that knows it."""
    learned = None if fresh is None else dynamic_discount(fresh.accumulated.logit)
    if rollout.truth is None:
        return jnp.ones_like(rollout.rewards) if learned is None else learned
    true = 1.0 - rollout.truth.stop_probabilities
    if learned is None:
        return true
    return jnp.where(method_params.knows_costs > 0, true, learned)
