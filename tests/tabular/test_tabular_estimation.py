"""Cost estimation: against the explicit regression, and against the truth."""

import time

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from slow_reference import design_matrix, random_model

from termdp import tabular
from termdp.tabular import absorb_bias, bounds, fit_costs, simulate
from termdp.tabular.cost_memory import CostMemory
from termdp.tabular.episodes import (
    Rollouts,
    flatten,
    merge_identical,
    rollouts_from,
)
from termdp.tabular.likelihood import (
    Parameters,
    curvature_weights,
    gradient,
    hessian_product,
    information,
    log_likelihood,
    maximise,
)

UNIFORM = np.full((4, 3, 2), 0.5)


def sample(seed=0, episodes=300, window=None, per_step=True):
    model = random_model(seed, window=window, per_step=per_step)
    return model, simulate(model, UNIFORM, episodes, seed)


def explicit_optimum(rows, labels, ridge, bias=0.0, radius=None):
    """Minimise the penalised loss on the explicit design matrix, with SciPy."""

    def loss(costs):
        logit = rows @ costs - bias
        value = np.logaddexp(0, logit).sum() - labels @ logit + ridge * costs @ costs
        slope = rows.T @ (expit(logit) - labels) + 2 * ridge * costs
        return value, slope

    limits = []
    if radius is not None:
        limits = [
            {
                "type": "ineq",
                "fun": lambda c: radius**2 - c @ c,
                "jac": lambda c: -2 * c,
            }
        ]
    found = minimize(
        loss,
        np.zeros(rows.shape[1]),
        jac=True,
        method="SLSQP" if limits else "BFGS",
        constraints=limits,
        options={"maxiter": 2000, ("ftol" if limits else "gtol"): 1e-12},
    )
    return found.x


@pytest.mark.parametrize("window", [None, 1, 2])
@pytest.mark.parametrize("ridge", [0.05, 2.0])
def test_the_optimum_is_scikit_learns(window, ridge):
    """Penalty λ‖c‖² is C = 1/(2λ)."""
    _, seen = sample(window=window)
    rows, labels = design_matrix(seen, 3, 2, 4, window, False)
    oracle = LogisticRegression(
        C=1 / (2 * ridge), fit_intercept=False, solver="newton-cholesky", tol=1e-12
    ).fit(rows, labels)
    fit = fit_costs(seen, 3, 2, 4, ridge=ridge, window=window)
    np.testing.assert_allclose(fit.costs.ravel(), oracle.coef_[0], atol=1e-6)
    assert fit.bias == 0.0
    probability = oracle.predict_proba(rows)
    likelihood = np.log(probability[np.arange(len(labels)), labels.astype(int)]).sum()
    assert fit.log_likelihood == pytest.approx(likelihood, abs=1e-6)


def test_a_stationary_bias_is_scikit_learns_intercept():
    _, seen = sample(per_step=False, episodes=500)
    rows, labels = design_matrix(seen, 3, 2, 4, None, True)
    oracle = LogisticRegression(C=1 / (2 * 0.3), solver="newton-cholesky", tol=1e-12)
    oracle.fit(rows, labels)
    fit = fit_costs(seen, 3, 2, 4, ridge=0.3, stationary=True)
    np.testing.assert_allclose(fit.costs[0].ravel(), oracle.coef_[0], atol=1e-6)
    assert fit.bias == pytest.approx(-oracle.intercept_[0], abs=1e-6)
    assert (fit.costs == fit.costs[0]).all()


def test_a_given_bias_is_an_offset():
    _, seen = sample()
    rows, labels = design_matrix(seen, 3, 2, 4, None, False)
    fit = fit_costs(seen, 3, 2, 4, bias=1.7, ridge=0.5)
    expected = explicit_optimum(rows, labels, 0.5, bias=1.7)
    np.testing.assert_allclose(fit.costs.ravel(), expected, atol=1e-5)
    assert fit.bias == 1.7


