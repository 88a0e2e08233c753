"""Time limits that an agent does not see, as a part of its discount.

A time limit cuts an episode off, but does not end it: its last step bootstraps. So values
count what would come after the limit, although no episode gets there. With a discount
near 1 and a near limit, that is most of a value.

An agent that does not see the clock can only expect the limit as it expects a stop: with
some chance at every step. That chance τ is the share of steps that reach the limit, and
every discount is multiplied by 1 − τ (docs/values_time.md).
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct


@struct.dataclass
class TimeLimit:
    """How often steps reach the time limit.

    Attributes:
        share: τ, of the steps that neither the game nor the observer ended.
        count: how many rollouts it includes.
    """

    share: jax.Array
    count: jax.Array


def unknown() -> TimeLimit:
    """Before the first rollout: no limit."""
    return TimeLimit(share=jnp.float32(0), count=jnp.float32(0))


def updated(
    limit: TimeLimit, truncated: jax.Array, ended_before: jax.Array, rate: Any
) -> TimeLimit:
    """The share with one more rollout: a plain mean at first, then a moving average.

    Args:
        limit: before.
        truncated: where the limit was reached, `[T, B]`.
        ended_before: where the game or the observer ended the episode, `[T, B]`.
        rate: weight of the newest rollout in the long run.
    """
    possible = jnp.maximum(jnp.sum(~ended_before), 1)
    newest = jnp.sum(truncated) / possible
    weight = jnp.maximum(rate, 1.0 / (limit.count + 1.0))
    share = limit.share + weight * (newest - limit.share)
    return TimeLimit(share=share, count=limit.count + 1.0)
