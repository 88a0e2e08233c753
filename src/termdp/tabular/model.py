"""A finite TerMDP: states, actions, costs, and an observer that may stop the episode.

Section 2 of "Reinforcement Learning with a Terminator" (arXiv:2205.15376). At step h
the agent is in s_h, takes a_h and earns r_h(s_h, a_h). Then the observer stops the
episode with probability ρ(Σ_{t≤h} c_t(s_t, a_t) − b), the present cost included, and
only then the state moves by P_h. With a `window` the sum covers the last w steps
(section 4).

Everything here is NumPy in double precision. Steps are counted from 1 to H as in the
paper; arrays store step h at index h − 1.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

Array = NDArray[Any]
IntArray = NDArray[Any]

# Costs that differ by less than this are equal: 0.1 + 0.2 is 0.3.
COST_DECIMALS = 11
_SUM_TOLERANCE = 1e-8


def survival(window_cost: ArrayLike, bias: float) -> Array:
    """Probability 1 − ρ(C − b) of not being stopped, in double precision.

    It is one minus `termdp.stop_probability`, and it is the dynamic discount γ.

    Args:
        window_cost: C, accumulated cost including the present step's.
        bias: b.
    """
    # Eq. (2), arXiv:2205.15376
    return np.asarray(expit(bias - np.asarray(window_cost, float)))


@dataclass(frozen=True, eq=False)
class TerMDP:
    """A finite TerMDP (S, A, P, r, H, c) with bias b.

    Attributes:
        transition: P, `[S, A, S]`, or `[H, S, A, S]` when it changes with the step.
        reward: mean rewards r in [0, 1], `[S, A]` or `[H, S, A]`.
        cost: c of any sign, `[S, A]` or `[H, S, A]`.
        bias: b; without costs the observer stops with probability ρ(−b).
        horizon: H, the greatest number of steps.
        initial: distribution of the first state, `[S]`, or the number of one state.
        window: the observer remembers the last `window` steps; None means all of them.

    Examples:
        >>> model = TerMDP(
        ...     transition=[[[1.0]]], reward=[[1.0]], cost=[[0.0]], bias=0.0,
        ...     horizon=2, initial=0,
        ... )
        >>> model.num_states, model.num_actions
        (1, 1)
    """

    transition: Array
    reward: Array
    cost: Array
    bias: float
    horizon: int
    initial: Array
    window: int | None = None
    num_states: int = field(init=False)
    num_actions: int = field(init=False)

    def __post_init__(self) -> None:
        if int(self.horizon) != self.horizon or self.horizon < 1:
            raise ValueError(f"expected a horizon of 1, 2, …, got {self.horizon!r}")
        if self.window is not None and (
            int(self.window) != self.window or self.window < 1
        ):
            raise ValueError(
                f"expected a window of 1, 2, … steps or None, got {self.window!r}"
            )
        if not np.isfinite(self.bias):
            raise ValueError(f"expected a finite bias, got {self.bias!r}")
        transition = _checked_transition(self.transition, int(self.horizon))
        num_states, num_actions = transition.shape[-3], transition.shape[-2]
        shape = (int(self.horizon), num_states, num_actions)
        reward = _checked_table("reward", self.reward, shape)
        if reward.min() < 0 or reward.max() > 1:
            raise ValueError(
                "expected rewards in [0, 1], got values from "
                f"{reward.min():g} to {reward.max():g}; rescale them"
            )
        values = {
            "transition": transition,
            "reward": reward,
            "cost": _checked_table("cost", self.cost, shape),
            "bias": float(self.bias),
            "horizon": int(self.horizon),
            "initial": _checked_initial(self.initial, num_states),
            "window": None if self.window is None else int(self.window),
            "num_states": num_states,
            "num_actions": num_actions,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def transitions(self) -> Array:
        """P of every step, `[H, S, A, S]` (a view where P is stationary)."""
        return np.broadcast_to(
            self.transition,
            (self.horizon, self.num_states, self.num_actions, self.num_states),
        )

    @property
    def rewards(self) -> Array:
        """Mean rewards of every step, `[H, S, A]`."""
        return np.broadcast_to(self.reward, self.shape)

    @property
    def costs(self) -> Array:
        """Costs of every step, `[H, S, A]`."""
        return np.broadcast_to(self.cost, self.shape)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        return (self.horizon, self.num_states, self.num_actions)

    @property
    def radius(self) -> float:
        """‖c‖₂ with the bias absorbed: the smallest valid L of the paper."""
        return float(np.linalg.norm(absorb_bias(self).costs))

    @property
    def memory_size(self) -> int:
        """How many numbers the observer remembers: the sum, or the last w − 1 costs."""
        return 1 if self.window is None else self.window - 1

    def start_memory(self, num: int = 1) -> Array:
        """What the observer remembers before the first step, `[num, memory_size]`."""
        return np.zeros((num, self.memory_size))

    def advance(self, memory: Array, cost: Array) -> tuple[Array, Array]:
        """Add one step's costs to what the observer remembers.

        Args:
            memory: `[N, memory_size]`.
            cost: c_h(s_h, a_h), `[N]`.

        Returns:
            The window cost C_h, `[N]`, which decides the stop; and the new memory.
        """
        window_cost = np.round(memory.sum(axis=1) + cost, COST_DECIMALS)
        if self.window is None:
            return window_cost, window_cost[:, None]
        kept = np.concatenate([memory, np.round(cost, COST_DECIMALS)[:, None]], axis=1)
        return window_cost, kept[:, 1:]


def absorb_bias(model: TerMDP) -> TerMDP:
    """The same observer with bias 0 and −b moved into the costs of step 1.

    Appendix F of the paper writes c(s_1, a_1) := c(s_1, a_1) − b. Under a finite window
    w the first cost is forgotten at step w + 1, so −b also goes into the costs of steps
    w + 1, 2w + 1, …: every window holds exactly one of them.
    """
    # Appendix F, bias absorbed in the costs, arXiv:2205.15376
    cost = model.costs.copy()
    cost[:: model.window or model.horizon] -= model.bias
    return replace(model, cost=cost, bias=0.0)


def _checked_transition(transition: ArrayLike, horizon: int) -> Array:
    table = np.asarray(transition, float)
    if table.ndim not in (3, 4) or table.shape[-1] != table.shape[-3] or not table.size:
        raise ValueError(
            "expected transition probabilities [S, A, S] or [H, S, A, S], got shape "
            f"{table.shape}"
        )
    if table.ndim == 4 and table.shape[0] != horizon:
        raise ValueError(
            f"expected transitions of {horizon} steps (the horizon), got "
            f"{table.shape[0]}"
        )
    if not np.isfinite(table).all() or table.min() < 0:
        raise ValueError("expected transition probabilities that are finite and ≥ 0")
    sums = table.sum(axis=-1)
    worst = np.unravel_index(np.abs(sums - 1).argmax(), sums.shape)
    if abs(sums[worst] - 1) > _SUM_TOLERANCE:
        raise ValueError(
            "expected transition probabilities that sum to 1, got "
            f"{sums[worst]:g} at index {tuple(int(i) for i in worst)}"
        )
    return table


def _checked_table(name: str, values: ArrayLike, shape: tuple[int, int, int]) -> Array:
    table = np.asarray(values, float)
    if table.shape not in (shape, shape[1:]):
        raise ValueError(
            f"expected {name} [S, A] = {shape[1:]} or [H, S, A] = {shape}, got shape "
            f"{table.shape}"
        )
    if not np.isfinite(table).all():
        raise ValueError(
            f"expected finite {name} values, got {table[~np.isfinite(table)][0]}"
        )
    return table


def _checked_initial(initial: ArrayLike, num_states: int) -> Array:
    given = np.asarray(initial)
    if given.ndim == 0:
        state = int(given)
        if not 0 <= state < num_states:
            raise ValueError(
                f"expected an initial state from 0 to {num_states - 1}, got {state}"
            )
        return np.eye(num_states)[state]
    distribution = given.astype(float)
    if distribution.shape != (num_states,):
        raise ValueError(
            f"expected an initial distribution over {num_states} states, got shape "
            f"{distribution.shape}"
        )
    if distribution.min() < 0 or abs(distribution.sum() - 1) > _SUM_TOLERANCE:
        raise ValueError(
            "expected an initial distribution that is ≥ 0 and sums to 1, got sum "
            f"{distribution.sum():g}"
        )
    return distribution