@pytest.mark.parametrize("radius", [0.3, 1.0])
def test_the_constraint_is_met_at_the_constrained_optimum(radius):
    _, seen = sample()
    rows, labels = design_matrix(seen, 3, 2, 4, None, False)
    fit = fit_costs(seen, 3, 2, 4, ridge=0.1, radius=radius)
    expected = explicit_optimum(rows, labels, 0.1, radius=radius)
    assert np.linalg.norm(fit.costs) == pytest.approx(radius, abs=1e-6)
    np.testing.assert_allclose(fit.costs.ravel(), expected, atol=2e-4)
    loose = fit_costs(seen, 3, 2, 4, ridge=0.1, radius=100.0)
    free = fit_costs(seen, 3, 2, 4, ridge=0.1)
    np.testing.assert_allclose(loose.costs, free.costs, atol=1e-9)
    nothing = fit_costs(seen, 3, 2, 4, ridge=0.1, radius=0.0)
    np.testing.assert_allclose(nothing.costs, 0.0, atol=1e-9)


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("stationary", [False, True])
def test_gradient_and_hessian_are_those_of_the_explicit_matrix(window, stationary):
    _, seen = sample(window=window, per_step=not stationary)
    rows, labels = design_matrix(seen, 3, 2, 4, window, stationary)
    data = flatten(seen, 3, 2, window, stationary)
    random = np.random.default_rng(0)
    now = Parameters(random.normal(size=data.dimension), 0.4)
    chance = expit(rows @ now.costs - 0.4)
    by_cost, by_bias = gradient(data, now, ridge=0.7)
    np.testing.assert_allclose(
        by_cost, rows.T @ (labels - chance) - 1.4 * now.costs, atol=1e-9
    )
    assert by_bias == pytest.approx(-(labels - chance).sum())
    weights = curvature_weights(data, now)
    full = np.column_stack([rows, -np.ones(len(rows))])
    hessian = full.T @ ((chance * (1 - chance))[:, None] * full)
    vector = random.normal(size=data.dimension + 1)
    by_cost, by_bias = hessian_product(data, weights, 0.7, vector[:-1], vector[-1])
    expected = hessian @ vector + 1.4 * np.append(vector[:-1], 0)
    np.testing.assert_allclose(np.append(by_cost, by_bias), expected, atol=1e-9)
    columns = np.flatnonzero(rows.sum(axis=0))
    keep = np.append(columns, len(hessian) - 1)
    np.testing.assert_allclose(
        information(data, now, columns, True), hessian[np.ix_(keep, keep)], atol=1e-9
    )


def test_merged_episodes_weigh_what_they_stand_for():
    _, seen = sample(episodes=400)
    merged, weights = merge_identical(seen, np.ones(400))
    assert len(merged) < 400
    assert weights.sum() == 400
    whole = flatten(seen, 3, 2, None, False)
    compact = flatten(merged, 3, 2, None, False, weights)
    somewhere = Parameters(np.random.default_rng(0).normal(size=24), 0.0)
    assert log_likelihood(compact, somewhere) == pytest.approx(
        log_likelihood(whole, somewhere)
    )
    np.testing.assert_allclose(
        maximise(compact, 0.3).costs, maximise(whole, 0.3).costs, atol=1e-7
    )


def test_a_memory_of_batches_fits_what_all_episodes_at_once_would():
    _, seen = sample(episodes=400)
    memory = CostMemory((4, 3, 2), 0.3, 5.0)
    assert (memory.fit(with_errors=False).costs == 0).all()
    memory.add(seen.first(150))
    memory.fit(with_errors=False)
    rest = [part[150:] for part in (seen.states, seen.actions, seen.rewards)]
    memory.add(Rollouts(*rest, seen.lengths[150:], seen.stopped[150:]))
    found = memory.fit(with_errors=True)
    whole = fit_costs(seen, 3, 2, 4, ridge=0.3, radius=5.0)
    np.testing.assert_allclose(found.costs, whole.costs, atol=1e-7)
    np.testing.assert_array_equal(found.visits, whole.visits)
    assert found.log_likelihood == pytest.approx(whole.log_likelihood)
    assert len(memory.episodes) < 400


def test_a_warm_start_changes_time_but_not_the_answer():
    _, seen = sample(episodes=2000)
    cold = fit_costs(seen, 3, 2, 4, ridge=0.2)
    early = fit_costs(seen.first(1000), 3, 2, 4, ridge=0.2)
    warm = fit_costs(seen, 3, 2, 4, ridge=0.2, start=early)
    np.testing.assert_allclose(warm.costs, cold.costs, atol=1e-7)


