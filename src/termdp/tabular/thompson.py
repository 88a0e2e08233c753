"""Thompson sampling: plan as if one draw from the posterior were the truth.

Costs have the prior N(0, L²/d) and Laplace's approximation of their posterior: a Gaussian
at the penalised fit whose precision is the Hessian there. The fit and its Hessian exist
already, so a draw takes one Cholesky factor. Fitting a perturbed history would take a
second fit at every plan. Rewards are 0 or 1 and have Beta posteriors; transitions have
Dirichlet posteriors.

Nothing here is optimistic or tuned, and there is no guarantee.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular

from termdp.tabular.confidence import prior_variance
from termdp.tabular.cost_memory import CostMemory
from termdp.tabular.episodes import Rollouts, StopData
from termdp.tabular.learner import Counts, Decision, OptimisticLearner
from termdp.tabular.likelihood import Parameters, information
from termdp.tabular.model import Array, TerMDP, absorb_bias
from termdp.tabular.termcrl import (
    Optimism,
    default_resolution,
    informative_costs,
    optimistic_mdp,
    plan_optimistically,
    share_covered,
)

SAMPLED = ("everything", "costs")
# A standard normal variable is within this of 0 with probability 95%.
_CENTRAL_95 = 1.96


@dataclass(frozen=True, eq=False)
class CostPosterior:
    """N(ĉ, (Hessian + 2λI)⁻¹), Laplace's approximation.

    Attributes:
        mean: ĉ, `[d]`.
        factor: lower triangular R with R Rᵀ = precision, `[d, d]`.
    """

    mean: Array
    factor: Array

    def draw(self, random: np.random.Generator) -> Array:
        """One draw of all costs, `[d]`."""
        noise = random.standard_normal(len(self.mean))
        return self.mean + solve_triangular(self.factor.T, noise)

    @property
    def standard_deviations(self) -> Array:
        """Standard deviation of each cost, `[d]`."""
        spread = solve_triangular(self.factor, np.eye(len(self.mean)), lower=True)
        return np.sqrt((spread**2).sum(axis=0))


def cost_posterior(data: StopData, best: Parameters, ridge: float) -> CostPosterior:
    """Laplace's approximation at ĉ, the fit with penalty λ (prior variance 1/(2λ))."""
    columns = np.arange(data.dimension)
    precision = information(data, best, columns, False)
    precision[columns, columns] += 2 * ridge
    return CostPosterior(best.costs, np.linalg.cholesky(precision))


def draw_rewards(counts: Counts, random: np.random.Generator) -> Array:
    """Mean rewards `[H, S, A]` from Beta(1 + ones, 1 + zeros)."""
    return random.beta(1 + counts.rewards, 1 + counts.visits - counts.rewards)


def draw_transitions(counts: Counts, random: np.random.Generator) -> Array:
    """Transitions `[H, S, A, S]` from Dirichlet(1/S + moves)."""
    weights = random.standard_gamma(counts.moves + 1 / counts.moves.shape[3])
    # A gamma variable of small shape can round to 0; all of them together must not.
    weights = np.maximum(weights, np.finfo(float).tiny)
    return weights / weights.sum(axis=3, keepdims=True)


@dataclass(eq=False)
class Thompson(OptimisticLearner):
    """Thompson sampling of costs, rewards and transitions, once at every plan.

    Attributes:
        radius: L, a bound on ‖c‖₂ with the bias absorbed; it sets the costs' prior.
        sampled: "everything", or "costs"; then rewards and transitions have TermCRL's
            bonuses, with `delta` and `bonus_scale`.
        resolution: pitch of the planner's lattice; None chooses one.

    Examples:
        >>> from termdp import tabular
        >>> model = tabular.paper_example()
        >>> regret = tabular.Thompson(radius=model.radius).run(model, 200, key=0)
        >>> regret.per_episode.shape
        (200,)
    """

    radius: float
    sampled: str = "everything"
    resolution: float | None = None
    replan: str | int = field(default="growing", kw_only=True)
    _memory: CostMemory | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.radius < np.inf:
            raise ValueError(f"expected a radius > 0, got {self.radius!r}")
        if self.sampled not in SAMPLED:
            raise ValueError(
                f"expected sampled to be {' or '.join(SAMPLED)}, got {self.sampled!r}"
            )

    def begin(
        self, model: TerMDP, episodes: int, random: np.random.Generator
    ) -> Callable[[Counts, int], Decision]:
        """Prepare a run."""
        true_costs = absorb_bias(model).costs
        variance = prior_variance(informative_costs(model.shape), self.radius)
        memory = self._memory = CostMemory(model.shape, 1 / (2 * variance), self.radius)
        pitch = self.resolution or default_resolution(self.radius, model.horizon)

        def decide(counts: Counts, played: int) -> Decision:
            estimate = memory.fit(with_errors=played == episodes)
            posterior = cost_posterior(memory.data, memory.best, memory.ridge)
            # Costs are within ±L, which keeps the planner's lattice small.
            drawn = np.clip(posterior.draw(random), -self.radius, self.radius)
            if self.sampled == "costs":
                believed = optimistic_mdp(
                    counts, model, episodes, self.delta, self.bonus_scale
                )
            else:
                believed = Optimism(
                    draw_rewards(counts, random),
                    draw_transitions(counts, random),
                    (0.0, 0.0),
                )
            policy = plan_optimistically(
                model, believed, drawn.reshape(model.shape), 0.0, pitch
            )
            gap = np.abs(estimate.costs - true_costs)[:-1]
            weight = counts.visits[:-1]
            likely = _CENTRAL_95 * posterior.standard_deviations.reshape(model.shape)
            return Decision(
                policy,
                policy.value,
                (*believed.needed_scales, 0.0),
                False,
                estimate,
                float((gap * weight).sum() / max(weight.sum(), 1)),
                share_covered(gap, likely[:-1], weight),
            )

        return decide

    def observe(self, batch: Rollouts) -> None:
        """Keep the episodes for the cost fit."""
        assert self._memory is not None
        self._memory.add(batch)
