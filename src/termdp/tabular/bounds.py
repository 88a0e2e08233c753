"""The paper's bounds, one function each (arXiv:2205.15376, appendices G to K).

Symbols: S states, A actions, H steps, K episodes, L ≥ ‖c‖₂ (bias absorbed), κ the
greatest 1/ρ̇, δ the probability of failure, n visits. Bonuses take the visit counts
`[H, S, A]` and read H, S, A off their shape.

Where the paper contradicts itself, we follow the derivation; docs/tabular_misprints.md
lists the places. In particular the local bound has log² (Corollary, Global Cost Bound),
and the regret bound has 4 · 24 = 96 with √(κ S A H^2.5) and log².
"""

import numpy as np
from numpy.typing import ArrayLike

from termdp.tabular.model import Array, TerMDP

# --- the logistic model -------------------------------------------------------------


def reciprocal_slope(logit: ArrayLike) -> Array:
    """1/ρ̇(x) = 1 / (ρ(x) (1 − ρ(x))) = 2 + 2 cosh(x)."""
    return 2 + 2 * np.cosh(np.asarray(logit, float))


def kappa(model: TerMDP) -> float:
    """κ = max over steps and paths of 1 / ρ̇(Σ c − b).

    1/ρ̇ grows with the distance from 0, so it is greatest at the largest or the smallest
    sum; each step may take any state and action, reachable or not, as in the paper.
    """
    per_step = model.costs.reshape(model.horizon, -1)
    window = model.window or model.horizon
    extremes = []
    for costs in (per_step.max(axis=1), per_step.min(axis=1)):
        sums = np.concatenate([[0.0], np.cumsum(costs)])
        first = np.maximum(np.arange(1, model.horizon + 1) - window, 0)
        extremes.append(sums[1:] - sums[first])
    # Section 2, κ, arXiv:2205.15376
    return float(reciprocal_slope(np.concatenate(extremes) - model.bias).max())


def default_ridge(
    num_states: int, num_actions: int, horizon: int, radius: float
) -> float:
    """λ = SAH / (L√H + ½)."""
    # Corollary (Global Cost Bound), arXiv:2205.15376
    return num_states * num_actions * horizon / (radius * np.sqrt(horizon) + 0.5)


# --- bonuses (appendix H) -----------------------------------------------------------


def reward_bonus(visits: Array, episodes: int, delta: float) -> Array:
    """b^r = √(2 log(8SAHK/δ) / (n ∨ 1))."""
    # Appendix H, reward bonus, arXiv:2205.15376
    return np.sqrt(
        2 * np.log(8 * visits.size * episodes / delta) / np.maximum(visits, 1)
    )


def transition_bonus(visits: Array, episodes: int, delta: float) -> Array:
    """b^p = H √(4S log(12SAHK/δ) / (n ∨ 1))."""
    horizon, num_states, _ = visits.shape
    log_term = np.log(12 * visits.size * episodes / delta)
    # Appendix H, transition bonus, arXiv:2205.15376
    return horizon * np.sqrt(4 * num_states * log_term / np.maximum(visits, 1))


def cost_bonus(
    visits: Array, episode: int, radius: float, kappa: float, delta: float
) -> Array:
    """b^c: the local cost bound at δ/4 (the good event has four parts)."""
    # Appendix H, cost bonus, arXiv:2205.15376
    return local_cost_bound(visits, episode, radius, kappa, delta / 4)


# --- concentration of the costs (appendix J) ----------------------------------------


def logistic_radius_term(
    dimension: int, num_samples: int, ridge: float, radius: float, delta: float
) -> float:
    """γ_t(δ) = √λ (L + ½) + d/√λ · log(4/δ · (1 + t/(16dλ)))."""
    log_term = np.log(4 / delta * (1 + num_samples / (16 * dimension * ridge)))
    # Lemma (Logistic Regression Concentration), arXiv:2205.15376
    return float(
        np.sqrt(ridge) * (radius + 0.5) + dimension / np.sqrt(ridge) * log_term
    )


