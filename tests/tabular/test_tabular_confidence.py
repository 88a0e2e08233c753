"""Likelihood-ratio sets: radii by hand, and against integrals and slow convex solvers."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.special import expit
from slow_reference import design_matrix, random_model

from termdp import tabular
from termdp.tabular import absorb_bias, confidence, simulate
from termdp.tabular.episodes import flatten, rollouts_from
from termdp.tabular.likelihood import (
    Parameters,
    maximise,
    weighted_gram,
    weighted_norms,
)

UNIFORM = np.full((4, 3, 2), 0.5)
SHAPE = (4, 3, 2)


def sample(seed=0, episodes=300, window=None):
    model = random_model(seed, window=window)
    return model, simulate(model, UNIFORM, episodes, seed)


def explicit_loss(rows, labels, costs):
    logit = rows @ costs
    return np.logaddexp(0, logit).sum() - labels @ logit


def coin(stops, tries):
    """One cost, seen `tries` times: the likelihood of a coin."""
    episodes = [([0], [0], True)] * stops
    episodes += [([0, 0], [0, 0], False)] * (tries - stops)
    return flatten(rollouts_from(episodes, (2, 1, 1)), 1, 1, None, False)


def test_ofuglbs_radius_by_hand():
    """D = 12, G = 1000, L = 2: s = 12/4000."""
    found = confidence.ofuglb_radius(12, 1000.0, 2.0, 0.05)
    assert found == pytest.approx(math.log(20) + 12 * math.log(4000 / 12) + 12)
    # Little data: the whole ball is as good as a shrunk one.
    assert confidence.ofuglb_radius(12, 1.0, 2.0, 0.05) == pytest.approx(
        math.log(20) + 4
    )
    assert confidence.ofuglb_radius(12, 0.0, 2.0, 0.05) == pytest.approx(math.log(20))
    shares = np.linspace(1e-4, 1, 100_000)
    over = -12 * np.log(shares) + 4000 * shares
    assert found == pytest.approx(math.log(20) + over.min(), abs=1e-3)


def test_the_mixtures_radius_by_hand():
    """One cost in 10 tries, σ² = 2: ½ log(1 + 2 · 10/4) + ĉ²/4 + log 20."""
    best = Parameters(np.array([0.6, 0.0]), 0.0)
    found = confidence.mixture_radius(coin(3, 10), best, 2.0, 0.05)
    assert found == pytest.approx(math.log(20) + math.log(6) / 2 + 0.36 / 4)
    assert confidence.prior_variance(8, 4.0) == 2.0


def test_the_mixtures_radius_is_that_of_the_explicit_matrix():
    _, seen = sample()
    rows, _ = design_matrix(seen, 3, 2, 4, None, False)
    best = Parameters(np.random.default_rng(0).normal(size=24), 0.0)
    _, volume = np.linalg.slogdet(np.eye(24) + 0.7 / 4 * rows.T @ rows)
    expected = math.log(20) + volume / 2 + best.costs @ best.costs / 1.4
    data = flatten(seen, 3, 2, None, False)
    found = confidence.mixture_radius(data, best, 0.7, 0.05)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("stops", "tries"), [(0, 3), (3, 10), (50, 80), (300, 400)])
def test_radii_are_no_smaller_than_the_martingale_itself_allows(stops, tries):
    """log 1/δ − log of the prior's mean likelihood ratio, by integration."""
    data, radius, variance = coin(stops, tries), 2.0, 4.0
    best = maximise(data, 0.05, radius)
    centre = best.costs[0]

    def loss(cost):
        return tries * np.logaddexp(0, cost) - stops * cost

    def ratio(cost):
        return math.exp(loss(centre) - loss(cost))

    def gaussian(cost):
        return math.exp(-(cost**2) / 8) / math.sqrt(8 * math.pi)

    uniform = quad(ratio, -2, 2, points=[centre])[0] / 4
    least = math.log(20) - math.log(uniform)
    slope = confidence.lipschitz(data)
    assert slope == tries
    found = confidence.ofuglb_radius(1, slope, radius, 0.05)
    assert least <= found <= least + 6
    mixed = quad(lambda c: ratio(c) * gaussian(c), -15, 15, points=[centre])[0]
    least = math.log(20) - math.log(mixed)
    assert least <= confidence.mixture_radius(data, best, variance, 0.05) <= least + 1


