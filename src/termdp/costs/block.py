"""Synthetic episodes with known costs, to check a cost learner against the truth.

Observations are 10×10 grids of four channels: a moving pixel, a 3×3 block that costs 1
whenever it is there, a decoy block that comes as often and costs nothing, and clutter.
How often the blocks come differs from episode to episode, so stops are told apart by
the accumulated cost, and a learner that cannot see the block finds nothing.
"""

from dataclasses import dataclass

import numpy as np

from termdp.costs.episodes import Episode

SIZE = 10
BLOCK = 3
NUM_ACTIONS = 3


@dataclass(frozen=True)
class BlockTask:
    """The true model and how often blocks come.

    Attributes:
        window: w, steps that the observer remembers.
        bias: b of the observer.
        horizon: steps after which an episode is truncated.
        min_rate: lowest share of steps with a block in an episode.
        max_rate: highest share.
    """

    window: int = 30
    bias: float = 6.0
    horizon: int = 400
    min_rate: float = 0.02
    max_rate: float = 0.2


@dataclass(frozen=True, eq=False)
class KnownEpisode:
    """An episode with the truth about it.

    Attributes:
        episode: what a learner may see.
        costs: c_t, `[t]`.
        window_costs: C_t, `[t]`.
        stop_probs: ρ(C_t − b), `[t]`.
    """

    episode: Episode
    costs: np.ndarray
    window_costs: np.ndarray
    stop_probs: np.ndarray


def block_episodes(
    rng: np.random.Generator, count: int, task: BlockTask | None = None
) -> list[KnownEpisode]:
    """Draw `count` episodes."""
    task = task or BlockTask()
    return [_episode(rng, task) for _ in range(count)]


def _episode(rng: np.random.Generator, task: BlockTask) -> KnownEpisode:
    rate = rng.uniform(task.min_rate, task.max_rate)
    has_block = rng.random(task.horizon) < rate
    costs = has_block.astype(np.float64)
    total = np.concatenate([np.zeros(task.window), np.cumsum(costs)])
    window_costs = total[task.window :] - total[: -task.window]
    stop_probs = 1.0 / (1.0 + np.exp(task.bias - window_costs))
    stops = np.flatnonzero(rng.random(task.horizon) < stop_probs)
    length = stops[0] + 1 if len(stops) else task.horizon
    has_decoy = rng.random(length) < rate
    return KnownEpisode(
        episode=Episode(
            obs=_grids(rng, has_block[:length], has_decoy),
            actions=rng.integers(NUM_ACTIONS, size=length),
            end="stopped" if len(stops) else "truncated",
        ),
        costs=costs[:length],
        window_costs=window_costs[:length],
        stop_probs=stop_probs[:length],
    )


def _grids(
    rng: np.random.Generator, has_block: np.ndarray, has_decoy: np.ndarray
) -> np.ndarray:
    length = len(has_block)
    grids = np.zeros((length, SIZE, SIZE, 4), bool)
    step = np.arange(length)
    row, column = rng.integers(SIZE, size=(2, length))
    grids[step, row, column, 0] = True
    for channel, is_there in ((1, has_block), (2, has_decoy)):
        grids[..., channel] = is_there[:, None, None] & _squares(rng, length)
    grids[..., 3] = rng.random((length, SIZE, SIZE)) < 0.1
    return grids


def _squares(rng: np.random.Generator, count: int) -> np.ndarray:
    """A 3×3 square at a random place in each grid, `[count, SIZE, SIZE]`."""
    corner = rng.integers(SIZE - BLOCK + 1, size=(2, count))
    cells = np.arange(SIZE)
    inside = (cells >= corner[..., None]) & (cells < corner[..., None] + BLOCK)
    rows, columns = inside
    return rows[:, :, None] & columns[:, None, :]
