"""Small statistics for few seeds: intervals, interquartile means, comparisons.

Scores are one number per seed. Where several environments are pooled they are strata: a
resample draws seeds within each of them. Tests compare with SciPy.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

RESAMPLES = 2000
LEVEL = 0.95
Scores = np.ndarray
Strata = Sequence[Scores]


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number and its 95% interval; no interval where it cannot be had."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return bool(self.low > 0.0 or self.high < 0.0)


def mean_and_std(scores: Scores) -> tuple[float, float]:
    """Mean and sample standard deviation, as the paper prints them."""
    return float(np.mean(scores)), float(np.std(scores, ddof=1))


def mean_interval(scores: Scores) -> Estimate:
    """Mean with Student's t interval."""
    mean, spread = mean_and_std(scores)
    count = len(scores)
    half = float(stats.t.ppf(0.5 + LEVEL / 2, count - 1)) * spread / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half)


def difference(ours: Scores, theirs: Scores) -> Estimate:
    """Difference of means with Welch's t interval: honest for five seeds."""
    gap = float(np.mean(ours) - np.mean(theirs))
    parts = [float(np.var(s, ddof=1)) / len(s) for s in (ours, theirs)]
    variance = sum(parts)
    if variance == 0.0:
        return Estimate(gap, gap, gap)
    freedom = variance**2 / sum(
        part**2 / (len(s) - 1) for part, s in zip(parts, (ours, theirs), strict=True)
    )
    half = float(stats.t.ppf(0.5 + LEVEL / 2, freedom)) * math.sqrt(variance)
    return Estimate(gap, gap - half, gap + half)


def interquartile_mean(scores: Any) -> Any:
    """Mean of the middle half along the last axis: a quarter is dropped at each end."""
    ordered = np.sort(scores, axis=-1)
    count = ordered.shape[-1]
    cut = count // 4
    return np.mean(ordered[..., cut : count - cut], axis=-1)


def bootstrap(
    groups: Mapping[str, Strata],
    statistic: Callable[[Mapping[str, Strata]], Any],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """A statistic with its stratified percentile-bootstrap interval.

    Args:
        groups: lists of score arrays by name; every array `[seeds]` is a stratum,
            resampled on its own with replacement.
        statistic: takes what `groups` is, with arrays `[..., seeds]`, and returns
            numbers `[...]`, all resamples at once; those that are NaN are dropped.
        resamples: how many.
        seed: of the resampling.
    """
    generator = np.random.default_rng(seed)

    def again(scores: Scores) -> Scores:
        places = generator.integers(0, len(scores), (resamples, len(scores)))
        return np.asarray(scores)[places]

    drawn = {name: [again(s) for s in strata] for name, strata in groups.items()}
    found = np.asarray(statistic(drawn))
    found = found[np.isfinite(found)]
    value = float(statistic(groups))
    if len(found) < resamples // 2:
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.percentile(found, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Estimate(value, float(low), float(high))


def pooled_interquartile_mean(strata: Strata) -> Estimate:
    """Interquartile mean over all environments' scores, seeds resampled in each."""
    return bootstrap(
        {"scores": strata},
        lambda drawn: interquartile_mean(np.concatenate(drawn["scores"], axis=-1)),
    )


def improvement_probability(ours: Scores, theirs: Scores) -> Any:
    """P(a run of ours beats one of theirs) along the last axis; ties count half."""
    gaps = np.asarray(ours)[..., :, None] - np.asarray(theirs)[..., None, :]
    return np.mean((gaps > 0) + 0.5 * (gaps == 0), axis=(-2, -1))


def probability_of_improvement(ours: Strata, theirs: Strata) -> Estimate:
    """The same averaged over environments, seeds resampled in each."""

    def statistic(drawn: Mapping[str, Strata]) -> Any:
        pairs = zip(drawn["ours"], drawn["theirs"], strict=True)
        return np.mean([improvement_probability(a, b) for a, b in pairs], axis=0)

    return bootstrap({"ours": ours, "theirs": theirs}, statistic)


def best_mean(rows: Strata) -> Any:
    """The greatest mean among several methods' scores."""
    return np.max([np.mean(scores, axis=-1) for scores in rows], axis=0)


def relative_improvement(ours: Strata, theirs: Strata) -> Estimate:
    """Best of our methods over the best of theirs, minus one.

    Each resample chooses the best anew, so that the interval includes the choice.
    """

    def statistic(drawn: Mapping[str, Strata]) -> Any:
        base = best_mean(drawn["theirs"])
        base = np.where(base > 0, base, np.nan)
        return best_mean(drawn["ours"]) / base - 1.0

    return bootstrap({"ours": ours, "theirs": theirs}, statistic)


def gap_closed(method: Scores, baseline: Scores, ceiling: Scores) -> Estimate | None:
    """(method − baseline) / (ceiling − baseline); None unless there is a gap."""
    if difference(ceiling, baseline).low <= 0:
        return None

    def statistic(drawn: Mapping[str, Strata]) -> Any:
        ours, low, high = (np.mean(scores, axis=-1) for scores in drawn["scores"])
        return (ours - low) / np.where(high > low, high - low, np.nan)

    return bootstrap({"scores": [method, baseline, ceiling]}, statistic)
