"""Values on their own scale: PopArt with a floor.

Policy and value share a trunk and one bound on the gradient. If returns are large, as
with discounts near 1, the squared error of the values uses up almost all of that bound.
So the network predicts (V − mean) / deviation, with the running mean and deviation of the
targets. Its last layer is rescaled whenever these change, so that no prediction jumps
(van Hasselt et al., arXiv:1602.07714). The deviation never falls below a floor: small
returns are not blown up. See docs/values.md.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct


@struct.dataclass
class ValueScale:
    """Running moments of the value targets; V = mean + deviation · output.

    Attributes:
        mean: of the targets.
        deviation: of the targets, never below the floor.
        square: mean of their squares.
        count: how many rollouts they include.
    """

    mean: jax.Array
    deviation: jax.Array
    square: jax.Array
    count: jax.Array


def initial_scale() -> ValueScale:
    """The first scale: outputs are the values themselves."""
    one, zero = jnp.float32(1), jnp.float32(0)
    return ValueScale(mean=zero, deviation=one, square=zero, count=zero)


def to_values(scale: ValueScale, outputs: jax.Array) -> jax.Array:
    """The network's outputs as values, in units of the rewards."""
    return scale.mean + scale.deviation * outputs


def to_outputs(scale: ValueScale, values: jax.Array) -> jax.Array:
    """Undo `to_values`."""
    return (values - scale.mean) / scale.deviation


def updated_scale(
    scale: ValueScale, targets: jax.Array, rate: Any, floor: Any
) -> ValueScale:
    """Moments with one more rollout: a plain mean at first, then a moving average.

    Args:
        scale: before.
        targets: of the values, any shape.
        rate: weight of the newest rollout in the long run.
        floor: the least deviation.
    """
    weight = jnp.maximum(rate, 1.0 / (scale.count + 1.0))
    mean = scale.mean + weight * (jnp.mean(targets) - scale.mean)
    square = scale.square + weight * (jnp.mean(targets**2) - scale.square)
    variance = jnp.maximum(square - mean**2, 0.0)
    return ValueScale(
        mean=mean,
        deviation=jnp.maximum(jnp.sqrt(variance), floor),
        square=square,
        count=scale.count + 1.0,
    )


def with_plain_values(params: Any, scale: ValueScale) -> Any:
    """Parameters whose outputs are values: for agents, which have no scale."""
    return rescaled(params, scale, initial_scale())


def rescaled(params: Any, before: ValueScale, after: ValueScale) -> Any:
    """Parameters with the same values on the new scale as on the old one.

    With V = μ + σ·(w·x + b) the last layer's w becomes w·σ/σ′ and its b becomes
    (μ + σ·b − μ′) / σ′.
    """
    heads = params["params"]["heads"]
    kernel, bias = heads["kernel"], heads["bias"]
    new = {
        "kernel": kernel.at[:, -1].multiply(before.deviation / after.deviation),
        "bias": bias.at[-1].set(to_outputs(after, to_values(before, bias[-1]))),
    }
    return {**params, "params": {**params["params"], "heads": {**heads, **new}}}
