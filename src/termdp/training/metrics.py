"""What an iteration reports: sums that add up over iterations, means computed later.

Everything here is a sum or a count, so that the summary of a run (its last tenth) is the
sum of its iterations' reports and never a mean of means.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.training.cost_features import FreshCosts
from termdp.training.types import Rollout

Metrics = dict[str, jax.Array]

CALIBRATION_BINS = 10


def of_iteration(played: Rollout, fresh: FreshCosts | None) -> Metrics:
    """Sums over one rollout, by name."""
    ended = played.ended
    sums = {
        "episodes": jnp.sum(ended),
        "return_sum": jnp.sum(jnp.where(ended, played.episode_returns, 0.0)),
        "length_sum": jnp.sum(jnp.where(ended, played.episode_lengths, 0)),
        "stops": jnp.sum(played.stopped),
        "game_overs": jnp.sum(played.game_over),
        "truncations": jnp.sum(played.truncated),
        "true_cost_sum": jnp.sum(played.true_costs),
        "true_survival_sum": jnp.sum(1.0 - played.true_stop_probabilities),
    }
    return sums if fresh is None else sums | _against_truth(played, fresh)


def _against_truth(played: Rollout, fresh: FreshCosts) -> Metrics:
    truth, guess = played.true_costs, jnp.mean(fresh.members, axis=1)
    deviations = jnp.std(fresh.members, axis=(0, 2))
    accumulated = fresh.accumulated
    # Steps on which the game itself ended could not have been stops.
    labelled = ~played.game_over
    logits = accumulated.mean - fresh.bias
    predicted = jax.nn.sigmoid(logits)
    error = jnp.where(labelled, predicted - played.stopped, 0.0)
    # Stops are rare: bins of equal width in the logit, not in the probability.
    place = (jnp.clip(logits, -9.0, 0.99) + 9.0) * (CALIBRATION_BINS / 10.0)
    bins = place.astype(jnp.int32)
    in_bin = jax.nn.one_hot(bins, CALIBRATION_BINS)
    return {
        "cost_n": jnp.float32(truth.size),
        "cost_abs_error": jnp.sum(jnp.abs(guess - truth)),
        "cost_true": jnp.sum(truth),
        "cost_guess": jnp.sum(guess),
        "cost_true_sq": jnp.sum(truth**2),
        "cost_guess_sq": jnp.sum(guess**2),
        "cost_product": jnp.sum(truth * guess),
        "window_cost_abs_error": jnp.sum(
            jnp.abs(accumulated.mean - played.true_window_costs)
        ),
        "brier_sum": jnp.sum(error**2),
        "labelled": jnp.sum(labelled),
        "calibration": jnp.einsum("tb,tbk->k", error, in_bin),
        "dead_members": jnp.sum(deviations < 0.01),
        "discount_sum": jnp.sum(jax.nn.sigmoid(-accumulated.logit)),
    }


def summarise(sums: dict[str, Any]) -> dict[str, float | None]:
    """Means, rates and correlations from summed reports; None where nothing is known.

    Returns:
        `return_mean`, `length_mean`, `stop_rate`, `game_over_rate` over the finished
        episodes, `cost_mae`, `cost_corr`, `window_cost_mae`, `calibration_error`,
        `brier`, `discount_mean` of the learned costs where there are any.
    """
    episodes = float(sums["episodes"])
    found: dict[str, float | None] = {
        "return_mean": _ratio(sums["return_sum"], episodes),
        "length_mean": _ratio(sums["length_sum"], episodes),
        "stop_rate": _ratio(sums["stops"], episodes),
        "game_over_rate": _ratio(sums["game_overs"], episodes),
        "cost_mae": None,
        "cost_corr": None,
        "window_cost_mae": None,
        "calibration_error": None,
        "brier": None,
        "discount_mean": None,
    }
    if "cost_n" in sums:
        n, labelled = float(sums["cost_n"]), float(sums["labelled"])
        calibration = float(np.sum(np.abs(np.asarray(sums["calibration"]))))
        found |= {
            "cost_mae": _ratio(sums["cost_abs_error"], n),
            "cost_corr": _correlation(sums),
            "window_cost_mae": _ratio(sums["window_cost_abs_error"], n),
            "calibration_error": _ratio(calibration, labelled),
            "brier": _ratio(sums["brier_sum"], labelled),
            "discount_mean": _ratio(sums["discount_sum"], n),
        }
    return found


def _ratio(total: Any, count: float) -> float | None:
    return float(total) / count if count > 0 else None


def _correlation(sums: dict[str, Any]) -> float | None:
    n = float(sums["cost_n"])
    truth, guess = float(sums["cost_true"]) / n, float(sums["cost_guess"]) / n
    true_var = float(sums["cost_true_sq"]) / n - truth**2
    guess_var = float(sums["cost_guess_sq"]) / n - guess**2
    if true_var <= 1e-12 or guess_var <= 1e-12:
        return None
    covariance = float(sums["cost_product"]) / n - truth * guess
    return float(np.clip(covariance / np.sqrt(true_var * guess_var), -1.0, 1.0))
