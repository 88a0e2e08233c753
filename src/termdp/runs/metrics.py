"""The report of an iteration: sums that add up over iterations; means come later.

Nearly everything here is a sum or a count, so that the summary of a run (its last tenth)
adds up its iterations' reports and never takes a mean of means.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.agents.methods import Method
from termdp.runs.collect import Rollout
from termdp.runs.cost_features import FreshCosts

Metrics = dict[str, jax.Array]
Reports = dict[str, np.ndarray]

CALIBRATION_BINS = 10
# The names in every summary: of a run, of a part of it, and in results on disk.
COST_NAMES = (
    *("cost_mae", "cost_rmse", "cost_corr", "window_cost_mae"),
    *("calibration_error", "brier", "bias", "dead_members"),
)
SUMMARY_NAMES = (
    *("return_mean", "length_mean", "stop_rate", "game_over_rate", "episodes"),
    "discount_mean",
    *COST_NAMES,
)
# Values of the last update; not summed.
LATEST_NAMES = ("cost_loss", "policy_loss", "value_loss", "entropy", "kl", "kl_coef")


def of_iteration(rollout: Rollout, fresh: FreshCosts | None) -> Metrics:
    """Sums over one rollout, by name."""
    ended = rollout.ended
    terms = {
        "steps": jnp.ones(ended.shape),
        "episodes": ended,
        "reward_sum": rollout.rewards,
        "return_sum": jnp.where(ended, rollout.episode_returns, 0.0),
        "length_sum": jnp.where(ended, rollout.episode_lengths, 0),
        "stops": rollout.stopped,
        "game_overs": rollout.game_over,
        "truncations": rollout.truncated,
    }
    if rollout.truth is not None:
        costs = rollout.truth.costs
        terms |= {
            "true_cost": costs,
            "true_cost_sq": costs**2,
            "true_survival_sum": 1.0 - rollout.truth.stop_probabilities,
        }
    further: Metrics = {}
    if fresh is not None:
        stop_terms, further = _against_stops(rollout, fresh)
        terms |= stop_terms
        if rollout.truth is not None:
            terms |= _against_truth(rollout, fresh)
    return _summed(terms) | further


def _summed(terms: dict[str, jax.Array]) -> Metrics:
    """The sum of each term `[T, B]`, computed together: one kernel instead of many."""
    stacked = jnp.stack([term.astype(jnp.float32) for term in terms.values()])
    return dict(zip(terms, jnp.sum(stacked, axis=(1, 2)), strict=True))


def troubles(observations: Any, learned: Any) -> Metrics:
    """How many numbers are not finite: newest observations, learned parameters."""
    return {
        "bad_observations": _not_finite(observations),
        "bad_parameters": _not_finite(learned),
    }


def _not_finite(tree: Any) -> jax.Array:
    leaves = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    if not leaves:
        return jnp.float32(0)
    flat = jnp.concatenate([leaf.reshape(-1) for leaf in leaves])
    return jnp.sum(~jnp.isfinite(flat), dtype=jnp.float32)


def _against_stops(rollout: Rollout, fresh: FreshCosts) -> tuple[Metrics, Metrics]:
    """How well the learned probabilities fit the actual stops.

    Returns:
        Terms to be summed, `[T, B]` each, and values that are not such sums.
    """
    # Steps on which the game itself ended could not have been stops.
    labelled = ~rollout.game_over
    logits = fresh.accumulated.mean - fresh.bias
    error = jnp.where(labelled, jax.nn.sigmoid(logits) - rollout.stopped, 0.0)
    # Stops are rare: bins of equal width in the logit, not in the probability.
    place = (jnp.clip(logits, -9.0, 0.99) + 9.0) * (CALIBRATION_BINS / 10.0)
    in_bin = jax.nn.one_hot(place.astype(jnp.int32), CALIBRATION_BINS)
    deviations = jnp.std(fresh.members, axis=(0, 2))
    terms = {
        "brier_sum": error**2,
        "labelled": labelled,
        "survival_sum": jax.nn.sigmoid(-fresh.accumulated.logit),
    }
    further = {
        "calibration": jnp.einsum("tb,tbk->k", error, in_bin),
        "dead_members": jnp.sum(deviations < 0.01, dtype=jnp.float32),
    }
    return terms, further


def _against_truth(rollout: Rollout, fresh: FreshCosts) -> Metrics:
    """How far the learned costs are from the true ones: terms, `[T, B]` each."""
    assert rollout.truth is not None
    truth, guess = rollout.truth.costs, jnp.mean(fresh.members, axis=1)
    return {
        "cost_abs_error": jnp.abs(guess - truth),
        "cost_guess": guess,
        "cost_guess_sq": guess**2,
        "cost_product": truth * guess,
        "window_cost_abs_error": jnp.abs(
            fresh.accumulated.mean - rollout.truth.window_costs
        ),
    }


def pack(report: Metrics) -> jax.Array:
    """All numbers of a report as one row, in the order of their names."""
    return jnp.concatenate(
        [jnp.ravel(report[name]).astype(jnp.float32) for name in sorted(report)]
    )


def unpack(rows: np.ndarray, shapes: dict[str, tuple[int, ...]]) -> Reports:
    """Undo `pack`: rows `[..., K]` to `[..., *shape]` by name."""
    found, place = {}, 0
    for name in sorted(shapes):
        size = math.prod(shapes[name])
        part = rows[..., place : place + size]
        found[name] = part.reshape(*rows.shape[:-1], *shapes[name])
        place += size
    return found


def summarise(reports: Reports, method: Method) -> dict[str, Any]:
    """Means, rates and correlations of some iterations of one run.

    Args:
        reports: by name, `[iterations, ...]`.
        method: of the run; its program may learn costs for other runs only.

    Returns:
        All of `SUMMARY_NAMES`; None for unknown ones.
    """
    sums = {name: values.sum(axis=0) for name, values in reports.items()}
    episodes = float(sums["episodes"])
    found: dict[str, Any] = dict.fromkeys(SUMMARY_NAMES) | {
        "return_mean": _ratio(sums["return_sum"], episodes),
        "length_mean": _ratio(sums["length_sum"], episodes),
        "stop_rate": _ratio(sums["stops"], episodes),
        "game_over_rate": _ratio(sums["game_overs"], episodes),
        "episodes": int(episodes),
        "discount_mean": _mean_discount(sums, method),
    }
    if method.learns_costs and "labelled" in sums:
        found |= _of_learned_costs(reports, sums)
    return found


def _mean_discount(sums: dict[str, Any], method: Method) -> float | None:
    if method.discount is None or not method.dynamic_discount:
        return method.discount
    name = "true_survival_sum" if method.knows_costs else "survival_sum"
    survival = _ratio(sums[name], float(sums["steps"])) if name in sums else None
    return None if survival is None else method.discount * survival


def _of_learned_costs(reports: Reports, sums: dict[str, Any]) -> dict[str, Any]:
    labelled, steps = float(sums["labelled"]), float(sums["steps"])
    calibration = float(np.sum(np.abs(np.asarray(sums["calibration"]))))
    found: dict[str, Any] = {
        "calibration_error": _ratio(calibration, labelled),
        "brier": _ratio(sums["brier_sum"], labelled),
        "bias": float(reports["bias"][-1]),
        "dead_members": int(reports["dead_members"][-1]),
    }
    if "cost_product" in sums:
        found |= {
            "cost_mae": _ratio(sums["cost_abs_error"], steps),
            "cost_rmse": _root_mean_square_error(sums),
            "cost_corr": _correlation(sums),
            "window_cost_mae": _ratio(sums["window_cost_abs_error"], steps),
        }
    return found


def _root_mean_square_error(sums: dict[str, Any]) -> float:
    """ℓ2 error per step: root of the mean squared difference from the true cost."""
    squares = sums["true_cost_sq"] - 2 * sums["cost_product"] + sums["cost_guess_sq"]
    return math.sqrt(max(float(squares) / float(sums["steps"]), 0.0))


def _correlation(sums: dict[str, Any]) -> float | None:
    n = float(sums["steps"])
    truth, guess = float(sums["true_cost"]) / n, float(sums["cost_guess"]) / n
    true_var = float(sums["true_cost_sq"]) / n - truth**2
    guess_var = float(sums["cost_guess_sq"]) / n - guess**2
    if true_var <= 1e-12 or guess_var <= 1e-12:
        return None
    covariance = float(sums["cost_product"]) / n - truth * guess
    return float(np.clip(covariance / np.sqrt(true_var * guess_var), -1.0, 1.0))


def _ratio(total: Any, count: float) -> float | None:
    return float(total) / count if count > 0 else None
