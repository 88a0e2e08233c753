"""Our statistics against SciPy's, and against numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from termdp.report import statistics

NUMBERS = st.floats(-1e3, 1e3, allow_nan=False)


def sample(count, seed=0, mean=0.0):
    return np.random.default_rng(seed).normal(mean, 1.0, count)


@settings(deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_the_interquartile_mean_drops_a_quarter_at_each_end(values):
    cut = len(values) // 4
    expected = np.mean(sorted(values)[cut : len(values) - cut])
    assert statistics.interquartile_mean(np.array(values)) == pytest.approx(
        expected, rel=1e-9, abs=1e-9
    )


def test_the_interquartile_mean_of_five_is_that_of_the_middle_three():
    assert statistics.interquartile_mean(np.array([100.0, 1.0, 2.0, 3.0, -50.0])) == 2.0


def test_the_spread_is_that_of_a_sample():
    assert statistics.mean_and_std(np.array([1.0, 3.0])) == pytest.approx((2.0, 2**0.5))


def test_the_bootstrap_interval_is_scipys():
    scores = np.random.default_rng(5).exponential(size=25)
    expected = stats.bootstrap(
        (scores,),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = statistics.bootstrap(
        {"scores": [scores]}, lambda drawn: np.mean(drawn["scores"][0], axis=-1), 20_000
    )
    assert found.value == pytest.approx(scores.mean())
    assert (found.low, found.high) == pytest.approx(
        (expected.low, expected.high), abs=0.02
    )


def test_the_pooled_interquartile_mean_has_scipys_interval_for_one_stratum():
    scores = sample(40, 3)
    expected = stats.bootstrap(
        (scores,),
        lambda values, axis: stats.trim_mean(values, 0.25, axis=axis),
        n_resamples=5000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = statistics.pooled_interquartile_mean([scores])
    assert (found.low, found.high) == pytest.approx(
        (expected.low, expected.high), abs=0.06
    )


def test_strata_are_resampled_apart():
    # Each environment is constant: resampling within them changes nothing, while
    # resampling across them would.
    found = statistics.pooled_interquartile_mean([np.full(4, 0.0), np.full(4, 100.0)])
    assert (found.low, found.high) == (50.0, 50.0)


@settings(deadline=None)
@given(
    st.lists(NUMBERS, min_size=2, max_size=8), st.lists(NUMBERS, min_size=2, max_size=8)
)
def test_the_probability_of_improvement_counts_pairs(ours, theirs):
    gaps = np.array(ours)[:, None] - np.array(theirs)[None, :]
    expected = np.mean((gaps > 0) + 0.5 * (gaps == 0))
    found = statistics.improvement_probability(np.array(ours), np.array(theirs))
    assert found == pytest.approx(expected)


def test_the_probability_is_averaged_over_environments():
    low, high = np.array([0.0, 1.0, 2.0]), np.array([10.0, 11.0, 12.0])
    found = statistics.probability_of_improvement([high, low], [low, high])
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)
    found = statistics.probability_of_improvement([high, low], [low, low])
    assert found.value == pytest.approx((1.0 + 0.5) / 2)
    assert found.low < found.value < found.high


def test_relative_improvement_takes_the_best_of_each():
    ours = [np.array([1.0, 3.0]), np.array([5.0, 7.0])]
    theirs = [np.array([4.0, 4.0]), np.array([0.0, 0.0])]
    found = statistics.relative_improvement(ours, theirs)
    assert found.value == pytest.approx(0.5)
    assert (found.low, found.high) == pytest.approx((0.25, 0.75))
    nothing = statistics.relative_improvement(ours, [np.zeros(2)])
    assert np.isnan(nothing.value)
    assert np.isnan(nothing.low)


def test_the_gap_closed_needs_a_gap():
    low, high = np.array([0.9, 1.0, 1.1]), np.array([2.9, 3.0, 3.1])
    found = statistics.gap_closed(np.array([1.9, 2.0, 2.1]), low, high)
    assert found.value == pytest.approx(0.5)
    assert 0.4 < found.low < 0.5 < found.high < 0.6
    assert statistics.gap_closed(high, low, low) is None
