"""Likelihood of stops as a function of the costs, and its maximum.

Eq. (1) and Eq. (3) of arXiv:2205.15376: every step of every episode is a coin with bias
ρ(Σ c − b), so the costs are the weights of a logistic regression whose design rows are
the indicator vectors of the steps in the window. Those rows are never formed. Their
products with a vector are differences of prefix sums, O(total steps) each. A Newton
method with conjugate gradients inside needs nothing else. Other rows (features of logs,
`termdp.logs.linear`) work as well, if they have the interface of `Design`.

NumPy in double precision: the optimum should be right to 1e-6 or better, and prefix sums
of 10^6 steps are too inexact in single precision.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from termdp.tabular.episodes import StopData, prefix_sums
from termdp.tabular.model import Array

_GRADIENT_TOLERANCE = 1e-8
# gᵀH⁻¹g: squared distance to the optimum in standard errors, before the last step.
_DECREMENT_TOLERANCE = 1e-12
_MAX_NEWTON_STEPS = 200
# Up to this many costs the Hessian may be formed, if there are many steps.
_MAX_DENSE = 600


@dataclass(frozen=True, eq=False)
class Parameters:
    """Costs `[d]` in flat order, and the bias."""

    costs: Array
    bias: float


class Design(Protocol):
    """Steps, and the matrix X that adds up the costs at each; X need not be formed.

    Attributes:
        stop: 1.0 where the observer stopped, `[T]`.
        weight: how often each step counts, `[T]`.
        dimension: number of costs, d.
    """

    @property
    def stop(self) -> Array: ...  # noqa: D102
    @property
    def weight(self) -> Array: ...  # noqa: D102
    @property
    def dimension(self) -> int: ...  # noqa: D102

    def sums(self, costs: Array) -> Array:
        """X c, `[T]`."""

    def spread_back(self, per_step: Array) -> Array:
        """Xᵀ v, `[d]`."""

    def gram(self, weights: Array, columns: Array) -> Array:
        """Xᵀ W X on some of the costs."""


def window_logits(data: Design, costs: Array, bias: float) -> Array:
    """Σ_{window} c − b of every step, `[T]`."""
    return data.sums(costs) - bias


def spread_back(data: Design, per_step: Array) -> Array:
    """The transposed design matrix times `per_step`, `[d]`.

    Each cost receives the values of all steps whose window holds it.
    """
    return data.spread_back(per_step)


def log_likelihood(data: Design, parameters: Parameters) -> float:
    """Σ log ρ over stops + Σ log(1 − ρ) over the other steps."""
    logit = window_logits(data, parameters.costs, parameters.bias)
    # Eq. (1), arXiv:2205.15376, without the penalty
    terms = data.stop * logit - np.logaddexp(0.0, logit)
    # No BLAS product here: its threads wait for each other on a busy machine.
    return float(np.sum(data.weight * terms))


def gradient(data: Design, parameters: Parameters, ridge: float) -> tuple[Array, float]:
    """Gradient of log-likelihood − λ‖c‖² in the costs and in the bias."""
    logit = window_logits(data, parameters.costs, parameters.bias)
    residual = data.weight * (data.stop - expit(logit))
    by_cost = spread_back(data, residual) - 2 * ridge * parameters.costs
    return by_cost, -float(residual.sum())


def curvature_weights(data: Design, parameters: Parameters) -> Array:
    """ρ̇ of every step times its weight, `[T]`."""
    stop = expit(window_logits(data, parameters.costs, parameters.bias))
    return data.weight * stop * (1 - stop)


def hessian_product(
    data: Design, weights: Array, ridge: float, costs: Array, bias: float
) -> tuple[Array, float]:
    """Negative Hessian times the vector (costs, bias): Xᵀ W X v + 2λ v."""
    pushed = weights * window_logits(data, costs, bias)
    return spread_back(data, pushed) + 2 * ridge * costs, -float(pushed.sum())


def maximise(
    data: Design,
    ridge: float,
    radius: float | None = None,
    bias: float | None = 0.0,
    start: Parameters | None = None,
) -> Parameters:
    """Costs that maximise log-likelihood − λ‖c‖² over ‖c‖₂ ≤ L.

    On the sphere ‖c‖ = L the optimum is that of a larger penalty λ + μ, where μ is the
    multiplier of the constraint; μ is found as a root.

    Args:
        data: the steps.
        ridge: λ > 0.
        radius: L, or None for no constraint.
        bias: fixed b, or None to fit it too (without a penalty).
        start: first point; the optimum does not depend on it.
    """
    begin = start or Parameters(np.zeros(data.dimension), bias or 0.0)
    if bias is not None:
        begin = Parameters(begin.costs, bias)
    best = _newton(data, ridge, begin, bias is None)
    if radius is None or np.linalg.norm(best.costs) <= radius:
        return best
    if radius == 0:
        return _newton(data, 1e12, begin, bias is None)

    def excess(log_multiplier: float) -> float:
        nonlocal best
        best = _newton(data, ridge + np.exp(log_multiplier), best, bias is None)
        return float(np.log(np.linalg.norm(best.costs) / radius))

    low = high = np.log(ridge)
    while excess(high) > 0:
        high += 2.0
    while excess(low) < 0:
        low -= 2.0
    brentq(excess, low, high, xtol=1e-9)
    return best


def _newton(
    data: Design, ridge: float, start: Parameters, fit_bias: bool
) -> Parameters:
    """Newton's method; conjugate gradients solve for the steps."""
    now = start
    height = _penalised(data, now, ridge)
    tolerance = _GRADIENT_TOLERANCE * max(1.0, float(data.weight.sum()) * 1e-4)
    for _ in range(_MAX_NEWTON_STEPS):
        slope = _joined(gradient(data, now, ridge), fit_bias)
        if np.abs(slope).max(initial=0.0) <= tolerance:
            return now
        direction = _newton_direction(data, now, ridge, slope, fit_bias)
        rise = float(slope @ direction)
        if rise <= 1e-9 * (1 + abs(height)):
            # So near the maximum, values cannot be told apart, and full steps are right.
            now = _moved(data, now, direction, 1.0, fit_bias)
            if rise <= _DECREMENT_TOLERANCE:
                return now
            continue
        size = 1.0
        reached = -np.inf
        while reached < height + 1e-4 * size * rise and size > 1e-10:
            tried = _moved(data, now, direction, size, fit_bias)
            reached = _penalised(data, tried, ridge)
            size /= 2
        now, height = tried, reached
    raise RuntimeError(
        "the costs did not converge; raise the ridge, which is now "
        f"{ridge:g}, or give the bias"
    )


