"""TermCRL: optimism about rewards, transitions and costs.

Algorithm 1 of arXiv:2205.15376 with the bonuses of appendix H. Three things differ from
the letter of the paper, none of them weakens a guarantee:

- V̄_h is clipped at H − h + 1, not at H.
- A cost cannot be below −L, so ĉ − b^c is raised to −L (the planner's lattice would be
  enormous otherwise).
- The transition bonus counts the next states that were seen; a stop hides one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from termdp.tabular import bounds
from termdp.tabular.episodes import Rollouts, concatenate, flatten, merge_identical
from termdp.tabular.estimation import CostEstimate, summarise
from termdp.tabular.exact import ExactPlan
from termdp.tabular.learner import Counts, Decision, OptimisticLearner
from termdp.tabular.likelihood import Parameters, maximise
from termdp.tabular.model import Array, TerMDP, absorb_bias
from termdp.tabular.quantised import QuantisedPlan, backward_induction, make_lattice

# Bins that the default resolution spreads over sums from −HL to HL, at most.
DEFAULT_BINS = 8192


@dataclass(frozen=True, eq=False)
class Optimism:
    """Rewards, transitions and the size of the bonuses they carry.

    Attributes:
        rewards: r̂ + b^r + b^p, `[H, S, A]`.
        transitions: P̂, `[H, S, A, S]`.
        needed_scales: factors on b^r and b^p with which they just cover the truth.
    """

    rewards: Array
    transitions: Array
    needed_scales: tuple[float, float]


def optimistic_mdp(
    counts: Counts, model: TerMDP, episodes: int, delta: float, scale: float
) -> Optimism:
    """Line 4 of Algorithm 1; the true model serves for the diagnosis only."""
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


@dataclass(eq=False)
class TermCRL(OptimisticLearner):
    """Termination Confidence RL: learns costs from stops, optimistically.

    `replan=1` is the letter of Algorithm 1.

    Attributes:
        radius: L, a bound on ‖c‖₂ with the bias absorbed (`model.radius` is the least).
        kappa: κ; None computes it from the model.
        resolution: pitch Δ of the planner's lattice; None chooses one, "exact" plans on
            the reachable sums (tiny models only).
        cost_bonus_scale: factor on the cost bonus alone; None takes `bonus_scale`.
        ridge: λ of the cost fit; None takes the paper's.

    Example:
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
    _memory: "_CostMemory | None" = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.radius < np.inf:
            raise ValueError(f"expected a radius > 0, got {self.radius!r}")
        if isinstance(self.resolution, str) and self.resolution != "exact":
            raise ValueError(
                f"expected a resolution > 0, None or 'exact', got {self.resolution!r}"
            )

    def begin(self, model: TerMDP, episodes: int) -> Callable[[Counts, int], Decision]:
        """Prepare a run."""
        true_costs = absorb_bias(model).costs
        kappa = bounds.kappa(model) if self.kappa is None else self.kappa
        ridge = self.ridge or bounds.default_ridge(
            model.num_states, model.num_actions, model.horizon, self.radius
        )
        memory = self._memory = _CostMemory(model.shape, ridge, self.radius)
        scale = (
            self.bonus_scale if self.cost_bonus_scale is None else self.cost_bonus_scale
        )

        def decide(counts: Counts, played: int) -> Decision:
            optimism = optimistic_mdp(
                counts, model, episodes, self.delta, self.bonus_scale
            )
            estimate = memory.fit(with_errors=played == episodes)
            bonus = bounds.cost_bonus(
                counts.visits, played + 1, self.radius, kappa, self.delta
            )
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
            )

        return decide

    def observe(self, batch: Rollouts) -> None:
        """Keep the episodes for the cost fit."""
        assert self._memory is not None
        self._memory.add(batch)

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


class _CostMemory:
    """All episodes so far, identical ones merged, and the last fit as a warm start."""

    def __init__(
        self, shape: tuple[int, int, int], ridge: float, radius: float
    ) -> None:
        self.shape, self.ridge, self.radius = shape, ridge, radius
        self.best = Parameters(np.zeros(int(np.prod(shape))), 0.0)
        self.episodes: Rollouts | None = None
        self.weights = np.zeros(0)

    def add(self, batch: Rollouts) -> None:
        """Remember a batch of episodes."""
        parts = [batch] if self.episodes is None else [self.episodes, batch]
        weights = np.concatenate([self.weights, np.ones(len(batch))])
        self.episodes, self.weights = merge_identical(concatenate(parts), weights)

    def fit(self, with_errors: bool) -> CostEstimate:
        """Line 10 of Algorithm 1, with the bias absorbed in the costs."""
        _, num_states, num_actions = self.shape
        nothing = np.zeros((0, self.shape[0]), np.int64)
        empty = Rollouts(
            nothing, nothing, nothing * 0.0, nothing[:, 0], nothing[:, 0] > 0
        )
        data = flatten(
            empty if self.episodes is None else self.episodes,
            num_states,
            num_actions,
            None,
            False,
            self.weights,
        )
        # Algorithm 1, line 9, arXiv:2205.15376
        self.best = maximise(data, self.ridge, self.radius, 0.0, self.best)
        return summarise(
            data, self.best, self.ridge, self.shape, with_errors=with_errors
        )
