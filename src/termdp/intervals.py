"""Means and differences of means with Student's t intervals at 95%.

Reports, evaluation and the tabular part all use these. `scipy.stats` is imported on
first use: importing it takes as long as everything else that a server needs.
"""

import dataclasses
import warnings

import numpy as np
from numpy.typing import ArrayLike

LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Interval:
    """A number and its 95% interval; the ends are NaN if there is none."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """The number behind ±, for an interval around its mean."""
        return (self.high - self.low) / 2

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.low > 0.0 or self.high < 0.0


def mean_interval(values: ArrayLike) -> Interval:
    """The mean; ends are NaN for one number, all is NaN if one is not finite."""
    if not np.isfinite(values).all():
        return Interval(np.nan, np.nan, np.nan)
    low, mean, high = mean_band(values)
    return Interval(float(mean), float(low), float(high))


def mean_band(values: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Low end, mean and high end over the first axis (the seeds), leaving out NaN.

    The ends are NaN where only one seed is known.
    """
    from scipy import stats

    known = np.ma.masked_invalid(np.asarray(values, float))
    count = np.asarray(known.count(axis=0))
    mean = np.ma.filled(known.mean(axis=0), np.nan)
    spread = np.ma.filled(known.std(axis=0, ddof=1), np.nan)
    half = stats.t.ppf(0.5 + LEVEL / 2, count - 1) * spread / np.sqrt(count)
    return mean - half, mean, mean + half


def difference(ours: ArrayLike, theirs: ArrayLike) -> Interval:
    """Difference of two means with Welch's t interval (variances may differ)."""
    from scipy import stats

    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    with warnings.catch_warnings():
        # Samples without spread are no mistake: the interval then has width 0.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        test = stats.ttest_ind(ours, theirs, equal_var=False)
        low, high = test.confidence_interval(LEVEL)
    return Interval(float(ours.mean() - theirs.mean()), float(low), float(high))
