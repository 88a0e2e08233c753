"""Scores of held-out sessions, against scikit-learn and by hand."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from termdp.costs.buffer import NO_LABEL, STOPPED
from termdp.logs.held_out import (
    HeldOut,
    area_under_curve,
    calibration,
    calibration_error,
    constant_logits,
    session_folds,
    step_log_likelihoods,
)


@pytest.fixture(scope="module")
def steps():
    rng = np.random.default_rng(0)
    logits = np.round(rng.normal(-2, 1, 20_000), 1)  # with ties
    labels = (rng.random(20_000) < expit(logits)).astype(np.int8)
    labels[::7] = NO_LABEL
    return labels, logits


def test_area_and_loss_are_those_of_scikit_learn(steps):
    labels, logits = steps
    used = labels != NO_LABEL
    expected = roc_auc_score(labels[used], logits[used])
    assert area_under_curve(labels, logits) == pytest.approx(expected, abs=1e-12)
    each = step_log_likelihoods(labels, logits)
    assert np.all(each[~used] == 0.0)
    expected = log_loss(labels[used], expit(logits[used]))
    assert -each[used].mean() == pytest.approx(expected)


def test_calibration_sees_what_is_off(steps):
    labels, logits = steps
    rows = calibration(labels, logits)
    assert len(rows) == 10
    assert sum(row["steps"] for row in rows) == (labels != NO_LABEL).sum()
    expected = [row["predicted"] * row["steps"] for row in rows]
    assert max(expected) < 1.2 * min(expected)  # equally many expected stops
    assert calibration_error(rows) < 0.02
    assert calibration_error(calibration(labels, logits + 1)) > 0.1


def test_a_constant_chance_is_that_of_the_other_folds():
    labels = np.array([1, 0, 0, 0, NO_LABEL, 0, 1, 0], np.int8)
    fold = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    chance = expit(constant_logits(labels, fold, 2))
    assert chance[0] == pytest.approx(1.5 / 4)  # fold 1: a stop in three steps
    assert chance[7] == pytest.approx(1.5 / 5)


def test_folds_share_the_stops():
    ends = np.array([STOPPED] * 8 + [0] * 20)
    fold = session_folds(ends, 4, 0)
    assert np.bincount(fold[:8]).tolist() == [2] * 4
    assert np.bincount(fold).tolist() == [7] * 4


def test_the_one_standard_error_rule_takes_the_shortest_that_is_hardly_worse():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=400)
    best = rng.normal(size=400)
    found = HeldOut((1, 5, 20), np.stack([best - 1.0, best - 0.01 + noise, best]))
    assert (found.best, found.shortest_as_good) in ((20, 5), (5, 5))
    clear = HeldOut((1, 5, 20), np.stack([best - 1.0, best - 0.5, best]))
    assert (clear.best, clear.shortest_as_good) == (20, 20)


def test_bootstraps_of_many_sessions_are_drawn_in_groups():
    rng = np.random.default_rng(0)
    each = rng.normal(size=(2, 20_000))
    intervals, best = HeldOut((1, 2), each).bootstrap(0)
    width = np.diff(intervals, axis=1)[:, 0]
    np.testing.assert_allclose(width, 2 * 1.96 / np.sqrt(20_000), rtol=0.1)
    assert set(best) <= {1, 2}