def _moved(
    data: Design, now: Parameters, direction: Array, size: float, fit_bias: bool
) -> Parameters:
    change = float(direction[-1]) if fit_bias else 0.0
    return Parameters(
        now.costs + size * direction[: data.dimension], now.bias + size * change
    )


def _newton_direction(
    data: Design, now: Parameters, ridge: float, slope: Array, fit_bias: bool
) -> Array:
    """Solve (negative Hessian) x = slope, the more exactly the smaller the slope."""
    if data.dimension <= min(_MAX_DENSE, np.sqrt(len(data.stop))):
        return _dense_direction(data, now, ridge, slope, fit_bias)
    weights = curvature_weights(data, now)
    scale = _joined(
        (spread_back(data, weights) + 2 * ridge, float(weights.sum()) + 1e-12), fit_bias
    )

    def product(vector: Array) -> Array:
        bias = float(vector[-1]) if fit_bias else 0.0
        costs = vector[: data.dimension]
        return _joined(hessian_product(data, weights, ridge, costs, bias), fit_bias)

    size = float(np.linalg.norm(slope / np.sqrt(scale)))
    return _conjugate_gradients(product, slope, scale, min(0.1, np.sqrt(size)) * size)


def _dense_direction(
    data: Design, now: Parameters, ridge: float, slope: Array, fit_bias: bool
) -> Array:
    """The same with the Hessian as a matrix: faster for many steps, few costs."""
    columns = np.arange(data.dimension)
    hessian = information(data, now, columns, fit_bias)
    hessian[columns, columns] += 2 * ridge
    return np.linalg.solve(hessian, slope)


def _conjugate_gradients(
    product: object, target: Array, scale: Array, tolerance: float
) -> Array:
    """Conjugate gradients for `product(x) = target`, preconditioned by 1/scale."""
    assert callable(product)
    solution, rest = np.zeros_like(target), target.copy()
    scaled = rest / scale
    direction, strength = scaled.copy(), float(rest @ scaled)
    for _ in range(2 * len(target) + 10):
        if np.sqrt(strength) <= tolerance:
            break
        image = product(direction)
        step = strength / float(direction @ image)
        solution += step * direction
        rest -= step * image
        scaled = rest / scale
        previous, strength = strength, float(rest @ scaled)
        direction = scaled + strength / previous * direction
    return solution


def information(
    data: Design, parameters: Parameters, columns: Array, fit_bias: bool
) -> Array:
    """Xᵀ W X on some of the costs (and the bias), as a dense matrix.

    Args:
        data: the steps.
        parameters: where to take it.
        columns: numbers of the costs wanted, sorted.
        fit_bias: whether the last row and column belong to the bias.
    """
    weights = curvature_weights(data, parameters)
    dense = weighted_gram(data, weights, columns)
    if not fit_bias:
        return dense
    edge = -spread_back(data, weights)[columns]
    corner = np.array([[prefix_sums(weights)[-1]]])
    return np.block([[dense, edge[:, None]], [edge[None], corner]])


def weighted_gram(data: Design, weights: Array, columns: Array | None = None) -> Array:
    """Σ w x xᵀ over all steps, on some of the costs (None: all), as a dense matrix."""
    if columns is None:
        columns = np.arange(data.dimension)
    return data.gram(weights, columns)


def weighted_norms(data: StopData, matrix: Array) -> Array:
    """xᵀ M x of every step, `[T]`, for a symmetric M `[d, d]`."""
    count = len(data.index)
    total, step = np.zeros(count), np.arange(count)
    for lag in range(data.longest_lag() + 1):
        pairs = matrix[data.index[: count - lag], data.index[lag:]]
        sums = prefix_sums(pairs)
        # Pairs (t, t + lag) with both in the window.
        some = np.flatnonzero(step - lag >= data.first)
        found = sums[step[some] - lag + 1] - sums[data.first[some]]
        total[some] += found if lag == 0 else 2 * found
    return np.maximum(total, 0.0)


def _penalised(data: Design, parameters: Parameters, ridge: float) -> float:
    penalty = ridge * float(parameters.costs @ parameters.costs)
    return log_likelihood(data, parameters) - penalty


def _joined(parts: tuple[Array, float], fit_bias: bool) -> Array:
    return np.append(parts[0], parts[1]) if fit_bias else parts[0]
