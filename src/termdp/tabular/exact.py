"""Exact planning on the pairs (state, accumulated cost) that can be reached.

Appendix B of arXiv:2205.15376: only the accumulated cost matters of the history, so the
TerMDP is an MDP on pairs (s, C). From a fixed start only finitely many pairs can be
reached. If they are few, backward induction over them is exact for any costs. With a
finite window, the last w − 1 costs replace C.

Runs in NumPy, double precision: the pairs are irregular, and the answer should be right
to 1e-6 or better.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from termdp.tabular.model import COST_DECIMALS, Array, IntArray, TerMDP, survival
from termdp.tabular.policies import RemembersCosts
from termdp.tabular.rows import RowIndex

# Most moves (pair, action, next state) of one step; more take minutes.
MAX_MOVES = 2_000_000


@dataclass(frozen=True)
class _Moves:
    """All moves out of one step's pairs; a *choice* is a pair with an action."""

    choice: IntArray  # [E] pair · A + action
    weight: Array  # [E] (1 − ρ) · P
    target: Array  # [E, 1 + m] the pair it leads to


def reachable_moves(
    model: TerMDP, h: int, pairs: Array, any_follower: bool = False
) -> _Moves:
    """Every move out of `pairs` (rows: state, memory) at step h.

    With `any_follower`, moves of probability 0 are included: an estimated model may not
    have seen them yet.
    """
    states = pairs[:, 0].astype(np.int64)
    num_pairs, num_actions = len(pairs), model.num_actions
    followers = np.count_nonzero(model.transitions[h - 1], axis=2)
    num_cells = num_pairs * num_actions * model.num_states
    num_moves = num_cells if any_follower else followers[states].sum()
    if num_moves > MAX_MOVES or num_cells > 10 * MAX_MOVES:
        raise ValueError(
            f"exact planning found more than {MAX_MOVES} moves between pairs of "
            f"state and accumulated cost at step {h} of {model.horizon}; "
            "quantise instead: plan(model, resolution=Δ) or plan(model, epsilon=ε)"
        )
    probability = model.transitions[h - 1][states].reshape(-1, model.num_states)
    memory = np.repeat(pairs[:, 1:], num_actions, axis=0)
    cost = model.costs[h - 1][states].reshape(num_pairs * num_actions)
    window_cost, next_memory = model.advance(memory, cost)
    choice, next_state = np.nonzero((probability > 0) | any_follower)
    target = np.column_stack([next_state, next_memory[choice]])
    weight = survival(window_cost, model.bias)[choice] * probability[choice, next_state]
    return _Moves(choice, weight, target)


class ExactPlan(RemembersCosts):
    """The optimal policy on everything that can be reached.

    Args:
        model: the TerMDP.
        rewards: other rewards than the model's, of any size, `[H, S, A]`.
        cap: greatest value of each step, `[H]`.
        any_follower: also plan for next states of probability 0.

    Attributes:
        value: V*_1 from the initial distribution.
        error_bound: 0.0, this plan is exact.
    """

    error_bound = 0.0

    def __init__(
        self,
        model: TerMDP,
        rewards: Array | None = None,
        cap: Array | None = None,
        any_follower: bool = False,
    ) -> None:
        self.model = model
        self._rewards = model.rewards if rewards is None else rewards
        self._cap = np.full(model.horizon, np.inf) if cap is None else cap
        self._pairs, moves = _explore(model, any_follower)
        self._values: list[Array] = []
        self._actions: list[IntArray] = []
        following = np.zeros(0)
        for h in range(model.horizon, 0, -1):
            following, actions = self._backup(h, moves[h - 1], following)
            self._values.insert(0, following)
            self._actions.insert(0, actions)
        starts = self._pairs[0].rows[:, 0].astype(np.int64)
        self.value = float(model.initial[starts] @ self._values[0])

    def _backup(
        self, h: int, moves: _Moves | None, following: Array
    ) -> tuple[Array, IntArray]:
        """Values and best actions of step h from the values of step h + 1."""
        states = self._pairs[h - 1].rows[:, 0].astype(np.int64)
        action_values = self._rewards[h - 1][states]
        if moves is not None:
            child = self._pairs[h].inverse
            # Termination Bellman equation (appendix C), arXiv:2205.15376
            action_values = action_values + np.bincount(
                moves.choice, moves.weight * following[child], action_values.size
            ).reshape(action_values.shape)
        values = np.minimum(action_values.max(axis=1), self._cap[h - 1])
        return values, action_values.argmax(axis=1)

    def value_at(self, h: int, s: int, accumulated: float | ArrayLike = 0.0) -> float:
        """V*_h(s, C), C the cost accumulated *before* step h.

        Args:
            h: step, from 1 to H.
            s: state.
            accumulated: C; with a finite window the last w − 1 costs, oldest first (or
                0.0 at the start).
        """
        return float(self._values[h - 1][self._find(h, s, accumulated)])

    def act(self, h: int, s: int, accumulated: float | ArrayLike = 0.0) -> int:
        """The optimal action; arguments as in `value_at`."""
        return int(self._actions[h - 1][self._find(h, s, accumulated)])

    def _find(self, h: int, s: int, accumulated: float | ArrayLike) -> int:
        if not 1 <= h <= self.model.horizon:
            raise ValueError(
                f"expected a step from 1 to {self.model.horizon}, got {h} (steps count "
                "from 1)"
            )
        memory = np.atleast_1d(np.asarray(accumulated, float))
        if self.model.window is not None and memory.shape == (1,) and not memory[0]:
            memory = np.zeros(self.model.memory_size)
        if memory.shape != (self.model.memory_size,):
            raise ValueError(
                f"expected the last {self.model.memory_size} costs (window "
                f"{self.model.window}), got {accumulated!r}"
            )
        row = np.concatenate([[s], np.round(memory, COST_DECIMALS)])[None]
        place = int(self._pairs[h - 1].find(row)[0])
        if place < 0:
            raise ValueError(
                f"state {s} with accumulated cost {accumulated!r} cannot be reached at "
                f"step {h}; an exact plan knows reachable pairs only"
            )
        return place

    def probabilities(self, h: int, states: IntArray, memory: Array) -> Array:
        """Probability 1 for the best action."""
        place = self._pairs[h - 1].find(np.column_stack([states, memory]))
        if (place < 0).any():
            raise ValueError(
                "an exact plan was asked about a pair of state and accumulated cost "
                f"that its model cannot reach at step {h}"
            )
        return np.eye(self.model.num_actions)[self._actions[h - 1][place]]

    @property
    def num_pairs(self) -> int:
        """How many pairs (step, state, accumulated cost) the plan covers."""
        return sum(map(len, self._pairs))


def _explore(
    model: TerMDP, any_follower: bool
) -> tuple[list[RowIndex], list[_Moves | None]]:
    """Reachable pairs of every step, and the moves between them."""
    starts = np.flatnonzero(model.initial)
    pairs = [RowIndex(np.column_stack([starts, model.start_memory(len(starts))]))]
    moves: list[_Moves | None] = []
    for h in range(1, model.horizon):
        found = reachable_moves(model, h, pairs[-1].rows, any_follower)
        moves.append(found)
        pairs.append(RowIndex(found.target))
    moves.append(None)
    return pairs, moves
