"""Small TerMDPs with names: `chain`, `grid`, `random` and `paper_example`.

Their costs are multiples of ¼. So few accumulated costs can be reached, and planning and
evaluation are exact.
"""

from collections.abc import Callable

import numpy as np

from termdp.tabular.model import TerMDP

COST_UNIT = 0.25


def chain(length: int = 5, horizon: int = 8, bias: float = 3.0) -> TerMDP:
    """Walk to the right end of a chain: hurrying annoys the observer.

    States 0 … length − 1. Action 0 (stroll) moves right with probability 0.6 and costs
    nothing; action 1 (hurry) moves right with probability 0.95 and costs ¾. The left
    end pays 0.1 for strolling; the right end pays 1 for any action.
    """
    if length < 2:
        raise ValueError(f"expected a chain of 2 states or more, got {length}")
    transition = np.zeros((length, 2, length))
    for state in range(length):
        for action, chance in enumerate((0.6, 0.95)):
            transition[state, action, min(state + 1, length - 1)] += chance
            transition[state, action, state] += 1 - chance
    reward, cost = np.zeros((length, 2)), np.zeros((length, 2))
    reward[0, 0], reward[-1] = 0.1, 1.0
    cost[:, 1] = 3 * COST_UNIT
    return TerMDP(transition, reward, cost, bias, horizon, np.eye(len(cost))[0])


def grid(size: int = 3, horizon: int = 8, bias: float = 3.0) -> TerMDP:
    """Cross a square to its far corner; the observer's lawn pays, but costs.

    Cells are numbered row by row from the top left, where the walk starts. Actions: up,
    right, down, left; a step succeeds with probability 0.9, otherwise the agent stays.
    Every cell off the top row and the right column is lawn: it pays 0.3 and costs 1. The
    path around it pays 0.05, the bottom right cell pays 1. The top right cell has a
    negative cost (−½).
    """
    if size < 2:
        raise ValueError(f"expected a grid of side 2 or more, got {size}")
    cells = size * size
    transition = np.zeros((cells, 4, cells))
    for cell in range(cells):
        for action, (down, right) in enumerate(((-1, 0), (0, 1), (1, 0), (0, -1))):
            row = min(max(cell // size + down, 0), size - 1)
            column = min(max(cell % size + right, 0), size - 1)
            transition[cell, action, row * size + column] += 0.9
            transition[cell, action, cell] += 0.1
    rows, columns = np.divmod(np.arange(cells), size)
    is_lawn = (rows > 0) & (columns < size - 1)
    reward = np.repeat(np.where(is_lawn, 0.3, 0.05)[:, None], 4, axis=1)
    reward[-1] = 1.0
    cost = np.repeat(np.where(is_lawn, 4 * COST_UNIT, 0.0)[:, None], 4, axis=1)
    cost[size - 1] = -2 * COST_UNIT
    return TerMDP(transition, reward, cost, bias, horizon, np.eye(len(cost))[0])


def random(
    num_states: int = 6,
    num_actions: int = 3,
    horizon: int = 6,
    bias: float = 2.0,
    branching: int = 2,
    seed: int = 0,
) -> TerMDP:
    """Random transitions, rewards and signed costs.

    From each (s, a) `branching` states can follow. Costs are drawn from −½, −¼, …, 1½ and
    grow with the reward, so that good rewards cost more.
    """
    if not 1 <= branching <= num_states:
        raise ValueError(
            f"expected a branching from 1 to {num_states}, got {branching}"
        )
    generator = np.random.default_rng(seed)
    shape = (num_states, num_actions)
    transition = np.zeros((*shape, num_states))
    for state in range(num_states):
        for action in range(num_actions):
            following = generator.choice(num_states, branching, replace=False)
            chance = generator.dirichlet(np.full(branching, 2.0))
            transition[state, action, following] = chance
    reward = generator.random(shape)
    noisy = -0.5 + 1.5 * reward + generator.uniform(-0.25, 0.5, shape)
    cost = np.clip(np.round(noisy / COST_UNIT), -2, 6) * COST_UNIT
    return TerMDP(transition, reward, cost, bias, horizon, np.eye(len(cost))[0])


def paper_example(bias: float = 0.5) -> TerMDP:
    """The figure on step-wise feedback: s_0 → s_1 → s_T, or s_0 → s_T directly.

    In s_0 (state 0) action 0 goes to s_1 (state 1), action 1 to s_T (state 2); s_1
    leads to s_T, which keeps the agent. The figure gives no numbers; here the long way
    pays 0.6 and then ½, the short way ½, s_T pays ½ a step, and costs are 1 on either
    step of the long way and ½ on the short one.
    """
    transition = np.zeros((3, 2, 3))
    transition[0, 0, 1] = transition[0, 1, 2] = 1.0
    transition[1, :, 2] = transition[2, :, 2] = 1.0
    reward = np.array([[0.6, 0.5], [0.5, 0.5], [0.5, 0.5]])
    cost = np.array([[1.0, 0.5], [1.0, 1.0], [0.0, 0.0]])
    # Appendix J, figure on step-wise feedback, arXiv:2205.15376
    return TerMDP(transition, reward, cost, bias, 3, np.eye(3)[0])


NAMED_MODELS: dict[str, Callable[..., TerMDP]] = {
    "chain": chain,
    "grid": grid,
    "random": random,
    "paper_example": paper_example,
}


def make_model(name: str, **overrides: float) -> TerMDP:
    """A named model, with some of its parameters changed."""
    if name not in NAMED_MODELS:
        raise ValueError(f"expected a model ({', '.join(NAMED_MODELS)}), got {name!r}")
    return NAMED_MODELS[name](**overrides)
