"""What all tabular learners share: counting, replanning, and exact regret.

Algorithm 1 of arXiv:2205.15376 plans before every episode. Planning again only when some
count n_h(s, a) has doubled loses at most a constant factor of regret (as in UCRL2), and
all episodes in between can be played at once. A learner that samples must not keep one
sample for half of the run: each plan may last one episode longer than the one before
(Ouyang et al., arXiv:1709.04570).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import numpy as np

from termdp.tabular.episodes import Rollouts, generator_from, simulate
from termdp.tabular.estimation import CostEstimate
from termdp.tabular.evaluate import evaluate
from termdp.tabular.model import Array, IntArray, TerMDP
from termdp.tabular.planner import plan
from termdp.tabular.policies import Policy

MAX_BATCH = 20_000
# Most moves in one step of an exact evaluation; there is one evaluation per plan.
_MAX_MOVES = 500_000
_SAMPLES_WITHOUT_EXACT = 10_000
_FALLBACK_BINS = 5_000


@dataclass(eq=False)
class Counts:
    """Counts of what was seen at each (h, s, a).

    Attributes:
        visits: n_h(s, a), `[H, S, A]`.
        rewards: sum of rewards, `[H, S, A]`.
        moves: how often s′ followed, `[H, S, A, S]`; a stop hides s′.
    """

    visits: Array
    rewards: Array
    moves: Array

    @classmethod
    def empty(cls, shape: tuple[int, int, int]) -> "Counts":
        """Empty counts; shape is (H, S, A)."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((*shape, shape[1])))

    def add(self, batch: Rollouts) -> None:
        """Count a batch of episodes."""
        _, step, state, action = _flat_steps(batch)
        np.add.at(self.visits, (step, state, action), 1)
        paid = batch.rewards[batch.states >= 0]
        np.add.at(self.rewards, (step, state, action), paid)
        row, step = np.nonzero(batch.states[:, 1:] >= 0)
        state, action = batch.states[row, step], batch.actions[row, step]
        np.add.at(self.moves, (step, state, action, batch.states[row, step + 1]), 1)

    @property
    def mean_rewards(self) -> Array:
        """r̂, 0 where nothing was seen."""
        return self.rewards / np.maximum(self.visits, 1)

    @property
    def moves_seen(self) -> Array:
        """How many next states were seen, `[H, S, A]`: visits without stops."""
        return self.moves.sum(axis=3)

    @property
    def mean_transitions(self) -> Array:
        """P̂, uniform where no next state was seen, `[H, S, A, S]`."""
        seen = self.moves_seen[..., None]
        uniform = np.full(self.moves.shape, 1 / self.moves.shape[3])
        return np.where(seen > 0, self.moves / np.maximum(seen, 1), uniform)


@dataclass(frozen=True, eq=False)
class Decision:
    """A learner's plan until it plans again.

    Attributes:
        policy: the policy to play.
        optimistic_value: V̄_1 from the initial distribution.
        needed_scales: the smallest factors on the theory's bonuses for rewards,
            transitions and costs with which they cover the truth.
        is_good_event: whether they do with the factors in use.
        estimate: its costs, if it estimates any.
        cost_error: visit-weighted mean of |ĉ − c|, NaN without an estimate.
        cost_coverage: share of the visited costs inside the learner's confidence sets,
            NaN if it has none.
    """

    policy: Policy
    optimistic_value: float
    needed_scales: tuple[float, float, float]
    is_good_event: bool
    estimate: CostEstimate | None = None
    cost_error: float = np.nan
    cost_coverage: float = np.nan


