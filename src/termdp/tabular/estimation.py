"""`fit_costs`: the observer's costs from the stops of observed episodes.

Section 3 and appendix J of arXiv:2205.15376. Maximum likelihood with the penalty λ‖c‖₂²
(which adds 2λ to the Hessian), over the ball ‖c‖₂ ≤ L.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from termdp.tabular.bounds import default_ridge
from termdp.tabular.episodes import (
    Episode,
    Rollouts,
    StopData,
    flatten,
    rollouts_from,
)
from termdp.tabular.likelihood import (
    Parameters,
    information,
    log_likelihood,
    maximise,
)
from termdp.tabular.model import Array, IntArray

# No standard errors for more visited costs than this: the matrix would be too large.
MAX_DENSE = 4000


@dataclass(frozen=True, eq=False)
class CostEstimate:
    """Estimated costs.

    Attributes:
        costs: ĉ, `[H, S, A]`; costs of step H get no data and are 0 (unless
            stationary).
        bias: b as given or fitted; 0.0 when it is absorbed in the costs of step 1.
        log_likelihood: of the data at the estimate, without the penalty.
        visits: how many informative steps each cost has, `[H, S, A]`.
        standard_errors: from the inverse Hessian of the penalised likelihood,
            `[H, S, A]`; infinite where there is no data, NaN if more than `MAX_DENSE`
            costs were visited.
        bias_standard_error: of a fitted bias, otherwise 0.0.
        ridge: λ as used.
    """

    costs: Array
    bias: float
    log_likelihood: float
    visits: IntArray
    standard_errors: Array
    bias_standard_error: float
    ridge: float
    parameters: Parameters = field(repr=False)


def fit_costs(  # noqa: PLR0913 - all of them are choices a user may want to make
    episodes: Sequence[Episode] | Rollouts,
    num_states: int,
    num_actions: int,
    horizon: int,
    bias: float | None = None,
    ridge: float | None = None,
    radius: float | None = None,
    window: int | None = None,
    stationary: bool = False,
    start: CostEstimate | None = None,
) -> CostEstimate:
    """Estimate the observer's costs by penalised maximum likelihood.

    Args:
        episodes: `(states, actions, stopped)` each, arrays up to and including the last
            step played; or the result of `simulate`.
        num_states: S.
        num_actions: A.
        horizon: H; a stop at step H is never seen, as the episode ends anyway.
        bias: b if it is known. None absorbs −b into the costs of step 1 (and, with a
            window w, of steps w + 1, 2w + 1, …) and returns a bias of 0.0; with
            `stationary` the bias is identifiable and is fitted, without a penalty.
        ridge: λ > 0; None takes SAH/(L√H + ½) and then needs `radius`.
        radius: L, a bound on the estimate: ‖c‖₂ ≤ L; None means no constraint.
        window: how many steps the observer remembers; None means all.
        stationary: one cost per (s, a) for all steps; penalty and radius then count
            each of them once.
        start: an earlier estimate to start from, which saves time.

    Examples:
        >>> import numpy as np
        >>> from termdp import tabular
        >>> model = tabular.paper_example()
        >>> long_path = np.zeros((model.horizon, model.num_states), int)
        >>> seen = tabular.simulate(model, long_path, 20_000, 0)
        >>> fit = tabular.fit_costs(seen, 3, 2, 3, bias=model.bias, ridge=1e-3)
        >>> bool(abs(fit.costs[0, 0, 0] - model.cost[0, 0]) < 0.1)
        True
    """
    shape = (horizon, num_states, num_actions)
    ridge = _checked_ridge(ridge, radius, shape)
    if not isinstance(episodes, Rollouts):
        episodes = rollouts_from(episodes, shape)
    data = flatten(episodes, num_states, num_actions, window, stationary)
    is_bias_fitted = stationary and bias is None
    stops = float(data.weight @ data.stop)
    if is_bias_fitted and stops in (0.0, float(data.weight.sum())):
        raise ValueError(
            f"the bias cannot be fitted from {int(stops)} stops in "
            f"{int(data.weight.sum())} steps; give bias=…"
        )
    fixed = None if is_bias_fitted else float(bias or 0.0)
    # Eq. (3), arXiv:2205.15376
    best = maximise(data, ridge, radius, fixed, start.parameters if start else None)
    return summarise(data, best, ridge, shape, is_bias_fitted)


def summarise(
    data: StopData,
    best: Parameters,
    ridge: float,
    shape: tuple[int, int, int],
    is_bias_fitted: bool = False,
    with_errors: bool = True,
) -> CostEstimate:
    """Counts, likelihood and, if wanted, standard errors at the optimum."""
    visits = np.bincount(data.index, data.weight, data.dimension).astype(np.int64)
    errors = np.full(data.dimension, np.inf)
    bias_error = 0.0
    columns = np.flatnonzero(visits)
    if len(columns) > MAX_DENSE or not with_errors:
        errors[columns], bias_error = np.nan, np.nan
    elif len(columns):
        hessian = information(data, best, columns, is_bias_fitted)
        hessian[np.arange(len(columns)), np.arange(len(columns))] += 2 * ridge
        spread = np.sqrt(np.diag(np.linalg.inv(hessian)))
        errors[columns] = spread[: len(columns)]
        bias_error = float(spread[-1]) if is_bias_fitted else 0.0
    return CostEstimate(
        costs=_per_step(best.costs, shape),
        bias=best.bias,
        log_likelihood=log_likelihood(data, best),
        visits=_per_step(visits, shape).astype(np.int64),
        standard_errors=_per_step(errors, shape),
        bias_standard_error=bias_error,
        ridge=ridge,
        parameters=best,
    )


def _per_step(flat: Array | IntArray, shape: tuple[int, int, int]) -> Array:
    """`[H, S, A]` from the flat order; stationary values are repeated for each step."""
    return np.broadcast_to(flat.reshape(-1, *shape[1:]), shape).copy()


def _checked_ridge(
    ridge: float | None, radius: float | None, shape: tuple[int, int, int]
) -> float:
    if min(shape) < 1:
        raise ValueError(f"expected at least 1 step, state and action, got {shape}")
    if radius is not None and not radius >= 0:
        raise ValueError(f"expected a radius ≥ 0, got {radius!r}")
    if ridge is not None:
        if not 0 < ridge < np.inf:
            raise ValueError(f"expected a ridge > 0, got {ridge!r}")
        return float(ridge)
    if radius is None:
        raise ValueError(
            "expected a ridge, or a radius L from which λ = SAH/(L√H + ½) follows; got "
            "neither"
        )
    return default_ridge(shape[1], shape[2], shape[0], radius)
