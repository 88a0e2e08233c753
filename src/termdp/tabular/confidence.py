"""Confidence sets of later work: all costs that fit the stops nearly as well as the best.

A likelihood-ratio set keeps every c with

    ‖c‖₂ ≤ L  and  loss(c) − loss(ĉ) ≤ β²,  loss = −log-likelihood.

With probability ≥ 1 − δ the true costs are in it after every episode. β² contains neither
κ nor a power of L. The proof is short. Averaged over a prior, the likelihood ratio
against the truth is a martingale; the probability that it ever exceeds 1/δ is ≤ δ
(Ville). So for every law P at once, even one chosen afterwards,

    loss(truth) ≤ mean loss under P + KL(P, prior) + log 1/δ.

Two priors, two radii:

- `ofuglb_radius`: uniform on the ball, P the same ball shrunk at ĉ. This is OFUGLB (Lee,
  Yun and Jun, arXiv:2407.13977, Theorem 3.1).
- `mixture_radius`: Gaussian, and P a Gaussian at ĉ. Costs that were never visited add
  nothing, and log n counts half.

ĉ may be any point (of the ball, for the first), so a penalised fit works.

The planner needs one cost per (h, s, a). The smallest c_h(s, a) in the set is a convex
problem for each of them, too slow for every plan. `ellipsoid` contains the set and has
its smallest costs in closed form.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from termdp.tabular.episodes import StopData
from termdp.tabular.likelihood import (
    Parameters,
    gradient,
    log_likelihood,
    spread_back,
    weighted_gram,
    weighted_norms,
    window_logits,
)
from termdp.tabular.model import Array

# Rounds that shrink the ellipsoid. It is valid after each; 5 give nearly all the gain.
_ROUNDS = 5
# Below this distance the quotient of `curvature_floor` loses digits.
_NEAR = 1e-3


def prior_variance(dimension: int, radius: float) -> float:
    """σ² = L²/d: costs drawn from N(0, σ²) have ‖c‖₂ = L in the mean square.

    Args:
        dimension: d, how many costs affect the stops: (H − 1)SA.
        radius: L.
    """
    return radius**2 / dimension


def lipschitz(data: StopData) -> float:
    """G ≥ ‖∇ loss‖: ‖Σ x‖₂ over all steps, as x ≥ 0 and |ρ − stop| ≤ 1."""
    return float(np.linalg.norm(spread_back(data, data.weight)))


def ofuglb_radius(dimension: int, slope: float, radius: float, delta: float) -> float:
    """β² = log 1/δ + min over 0 < s ≤ 1 of d log 1/s + 2LGs.

    P is the ball shrunk to a share s of its size at ĉ: KL d log 1/s, and no point of it
    is farther than 2Ls from ĉ. The minimum is at s = d/(2LG), or at 1 if that is more.

    Args:
        dimension: d, how many costs affect the stops: (H − 1)SA.
        slope: G.
        radius: L.
        delta: δ.
    """
    across = 2 * radius * slope
    share = min(1.0, dimension / across) if across > 0 else 1.0
    # Theorem 3.1, arXiv:2407.13977
    return float(-np.log(delta) - dimension * np.log(share) + across * share)


def mixture_radius(
    data: StopData, best: Parameters, variance: float, delta: float
) -> float:
    """β² = log 1/δ + ½ log det(I + σ²/4 Σ x xᵀ) + ‖ĉ‖²/(2σ²).

    P is N(ĉ, Σ) with Σ⁻¹ = I/σ² + ¼ Σ x xᵀ. It is symmetric about ĉ and ρ̇ ≤ ¼, so its
    mean loss is at most loss(ĉ) + ⅛ Σ xᵀΣx; the traces cancel.

    Args:
        data: the steps.
        best: ĉ.
        variance: σ² of the prior, fixed before the data.
        delta: δ.
    """
    matrix = weighted_gram(data, data.weight * variance / 4)
    matrix[np.diag_indices_from(matrix)] += 1
    volume = float(np.linalg.slogdet(matrix)[1])
    distance = float(best.costs @ best.costs) / variance
    return float(-np.log(delta) + volume / 2 + distance / 2)


def is_member(
    data: StopData, best: Parameters, costs: Array, radius: float, beta_squared: float
) -> bool:
    """Whether costs `[d]` are in the set: ‖c‖₂ ≤ L and loss(c) − loss(ĉ) ≤ β²."""
    if np.linalg.norm(costs) > radius * (1 + 1e-9):
        return False
    here = log_likelihood(data, Parameters(costs, best.bias))
    return log_likelihood(data, best) - here <= beta_squared


def curvature_floor(logit: ArrayLike, reach: ArrayLike) -> Array:
    """Greatest q with D(z + u, z) ≥ q u² for all |u| ≤ reach.

    D is how far the loss log(1 + e^z) rises above its tangent at z. D/u² is a mean of ρ̇/2
    between z and z + u. ρ̇ falls with the distance from 0, so the quotient is smallest
    where u points away from 0 and is as long as allowed.
    """
    far, reach = np.abs(np.asarray(logit, float)), np.asarray(reach, float)
    step = np.maximum(reach, _NEAR)
    rise = np.log1p(np.exp(-far - step)) - np.log1p(np.exp(-far)) + step * expit(-far)
    # Nearby: ρ̇ falls at most by the factor e^−u.
    nearby = expit(far) * expit(-far) * np.exp(-reach) / 2
    return np.where(reach < _NEAR, nearby, rise / step**2)


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """All c with (c − ĉ)ᵀ A (c − ĉ) ≤ size.

    Attributes:
        centre: ĉ, `[d]`.
        inverse: A⁻¹, `[d, d]`.
        size: the squared radius in that norm.
    """

    centre: Array
    inverse: Array
    size: float

    @property
    def half_widths(self) -> Array:
        """How far each cost can be from ĉ, `[d]`."""
        return np.sqrt(self.size * np.diag(self.inverse))


def ellipsoid(
    data: StopData, best: Parameters, radius: float, beta_squared: float
) -> Ellipsoid:
    """An ellipsoid that contains the likelihood-ratio set around `maximise`'s ĉ.

    There ∇ loss(ĉ) = −2νĉ, ν being the penalty and the constraint's multiplier
    together. So for c in the set and u = c − ĉ

        Σ D(z + xᵀu, z) + ν‖u‖² ≤ β² + ν(L² − ‖ĉ‖²).

    D ≥ q (xᵀu)² while |xᵀu| stays within a reach. At first only the ball bounds that. The
    ellipsoid found with this q bounds it better, and so on in rounds.
    """
    logit = window_logits(data, best.costs, best.bias)
    length = np.arange(1, len(logit) + 1) - data.first
    reach = radius * np.sqrt(length) + np.abs(window_logits(data, best.costs, 0.0))
    multiplier = _multiplier(data, best, radius)
    room = max(radius**2 - float(best.costs @ best.costs), 0.0)
    size = beta_squared + multiplier * room
    for _ in range(_ROUNDS):
        matrix = weighted_gram(data, data.weight * curvature_floor(logit, reach))
        matrix[np.diag_indices_from(matrix)] += multiplier
        inverse = np.linalg.inv(matrix)
        reach = np.minimum(reach, np.sqrt(size * weighted_norms(data, inverse)))
    return Ellipsoid(best.costs, inverse, size)


def _multiplier(data: StopData, best: Parameters, radius: float) -> float:
    """ν with ∇ loss(ĉ) = −2νĉ; if ĉ = 0 any ν ≥ 0 will do, and 1/(4L²) costs ¼."""
    square = float(best.costs @ best.costs)
    if square == 0:
        return 1 / (4 * radius**2)
    upwards, _ = gradient(data, best, 0.0)
    return float(upwards @ best.costs) / (2 * square)