def logistic_concentration(
    dimension: int, num_samples: int, ridge: float, radius: float, delta: float
) -> float:
    """Bound on ‖θ̂ − θ*‖_H: (2 + 2L)γ + 2√(1 + L) (γ + γ²/√λ), contexts of norm ≤ 1."""
    gamma = logistic_radius_term(dimension, num_samples, ridge, radius, delta)
    # Lemma (Logistic Regression Concentration), arXiv:2205.15376
    return float(
        (2 + 2 * radius) * gamma
        + 2 * np.sqrt(1 + radius) * (gamma + gamma**2 / np.sqrt(ridge))
    )


def global_cost_bound(
    shape: tuple[int, int, int], episode: int, radius: float, kappa: float, delta: float
) -> float:
    """Bound on ‖ĉ − c‖_V, as printed.

    12 √(κ S A H^2.5) (L + 1)^1.5 log²(4/δ · (1 + k (L + ½) / (16 S² A² √H))).

    The printed exponent of L + 1 does not follow from the lemma before it, which gives
    (L√H + 1)²; see `global_cost_bound_derived` and docs/tabular_misprints.md.

    Args:
        shape: (H, S, A).
        episode: k.
        radius: L.
        kappa: κ.
        delta: δ.
    """
    horizon, num_states, num_actions = shape
    pairs = num_states * num_actions
    log_term = np.log(
        4 / delta * (1 + episode * (radius + 0.5) / (16 * pairs**2 * np.sqrt(horizon)))
    )
    # Corollary (Global Cost Bound), arXiv:2205.15376
    scale = 12 * np.sqrt(kappa * pairs * horizon**2.5) * (radius + 1) ** 1.5
    return float(scale * log_term**2)


def global_cost_bound_derived(
    shape: tuple[int, int, int], episode: int, radius: float, kappa: float, delta: float
) -> float:
    """The lemma's bound before it is simplified: √κ times its right-hand side.

    Contexts have norm ≤ √H, so L becomes L√H; d = SAH, t = kH and λ = d/(L√H + ½).
    """
    horizon, num_states, num_actions = shape
    dimension, scaled = horizon * num_states * num_actions, radius * np.sqrt(horizon)
    ridge = default_ridge(num_states, num_actions, horizon, radius)
    # Corollary (Global Cost Bound), before simplification, arXiv:2205.15376
    return float(
        np.sqrt(kappa)
        * logistic_concentration(dimension, episode * horizon, ridge, scaled, delta)
    )


def local_cost_bound(
    visits: Array, episode: int, radius: float, kappa: float, delta: float
) -> Array:
    """Bound on |ĉ_h(s, a) − c_h(s, a)| for each (h, s, a) with n visits.

    24 √(κ S A H^2.5) (L + 1)^1.5 log²(…) / √(n + 4SAH/(L√H + ½)): the global bound
    times ‖e‖_{V⁻¹} ≤ √(4 / (n + 4λ)).
    """
    horizon, num_states, num_actions = visits.shape
    ridge = default_ridge(num_states, num_actions, horizon, radius)
    whole = global_cost_bound(
        (horizon, num_states, num_actions), episode, radius, kappa, delta
    )
    # Theorem 1 and Lemma (Local Cost Estimation Confidence Bound), arXiv:2205.15376
    return whole * np.sqrt(4 / (visits + 4 * ridge))


def gram_block(length: int) -> Array:
    """B = Σ_t ē_t ē_tᵀ of one episode: B(i, j) = t* + 1 − max(i, j)."""
    steps = np.arange(1, length + 1)
    # Lemma (Inverse Eigenvalues Bound), the block B, arXiv:2205.15376
    return (length + 1 - np.maximum(steps[:, None], steps)).astype(float)


