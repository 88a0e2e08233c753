"""An ensemble of cost networks, each with its own bias, as one stacked pytree.

Section 4.1, arXiv:2205.15376: M networks c_m and learnable biases b_m;
P(stop) = ρ(Σ over the window of c_m − b_m). The members share nothing: each has its own
initial weights, optimiser and draws of experience.
"""

from dataclasses import replace
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import optax
from flax import struct

from termdp import layers
from termdp.cost_network import ActionSpec, CostNetwork
from termdp.costs.config import CostConfig
from termdp.costs.episode_scorer import UNITS, EpisodeScorer
from termdp.layers import fastest_precision

# Adam treats each number separately: over stacked members it is one Adam per member.
ADAM = optax.scale_by_adam()


@struct.dataclass
class CostParams:
    """The learned parameters.

    Attributes:
        network: parameters of the networks, the member axis `[M]` first.
        bias: b_m, `[M]`.
    """

    network: Any
    bias: jax.Array


@struct.dataclass
class CostState:
    """The ensemble and its optimiser; all arrays except `network`.

    Attributes:
        params: parameters of all members, as the optimiser has them.
        average: their running mean, for predictions (Polyak averaging): Adam's steps make
            the parameters wander, the more so the rarer stops are.
        optimiser: Adam's averages, same structure as `params`.
        has_bias: whether the biases were set from the first rollouts, a scalar.
        network: the architecture (static).
        variables: the members' variables with precomputed weights, or None.
    """

    params: CostParams
    average: CostParams
    optimiser: Any
    has_bias: jax.Array
    network: CostNetwork | EpisodeScorer = struct.field(pytree_node=False)
    variables: Any = None


def make_network(
    actions: ActionSpec, config: CostConfig
) -> CostNetwork | EpisodeScorer:
    """The network that the settings describe."""
    network = CostNetwork(
        actions=actions,
        kind=config.network,
        channels=config.channels,
        filters=config.filters,
        hidden=config.hidden,
        nonnegative=config.nonnegative,
        precision=fastest_precision(config.precision),
        outputs=UNITS if config.memory == "gru" else None,
    )
    if config.memory == "window":
        return network
    return EpisodeScorer(network, config.memory)


def init(
    key: jax.Array, example_obs: jax.Array, action_spec: ActionSpec, config: CostConfig
) -> CostState:
    """New networks; the biases are 0 until `with_initial_bias`.

    Args:
        key: random key.
        example_obs: one observation, without batch axes; only its shape matters.
        action_spec: shape and type of actions.
        config: settings.
    """
    network = make_network(action_spec, config)
    obs = jnp.zeros(jnp.shape(example_obs), jnp.float32)
    shape = () if action_spec.discrete else (action_spec.size,)
    action = jnp.zeros(shape, jnp.int32 if action_spec.discrete else jnp.float32)
    inputs: tuple[Any, ...] = (obs, action)
    if isinstance(network, EpisodeScorer):
        inputs = (network.initial_memory(()), *inputs)
    keys = jax.random.split(key, config.members)
    weights = jax.vmap(lambda k: network.init(k, *inputs)["params"])(keys)
    params = CostParams(network=weights, bias=jnp.zeros(config.members))
    return CostState(
        params=params,
        average=params,
        optimiser=ADAM.init(params),
        has_bias=jnp.zeros((), bool),
        network=network,
    )


def initial_bias(
    stops: jax.Array | int, steps: jax.Array | int, offset: float
) -> jax.Array:
    """b_0 = −logit((stops + 1) / (steps + 2)) + offset.

    With costs near 0, the bias alone would have to explain the base rate of stops. The
    costs will explain a part, so the bias begins above that.

    Args:
        stops: how many steps ended in a stop.
        steps: how many steps have a label.
        offset: usually 1 … 2.
    """
    rate = (stops + 1.0) / (steps + 2.0)
    return jnp.log1p(-rate) - jnp.log(rate) + offset


def with_initial_bias(
    state: CostState, stops: jax.Array, steps: jax.Array, config: CostConfig
) -> CostState:
    """Set the biases from the first rollouts; does nothing if they are set already."""
    first = initial_bias(stops, steps, config.bias_offset)
    bias = jnp.where(state.has_bias, state.params.bias, first)
    average = jnp.where(state.has_bias, state.average.bias, first)
    return replace(
        state,
        params=replace(state.params, bias=bias),
        average=replace(state.average, bias=average),
        has_bias=jnp.ones((), bool),
    )


def member_costs(state: CostState, obs: jax.Array, actions: jax.Array) -> jax.Array:
    """Each member's costs `[M, ...]` of the same observations and actions `[...]`."""
    variables = state.variables or {"params": state.average.network}
    members = jax.vmap(state.network.apply, in_axes=(0, None, None))
    return cast(jax.Array, members(variables, obs, actions))


def precompute_weights(
    state: CostState, obs: jax.Array, actions: jax.Array
) -> CostState:
    """The ensemble with precomputed weights, for loops over `member_costs`."""
    prepare = partial(layers.precompute_weights, state.network)
    members = jax.vmap(prepare, in_axes=(0, None, None))
    variables = {"params": state.average.network}
    return replace(state, variables=members(variables, obs, actions))


def apply_member(
    network: CostNetwork, weights: Any, obs: jax.Array, actions: jax.Array
) -> jax.Array:
    """One member's costs `[...]`."""
    costs = network.apply({"params": weights}, obs, actions)
    return cast(jax.Array, costs)


def biases(state: CostState) -> jax.Array:
    """b_m, `[M]`, for `member_costs`."""
    return state.average.bias
