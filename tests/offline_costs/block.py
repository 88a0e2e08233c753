"""Synthetic episodes with known costs, to check a cost learner against the truth.

Observations are 10×10 grids of four channels: a moving pixel, a 3×3 block that costs 1
whenever it is there, a decoy block that comes as often and costs nothing, and clutter.
How often the blocks come differs from episode to episode, so stops are told apart by
the accumulated cost, and a learner that cannot see the block finds nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from offline_costs.episodes import Episode
from termdp.cost_network import ActionSpec
from termdp.costs import ensemble
from termdp.termination import window_sums

SIZE = 10
BLOCK = 3
ACTIONS = ActionSpec(3)


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


@dataclass(frozen=True)
class BlockScore:
    """What a learner made of held-out episodes, next to the true model.

    Attributes:
        auc: area under the curve of the ensemble's stop probability, the mean of its
            members', each with its own bias.
        true_auc: the same of the true stop probability.
        log_loss: cross entropy per step, in nats.
        true_log_loss: the same of the true stop probability.
        correlation: of the ensemble's mean cost with the true cost, over steps.
        cost_on: mean estimated cost of steps that cost 1.
        cost_off: mean estimated cost of steps that cost 0.
        bias: mean of the members' biases.
        smallest_std: over members, of the standard deviation of the cost over steps.
    """

    auc: float
    true_auc: float
    log_loss: float
    true_log_loss: float
    correlation: float
    cost_on: float
    cost_off: float
    bias: float
    smallest_std: float


def score(
    state: ensemble.CostState,
    held_out: Sequence[KnownEpisode],
    task: BlockTask | None = None,
    expected: bool = False,
) -> BlockScore:
    """Compare a learner with the truth on held-out episodes.

    Args:
        state: the ensemble.
        held_out: episodes that it has not learned from.
        task: the true model.
        expected: whether to score against the true stop probabilities instead of the
            stops that were drawn. Accumulated costs are whole numbers here: the true
            model has many ties, and breaking them at random moves the area under the
            curve of 400 episodes by ±0.0025. The expectation has no such noise.
    """
    task = task or BlockTask()
    obs, actions, starts, truth, labels, probs = _joined(held_out)
    # A few fixed lengths, so that seeds and tasks share a compiled program.
    rest = -len(truth) % 16384
    obs, actions, starts = (
        np.pad(x, [(0, rest)] + [(0, 0)] * (x.ndim - 1)) for x in (obs, actions, starts)
    )
    costs, sums = (
        np.asarray(x, np.float64)[:, : len(truth)]
        for x in _predictions(state, obs, actions, starts, task.window)
    )
    biases = np.asarray(ensemble.biases(state), np.float64)
    estimate = (1 / (1 + np.exp(biases[:, None] - sums))).mean(axis=0)
    labels = probs if expected else labels
    mean_cost = costs.mean(axis=0)
    return BlockScore(
        auc=area_under_curve(estimate, labels),
        true_auc=area_under_curve(probs, labels),
        log_loss=_entropy(estimate, labels),
        true_log_loss=_entropy(probs, labels),
        correlation=float(np.corrcoef(mean_cost, truth)[0, 1]),
        cost_on=float(mean_cost[truth == 1].mean()),
        cost_off=float(mean_cost[truth == 0].mean()),
        bias=float(biases.mean()),
        smallest_std=float(costs.std(axis=1).min()),
    )


def area_under_curve(scores: np.ndarray, labels: np.ndarray) -> float:
    """Probability that a positive scores above a negative, ties counting half.

    Labels may be probabilities: then the positives and negatives are expected ones, and
    the luck of drawing them is out of the figure. Without both kinds of labels it is
    not a number.
    """
    labels = np.ravel(labels).astype(np.float64)
    _, group = np.unique(np.ravel(scores), return_inverse=True)
    positives = np.bincount(group, weights=labels)
    negatives = np.bincount(group, weights=1.0 - labels)
    below = np.cumsum(negatives) - negatives / 2
    pairs = positives.sum() * negatives.sum()
    return float(positives @ below / pairs) if pairs > 0 else float("nan")


@jax.jit
def _predictions(
    state: ensemble.CostState,
    obs: jax.Array,
    actions: jax.Array,
    starts: jax.Array,
    window: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """c_m and C_m of steps laid end to end, `[M, t]`."""
    costs = ensemble.member_costs(state, obs, actions)
    return costs, jax.vmap(lambda c: window_sums(c, window, starts))(costs)


def _joined(held_out: Sequence[KnownEpisode]) -> tuple[np.ndarray, ...]:
    """Observations, actions, starts, costs, labels, stop probabilities, end to end."""
    episodes = [known.episode for known in held_out]
    starts = [np.arange(len(episode)) == 0 for episode in episodes]
    labels = [
        (np.arange(len(e)) == len(e) - 1) & (e.end == "stopped") for e in episodes
    ]
    return (
        np.concatenate([episode.obs for episode in episodes]),
        np.concatenate([episode.actions for episode in episodes]),
        np.concatenate(starts),
        np.concatenate([known.costs for known in held_out]),
        np.concatenate(labels).astype(np.float64),
        np.concatenate([known.stop_probs for known in held_out]),
    )


def _entropy(probs: np.ndarray, labels: np.ndarray) -> float:
    return float(-(labels * np.log(probs) + (1 - labels) * np.log1p(-probs)).mean())


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
            actions=rng.integers(ACTIONS.size, size=length),
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