def test_the_lipschitz_constant_is_never_exceeded():
    _, seen = sample()
    rows, labels = design_matrix(seen, 3, 2, 4, None, False)
    bound = confidence.lipschitz(flatten(seen, 3, 2, None, False))
    assert bound == pytest.approx(np.linalg.norm(rows.sum(axis=0)))
    random = np.random.default_rng(0)
    steep = [
        np.linalg.norm(rows.T @ (expit(rows @ costs) - labels))
        for costs in (*random.normal(0, 3, (50, 24)), np.full(24, 50.0))
    ]
    assert bound / 2 < max(steep) <= bound


def test_membership_by_hand():
    """3 stops in 10 tries: the loss rises by 10 log 2 − 6.1 when c = 0."""
    data = coin(3, 10)
    best = Parameters(np.array([math.log(3 / 7), 0.0]), 0.0)
    excess = 10 * math.log(2) + 3 * math.log(0.3) + 7 * math.log(0.7)
    nothing = np.zeros(2)
    assert confidence.is_member(data, best, nothing, 1.0, excess + 1e-9)
    assert not confidence.is_member(data, best, nothing, 1.0, excess - 1e-9)
    assert not confidence.is_member(data, best, np.array([1.1, 0.0]), 1.0, 1e9)


@pytest.mark.parametrize("logit", [-3.0, -0.2, 0.0, 1.0, 8.0])
@pytest.mark.parametrize("reach", [1e-6, 5e-4, 2e-3, 0.5, 3.0, 30.0])
def test_the_curvature_floor_is_the_least_quotient(logit, reach):
    away = np.geomspace(min(reach, 0.01), reach, 2000)
    shifts = np.concatenate([-away, away])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    place = (nodes + 1) / 2
    stop = expit(logit + shifts[:, None] * place)
    means = (stop * (1 - stop) * (1 - place)) @ weights / 2
    found = float(confidence.curvature_floor(logit, reach))
    assert found <= means.min() * (1 + 1e-6)
    assert found == pytest.approx(means.min(), rel=2e-3)


@pytest.mark.parametrize("window", [None, 2])
def test_gram_and_norms_are_those_of_the_explicit_matrix(window):
    _, seen = sample(window=window)
    rows, _ = design_matrix(seen, 3, 2, 4, window, False)
    data = flatten(seen, 3, 2, window, False)
    random = np.random.default_rng(0)
    weights = random.random(len(rows))
    np.testing.assert_allclose(
        weighted_gram(data, weights), rows.T @ (weights[:, None] * rows), atol=1e-9
    )
    half = random.normal(size=(24, 24))
    matrix = half @ half.T
    np.testing.assert_allclose(
        weighted_norms(data, matrix), np.einsum("ti,ij,tj->t", rows, matrix, rows)
    )


def set_of(seen, radius, variance, delta=0.05):
    data = flatten(seen, 3, 2, None, False)
    best = maximise(data, 1 / (2 * variance), radius)
    beta_squared = confidence.mixture_radius(data, best, variance, delta)
    return data, best, beta_squared


@pytest.mark.parametrize("episodes", [5, 100, 3000])
@pytest.mark.parametrize("radius", [0.8, 5.0])
def test_the_ellipsoid_contains_the_boundary_of_the_set(episodes, radius):
    """Also where the estimate lies on the sphere (L = 0.8)."""
    _, seen = sample(episodes=episodes)
    rows, labels = design_matrix(seen, 3, 2, 4, None, False)
    data, best, beta_squared = set_of(seen, radius, radius**2 / 18)
    found = confidence.ellipsoid(data, best, radius, beta_squared)
    matrix = np.linalg.inv(found.inverse)
    lowest = explicit_loss(rows, labels, best.costs)
    random = np.random.default_rng(0)
    used = []
    for direction in random.normal(size=(200, 24)):
        direction[-6:] = 0

        def outside(size, direction=direction):
            costs = best.costs + size * direction
            rise = explicit_loss(rows, labels, costs) - lowest - beta_squared
            return max(rise, np.linalg.norm(costs) - radius)

        if outside(1e-9) > 0:  # the estimate is on the sphere, and this leads out of it
            continue
        step = brentq(outside, 1e-9, 1e3) * direction
        assert step @ matrix @ step <= found.size * (1 + 1e-6)
        used.append(step @ matrix @ step / found.size)
    assert len(used) > 50
    if episodes == 3000 and radius == 5.0:
        assert max(used) > 0.5, "it is not much larger than need be"


