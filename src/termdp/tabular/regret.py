"""Summaries of several runs: growth rates and errors."""

import numpy as np

from termdp.tabular.learner import Regret
from termdp.tabular.model import Array, TerMDP, absorb_bias


def log_log_slope(cumulative: Array) -> float:
    """Slope of log regret against log episodes over the last nine tenths.

    1 is linear regret, ½ is the theory's rate. NaN if there is no regret.
    """
    count = len(cumulative)
    places = np.unique(np.geomspace(max(count // 10, 1), count, 50).astype(int)) - 1
    heights = cumulative[places]
    if len(places) < 2 or heights.min() <= 0:
        return float("nan")
    return float(np.polyfit(np.log(places + 1.0), np.log(heights), 1)[0])


def cost_errors(model: TerMDP, runs: list[Regret]) -> tuple[Array, Array]:
    """Visits and |ĉ − c| of every cost that was visited, over all runs.

    Only informative steps count; the true costs have the bias absorbed.
    """
    truth = absorb_bias(model).costs
    visits, errors = [np.zeros(0)], [np.zeros(0)]
    for run in runs:
        if run.estimate is None:
            continue
        seen = run.estimate.visits > 0
        visits.append(run.estimate.visits[seen])
        errors.append(np.abs(run.estimate.costs - truth)[seen])
    return np.concatenate(visits), np.concatenate(errors)


def mean_coverage(run: Regret) -> float:
    """Share of the visited costs inside the learner's confidence sets, over all plans.

    NaN for a learner without such sets.
    """
    known = run.cost_coverage[np.isfinite(run.cost_coverage)]
    return float(known.mean()) if len(known) else float("nan")


def error_rate(visits: Array, errors: Array, least: int = 30) -> float:
    """Slope of log error against log visits, from `least` visits on; theory: −½."""
    used = (visits >= least) & (errors > 0)
    if used.sum() < 3 or np.ptp(visits[used]) == 0:
        return float("nan")
    return float(np.polyfit(np.log(visits[used]), np.log(errors[used]), 1)[0])