def gram_block_inverse(length: int) -> Array:
    """B⁻¹: 1 at (1, 1), 2 on the rest of the diagonal, −1 beside it."""
    # Lemma (Inverse Eigenvalues Bound), the inverse of B, arXiv:2205.15376
    inverse = 2 * np.eye(length) - np.eye(length, k=1) - np.eye(length, k=-1)
    inverse[0, 0] = 1
    return inverse


def inverse_eigenvalue_bound(ridge: float) -> float:
    """eᵀ(λI + A)⁻¹e ≤ 1 / (¼ + λ) for every (h, s, a) that the episode visited."""
    # Lemma (Inverse Eigenvalues Bound), arXiv:2205.15376
    return 1 / (0.25 + ridge)


# --- planning (appendix G) ----------------------------------------------------------


def signed_error(resolution: float, horizon: int) -> float:
    """V_q − V ≤ H³Δ/2, costs of any sign."""
    # Appendix G, signed costs, arXiv:2205.15376
    return horizon**3 * resolution / 2


def signed_resolution(epsilon: float, horizon: int) -> float:
    """Δ = 2ε/H³."""
    # Appendix G, signed costs, arXiv:2205.15376
    return 2 * epsilon / horizon**3


def clipped_error(resolution: float, level: float, horizon: int) -> float:
    """V_q − V ≤ H³Δ/2 + 2H² e^{−C*}, non-negative costs clipped at Σc − b = C*."""
    # Appendix G, non-negative costs, arXiv:2205.15376
    return float(horizon**3 * resolution / 2 + 2 * horizon**2 * np.exp(-level))


def clipped_resolution(epsilon: float, horizon: int) -> float:
    """Δ = ε/H³."""
    # Appendix G, non-negative costs, arXiv:2205.15376
    return epsilon / horizon**3


def clip_level(epsilon: float, horizon: int) -> float:
    """C* = log(4H²/ε)."""
    # Appendix G, non-negative costs, arXiv:2205.15376
    return float(np.log(4 * horizon**2 / epsilon))


# --- regret (appendices I and K) ----------------------------------------------------


def visitation_bound(shape: tuple[int, int, int], episodes: int, delta: float) -> float:
    """Σ_k E Σ_h 1/√(n ∨ 1) ≤ 16H² log(1/δ) + 4SAH² + 2√2 √(SAH² K log(HK))."""
    horizon, num_states, num_actions = shape
    pairs = num_states * num_actions
    # Lemma (Expected Cumulative Visitation Bound), arXiv:2205.15376
    return float(
        16 * horizon**2 * np.log(1 / delta)
        + 4 * pairs * horizon**2
        + 2 * np.sqrt(2 * pairs * horizon**2 * episodes * np.log(horizon * episodes))
    )


def regret_bound(
    shape: tuple[int, int, int],
    episodes: int,
    radius: float,
    kappa: float,
    delta: float,
) -> float:
    """Regret of TermCRL after K episodes, with probability ≥ 1 − δ.

    The visitation bound at δ/4 times 2√(2 log(8SAHK/δ)) + 2H√(4S log(12SAHK/δ)) +
    96 H² √(κ S A H^2.5) (L + 1)^1.5 log²(…) (√((L + ½)/(4SA√H)) ∨ 1).
    """
    horizon, num_states, num_actions = shape
    once = np.ones(shape)
    pairs = num_states * num_actions
    cost_term = (
        8 * horizon**2 * global_cost_bound(shape, episodes, radius, kappa, delta / 4)
    )
    start = max(np.sqrt((radius + 0.5) / (4 * pairs * np.sqrt(horizon))), 1.0)
    # Theorem 2 (Regret of TermCRL), arXiv:2205.15376
    return float(
        visitation_bound(shape, episodes, delta / 4)
        * (
            2 * reward_bonus(once, episodes, delta).max()
            + 2 * transition_bonus(once, episodes, delta).max()
            + cost_term * start
        )
    )
