"""Observations on the scale of 1, by the mean and variance of what was seen.

Gymnasium's vectors come in any unit. Training counts what it sees and shows it to the
networks as `scaled`; an agent is saved with the numbers of its last step and does the
same, with nothing else in between.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

# What is so far from the mean says no more than that it is far.
FAR = 10.0
_LEAST_VARIANCE = 1e-8


@struct.dataclass
class ObservationScale:
    """What observations are scaled by.

    Attributes:
        mean: of each number of an observation.
        variance: likewise.
        count: observations that both were made of.
    """

    mean: jax.Array
    variance: jax.Array
    count: jax.Array


def scaled(scale: ObservationScale | None, observations: Any) -> Any:
    """(o − mean) / √(variance + 10⁻⁸), within ±10; as they are without a scale.

    This is all that stands between an (encoded) observation `[..., *shape]` and the
    networks.
    """
    if scale is None:
        return observations
    centred = jnp.asarray(observations).astype(jnp.float32) - scale.mean
    return jnp.clip(centred / jnp.sqrt(scale.variance + _LEAST_VARIANCE), -FAR, FAR)


def initial_scale(kind: str, shape: tuple[int, ...]) -> ObservationScale | None:
    """The scale before anything was seen: of pixels, or of vectors of a shape.

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

    Means and variances of both parts are joined exactly (Chan et al., 1979).
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
