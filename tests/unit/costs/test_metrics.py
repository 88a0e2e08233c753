"""Metrics against hand-worked numbers and scikit-learn."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from termdp.costs import metrics


def test_hand_worked_numbers():
    probs = jnp.array([0.25, 0.5, 0.9, 0.1])
    labels = jnp.array([0, 1, 1, -1])
    mask = labels >= 0
    expected = -(math.log(0.75) + math.log(0.5) + math.log(0.9)) / 3
    assert float(metrics.log_loss(probs, labels, mask)) == pytest.approx(expected)
    expected = (0.25**2 + 0.5**2 + 0.1**2) / 3
    assert float(metrics.brier_score(probs, labels, mask)) == pytest.approx(expected)
    # Three bins of their own: |0.25 − 0|, |0.5 − 1|, |0.9 − 1|.
    error = metrics.calibration_error(probs, labels, mask)
    assert float(error) == pytest.approx((0.25 + 0.5 + 0.1) / 3)


def test_nothing_labelled_gives_zeros_not_nan():
    nothing = jnp.zeros(3, bool)
    probs, labels = jnp.full(3, 0.5), jnp.full(3, -1)
    assert float(metrics.log_loss(probs, labels, nothing)) == 0
    assert float(metrics.calibration_error(probs, labels, nothing)) == 0


def test_a_certain_and_wrong_model_has_a_finite_loss():
    loss = metrics.log_loss(jnp.zeros(2), jnp.ones(2), jnp.ones(2, bool))
    assert math.isfinite(float(loss))


def test_true_probabilities_are_calibrated():
    rng = np.random.default_rng(0)
    probs = rng.random(20_000) ** 3
    labels = rng.random(20_000) < probs
    mask = np.ones(20_000, bool)
    assert float(metrics.calibration_error(probs, labels, mask)) < 0.02
    assert float(metrics.calibration_error(probs / 2, labels, mask)) > 0.1


def test_correlation_and_its_degenerate_cases():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    expected = np.corrcoef(x, y)[0, 1]
    assert float(metrics.correlation(x, y)) == pytest.approx(expected, abs=1e-5)
    assert float(metrics.correlation(jnp.ones(4), jnp.arange(4.0))) == 0


def test_area_under_curve_equals_scikit_learn_with_ties():
    rng = np.random.default_rng(1)
    scores = rng.integers(6, size=200) / 6
    labels = rng.random(200) < scores * 0.5
    expected = sklearn_metrics.roc_auc_score(labels, scores)
    assert metrics.area_under_curve(scores, labels) == pytest.approx(expected)
    assert math.isnan(metrics.area_under_curve(scores, np.zeros(200)))


def test_quality_of_the_truth_and_of_a_dead_member():
    costs = jnp.array([0.0, 1.0, 0.0, 1.0])
    window_costs = jnp.cumsum(costs)
    members = jnp.stack([costs, jnp.zeros(4)])
    of_members = jnp.stack([window_costs, jnp.zeros(4)])
    labels = jnp.array([0, 0, 0, 1])
    quality = jax.jit(metrics.quality)(
        members, of_members, jnp.full(2, 6.0), costs, window_costs, labels
    )
    assert int(quality.dead_members) == 1
    assert float(quality.cost_corr) == pytest.approx(1.0)
    assert float(quality.cost_mae) == pytest.approx(0.25)  # half of the costs' mean
    assert float(quality.window_mae) == pytest.approx(np.mean([0, 1, 1, 2]) / 2)
