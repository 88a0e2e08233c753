"""How good learned costs are: against the true costs, and against the stops.

Pure functions. Those without `mask` take any shape and average over all of it; those
with `mask` count only the entries where it is true, so that they work under jit.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

DEAD_BELOW = 0.01


@struct.dataclass
class CostQuality:
    """Quality of learned costs on a batch, see `quality`.

    Attributes:
        cost_mae: mean absolute error of the ensemble mean's cost per step.
        cost_corr: its correlation with the true cost; 0 if either is constant.
        window_mae: mean absolute error of the accumulated cost.
        log_loss: cross entropy of the stop probability, in nats per step.
        brier: mean squared error of the stop probability.
        calibration_error: expected calibration error of the stop probability.
        dead_members: members whose cost hardly varies over the batch.
    """

    cost_mae: jax.Array
    cost_corr: jax.Array
    window_mae: jax.Array
    log_loss: jax.Array
    brier: jax.Array
    calibration_error: jax.Array
    dead_members: jax.Array


def mean_absolute_error(estimate: jax.Array, truth: jax.Array) -> jax.Array:
    """Mean of |estimate − truth|; of costs per step or of accumulated costs."""
    return jnp.abs(estimate - truth).mean()


def correlation(estimate: jax.Array, truth: jax.Array) -> jax.Array:
    """Pearson's correlation; 0 where one of the two is constant.

    Unlike the mean absolute error, it tells a collapsed network from a learning one.
    """
    estimate, truth = estimate - estimate.mean(), truth - truth.mean()
    scale = jnp.sqrt((estimate**2).mean() * (truth**2).mean())
    covariance = (estimate * truth).mean()
    return jnp.where(scale > 0, covariance / jnp.where(scale > 0, scale, 1.0), 0.0)


def masked_mean(values: jax.Array, mask: jax.Array) -> jax.Array:
    """Mean of the values where the mask is true; 0 if it is nowhere."""
    return jnp.where(mask, values, 0.0).sum() / jnp.maximum(mask.sum(), 1)


def log_loss(probs: jax.Array, labels: jax.Array, mask: jax.Array) -> jax.Array:
    """−mean of log P(label), P(1) = probs."""
    tiny = jnp.finfo(jnp.float32).tiny
    likelihood = jnp.where(labels > 0, probs, 1.0 - probs)
    return masked_mean(-jnp.log(jnp.maximum(likelihood, tiny)), mask)


def brier_score(probs: jax.Array, labels: jax.Array, mask: jax.Array) -> jax.Array:
    """Mean of (probability − label)²."""
    return masked_mean((probs - labels) ** 2, mask)


def calibration_error(
    probs: jax.Array, labels: jax.Array, mask: jax.Array, num_bins: int = 20
) -> jax.Array:
    """Expected calibration error: Σ over bins of share · |mean P − stop rate|.

    Stops are rare, so bins of equal width would hold nearly everything in the first:
    the bins are even in √probability.
    """
    index = jnp.clip(jnp.sqrt(probs) * num_bins, 0, num_bins - 1).astype(jnp.int32)
    gap = jnp.where(mask, probs - labels, 0.0)
    sums = jax.ops.segment_sum(gap.reshape(-1), index.reshape(-1), num_bins)
    return jnp.abs(sums).sum() / jnp.maximum(mask.sum(), 1)


def dead_members(costs: jax.Array) -> jax.Array:
    """How many members' costs vary by less than a standard deviation of 0.01.

    Args:
        costs: `[M, ...]`.
    """
    spread = costs.reshape(costs.shape[0], -1).std(axis=1)
    return (spread < DEAD_BELOW).sum()


def quality(
    costs: jax.Array,
    window_costs: jax.Array,
    biases: jax.Array,
    true_costs: jax.Array,
    true_window_costs: jax.Array,
    labels: jax.Array,
) -> CostQuality:
    """All of the above for a batch of steps `[...]`.

    The ensemble's stop probability is the mean of its members', each with its own bias:
    a member's costs must never be mixed with another's bias.

    Args:
        costs: c_m, `[M, ...]`.
        window_costs: C_m, `[M, ...]`.
        biases: b_m, `[M]`.
        true_costs: c, `[...]`.
        true_window_costs: C, `[...]`.
        labels: 1 stopped, 0 not stopped, −1 no label, `[...]`.
    """
    shape = (-1,) + (1,) * true_costs.ndim
    probs = jax.nn.sigmoid(window_costs - biases.reshape(shape)).mean(axis=0)
    mask = labels >= 0
    return CostQuality(
        cost_mae=mean_absolute_error(costs.mean(axis=0), true_costs),
        cost_corr=correlation(costs.mean(axis=0), true_costs),
        window_mae=mean_absolute_error(window_costs.mean(axis=0), true_window_costs),
        log_loss=log_loss(probs, labels, mask),
        brier=brier_score(probs, labels, mask),
        calibration_error=calibration_error(probs, labels, mask),
        dead_members=dead_members(costs),
    )


def area_under_curve(scores: np.ndarray, labels: np.ndarray) -> float:
    """Probability that a positive scores above a negative, ties counting half.

    NumPy, for tests and reports. Labels may be probabilities: then the positives and
    negatives are expected ones, and the luck of drawing them is out of the figure.
    Without both kinds of labels it is not a number.
    """
    labels = np.ravel(labels).astype(np.float64)
    _, group = np.unique(np.ravel(scores), return_inverse=True)
    positives = np.bincount(group, weights=labels)
    negatives = np.bincount(group, weights=1.0 - labels)
    below = np.cumsum(negatives) - negatives / 2
    pairs = positives.sum() * negatives.sum()
    return float(positives @ below / pairs) if pairs > 0 else float("nan")
