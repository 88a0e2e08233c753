"""Costs as a mean of networks, if they are not linear; same interface as `linear`.

All windows and folds are fitted in one program (`window_fit`). Sessions are cut into
pieces of equal length with the history that their windows need. In long logs the networks
see a weighted sample of the pieces, in which those with a stop have up to half of the
steps. Held-out likelihoods cover all sessions.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from termdp.cost_network import CostNetwork
from termdp.costs.buffer import NO_LABEL, STOPPED
from termdp.costs.config import CostConfig
from termdp.log_costs import Columns, NetworkCost
from termdp.logs.held_out import step_log_likelihoods
from termdp.logs.linear import observer_with
from termdp.logs.memory import Memory, block_labels, remembered
from termdp.logs.sessions import Block, Sessions
from termdp.logs.window_fit import FitData, Fitted, Task, fit_many
from termdp.observer import Observer

MEMBERS = 3
# Most steps of the pieces that the networks see, about.
MOST_ROWS = 300_000
PIECE = 512
NETWORK = CostConfig(
    members=1,
    network="vector",
    hidden=16,
    learning_rate=1e-2,
    rate_decay_steps=100,
    num_steps=400,
    segments_per_step=8,
    weight_decay=0.02,
    sparsity=0.0,
)


@dataclasses.dataclass(frozen=True, eq=False)
class NetworkModel:
    """Fitted networks; see `LinearModel`."""

    memory: Memory
    observer: Observer
    bias: float

    def costs(self, block: Block) -> np.ndarray:
        """Costs of a block's rows, `[n]`."""
        found = _costs(self.observer.cost, *_padded(block))
        return np.asarray(found, np.float64)[: len(block)]


@jax.jit
def _costs(cost: NetworkCost, obs: jax.Array, actions: jax.Array) -> jax.Array:
    return jax.vmap(cost)(obs, actions)


