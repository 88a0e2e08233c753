"""Learners to compare TermCRL with; they have the same `run`.

`KnownCosts` is told the observer's costs. `IgnoreStops` is optimistic in the usual way
and knows nothing about the observer. `WholeHistory` treats the whole history as the
state, which makes stops Markovian but the model exponentially large.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from termdp.tabular import bounds
from termdp.tabular.episodes import Rollouts
from termdp.tabular.learner import Counts, Decision, OptimisticLearner
from termdp.tabular.model import Array, IntArray, TerMDP, survival
from termdp.tabular.policies import HistoryPolicy
from termdp.tabular.termcrl import (
    default_resolution,
    optimistic_mdp,
    plan_optimistically,
    value_caps,
)

# Most histories that WholeHistory keeps.
MAX_HISTORIES = 200_000
# A bias at which the observer never stops, in double precision.
_NEVER = 1e3


class _KnownObserver(OptimisticLearner):
    """Plans with fixed costs; learns rewards and transitions."""

    def _planning(
        self, model: TerMDP, episodes: int, costs: Array, bias: float, pitch: float
    ) -> Callable[[Counts, int], Decision]:
        def decide(counts: Counts, played: int) -> Decision:
            optimism = optimistic_mdp(
                counts, model, episodes, self.delta, self.bonus_scale
            )
            policy = plan_optimistically(model, optimism, costs, bias, pitch)
            needed = optimism.needed_scales
            is_good = max(needed) <= self.bonus_scale
            return Decision(policy, policy.value, (*needed, 0.0), is_good)

        return decide


@dataclass(eq=False)
class KnownCosts(_KnownObserver):
    """Knows costs and bias; learns rewards and transitions.

    Attributes:
        resolution: pitch of the planner's lattice; None chooses one.
    """

    resolution: float | None = None

    def begin(
        self, model: TerMDP, episodes: int, random: np.random.Generator
    ) -> Callable[[Counts, int], Decision]:
        """Prepare a run."""
        pitch = self.resolution or default_resolution(
            float(np.abs(model.costs).max()), model.horizon
        )
        return self._planning(model, episodes, model.costs, model.bias, pitch)


class IgnoreStops(_KnownObserver):
    """Optimistic about rewards and transitions; treats stops as chance."""

    def begin(
        self, model: TerMDP, episodes: int, random: np.random.Generator
    ) -> Callable[[Counts, int], Decision]:
        """Prepare a run."""
        return self._planning(model, episodes, np.zeros(model.shape), _NEVER, 1.0)


@dataclass(eq=False)
class WholeHistory(OptimisticLearner):
    """Optimism with the whole history as state and the stop as a move to a sink.

    For `replan`, the counts of the histories' last pairs must double.
    """

    _seen: "_HistoryCounts | None" = field(default=None, init=False, repr=False)

    def begin(
        self, model: TerMDP, episodes: int, random: np.random.Generator
    ) -> Callable[[Counts, int], Decision]:
        """Prepare a run."""
        seen = self._seen = _HistoryCounts(model)

        def decide(counts: Counts, played: int) -> Decision:
            values: Array | None = None
            actions: list[IntArray] = []
            needed = np.zeros(2)
            for h in range(model.horizon, 0, -1):
                action_values, needed_now = seen.action_values(
                    h, values, episodes, self.delta, self.bonus_scale
                )
                needed = np.maximum(needed, needed_now)
                actions.insert(0, action_values.argmax(axis=2))
                values = np.minimum(
                    action_values.max(axis=2), value_caps(model.horizon)[h - 1]
                )
            assert values is not None
            policy = HistoryPolicy(actions, model.num_actions)
            return Decision(
                policy,
                float(model.initial @ values[0]),
                (float(needed[0]), float(needed[1]), 0.0),
                bool(needed.max() <= self.bonus_scale),
            )

        return decide

    def observe(self, batch: Rollouts) -> None:
        """Count the histories."""
        assert self._seen is not None
        self._seen.add(batch)


class _HistoryCounts:
    """Visits, rewards and followers of every (history, state, action)."""

    def __init__(self, model: TerMDP) -> None:
        horizon, num_states, num_actions = model.shape
        self.model = model
        sizes = [(num_states * num_actions) ** h for h in range(horizon)]
        if sum(sizes) * num_states * num_actions > MAX_HISTORIES:
            raise ValueError(
                f"the whole history as state needs {sum(sizes) * num_states} states, "
                "too many; use a model with fewer states or a shorter horizon"
            )
        shapes = [(size, num_states, num_actions) for size in sizes]
        self.visits = [np.zeros(shape) for shape in shapes]
        self.rewards = [np.zeros(shape) for shape in shapes]
        self.moves = [np.zeros((*shape, num_states)) for shape in shapes]
        self.true_costs = self._history_costs()

    def _history_costs(self) -> list[Array]:
        """Accumulated cost after (history, state, action), for the diagnosis."""
        before, result = np.zeros(1), []
        for h in range(self.model.horizon):
            after = before[:, None, None] + self.model.costs[h]
            result.append(after)
            before = after.ravel()
        return result

    def add(self, batch: Rollouts) -> None:
        history = np.zeros(len(batch), np.int64)
        _, num_states, num_actions = self.model.shape
        for h in range(self.model.horizon):
            playing = batch.states[:, h] >= 0
            place = (history, batch.states[:, h], batch.actions[:, h])
            here = tuple(part[playing] for part in place)
            np.add.at(self.visits[h], here, 1)
            np.add.at(self.rewards[h], here, batch.rewards[playing, h])
            if h + 1 < self.model.horizon:
                goes_on = batch.states[:, h + 1] >= 0
                there = tuple(part[goes_on] for part in place)
                np.add.at(self.moves[h], (*there, batch.states[goes_on, h + 1]), 1)
            digits = batch.states[:, h] * num_actions + batch.actions[:, h]
            history = np.where(playing, history * num_states * num_actions + digits, 0)

    def action_values(
        self, h: int, following: Array | None, episodes: int, delta: float, scale: float
    ) -> tuple[Array, tuple[float, float]]:
        """Optimistic Q of step h, `[histories, S, A]`, and the factors needed."""
        visits, model = self.visits[h - 1], self.model
        # All (history, state) pairs of this step are the states here.
        as_table = visits.reshape(1, -1, model.num_actions)
        by_reward = bounds.reward_bonus(as_table, episodes, delta).reshape(visits.shape)
        log_term = np.log(12 * visits.size * episodes / delta)
        seen = np.maximum(visits, 1)
        by_move = model.horizon * np.sqrt(4 * (model.num_states + 1) * log_term / seen)
        reward = self.rewards[h - 1] / seen
        total = reward + scale * (by_reward + by_move)
        needed = float((np.abs(reward - model.rewards[h - 1]) / by_reward).max())
        if following is None:
            return total, (needed, 0.0)
        chance = self.moves[h - 1] / seen[..., None]
        goes_on = survival(self.true_costs[h - 1], model.bias)[..., None]
        truth = goes_on * model.transitions[h - 1]
        gap = np.abs(chance - truth).sum(axis=3)
        gap += np.abs(chance.sum(axis=3) - truth.sum(axis=3))
        children = following.reshape(*visits.shape, model.num_states)
        return (
            total + (chance * children).sum(axis=3),
            (needed, float((model.horizon * gap / by_move).max())),
        )