def least_cost(rows, labels, best, number, radius, beta_squared):
    """Exact least cost in the set, by a general solver on the explicit matrix."""
    lowest = explicit_loss(rows, labels, best.costs)
    found = minimize(
        lambda c: c[number],
        best.costs,
        jac=lambda c: np.eye(len(c))[number],
        method="SLSQP",
        constraints=[
            {
                "type": "ineq",
                "fun": lambda c: beta_squared - explicit_loss(rows, labels, c) + lowest,
                "jac": lambda c: rows.T @ (labels - expit(rows @ c)),
            },
            {
                "type": "ineq",
                "fun": lambda c: radius**2 - c @ c,
                "jac": lambda c: -2 * c,
            },
        ],
        options={"maxiter": 500},
    )
    return found.x[number]


def test_least_costs_are_below_the_exact_ones_and_not_far_below():
    model, seen = sample(episodes=3000)
    radius = model.radius
    rows, labels = design_matrix(seen, 3, 2, 4, None, False)
    data, best, beta_squared = set_of(seen, radius, radius**2 / 18)
    half = confidence.ellipsoid(data, best, radius, beta_squared).half_widths
    ratios = []
    for number in range(0, 18, 3):
        exact = least_cost(rows, labels, best, number, radius, beta_squared)
        assert best.costs[number] - half[number] <= exact + 1e-6
        ratios.append(half[number] / (best.costs[number] - exact))
    assert np.median(ratios) < 1.25
    assert max(ratios) < 2


def test_without_episodes_every_cost_may_be_anything_in_the_ball():
    data = flatten(simulate(random_model(0), UNIFORM, 0, 0), 3, 2, None, False)
    best = maximise(data, 1.0, 2.0)
    found = confidence.ellipsoid(data, best, 2.0, math.log(20))
    assert (found.half_widths >= 2.0).all()


@pytest.mark.slow
def test_the_truth_is_in_the_sets_after_every_episode_as_promised():
    """The same episodes at many sizes: one miss in a run counts. δ = 0.05."""
    model = tabular.random(4, 2, 4, seed=1)
    truth = absorb_bias(model).costs.copy()
    truth[-1] = 0
    variance = confidence.prior_variance(24, model.radius)
    kept, tight = {"ofuglb": [], "mixture": [], "a tenth": []}, []
    for seed in range(60):
        seen = simulate(model, np.full(model.shape, 0.5), 3000, seed)
        inside = dict.fromkeys(kept, True)
        for count in (3, 10, 30, 100, 300, 1000, 3000):
            data = flatten(seen.first(count), 4, 2, None, False)
            best = maximise(data, 1 / (2 * variance), model.radius)
            slope = confidence.lipschitz(data)
            mixture = confidence.mixture_radius(data, best, variance, 0.05)
            radii = {
                "ofuglb": confidence.ofuglb_radius(24, slope, model.radius, 0.05),
                "mixture": mixture,
                "a tenth": mixture / 10,
            }
            for name, radius in radii.items():
                inside[name] &= confidence.is_member(
                    data, best, truth.ravel(), model.radius, radius
                )
        for name in kept:
            kept[name].append(inside[name])
        found = confidence.ellipsoid(data, best, model.radius, mixture)
        gap = np.abs(best.costs - truth.ravel())
        assert (gap <= found.half_widths).all()
        tight.append(mixture / radii["ofuglb"])
    assert np.mean(kept["ofuglb"]) >= 0.95
    assert np.mean(kept["mixture"]) >= 0.95
    assert np.mean(kept["a tenth"]) < 0.5, "a set can be too small"
    assert max(tight) < 0.4, "the Gaussian prior's set is much the smaller"
