"""Student's intervals against SciPy's, and against numbers worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from termdp.intervals import difference, mean_band, mean_interval


def sample(count, seed=0, mean=0.0):
    return np.random.default_rng(seed).normal(mean, 1.0, count)


def test_an_interval_by_hand():
    found = mean_interval([1.0, 2.0, 3.0])
    assert found.value == 2.0
    assert found.half_width == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)
    assert found.low == pytest.approx(2.0 - found.half_width)
    assert not found.excludes_zero


def test_one_number_has_a_mean_and_no_interval():
    found = mean_interval([4.0])
    assert found.value == 4.0
    assert np.isnan([found.low, found.high, found.half_width]).all()
    assert not found.excludes_zero


def test_a_mean_with_an_unknown_number_is_unknown():
    found = mean_interval([1.0, np.nan, 3.0])
    assert np.isnan([found.value, found.low, found.high]).all()


def test_a_band_leaves_out_what_is_unknown():
    low, mean, high = mean_band([[1.0, 1.0, np.nan], [3.0, np.nan, np.nan]])
    np.testing.assert_allclose(mean, [2.0, 1.0, np.nan])
    expected = mean_interval([1.0, 3.0])
    np.testing.assert_allclose(low, [expected.low, np.nan, np.nan])
    np.testing.assert_allclose(high, [expected.high, np.nan, np.nan])


def test_a_group_without_spread_adds_nothing_to_the_interval():
    found = difference([1.0, 2.0, 3.0], np.zeros(3))
    assert found.value == pytest.approx(2.0)
    assert found.low == pytest.approx(mean_interval([1.0, 2.0, 3.0]).low)


def test_the_mean_interval_is_scipys():
    scores = sample(7)
    expected = stats.t.interval(0.95, 6, scores.mean(), stats.sem(scores))
    found = mean_interval(scores)
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (3, 8)])
def test_the_difference_is_welchs(n, m):
    ours, theirs = sample(n, 1, 2.0), 3 * sample(m, 2)
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    found = difference(ours, theirs)
    assert found.value == pytest.approx(ours.mean() - theirs.mean())
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_difference_without_spread_is_certain():
    found = difference(np.full(3, 2.0), np.full(3, 1.0))
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)
    assert found.excludes_zero


def test_intervals_of_five_seeds_hold_what_they_promise():
    # Welch's interval of no difference contains zero about 95 times of 100.
    generator = np.random.default_rng(0)
    trials = 2000
    held = sum(
        not difference(*generator.normal(size=(2, 5))).excludes_zero
        for _ in range(trials)
    )
    assert 0.935 < held / trials < 0.972