@dataclass(frozen=True, eq=False)
class Regret:
    """The regret of a learner; episodes are numbered from 0.

    Attributes:
        per_episode: V* − V^{π_k}, `[K]`.
        cumulative: running sum of it, `[K]`.
        cost_error: visit-weighted mean |ĉ − c| at each plan, `[P]` (NaN: no estimate).
        cost_coverage: share of the visited costs inside the learner's confidence sets,
            at each plan, `[P]` (NaN: no sets, or nothing visited).
        planned_at: the episodes before which a plan was made, `[P]`.
        optimal_value: V*.
        optimistic_values: V̄ at each plan, `[P]`.
        good_events: whether the truth was within the bonuses at each plan, `[P]`.
        needed_scales: smallest factors on the theory's bonuses (rewards, transitions,
            costs) that cover the truth at each plan, `[P, 3]`; 0 where not used.
        visits: final counts, `[H, S, A]`.
        estimate: final estimate of the costs, if any.
        is_exact: whether all values are exact; once exact evaluation is too large, the
            rest is sampled.
    """

    per_episode: Array
    cumulative: Array
    cost_error: Array
    cost_coverage: Array
    planned_at: IntArray
    optimal_value: float
    optimistic_values: Array
    good_events: np.ndarray
    needed_scales: Array
    visits: Array
    estimate: CostEstimate | None
    is_exact: bool


class Learner(ABC):
    """A learner decides from its counts; `run` does the rest."""

    replan: str | int = "doubling"

    @abstractmethod
    def begin(
        self, model: TerMDP, episodes: int, random: np.random.Generator
    ) -> Callable[[Counts, int], Decision]:
        """Prepare a run; the result turns (counts, episodes so far) into a decision.

        Random numbers come from `random`, which the episodes use as well.
        """

    def observe(self, batch: Rollouts) -> None:
        """Take in the episodes just played; most learners need only the counts."""
        return

    def run(
        self,
        model: TerMDP,
        episodes: int,
        key: jax.Array | int,
        progress: Callable[[int], None] | None = None,
    ) -> Regret:
        """Learn for `episodes` episodes.

        Args:
            model: the true TerMDP; the learner sees only its episodes.
            episodes: K.
            key: a JAX key or a whole number.
            progress: called with the number of episodes just played.
        """
        if int(episodes) != episodes or episodes < 1:
            raise ValueError(f"expected 1 episode or more, got {episodes!r}")
        if model.window is not None:
            raise ValueError(
                "tabular learners need the sum of all costs; expected a model "
                f"without a window, got window={model.window}"
            )
        return _run(self, model, int(episodes), generator_from(key), progress)


@dataclass(eq=False, kw_only=True)
class OptimisticLearner(Learner):
    """Settings of all optimistic learners.

    Attributes:
        delta: probability that the bounds fail.
        bonus_scale: factor on the bonuses; 1.0 is the theory.
        replan: "doubling"; "growing", which also ends a plan when it has lasted one
            episode longer than the last; or a number of episodes.
    """

    delta: float = 0.05
    bonus_scale: float = 1.0
    replan: str | int = "doubling"

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ValueError(f"expected delta between 0 and 1, got {self.delta!r}")
        if not 0 <= self.bonus_scale < np.inf:
            raise ValueError(f"expected a bonus scale ≥ 0, got {self.bonus_scale!r}")
        by_number = isinstance(self.replan, int) and self.replan >= 1
        if self.replan not in ("doubling", "growing") and not by_number:
            raise ValueError(
                "expected replan='doubling', 'growing' or a number of episodes, got "
                f"{self.replan!r}"
            )


@dataclass
class _Log:
    """The record of a run, one entry per plan."""

    losses: list[float] = field(default_factory=list)
    planned_at: list[int] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


