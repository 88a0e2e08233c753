"""Scale observations to about 1, by the mean and variance of those seen so far.

Gymnasium's vectors come in any unit. Training updates the scale with every observation,
and the networks see the result of `scaled`. An agent is saved with the scale of its last
step and applies it in the same way.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

# Clip: how far an outlier is beyond this does not matter.
FAR = 10.0
_LEAST_VARIANCE = 1e-8


@struct.dataclass
class ObservationScale:
    """The scale of observations.

    Attributes:
        mean: of each number of an observation.
        variance: of each number of an observation.
        count: number of observations in both.
    """

    mean: jax.Array
    variance: jax.Array
    count: jax.Array


def scaled(scale: ObservationScale | None, observations: Any) -> Any:
    """(o − mean) / √(variance + 10⁻⁸), clipped to ±10; unchanged without a scale.

    Nothing else is done to an (encoded) observation `[..., *shape]` before the networks.
    """
    if scale is None:
        return observations
    centred = jnp.asarray(observations).astype(jnp.float32) - scale.mean
    return jnp.clip(centred / jnp.sqrt(scale.variance + _LEAST_VARIANCE), -FAR, FAR)


def initial_scale(kind: str, shape: tuple[int, ...]) -> ObservationScale | None:
    """The first scale: for pixels, or for vectors of a shape.

    Args:
        kind: `none`, `running` or `pixels`.
        shape: of an observation.
    """
    if kind == "none":
        return None
    if kind == "pixels":
        return ObservationScale(*map(jnp.float32, (0.0, 255.0**2, 0.0)))
    return ObservationScale(jnp.zeros(shape), jnp.ones(shape), jnp.float32(0))


def updated(scale: ObservationScale, observations: jax.Array) -> ObservationScale:
    """The scale after some more observations `[B, *shape]`.

    Means and variances of both parts are combined exactly (Chan et al., 1979).
    """
    new = jnp.float32(observations.shape[0])
    total = scale.count + new
    share = new / total
    difference = jnp.mean(observations, axis=0) - scale.mean
    variance = (
        (1.0 - share) * scale.variance
        + share * jnp.var(observations, axis=0)
        + share * (1.0 - share) * difference**2
    )
    return ObservationScale(scale.mean + share * difference, variance, total)
