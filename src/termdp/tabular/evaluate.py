"""`evaluate`: the exact value of a policy, by carrying probability forward.

A state of the walk is (state, what the observer remembers, what the policy remembers).
For a quantised plan this is the triple of state, true accumulated cost and planner's
bin: the observer uses the second, the policy the third. The probability of no stop so far
is a product of γ_h = 1 − ρ(C_h − b). That is the same as a walk with an absorbing sink
(appendix C of arXiv:2205.15376).
"""

import numpy as np

from termdp.tabular.model import Array, TerMDP, survival
from termdp.tabular.policies import as_policy
from termdp.tabular.rows import RowIndex

MAX_MOVES = 2_000_000


def evaluate(model: TerMDP, policy: object, max_moves: int = MAX_MOVES) -> float:
    """Expected return of a policy from the initial distribution, exactly.

    Args:
        model: the TerMDP.
        policy: a plan, a policy, an array of actions `[H, S]` or probabilities
            `[H, S, A]`, or a function `(h, state, accumulated) -> action`.
        max_moves: give up with an error when one step has more moves than this.

    Examples:
        >>> from termdp import tabular
        >>> model = tabular.chain()
        >>> best = tabular.plan(model)
        >>> bool(abs(tabular.evaluate(model, best) - best.value) < 1e-12)
        True
    """
    acting = as_policy(model, policy)
    states = np.flatnonzero(model.initial)
    observed, memory = model.start_memory(len(states)), acting.start(len(states))
    mass, value = model.initial[states], 0.0
    for h in range(1, model.horizon + 1):
        chances = acting.probabilities(h, states, memory)
        row, action = np.nonzero(chances)
        mass = mass[row] * chances[row, action]
        states, observed, memory = states[row], observed[row], memory[row]
        value += float(mass @ model.rewards[h - 1, states, action])
        if h == model.horizon:
            break
        cost = model.costs[h - 1, states, action]
        window_cost, observed = model.advance(observed, cost)
        memory = acting.advance(h, states, action, memory)
        mass = mass * survival(window_cost, model.bias)
        num_cells = len(states) * model.num_states
        if num_cells > 10 * max_moves:
            raise _too_many(num_cells, h, model.horizon)
        probability = model.transitions[h - 1, states, action]
        row, following = np.nonzero(probability)
        if len(row) > max_moves:
            raise _too_many(len(row), h, model.horizon)
        mass = mass[row] * probability[row, following]
        table = np.column_stack([following, observed[row], memory[row]])
        states, observed, memory, mass = _merged(table, mass, observed.shape[1])
    return value


def _too_many(found: int, h: int, horizon: int) -> ValueError:
    return ValueError(
        f"exact evaluation found {found} moves at step {h} of {horizon}, which is too "
        "many; use costs on a coarser lattice, a coarser plan, or simulate(model, "
        "policy, …)"
    )


def _merged(
    table: Array, mass: Array, num_observed: int
) -> tuple[np.ndarray, Array, Array, Array]:
    """Join equal rows, adding up their probability."""
    index = RowIndex(table)
    split = 1 + num_observed
    return (
        index.rows[:, 0].astype(np.int64),
        index.rows[:, 1:split],
        index.rows[:, split:],
        np.bincount(index.inverse, mass, len(index)),
    )
