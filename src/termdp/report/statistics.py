"""Small statistics for few seeds: interquartile means, comparisons, the bootstrap.

Scores are one number per seed. Where several environments are pooled they are strata: a
resample draws seeds within each of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from termdp.intervals import LEVEL, Interval, difference

RESAMPLES = 2000
Scores = np.ndarray
Strata = Sequence[Scores]


def mean_and_std(scores: Scores) -> tuple[float, float]:
    """Mean and sample standard deviation, as the paper prints them."""
    return float(np.mean(scores)), float(np.std(scores, ddof=1))


def interquartile_mean(scores: Any) -> Any:
    """Mean of the middle half along the last axis: a quarter is dropped at each end."""
    return stats.trim_mean(scores, 0.25, axis=-1)


def bootstrap(
    groups: Mapping[str, Strata],
    statistic: Callable[[Mapping[str, Strata]], Any],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """A statistic with its stratified percentile-bootstrap interval.

    Args:
        groups: lists of score arrays by name; every array `[seeds]` is a stratum,
            resampled separately, with replacement.
        statistic: takes the structure of `groups`, with arrays `[..., seeds]`, and
            returns numbers `[...]`, all resamples at once; NaN are dropped.
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
        return Interval(value, float("nan"), float("nan"))
    low, high = np.percentile(found, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Interval(value, float(low), float(high))


def pooled_interquartile_mean(strata: Strata) -> Interval:
    """Interquartile mean over all environments' scores, seeds resampled in each."""
    return bootstrap(
        {"scores": strata},
        lambda drawn: interquartile_mean(np.concatenate(drawn["scores"], axis=-1)),
    )


def improvement_probability(ours: Scores, theirs: Scores) -> Any:
    """P(a run of ours beats one of theirs) along the last axis; ties count half."""
    wins = stats.mannwhitneyu(ours, theirs, axis=-1, method="asymptotic").statistic
    return wins / (np.shape(ours)[-1] * np.shape(theirs)[-1])


def probability_of_improvement(ours: Strata, theirs: Strata) -> Interval:
    """The same averaged over environments, seeds resampled in each."""

    def statistic(drawn: Mapping[str, Strata]) -> Any:
        pairs = zip(drawn["ours"], drawn["theirs"], strict=True)
        return np.mean([improvement_probability(a, b) for a, b in pairs], axis=0)

    return bootstrap({"ours": ours, "theirs": theirs}, statistic)


def best_mean(rows: Strata) -> Any:
    """The greatest mean among several methods' scores."""
    return np.max([np.mean(scores, axis=-1) for scores in rows], axis=0)


def relative_improvement(ours: Strata, theirs: Strata) -> Interval:
    """Best of our methods over the best of theirs, minus one.

    Each resample chooses the best again, so that the interval includes the choice.
    """

    def statistic(drawn: Mapping[str, Strata]) -> Any:
        base = best_mean(drawn["theirs"])
        base = np.where(base > 0, base, np.nan)
        return best_mean(drawn["ours"]) / base - 1.0

    return bootstrap({"ours": ours, "theirs": theirs}, statistic)


def gap_closed(method: Scores, baseline: Scores, ceiling: Scores) -> Interval | None:
    """(method − baseline) / (ceiling − baseline); None unless there is a gap."""
    if difference(ceiling, baseline).low <= 0:
        return None

    def statistic(drawn: Mapping[str, Strata]) -> Any:
        ours, low, high = (np.mean(scores, axis=-1) for scores in drawn["scores"])
        return (ours - low) / np.where(high > low, high - low, np.nan)

    return bootstrap({"scores": [method, baseline, ceiling]}, statistic)