def _padded(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """A block's rows, padded so that only few lengths are compiled."""
    size = 1 << max(len(block) - 1, 1023).bit_length()
    rest = [(0, size - len(block))]
    return (
        np.pad(block.observations, [*rest, (0, 0)]),
        np.pad(block.actions, rest + [(0, 0)] * (block.actions.ndim - 1)),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Pieces:
    """Pieces of sessions, packed into rows.

    Attributes:
        place: `[T, N]`, number of the log's row; −1 where there is none.
        starts: `[T, N]`, first steps of pieces.
        owner: `[T, N]`, number of the piece, −1 where there is none.
        history: `[T, N]`, true where a step only serves the windows after it.
        session: which session each piece comes from, `[R]`.
        weight: how many pieces each stands for, `[R]`.
    """

    place: np.ndarray
    starts: np.ndarray
    owner: np.ndarray
    history: np.ndarray
    session: np.ndarray
    weight: np.ndarray


@dataclasses.dataclass(eq=False)
class NetworkLearner:
    """Fits networks to a log, with and without some sessions.

    Attributes:
        sessions: the log.
        columns: the columns to read; no bins or products.
        fold: which fold each session is held out in, `[S]`.
        seed: of networks, draws and samples.
        config: sizes and rates.
    """

    sessions: Sessions
    columns: Columns
    fold: np.ndarray
    seed: int = 0
    config: CostConfig = NETWORK
    centre: np.ndarray = dataclasses.field(init=False)
    spread: np.ndarray = dataclasses.field(init=False)
    _found: dict[Memory, list[NetworkModel]] = dataclasses.field(
        init=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Means and standard deviations of the numeric columns."""
        total = np.zeros(1)
        for power in (1, 2):
            total = np.zeros(self._numbers(self.sessions.blocks[0]).shape[1])
            for block in self.sessions.blocks:
                about = self.centre if power == 2 else 0.0
                total += ((self._numbers(block) - about) ** power).sum(axis=0)
            total /= self.sessions.num_rows
            if power == 1:
                self.centre = total
        self.spread = np.sqrt(np.maximum(total, 1e-24))

    @property
    def num_folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max()) + 1

    def held_out(self, memories: Sequence[Memory]) -> np.ndarray:
        """Log-likelihood of each session by a model that has not seen it, `[W, S]`."""
        pieces = self._pieces(max(_window(memory) for memory in memories))
        folds = np.arange(self.num_folds)
        kept = (self.fold[pieces.session] != folds[:, None]) * pieces.weight
        pairs = [(memory, index) for memory in memories for index in folds]
        labels = {d: self._labels(pieces, d) for d in {m.delay for m in memories}}
        tasks = Task(
            window=jnp.asarray([_window(memory) for memory, _ in pairs]),
            labels=jnp.asarray(np.stack([labels[m.delay] for m, _ in pairs])),
            weights=jnp.asarray(np.tile(kept, (len(memories), 1))[..., None]),
        )
        fitted = self._fit(pieces, tasks, self.config)
        for index, memory in enumerate(memories):
            first = index * len(folds)
            self._found[memory] = [
                self._model(jax.tree.map(lambda x, i=first + f: x[i], fitted), memory)
                for f in folds
            ]
        return np.stack([self._likelihoods(memory) for memory in memories])

    def logits(self, memory: Memory) -> np.ndarray:
        """Held-out logits of all rows, `[n]`, after `held_out` with this memory."""
        logits = np.empty(self.sessions.num_rows)
        for rows, mine, block in self.sessions.numbered():
            fold = self.fold[mine][block.owner]
            for index, model in enumerate(self._found[memory]):
                here = fold == index
                sums = remembered(model.costs(block), block.begin, memory)
                logits[rows][here] = sums[here] - model.bias
        return logits

    def whole(self, memory: Memory) -> NetworkModel:
        """An ensemble fitted to all sessions; each member has its own bootstrap."""
        config = dataclasses.replace(self.config, members=MEMBERS)
        pieces = self._pieces(_window(memory))
        rng = np.random.default_rng([self.seed, 0xB0])
        drawn = rng.poisson(1.0, (len(self.fold), MEMBERS))
        weights = drawn[pieces.session] * pieces.weight[:, None]
        task = Task(
            window=jnp.asarray([_window(memory)]),
            labels=jnp.asarray(self._labels(pieces, memory.delay)[None]),
            weights=jnp.asarray(weights[None], jnp.float32),
        )
        fitted = self._fit(pieces, task, config)
        return self._model(jax.tree.map(lambda x: x[0], fitted), memory)

    def _numbers(self, block: Block) -> np.ndarray:
        if self.columns.num_actions:
            return block.observations.astype(np.float64)
        return np.column_stack([block.observations, block.actions]).astype(np.float64)

    def _fit(self, pieces: _Pieces, tasks: Task, config: CostConfig) -> Fitted:
        count = len(self.columns.observations)
        rows = np.maximum(pieces.place, 0)
        numbers = self._taken([self._numbers(b) for b in self.sessions.blocks], rows)
        numbers = ((numbers - self.centre) / self.spread).astype(np.float32)
        actions = numbers[..., count:]
        if self.columns.num_actions:
            chosen = [block.actions for block in self.sessions.blocks]
            actions = self._taken(chosen, rows).astype(np.int32)
        data = FitData(
            obs=jnp.asarray(numbers[..., :count]),
            actions=jnp.asarray(actions),
            starts=jnp.asarray(pieces.starts),
            owner=jnp.asarray(pieces.owner),
            spec=self.columns.action_spec,
        )
        key = jax.random.key(self.seed)
        fitted = fit_many(key, data, tasks, config, len(pieces.session))
        # On the host, because picking single models from it there compiles nothing.
        found: Fitted = jax.device_get(fitted)
        return found

    def _taken(self, parts: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
        """Some rows of all blocks, without joining the blocks."""
        flat = rows.ravel()
        found = np.zeros((len(flat), *parts[0].shape[1:]), parts[0].dtype)
        begin = 0
        for part in parts:
            here = np.flatnonzero((flat >= begin) & (flat < begin + len(part)))
            found[here] = part[flat[here] - begin]
            begin += len(part)
        return found.reshape(*rows.shape, *parts[0].shape[1:])

    def _model(self, fitted: Fitted, memory: Memory) -> NetworkModel:
        network = fitted.costs.network
        assert isinstance(network, CostNetwork)
        cost = NetworkCost(
            weights=jax.tree.map(jnp.asarray, fitted.costs.average.network),
            scale=jnp.asarray(fitted.scale),
            centre=jnp.asarray(self.centre, jnp.float32),
            spread=jnp.asarray(self.spread, jnp.float32),
            network=network,
            columns=self.columns,
        )
        bias = float(fitted.bias)
        return NetworkModel(memory, observer_with(cost, memory, bias), bias)

    def _likelihoods(self, memory: Memory) -> np.ndarray:
        logits, total = self.logits(memory), np.zeros(len(self.fold))
        for rows, mine, block in self.sessions.numbered():
            labels = block_labels(block, memory.delay)
            each = step_log_likelihoods(labels, logits[rows])
            total[mine] = np.bincount(block.owner, each, len(block.ends))
        return total

    def _labels(self, pieces: _Pieces, delay: int) -> np.ndarray:
        parts = [block_labels(block, delay) for block in self.sessions.blocks]
        found = self._taken(parts, np.maximum(pieces.place, 0))
        return np.where((pieces.place < 0) | pieces.history, np.int8(NO_LABEL), found)

    def _pieces(self, window: int) -> _Pieces:
        """Cut sessions, draw pieces, and pack them into rows one after the other."""
        lengths, size = self.sessions.lengths, max(PIECE, 2 * window)
        size = min(size, max(int(lengths.max()), 256))
        fresh = max(size - window + 1, 1)  # steps that a further piece adds
        counts = 1 + np.maximum(-(-(lengths - size) // fresh), 0)
        session = np.repeat(np.arange(len(lengths)), counts)
        number = np.arange(len(session)) - np.repeat(np.cumsum(counts) - counts, counts)
        begin = number * fresh
        length = np.minimum(lengths[session] - begin, size)
        history = np.where(number > 0, window - 1, 0)
        kept, weight = self._drawn(session, number == counts[session] - 1, length)
        first = (np.cumsum(lengths) - lengths)[session] + begin
        return _laid(
            first[kept], length[kept], history[kept], session[kept], weight, size
        )

    def _drawn(
        self, session: np.ndarray, is_last: np.ndarray, length: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which pieces are drawn, and how many each stands for.

        A log of at most `MOST_ROWS` steps is kept whole. In a longer one, pieces with a
        stop and pieces without get half of the room each.
        """
        rng = np.random.default_rng([self.seed, 0x91])
        stopped = is_last & (self.sessions.ends[session] == STOPPED)
        chance = np.ones(len(session))
        for some in (stopped, ~stopped):
            rows = max(int(length[some].sum()), 1)
            chance[some] = min(1.0, MOST_ROWS / 2 / rows)
        if length.sum() <= MOST_ROWS:
            chance[:] = 1.0
        kept = np.flatnonzero(rng.random(len(session)) < chance)
        return kept, 1.0 / chance[kept]


def _laid(
    first: np.ndarray,
    length: np.ndarray,
    history: np.ndarray,
    session: np.ndarray,
    weight: np.ndarray,
    size: int,
) -> _Pieces:
    """Pieces in rows of `size` steps: the next one in the same row if it fits."""
    row, filled, places = 0, 0, []
    for steps in length.tolist():
        if filled + steps > size:
            row, filled = row + 1, 0
        places.append(row * size + filled)
        filled += steps
    total = (row + 1) * size
    place, owner = np.full(total, -1), np.full(total, -1, np.int32)
    starts, past = np.zeros(total, bool), np.zeros(total, bool)
    for index, (where, begin, steps, before) in enumerate(
        zip(places, first.tolist(), length.tolist(), history.tolist(), strict=True)
    ):
        here = slice(where, where + steps)
        place[here] = np.arange(begin, begin + steps)
        owner[here] = index
        past[where : where + before] = True
        starts[where] = True
        if where + steps < total:
            starts[where + steps] = True

    def rows(flat: np.ndarray) -> np.ndarray:
        return flat.reshape(-1, size).T

    return _Pieces(rows(place), rows(starts), rows(owner), rows(past), session, weight)


def _window(memory: Memory) -> int:
    if memory.window is None:
        raise ValueError("expected --memory window with --model network, got a leak")
    return memory.window