def test_lists_of_episodes_and_rollouts_are_the_same_data():
    _, seen = sample()
    one = fit_costs(list(seen), 3, 2, 4, ridge=0.2)
    np.testing.assert_allclose(one.costs, fit_costs(seen, 3, 2, 4, ridge=0.2).costs)


def test_the_last_step_teaches_nothing():
    _, seen = sample()
    fit = fit_costs(seen, 3, 2, 4, ridge=0.2)
    assert (fit.costs[-1] == 0).all()
    assert (fit.visits[-1] == 0).all()
    assert np.isinf(fit.standard_errors[-1]).all()
    assert fit.visits[0].sum() == len(seen)


def test_two_steps_by_hand():
    """One cost, 3 stops in 10 tries: ρ(c) ≈ 0.3 when the penalty is tiny."""
    episodes = [([0], [0], True)] * 3 + [([0, 0], [0, 0], False)] * 7
    fit = fit_costs(episodes, 1, 1, 2, ridge=1e-9)
    assert fit.costs[0, 0, 0] == pytest.approx(np.log(0.3 / 0.7), abs=1e-6)
    assert fit.standard_errors[0, 0, 0] == pytest.approx(1 / np.sqrt(10 * 0.21))
    assert fit.log_likelihood == pytest.approx(3 * np.log(0.3) + 7 * np.log(0.7))


def test_an_absorbed_bias_shows_in_the_costs_of_step_one():
    model = random_model(1)
    seen = simulate(model, UNIFORM, 60_000, 0)
    fit = fit_costs(seen, 3, 2, 4, ridge=1e-3)
    truth = absorb_bias(model).costs
    known = fit.visits > 0
    gap = np.abs(fit.costs - truth)[known] / fit.standard_errors[known]
    assert gap.max() < 4
    assert np.abs(fit.costs - model.costs)[0].max() > 0.3


def test_a_windows_bias_is_absorbed_at_every_window_length():
    model = random_model(1, window=2)
    seen = simulate(model, UNIFORM, 60_000, 0)
    fit = fit_costs(seen, 3, 2, 4, ridge=1e-3, window=2)
    truth = absorb_bias(model).costs
    known = fit.visits > 0
    # Costs of steps 1 and 3 carry −b; sums over a window are what is identified.
    assert (np.abs(fit.costs - truth)[known] < 5 * fit.standard_errors[known]).all()


def test_a_stationary_bias_is_found():
    model = random_model(2, per_step=False)
    seen = simulate(model, UNIFORM, 60_000, 0)
    fit = fit_costs(seen, 3, 2, 4, ridge=1e-3, stationary=True)
    assert abs(fit.bias - model.bias) < 4 * fit.bias_standard_error
    gap = np.abs(fit.costs - model.costs) / fit.standard_errors
    assert gap.max() < 4


def test_intervals_from_standard_errors_cover_as_promised():
    """95% intervals cover 92–98% of the costs; the local bound covers all."""
    model = tabular.random(4, 2, 4, seed=1)
    policy = np.full((4, 4, 2), 0.5)
    truth = absorb_bias(model).costs
    kappa = bounds.kappa(model)
    inside, width = [], []
    for seed in range(120):
        fit = fit_costs(simulate(model, policy, 3000, seed), 4, 2, 4, ridge=1e-2)
        known = fit.visits >= 100
        gap = np.abs(fit.costs - truth)
        inside.append((gap <= 1.96 * fit.standard_errors)[known])
        local = bounds.local_cost_bound(fit.visits, 3001, model.radius, kappa, 0.05)
        assert (gap <= local)[fit.visits > 0].all()
        width.append((local / fit.standard_errors)[known].min())
    inside = np.concatenate(inside)
    assert len(inside) > 1000
    assert 0.92 <= inside.mean() <= 0.98
    assert min(width) > 100, "the theory's bound is enormous beside them"


