"""How well models explain held-out sessions, and how sure that is."""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata

from termdp.costs.buffer import NO_LABEL, STOPPED

BOOTSTRAPS = 2000
# More sessions than this are resampled in random groups, which is as good and faster.
_MOST_DRAWN = 4096


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out likelihoods of several cases.

    Attributes:
        cases: windows, delays, or spans of leaks, `[W]`.
        log_likelihoods: of each session under each case, `[W, R]`.
        logits: per group, held-out logits `[W, …]`, if they are kept.
    """

    cases: tuple[Any, ...]
    log_likelihoods: np.ndarray
    logits: list[np.ndarray] = dataclasses.field(default_factory=list)

    @property
    def means(self) -> np.ndarray:
        """Held-out log-likelihood per session, `[W]`."""
        return self.log_likelihoods.mean(axis=1)

    @property
    def best(self) -> Any:
        """The case with the highest likelihood."""
        return self.cases[int(np.argmax(self.means))]

    @property
    def shortest_as_good(self) -> Any:
        """The one-standard-error rule: the smallest case that is hardly worse.

        Its likelihood per session is below the best one's by no more than one standard
        error of that difference, taken session by session.
        """
        gap = self.log_likelihoods[int(np.argmax(self.means))] - self.log_likelihoods
        error = gap.std(axis=1) / np.sqrt(gap.shape[1])
        fair = np.flatnonzero(gap.mean(axis=1) <= error)
        return min(self.cases[index] for index in fair)

    def bootstrap(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """95% intervals of the means `[W, 2]`, and the best case of each resample.

        Whole sessions are drawn with replacement: steps of one session are not
        independent.
        """
        rng = np.random.default_rng(seed)
        each, total = self.log_likelihoods, self.log_likelihoods.shape[1]
        if total > _MOST_DRAWN:
            group = rng.integers(_MOST_DRAWN, size=total)
            each = np.stack([np.bincount(group, row, _MOST_DRAWN) for row in each])
        count = each.shape[1]
        drawn = rng.multinomial(count, np.full(count, 1 / count), size=BOOTSTRAPS)
        means = drawn @ each.T / total
        intervals = np.quantile(means, [0.025, 0.975], axis=0).T
        return intervals, np.array(self.cases)[np.argmax(means, axis=1)]


def calibration(
    labels: np.ndarray, logits: np.ndarray, num_bins: int = 10
) -> list[dict[str, float]]:
    """Predicted and observed shares of stops, in bins with equally many expected stops.

    Args:
        labels: STOPPED, NOT_STOPPED or NO_LABEL, of any shape.
        logits: held-out, of the same shape.
        num_bins: the largest number of bins.
    """
    used = labels != NO_LABEL
    chance = expit(logits[used].astype(np.float64))
    stopped = labels[used] == STOPPED
    order = np.argsort(chance)
    share = np.cumsum(chance[order]) / chance.sum()
    place = np.minimum((share * num_bins).astype(int), num_bins - 1)
    rows = []
    for index in range(num_bins):
        inside = order[place == index]
        if len(inside):
            rate = float(stopped[inside].mean())
            error = float(np.sqrt(max(rate * (1 - rate), 1e-12) / len(inside)))
            rows.append(
                {
                    "predicted": float(chance[inside].mean()),
                    "observed": rate,
                    "standard_error": error,
                    "steps": len(inside),
                }
            )
    return rows


def calibration_error(rows: list[dict[str, float]]) -> float:
    """Mean over the bins of |predicted − observed| share of stops."""
    return float(np.mean([abs(row["predicted"] - row["observed"]) for row in rows]))


def area_under_curve(labels: np.ndarray, logits: np.ndarray) -> float:
    """Chance that a step with a stop has a higher logit than one without.

    Ties count half.
    """
    used = labels != NO_LABEL
    stopped = labels[used] == STOPPED
    ranks = rankdata(logits[used])
    stops, others = int(stopped.sum()), int((~stopped).sum())
    above = float(ranks[stopped].sum()) - stops * (stops + 1) / 2
    return above / (stops * others)


def step_log_likelihoods(labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Log P(what happened) at each step; 0 where there is no label."""
    signed = np.where(labels == STOPPED, logits, -logits)
    return np.where(labels == NO_LABEL, 0.0, -np.logaddexp(0.0, -signed))


def constant_logits(labels: np.ndarray, fold: np.ndarray, num_folds: int) -> np.ndarray:
    """Held-out logits of a model with the same chance at every step.

    Args:
        labels: `[n]`.
        fold: which fold each step is held out in, `[n]`.
        num_folds: how many there are.
    """
    stops = np.bincount(fold, labels == STOPPED, num_folds)
    steps = np.bincount(fold, labels != NO_LABEL, num_folds)
    stops, steps = stops.sum() - stops, steps.sum() - steps
    rate = (stops + 0.5) / (steps + 1.0)
    return (np.log(rate) - np.log1p(-rate))[fold]


def session_folds(ends: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Which fold each session is held out in, `[S]`; every fold has its share of stops.

    Args:
        ends: how each session ended, `[S]`.
        count: folds.
        seed: of the order.
    """
    rng = np.random.default_rng([seed, 0xF01D])
    fold = np.zeros(len(ends), np.int64)
    for kind in (True, False):
        some = np.flatnonzero((ends == STOPPED) == kind)
        fold[rng.permutation(some)] = np.arange(len(some)) % count
    return fold
