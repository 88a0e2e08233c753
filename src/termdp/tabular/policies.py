"""Policies for finite TerMDPs: what they remember, and what they do.

A policy has its own memory during an episode: nothing (Markov), the accumulated cost by
its own model, the lattice bin of a quantised planner, or the whole history. All methods
work on many episodes at once. Steps h run from 1 to H.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from termdp.tabular.model import Array, IntArray, TerMDP


class Policy(ABC):
    """The interface of policies; memories are `[N, m]` arrays of numbers."""

    @abstractmethod
    def start(self, num: int) -> Array:
        """Memories of `num` episodes before their first step, `[num, m]`."""

    @abstractmethod
    def probabilities(self, h: int, states: IntArray, memory: Array) -> Array:
        """Probability of each action at step h, `[N, A]`."""

    def advance(
        self, h: int, states: IntArray, actions: IntArray, memory: Array
    ) -> Array:
        """Memory after step h; unchanged for a policy without memory."""
        return memory


class MarkovPolicy(Policy):
    """Uses only the step and the state.

    Attributes:
        table: probabilities `[H, S, A]`.
    """

    def __init__(self, table: ArrayLike, num_actions: int) -> None:
        given = np.asarray(table)
        if given.ndim == 2:
            if given.min() < 0 or given.max() >= num_actions:
                raise ValueError(
                    f"expected actions from 0 to {num_actions - 1}, got "
                    f"{given.min()} to {given.max()}"
                )
            given = np.eye(num_actions)[given.astype(np.int64)]
        if given.ndim != 3 or given.shape[2] != num_actions:
            raise ValueError(
                "expected actions [H, S] or probabilities [H, S, A] with A = "
                f"{num_actions}, got shape {given.shape}"
            )
        if given.min() < 0 or np.abs(given.sum(axis=2) - 1).max() > 1e-8:
            raise ValueError("expected action probabilities ≥ 0 that sum to 1")
        self.table: Array = given.astype(float)

    def start(self, num: int) -> Array:
        """Nothing to remember."""
        return np.zeros((num, 0))

    def probabilities(self, h: int, states: IntArray, memory: Array) -> Array:
        """Row (h, s) of the table."""
        return self.table[h - 1, states]


class RemembersCosts(Policy):
    """Remembers what its model's observer does: the accumulated cost.

    Attributes:
        model: the policy adds up its costs, over its window.
    """

    model: TerMDP

    def start(self, num: int) -> Array:
        """No costs so far."""
        return self.model.start_memory(num)

    def advance(
        self, h: int, states: IntArray, actions: IntArray, memory: Array
    ) -> Array:
        """Add the model's cost of this step."""
        return self.model.advance(memory, self.model.costs[h - 1, states, actions])[1]


class CostPolicy(RemembersCosts):
    """Acts by a function of step, state and the model's accumulated cost.

    Attributes:
        function: `(h, state, accumulated) -> action`; with a finite window
            `accumulated` is the array of the last w − 1 costs, oldest first.
    """

    def __init__(
        self, model: TerMDP, function: Callable[[int, int, float | Array], int]
    ) -> None:
        self.model, self.function = model, function

    def probabilities(self, h: int, states: IntArray, memory: Array) -> Array:
        """One call of the function for each episode."""
        remembered = memory[:, 0] if self.model.window is None else memory
        chosen = [
            self.function(h, int(state), row)
            for state, row in zip(states, remembered, strict=True)
        ]
        return np.eye(self.model.num_actions)[np.asarray(chosen, np.int64)]


class HistoryPolicy(Policy):
    """Uses the whole history: one action per (s_1, a_1, …, s_h). Tiny cases only.

    A history before step h is numbered by its digits s_1, a_1, …, s_{h−1}, a_{h−1}, so
    there are (S·A)^{h−1} of them.

    Attributes:
        actions: for each step the actions `[(S·A)^{h−1}, S]`.
    """

    def __init__(self, actions: list[IntArray], num_actions: int) -> None:
        self.actions, self.num_actions = actions, num_actions

    def start(self, num: int) -> Array:
        """The empty history has number 0."""
        return np.zeros((num, 1))

    def probabilities(self, h: int, states: IntArray, memory: Array) -> Array:
        """Look the history up."""
        history = memory[:, 0].astype(np.int64)
        return np.eye(self.num_actions)[self.actions[h - 1][history, states]]

    def advance(
        self, h: int, states: IntArray, actions: IntArray, memory: Array
    ) -> Array:
        """Append (s_h, a_h) to the history."""
        num_states = self.actions[h - 1].shape[1]
        digits = states * self.num_actions + actions
        return memory * (num_states * self.num_actions) + digits[:, None]


def as_policy(model: TerMDP, policy: object) -> Policy:
    """Make a policy from a plan, an array of actions or probabilities, or a function."""
    if isinstance(policy, Policy):
        return policy
    if callable(policy):
        return CostPolicy(model, policy)
    table = np.asarray(policy)
    if table.shape[:2] != (model.horizon, model.num_states):
        raise ValueError(
            "expected a plan, a function (h, state, accumulated) -> action, or actions "
            f"[H, S] = {(model.horizon, model.num_states)}, got shape {table.shape}"
        )
    return MarkovPolicy(table, model.num_actions)