def test_step_wise_feedback_identifies_what_feedback_at_the_end_cannot():
    """The paper's example: only s_0 → s_1 → s_T is seen."""
    model = tabular.paper_example()
    long_way = np.zeros((3, 3), int)

    def end_of_episode(first, second):
        """Chance that the episode was stopped at all."""
        stays = expit(model.bias - first) * expit(model.bias - first - second)
        return 1 - stays

    one = (1.0, 1.0)
    first = 0.2
    target = end_of_episode(*one)
    lows, highs = -10.0, 30.0
    for _ in range(200):
        middle = (lows + highs) / 2
        if end_of_episode(first, middle) < target:
            lows = middle
        else:
            highs = middle
    assert end_of_episode(first, middle) == pytest.approx(target, abs=1e-12)
    assert abs(middle - 1.0) > 1, "other costs, the same law of what is seen"

    seen = simulate(model, long_way, 40_000, 0)
    fit = fit_costs(seen, 3, 2, 3, bias=model.bias, ridge=1e-3)
    assert abs(fit.costs[0, 0, 0] - 1.0) < 4 * fit.standard_errors[0, 0, 0] < 0.1
    assert abs(fit.costs[1, 1, 0] - 1.0) < 4 * fit.standard_errors[1, 1, 0] < 0.2
    other = Parameters(np.zeros(18), model.bias)
    other.costs[0], other.costs[6 + 2] = first, middle
    data = flatten(seen, 3, 2, None, False)
    assert log_likelihood(data, other) < fit.log_likelihood - 1000


def test_requests_that_make_no_sense_are_refused():
    _, seen = sample(episodes=10)
    with pytest.raises(ValueError, match="got neither"):
        fit_costs(seen, 3, 2, 4)
    with pytest.raises(ValueError, match="ridge > 0"):
        fit_costs(seen, 3, 2, 4, ridge=0.0)
    with pytest.raises(ValueError, match="radius ≥ 0"):
        fit_costs(seen, 3, 2, 4, ridge=1.0, radius=-1.0)
    with pytest.raises(ValueError, match="at least 1"):
        fit_costs(seen, 0, 2, 4, ridge=1.0)
    with pytest.raises(ValueError, match="0 stops in 3 steps"):
        fit_costs(
            [([0, 0, 0, 0], [0, 0, 0, 0], False)], 3, 2, 4, ridge=1.0, stationary=True
        )
    with pytest.raises(ValueError, match="1 to 4 steps"):
        rollouts_from([([0] * 5, [0] * 5, False)], (4, 3, 2))
    with pytest.raises(ValueError, match="states from 0 to 2"):
        rollouts_from([([3], [0], True)], (4, 3, 2))
    with pytest.raises(ValueError, match="as many actions"):
        rollouts_from([([0, 1], [0], True)], (4, 3, 2))


def test_no_episodes_mean_no_knowledge():
    fit = fit_costs([], 3, 2, 4, ridge=1.0)
    assert (fit.costs == 0).all()
    assert np.isinf(fit.standard_errors).all()


def test_the_default_ridge_is_the_papers():
    _, seen = sample()
    fit = fit_costs(seen, 3, 2, 4, radius=2.0)
    assert fit.ridge == pytest.approx(3 * 2 * 4 / (2.0 * 2 + 0.5))


@pytest.mark.slow
def test_a_million_steps_take_seconds():
    model = tabular.random(10, 3, 10, bias=5.0)
    seen = simulate(model, np.full((10, 10, 3), 1 / 3), 190_000, 0)
    assert np.minimum(seen.lengths, 9).sum() > 1_000_000
    begin = time.process_time()
    fit = fit_costs(seen, 10, 3, 10, ridge=0.1)
    assert time.process_time() - begin < 40
    known = fit.visits > 1000
    error = np.abs(fit.costs - absorb_bias(model).costs)[known]
    assert error.mean() < 0.15


def test_both_ways_to_a_newton_step_lead_to_the_same_optimum(monkeypatch):
    """Few costs and many steps form the Hessian; otherwise conjugate gradients."""
    _, seen = sample(episodes=3000)
    data = flatten(seen, 3, 2, None, False)
    dense = maximise(data, 0.2)
    monkeypatch.setattr("termdp.tabular.likelihood._MAX_DENSE", 0)
    by_products = maximise(data, 0.2)
    np.testing.assert_allclose(by_products.costs, dense.costs, atol=1e-7)