def _run(
    learner: Learner,
    model: TerMDP,
    episodes: int,
    random: np.random.Generator,
    progress: Callable[[int], None] | None,
) -> Regret:
    optimal, is_exact = _optimal_value(model)
    decide = learner.begin(model, episodes, random)
    counts, log = Counts.empty(model.shape), _Log()
    per_episode, played, guess, length = np.zeros(episodes), 0, 8, 0
    while played < episodes:
        decision = decide(counts, played)
        value, is_exact = _policy_value(model, decision.policy, random, is_exact)
        log.planned_at.append(played)
        log.decisions.append(decision)
        length, longest = 0, length + 1
        before = counts.visits.copy()
        while played + length < episodes:
            wanted = min(guess, episodes - played - length)
            batch = simulate(model, decision.policy, wanted, random)
            kept, is_time = _until_replan(
                learner.replan, batch, before, counts.visits, length, longest
            )
            batch = batch.first(kept)
            counts.add(batch)
            learner.observe(batch)
            length += kept
            if is_time:
                break
            guess = min(2 * guess, MAX_BATCH)
        guess = int(np.clip(length, 8, MAX_BATCH))
        per_episode[played : played + length] = optimal - value
        played += length
        if progress is not None:
            progress(length)
    return Regret(
        per_episode=per_episode,
        cumulative=np.cumsum(per_episode),
        cost_error=np.array([d.cost_error for d in log.decisions]),
        cost_coverage=np.array([d.cost_coverage for d in log.decisions]),
        planned_at=np.array(log.planned_at),
        optimal_value=optimal,
        optimistic_values=np.array([d.optimistic_value for d in log.decisions]),
        good_events=np.array([d.is_good_event for d in log.decisions]),
        needed_scales=np.array([d.needed_scales for d in log.decisions]),
        visits=counts.visits,
        estimate=decide(counts, episodes).estimate,
        is_exact=is_exact,
    )


def _until_replan(
    replan: str | int,
    batch: Rollouts,
    before: Array,
    now: Array,
    length: int,
    longest: int,
) -> tuple[int, bool]:
    """How many episodes of the batch to keep, and whether to plan after them.

    Args:
        replan: "doubling", "growing" or a number of episodes.
        batch: episodes just simulated.
        before: counts at the last plan.
        now: counts before the batch.
        length: episodes since the last plan, before the batch.
        longest: how many episodes this plan may last, if `replan` is "growing".
    """
    kept, is_time = len(batch), False
    if replan in ("doubling", "growing"):
        kept, is_time = _until_doubled(batch, before, now)
    if replan == "doubling":
        return kept, is_time
    left = (longest if replan == "growing" else int(replan)) - length
    return min(left, kept), is_time or kept >= left


def _until_doubled(batch: Rollouts, before: Array, now: Array) -> tuple[int, bool]:
    """How many episodes to keep until a count has doubled, and whether one has."""
    row, step, state, action = _flat_steps(batch)
    number = np.ravel_multi_index((step, state, action), before.shape)
    # The visit that doubles the count (a first visit counts too).
    needed = (np.maximum(before, 1) - (now - before)).ravel()
    order = np.argsort(number, kind="stable")
    grouped = number[order]
    is_first = np.r_[True, grouped[1:] != grouped[:-1]]
    rank = np.arange(len(grouped)) - np.maximum.accumulate(
        np.where(is_first, np.arange(len(grouped)), 0)
    )
    doubled = row[order][rank + 1 == needed[grouped]]
    if not len(doubled):
        return len(batch), False
    return int(doubled.min()) + 1, True


def _flat_steps(batch: Rollouts) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Episode, step, state and action of every step played."""
    row, step = np.nonzero(batch.states >= 0)
    return row, step, batch.states[row, step], batch.actions[row, step]


def _optimal_value(model: TerMDP) -> tuple[float, bool]:
    try:
        return plan(model).value, True
    except ValueError:
        largest = np.abs(model.costs).max() * model.horizon
        return plan(model, resolution=largest / _FALLBACK_BINS).value, False


def _policy_value(
    model: TerMDP, policy: Policy, random: np.random.Generator, try_exact: bool
) -> tuple[float, bool]:
    """Value of a policy, and whether it is exact; sampled once exact is too large."""
    if try_exact:
        try:
            return evaluate(model, policy, max_moves=_MAX_MOVES), True
        except ValueError:
            pass
    sample = simulate(model, policy, _SAMPLES_WITHOUT_EXACT, random, False)
    return float(sample.returns.mean()), False
