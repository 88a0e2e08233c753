"""TermCRL: optimism about rewards, transitions and costs.

Algorithm 1 of arXiv:2205.15376 with the bonuses of appendix H. Three things differ from
the paper; none of them weakens a guarantee:

- V̄_h is clipped at H − h + 1, not at H.
- A cost cannot be below −L, so ĉ − b^c is raised to −L (the planner's lattice would be
  enormous otherwise).
- The transition bonus counts the next states that were seen; a stop hides one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from termdp.tabular import bounds, confidence
from termdp.tabular.cost_memory import CostMemory
from termdp.tabular.episodes import Rollouts
from termdp.tabular.exact import ExactPlan
from termdp.tabular.learner import Counts, Decision, OptimisticLearner
from termdp.tabular.model import Array, TerMDP, absorb_bias
from termdp.tabular.quantised import QuantisedPlan, backward_induction, make_lattice

# TermCRL's confidence sets for costs.
COST_SETS = ("bonus", "ofuglb", "mixture")
# Most bins of the default resolution for sums from −HL to HL.
DEFAULT_BINS = 8192


@dataclass(frozen=True, eq=False)
class Optimism:
    """Optimistic rewards, transitions, and the needed size of their bonuses.

    Attributes:
        rewards: r̂ + b^r + b^p, `[H, S, A]`.
        transitions: P̂, `[H, S, A, S]`.
        needed_scales: the smallest factors on b^r and b^p that cover the truth.
    """

    rewards: Array
    transitions: Array
    needed_scales: tuple[float, float]


def optimistic_mdp(
    counts: Counts, model: TerMDP, episodes: int, delta: float, scale: float
) -> Optimism:
    """Line 4 of Algorithm 1; the true model is only for the diagnosis."""
    by_reward = bounds.reward_bonus(counts.visits, episodes, delta)
    by_move = bounds.transition_bonus(counts.moves_seen, episodes, delta)
    rewards, transitions = counts.mean_rewards, counts.mean_transitions
    reward_gap = np.abs(rewards - model.rewards)
    move_gap = model.horizon * np.abs(transitions - model.transitions).sum(axis=3)
    needed = (
        float((reward_gap / by_reward).max()),
        float((move_gap / by_move)[:-1].max(initial=0.0)),
    )
    # Algorithm 1, line 4, arXiv:2205.15376
    return Optimism(rewards + scale * (by_reward + by_move), transitions, needed)


def value_caps(horizon: int) -> Array:
    """V̄_h ≤ H − h + 1, as rewards are at most 1."""
    # Lemma (Optimism), arXiv:2205.15376
    return np.arange(horizon, 0, -1).astype(float)


def default_resolution(radius: float, horizon: int) -> float:
    """A power of ½ that spreads sums from −HL to HL over at most `DEFAULT_BINS`."""
    return float(2.0 ** np.ceil(np.log2(2 * horizon * max(radius, 1.0) / DEFAULT_BINS)))


def plan_optimistically(
    model: TerMDP, optimism: Optimism, costs: Array, bias: float, resolution: float
) -> QuantisedPlan:
    """Line 7 of Algorithm 1 with the planner of appendix G."""
    lattice = make_lattice(costs, resolution)
    caps = value_caps(model.horizon)
    # Algorithm 1, line 7, arXiv:2205.15376
    solution = backward_induction(
        optimism.transitions, optimism.rewards, lattice, bias, caps
    )
    error = bounds.signed_error(resolution, model.horizon)
    return QuantisedPlan(lattice, solution, model.initial, model.num_actions, error)


def informative_costs(shape: tuple[int, int, int]) -> int:
    """(H − 1)SA, as the stop at step H is never seen; at least 1."""
    return max((shape[0] - 1) * shape[1] * shape[2], 1)


def share_covered(gap: Array, half_width: Array, visits: Array) -> float:
    """Share of the visited costs whose error is at most the half-width; NaN if none."""
    seen = visits > 0
    return float((gap <= half_width)[seen].mean()) if seen.any() else np.nan


@dataclass(eq=False)
class TermCRL(OptimisticLearner):
    """Termination Confidence RL: learns costs from stops, optimistically.

    `replan=1` is Algorithm 1 as printed.

    Attributes:
        radius: L, a bound on ‖c‖₂ with the bias absorbed (`model.radius` or more).
        kappa: κ of the paper's bonus; None computes it from the model.
        resolution: pitch Δ of the planner's lattice; None chooses one, "exact" plans on
            the reachable sums (tiny models only).
        cost_bonus_scale: factor on the cost bonus alone; None takes `bonus_scale`.
        ridge: λ of the cost fit; None takes the paper's for its bonus, d/(2L²) for the
            sets of later work.
        cost_set: "bonus" is the paper's; "ofuglb" and "mixture" are likelihood-ratio
            sets, whose half-widths then are the bonus (`termdp.tabular.confidence`).

    Examples:
        >>> from termdp import tabular
        >>> model = tabular.paper_example()
        >>> agent = tabular.TermCRL(radius=model.radius, bonus_scale=0.01)
        >>> regret = agent.run(model, episodes=200, key=0)
        >>> regret.per_episode.shape
        (200,)
    """

    radius: float
    kappa: float | None = None
    resolution: float | str | None = None
    cost_bonus_scale: float | None = None
    ridge: float | None = None
    cost_set: str = "bonus"
    _memory: CostMemory | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.radius < np.inf:
            raise ValueError(f"expected a radius > 0, got {self.radius!r}")
        if isinstance(self.resolution, str) and self.resolution != "exact":
            raise ValueError(
                f"expected a resolution > 0, None or 'exact', got {self.resolution!r}"
            )
        if self.cost_set not in COST_SETS:
            raise ValueError(
                f"expected a cost set ({', '.join(COST_SETS)}), got {self.cost_set!r}"
            )
        if self.cost_set != "bonus" and self.kappa is not None:
            raise ValueError(
                f"expected no kappa with cost_set={self.cost_set!r}, got "
                f"{self.kappa!r}; κ belongs to the paper's bonus"
            )

    def begin(
        self, model: TerMDP, episodes: int, random: np.random.Generator
    ) -> Callable[[Counts, int], Decision]:
        """Prepare a run."""
        true_costs = absorb_bias(model).costs
        memory = self._memory = CostMemory(
            model.shape, self.ridge or self._default_ridge(model.shape), self.radius
        )
        kappa = bounds.kappa(model) if self.kappa is None else self.kappa
        scale = (
            self.bonus_scale if self.cost_bonus_scale is None else self.cost_bonus_scale
        )

        def decide(counts: Counts, played: int) -> Decision:
            optimism = optimistic_mdp(
                counts, model, episodes, self.delta, self.bonus_scale
            )
            estimate = memory.fit(with_errors=played == episodes)
            bonus = self._cost_bonus(memory, counts, played + 1, kappa)
            # Algorithm 1, line 5, arXiv:2205.15376
            optimistic = np.maximum(estimate.costs - scale * bonus, -self.radius)
            policy = self._plan(model, optimism, optimistic)
            gap = np.abs(estimate.costs - true_costs)[:-1]
            weight = counts.visits[:-1]
            needed = float((gap / bonus[:-1]).max(initial=0.0))
            is_good = max(optimism.needed_scales) <= self.bonus_scale
            return Decision(
                policy,
                policy.value,
                (*optimism.needed_scales, needed),
                is_good and needed <= scale,
                estimate,
                float((gap * weight).sum() / max(weight.sum(), 1)),
                share_covered(gap, scale * bonus[:-1], weight),
            )

        return decide

    def observe(self, batch: Rollouts) -> None:
        """Keep the episodes for the cost fit."""
        assert self._memory is not None
        self._memory.add(batch)

    def _default_ridge(self, shape: tuple[int, int, int]) -> float:
        horizon, num_states, num_actions = shape
        if self.cost_set == "bonus":
            return bounds.default_ridge(num_states, num_actions, horizon, self.radius)
        return 1 / (2 * self._prior_variance(shape))

    def _prior_variance(self, shape: tuple[int, int, int]) -> float:
        return confidence.prior_variance(informative_costs(shape), self.radius)

    def _cost_bonus(
        self, memory: CostMemory, counts: Counts, episode: int, kappa: float
    ) -> Array:
        """How far each cost can be from its estimate, `[H, S, A]`."""
        # The good event has four parts, each of which may fail with δ/4.
        data, best, delta = memory.data, memory.best, self.delta / 4
        if self.cost_set == "bonus":
            return bounds.cost_bonus(
                counts.visits, episode, self.radius, kappa, self.delta
            )
        if self.cost_set == "ofuglb":
            beta_squared = confidence.ofuglb_radius(
                informative_costs(memory.shape),
                confidence.lipschitz(data),
                self.radius,
                delta,
            )
        else:
            variance = self._prior_variance(memory.shape)
            beta_squared = confidence.mixture_radius(data, best, variance, delta)
        found = confidence.ellipsoid(data, best, self.radius, beta_squared)
        return found.half_widths.reshape(memory.shape)

    def _plan(
        self, model: TerMDP, optimism: Optimism, costs: Array
    ) -> QuantisedPlan | ExactPlan:
        if self.resolution == "exact":
            believed = TerMDP(
                optimism.transitions,
                model.rewards,
                costs,
                0.0,
                model.horizon,
                model.initial,
            )
            caps = value_caps(model.horizon)
            return ExactPlan(believed, optimism.rewards, caps, any_follower=True)
        pitch = self.resolution or default_resolution(self.radius, model.horizon)
        return plan_optimistically(model, optimism, costs, 0.0, float(pitch))
