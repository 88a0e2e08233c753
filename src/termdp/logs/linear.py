"""Costs linear in features, by maximum likelihood (`termdp.tabular.likelihood`).

The accumulated cost is linear in the features' sums over the memory. So the costs are the
weights of a logistic regression on these sums. Rows are computed block by block, when
they are needed. Features are standardised first.

Models for held-out sessions are fitted to every stop. In long logs they see only a
weighted sample of the other steps, which does not change the expected fit. The final
model sees every step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from termdp.costs.buffer import NO_LABEL, STOPPED
from termdp.log_costs import Columns, LinearCost
from termdp.logs.held_out import step_log_likelihoods
from termdp.logs.memory import Memory, block_labels, remembered
from termdp.logs.sessions import Block, Sessions
from termdp.observer import Observer
from termdp.tabular.likelihood import Parameters, information, maximise

# A penalty that only matters if stops and other steps are separated perfectly.
RIDGE = 1e-3
# Most rows to fit a model for held-out sessions to (or all stops, if more).
MOST_ROWS = 400_000
# The final fit keeps its rows if they are at most so many numbers; larger ones are
# computed again in every pass.
MOST_KEPT = 2**25


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a logistic regression, in parts computed on demand (a `Design`)."""

    parts: Sequence[Callable[[], np.ndarray]]
    stop: np.ndarray
    weight: np.ndarray
    dimension: int

    def sums(self, costs: np.ndarray) -> np.ndarray:
        """X c."""
        return np.concatenate([part() @ costs for part in self.parts])

    def spread_back(self, per_step: np.ndarray) -> np.ndarray:
        """Xᵀ v."""
        total, row = np.zeros(self.dimension), 0
        for part in self.parts:
            x = part()
            total += x.T @ per_step[row : row + len(x)]
            row += len(x)
        return total

    def gram(self, weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Xᵀ W X on some columns."""
        total, row = np.zeros((len(columns), len(columns))), 0
        whole = len(columns) == self.dimension
        for part in self.parts:
            x = part() if whole else part()[:, columns]
            total += x.T @ (x * weights[row : row + len(x), None])
            row += len(x)
        return total


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Fitted costs.

    Attributes:
        columns: the features.
        memory: of the observer.
        weights: cost per unit of each feature, `[d]`.
        errors: their standard errors; NaN if the log does not determine a weight.
        centre: means of the features, `[d]`.
        spread: their standard deviations, `[d]`.
        base: cost of a step with features at their means; 0 for a window of one step,
            where it cannot be separated from the bias.
        base_error: its standard error.
        bias: b.
        bias_error: its standard error.
    """

    columns: Columns
    memory: Memory
    weights: np.ndarray
    errors: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    base: float
    base_error: float
    bias: float
    bias_error: float

    @property
    def observer(self) -> Observer:
        """The observer with these costs."""
        cost = LinearCost(
            weights=self.weights.astype(np.float32),
            centre=self.centre.astype(np.float32),
            base=np.float32(self.base),
            columns=self.columns,
        )
        return observer_with(cost, self.memory, self.bias)

    def costs(self, block: Block) -> np.ndarray:
        """Costs of a block's rows, `[n]`."""
        features = self.columns.features(block.observations, block.actions, np)
        found: np.ndarray = self.base + (features - self.centre) @ self.weights
        return found

    def shares(self, block: Block) -> np.ndarray:
        """Each feature's part of each row's cost, compared with a mean step, `[n, d]`."""
        features = self.columns.features(block.observations, block.actions, np)
        found: np.ndarray = (features - self.centre) * self.weights
        return found


def observer_with(cost: Any, memory: Memory, bias: float) -> Observer:
    """An observer with this memory."""
    window = None if memory.leak is not None else memory.window
    return Observer(
        cost, window=window, bias=float(bias), leak=memory.leak, delay=memory.delay
    )


@dataclass(eq=False)
class LinearLearner:
    """Fits linear models to a log, with and without some sessions.

    Attributes:
        sessions: the log.
        columns: the features to compute.
        fold: which fold each session is held out in, `[S]`.
        seed: of the sample of steps.
    """

    sessions: Sessions
    columns: Columns
    fold: np.ndarray
    seed: int = 0
    centre: np.ndarray = field(init=False)
    spread: np.ndarray = field(init=False)
    _found: dict[Memory, list[Parameters]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Means and standard deviations of the features, over all steps."""
        total = np.zeros(self.columns.num_features)
        squares, count = np.zeros_like(total), self.sessions.num_rows
        shift: np.ndarray | None = None
        for block in self.sessions.blocks:
            features = self._features(block)
            # Relative to the first row, so that large numbers do not cancel.
            shift = features[0].copy() if shift is None else shift
            features -= shift
            total += features.sum(axis=0)
            squares += np.einsum("nd,nd->d", features, features)
        assert shift is not None
        mean = total / count
        self.centre = shift + mean
        self.spread = np.sqrt(np.maximum(squares / count - mean**2, 0.0))

    @property
    def num_folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max()) + 1

    def held_out(self, memories: Sequence[Memory]) -> np.ndarray:
        """Log-likelihood of each session by a model that has not seen it, `[W, S]`."""
        return np.stack([self._held_out(memory) for memory in memories])

    def logits(self, memory: Memory) -> np.ndarray:
        """Held-out logits of all rows, `[n]`, after `held_out` with this memory."""
        found = self._found[memory]
        costs = np.stack([one.costs for one in found], axis=1)
        bias = np.array([one.bias for one in found])
        logits = np.empty(self.sessions.num_rows)
        for rows, mine, block in self.sessions.numbered():
            fold = self.fold[mine][block.owner]
            all_folds = self._design(block, memory) @ costs - bias
            logits[rows] = np.take_along_axis(all_folds, fold[:, None], axis=1)[:, 0]
        return logits

    def whole(self, memory: Memory) -> LinearModel:
        """The model of all sessions, with standard errors."""
        start = self._found[memory][0] if memory in self._found else None
        rows = self._all_rows(memory)
        best = _maximise(rows, start)
        size = rows.dimension
        hessian = information(rows, best, np.arange(size), True)
        hessian[np.arange(size), np.arange(size)] += 2 * RIDGE
        errors = np.sqrt(np.maximum(np.diag(np.linalg.inv(hessian)), 0.0))
        d = self.columns.num_features
        scale = np.where(self.spread > 0, self.spread, 1.0)
        with_base = size > d
        return LinearModel(
            columns=self.columns,
            memory=memory,
            weights=best.costs[:d] / scale,
            errors=np.where(self.spread > 0, errors[:d] / scale, np.nan),
            centre=self.centre,
            spread=self.spread,
            base=float(best.costs[d]) if with_base else 0.0,
            base_error=float(errors[d]) if with_base else 0.0,
            bias=best.bias,
            bias_error=float(errors[-1]),
        )

    def _features(self, block: Block) -> np.ndarray:
        found: np.ndarray = self.columns.features(
            block.observations.astype(np.float64), block.actions, np
        )
        return found

    def _design(self, block: Block, memory: Memory) -> np.ndarray:
        """Rows of the regression for a block: sums of standardised features."""
        features = self._features(block)
        features -= self.centre
        features /= np.where(self.spread > 0, self.spread, 1.0)
        if memory.window != 1:
            features = np.column_stack([features, np.ones(len(features))])
        return remembered(features, block.begin, memory)

    def _held_out(self, memory: Memory) -> np.ndarray:
        share = self._share(memory.delay)
        x, stop, weight, owner = self._sample(memory, share)
        fold = self.fold[owner]
        found: list[Parameters] = []
        for index in range(self.num_folds):
            rows = Rows([lambda: x], stop, weight * (fold != index), x.shape[1])
            found.append(_maximise(rows, found[-1] if found else None))
        self._found[memory] = found
        total = np.zeros(len(self.fold))
        if share == 1.0:  # all labelled rows are in the sample
            costs = np.stack([one.costs for one in found], axis=1)
            logits = x @ costs - np.array([one.bias for one in found])
            mine = np.take_along_axis(logits, fold[:, None], axis=1)[:, 0]
            each = step_log_likelihoods(stop.astype(np.int8), mine)
            return np.bincount(owner, each, len(total))
        logits = self.logits(memory)
        for rows_, mine_, block in self.sessions.numbered():
            labels = block_labels(block, memory.delay)
            each = step_log_likelihoods(labels, logits[rows_])
            total[mine_] = np.bincount(block.owner, each, len(block.ends))
        return total

    def _share(self, delay: int) -> float:
        """The share of steps without a stop that is used."""
        stops = steps = 0
        for block in self.sessions.blocks:
            labels = block_labels(block, delay)
            stops += int((labels == STOPPED).sum())
            steps += int((labels != NO_LABEL).sum())
        if stops == 0 or stops == steps:
            raise ValueError(
                f"expected steps with and without a stop, got {stops} stops in {steps} "
                f"steps with a delay of {delay}"
            )
        return min(1.0, max(MOST_ROWS - stops, MOST_ROWS // 10) / (steps - stops))

    def _sample(
        self, memory: Memory, share: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Rows, labels, weights and sessions: all stops, a share of the rest."""
        rng = np.random.default_rng([self.seed, 0x5A])
        parts = []
        for _, mine, block in self.sessions.numbered():
            labels = block_labels(block, memory.delay)
            drawn = rng.random(len(block)) < share
            kept = np.flatnonzero((labels == STOPPED) | ((labels == 0) & drawn))
            stop = labels[kept] == STOPPED
            parts.append(
                (
                    self._design(block, memory)[kept],
                    stop.astype(np.float64),
                    np.where(stop, 1.0, 1.0 / share),
                    block.owner[kept] + mine.start,
                )
            )
        x, stops, weights, owners = (
            np.concatenate(each) for each in zip(*parts, strict=True)
        )
        return x, stops, weights, owners

    def _all_rows(self, memory: Memory) -> Rows:
        blocks = self.sessions.blocks
        labels = [block_labels(block, memory.delay) for block in blocks]
        size = self.columns.num_features + (memory.window != 1)
        keeps = self.sessions.num_rows * size <= MOST_KEPT

        def part(block: Block, used: np.ndarray) -> Callable[[], np.ndarray]:
            if keeps:
                made = self._design(block, memory)[used]
                return lambda: made
            return lambda: self._design(block, memory)[used]

        used = [np.flatnonzero(of_block != NO_LABEL) for of_block in labels]
        stop = np.concatenate(
            [x[some] == STOPPED for x, some in zip(labels, used, strict=True)]
        ).astype(np.float64)
        parts = [part(*pair) for pair in zip(blocks, used, strict=True)]
        return Rows(parts, stop, np.ones(len(stop)), size)


def _maximise(rows: Rows, start: Parameters | None) -> Parameters:
    """The maximum likelihood fit; starts from the base rate if no start is given."""
    if start is None:
        rate = float(rows.weight @ rows.stop + 0.5) / float(rows.weight.sum() + 1.0)
        start = Parameters(np.zeros(rows.dimension), -np.log(rate / (1.0 - rate)))
    try:
        return maximise(rows, RIDGE, bias=None, start=start)
    except (RuntimeError, np.linalg.LinAlgError) as error:
        raise ValueError(
            "expected costs that the log can tell apart, but the fit does not converge: "
            "leave out columns with the same information"
        ) from error
