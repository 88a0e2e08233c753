"""`termdp.fit`: an observer from a log of sessions and their stops."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.special import expit

from termdp.costs.buffer import NO_LABEL
from termdp.log_costs import Columns
from termdp.logs import held_out
from termdp.logs.choice import (
    KINDS,
    Choice,
    check_delays,
    check_windows,
    choose,
    grid_for,
)
from termdp.logs.linear import LinearLearner, LinearModel
from termdp.logs.memory import Memory, block_labels, remembered
from termdp.logs.sessions import (
    Roles,
    Sessions,
    check_learnable,
    chosen_columns,
    read_sessions,
)
from termdp.logs.sources import open_source
from termdp.observer import Observer
from termdp.settings import nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from termdp.logs.network import NetworkLearner, NetworkModel

MODELS = ("linear", "network")
FOLDS = 4
MIN_STOPS = 2 * FOLDS
MOST_FEATURES = 2000
# Quantiles of a column are taken from about this many of its rows.
_QUANTILE_ROWS = 10**6


@dataclasses.dataclass(frozen=True)
class Scores:
    """How well the fit explains sessions that it has not seen.

    Attributes:
        log_loss: mean of −log P(what happened) over all steps with a label.
        baseline_log_loss: the same with one chance of a stop for every step.
        last_step_log_loss: the same for an observer that remembers only the last step.
        auc: chance that a step with a stop looks worse than one without.
        calibration_error: mean |predicted − observed| over the bins of `calibration`.
        calibration: predicted and observed shares of stops, in bins with equally many
            expected stops.
    """

    log_loss: float
    baseline_log_loss: float
    last_step_log_loss: float
    auc: float
    calibration_error: float
    calibration: list[dict[str, float]]


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """An observer fitted to a log, with its uncertainty.

    Attributes:
        model: costs and bias, with standard errors if they are linear.
        choice: the memories that were compared.
        scores: on held-out sessions.
        sessions: the log.
        source: its name.
    """

    model: "LinearModel | NetworkModel"
    choice: Choice
    scores: Scores
    sessions: Sessions
    source: str

    @property
    def observer(self) -> Observer:
        """The observer, to watch environments with the same columns."""
        return self.model.observer

    @property
    def memory(self) -> Memory:
        """The observer's memory: a window or a leak, and a delay."""
        return self.model.memory

    @property
    def window(self) -> int | None:
        """Steps that it remembers; None with a leak."""
        return self.memory.window

    @property
    def bias(self) -> float:
        """The accumulated cost at which a stop has probability one half."""
        return float(self.model.bias)

    def __repr__(self) -> str:
        return (
            f"Fit({self.memory}, bias {self.bias:.3g}, held-out AUC "
            f"{self.scores.auc:.3f}, {len(self.sessions.ids)} sessions)"
        )

    def costs(self, table: Any) -> pa.Table:
        """Cost, accumulated cost and stop probability of each row of a log.

        Args:
            table: with the columns of the log; stops are ignored.

        Returns:
            A table with `session`, `cost`, `accumulated` and `stop_probability`, in the
            order of the rows.
        """
        roles = dataclasses.replace(
            self.sessions.roles, stopped=None, ended=None, time=None
        )
        if self.sessions.num_actions:
            roles = dataclasses.replace(roles, num_actions=self.sessions.num_actions)
        found = read_sessions(open_source(table), roles)
        parts = [self.accumulated(block) for block in found.blocks]
        cost, sums = (np.concatenate(part) for part in zip(*parts, strict=True))
        place = pa.array(np.repeat(np.arange(len(found.ids)), found.lengths))
        return pa.table(
            {
                "session": pa.array(found.ids).take(place),
                "cost": cost,
                "accumulated": sums,
                "stop_probability": expit(sums - self.bias),
            }
        )

    def accumulated(self, block: Any) -> tuple[np.ndarray, np.ndarray]:
        """Costs and accumulated costs of a block's rows."""
        costs = self.model.costs(block)
        return costs, remembered(costs, block.begin, self.memory)

    def summary(self) -> dict[str, Any]:
        """The content of `fit.json`, as plain data."""
        from termdp.logs.summary import summarise

        return summarise(self)

    def stops(self) -> pa.Table:
        """For each stopped session: the steps and columns that led to the stop."""
        from termdp.logs.reasons import reasons

        return reasons(self)

    def plot(self) -> "Figure":
        """Effects, window curve and calibration in one figure."""
        from termdp.logs.drawings import overview

        return overview(self)

    def save(self, folder: str | Path) -> None:
        """Write the observer, `fit.json`, `stops.csv` and `index.html`."""
        from termdp.logs.folder import write_fit

        write_fit(self, Path(folder))


def fit(  # noqa: PLR0913 - each is a choice that a user may want to make
    table: Any,
    *,
    session: str | None = None,
    stopped: str | None = None,
    observations: Sequence[str] = (),
    actions: Sequence[str] | str = (),
    ended: str | None = None,
    time: str | None = None,
    interval: tuple[str, str] | None = None,
    step: float = 1.0,
    model: str = "linear",
    memory: str = "window",
    window: int | None = None,
    windows: Sequence[int] | None = None,
    delays: Sequence[int] = (0,),
    bins: int | None = None,
    binned: Sequence[str] = (),
    interactions: Sequence[str] = (),
    num_actions: int | None = None,
    seed: int = 0,
    on_progress: Callable[[str], None] = lambda what: None,
) -> Fit:
    """Fit an observer to a log: one row per step, in order, session after session.

    Args:
        table: a path (.parquet, .csv, a LeRobot v3 folder, `minari:ID`), a pandas
            DataFrame, a pyarrow Table, a dict of columns, or a Minari data set.
        session: column with the same value on all rows of a session.
        stopped: column that is true on the row after which the observer stopped.
        observations: columns of numbers.
        actions: one column of whole numbers from 0, columns of real numbers, or none.
        ended: column that is true on the last row of a session that ended without a
            stop.
        time: column that must rise within a session; used only as a check.
        interval: columns of start and stop times, for a start–stop survival table; each
            row then becomes one row per time step.
        step: length of a time step in a survival table.
        model: `linear` (maximum likelihood, with intervals) or `network`.
        memory: `window`, `leak` (exponential forgetting), or `best`: the better one.
        window: steps that the observer remembers, if known.
        windows: windows to compare by the likelihood of held-out sessions; for a leak,
            1 / (1 − leak). Unless given, a grid that is refined around the best.
        delays: reaction delays to compare, in steps.
        bins: cut observations into this many bins with equally many rows (linear).
        binned: which observations to cut; all unless given.
        interactions: products of two columns, as `"speed*action"` (linear).
        num_actions: number of possible actions, if the log does not show them all.
        seed: of folds, samples and bootstraps.
        on_progress: called with a few words about the present step.

    Examples:
        >>> import numpy as np, termdp
        >>> rng = np.random.default_rng(0)
        >>> noise = rng.uniform(size=4000)
        >>> chance = 1 / (1 + np.exp(6 - 4 * noise))
        >>> log = {"noise": noise, "left": rng.uniform(size=4000) < chance}
        >>> log["user"] = np.append(0, np.cumsum(log["left"])[:-1])
        >>> found = termdp.fit(log, session="user", stopped="left",
        ...                    observations=["noise"], window=1)
        >>> 2 < found.summary()["costs"]["noise"]["cost"] < 6
        True
    """
    check_windows(window, windows)
    check_delays(delays)
    for name, value, known in (("model", model, MODELS), ("memory", memory, KINDS)):
        if value not in known:
            raise ValueError(
                f"expected {name} to be one of {', '.join(known)}, got {value!r}"
            )
    if model == "network" and (memory != "window" or bins or interactions):
        raise ValueError(
            "expected --model linear with a leak, bins or interactions, got network: "
            "networks only have windows, and find curves and interactions themselves"
        )
    source = open_source(table)
    given: dict[str, Any] = {
        "session": session,
        "stopped": stopped,
        "ended": ended,
        "time": time,
    }
    given |= {"observations": _names(observations), "actions": _names(actions)}
    roles = Roles(
        num_actions=_checked_count(num_actions), **chosen_columns(source, given)
    )
    if interval is not None:
        from termdp.logs.survival import expanded

        source = expanded(source, interval, roles, step)
    on_progress(f"reading {source.name}")
    sessions = read_sessions(source, roles)
    check_learnable(sessions, MIN_STOPS)
    columns = columns_of(sessions, bins, _names(binned), interactions)
    fold = held_out.session_folds(sessions.ends, FOLDS, seed)
    learner = _learner(model, sessions, columns, fold, seed)
    if window is not None:
        windows, refine = [window], False
    else:
        refine = not windows and model == "linear"
        windows = windows or _default_grid(model, sessions)
    choice = choose(learner, windows, memory, delays, refine, seed, on_progress)
    on_progress(f"fitting all sessions with {choice.memory}")
    found = learner.whole(choice.memory)
    on_progress("scoring held-out sessions")
    scores = score(learner, choice, sessions, fold)
    return Fit(found, choice, scores, sessions, source.name)


def _default_grid(model: str, sessions: Sessions) -> tuple[int, ...]:
    grid = grid_for(sessions.lengths)
    return grid[::2] if model == "network" else grid


def _learner(
    model: str, sessions: Sessions, columns: Columns, fold: np.ndarray, seed: int
) -> "LinearLearner | NetworkLearner":
    if model == "linear":
        return LinearLearner(sessions, columns, fold, seed)
    from termdp.logs.network import NetworkLearner

    return NetworkLearner(sessions, columns, fold, seed)


def _names(given: Sequence[str] | str) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _checked_count(num_actions: int | None) -> int | None:
    if num_actions is not None and not 2 <= num_actions <= 1000:
        raise ValueError(f"expected num_actions from 2 to 1000, got {num_actions!r}")
    return num_actions


def score(
    learner: "LinearLearner | NetworkLearner",
    choice: Choice,
    sessions: Sessions,
    fold: np.ndarray,
) -> Scores:
    """Figures of the held-out sessions, and of the two baselines."""
    memory = choice.memory
    labels = np.concatenate([block_labels(b, memory.delay) for b in sessions.blocks])
    count = int((labels != NO_LABEL).sum())

    def loss(logits: np.ndarray) -> float:
        return -float(held_out.step_log_likelihoods(labels, logits).sum()) / count

    last = Memory(window=1, delay=memory.delay)
    if last in choice.memories:
        each = choice.held_out.log_likelihoods[choice.memories.index(last)]
    else:
        each = learner.held_out([last])[0]
    last_step = -float(each.sum()) / count
    of_row = np.repeat(fold, sessions.lengths)
    baseline = loss(held_out.constant_logits(labels, of_row, int(fold.max()) + 1))
    logits = learner.logits(memory)
    rows = held_out.calibration(labels, logits)
    return Scores(
        log_loss=loss(logits),
        baseline_log_loss=baseline,
        last_step_log_loss=last_step,
        auc=held_out.area_under_curve(labels, logits),
        calibration_error=held_out.calibration_error(rows),
        calibration=rows,
    )


def columns_of(
    sessions: Sessions,
    bins: int | None,
    binned: Sequence[str],
    interactions: Sequence[str],
) -> Columns:
    """The features of a log: bins by quantiles, products by name."""
    roles = sessions.roles
    names = (*roles.observations, *roles.actions)
    if bins is None and binned:
        raise ValueError("expected bins together with binned, got binned alone")
    if bins is not None and not 2 <= bins <= 50:
        raise ValueError(f"expected bins from 2 to 50, got {bins!r}")
    for name in binned:
        _place(name, roles.observations, "an observation column")
    edges: tuple[tuple[float, ...], ...] = ()
    if bins is not None:
        chosen = set(binned or roles.observations)
        edges = tuple(
            _edges(sessions, index, bins) if name in chosen else ()
            for index, name in enumerate(roles.observations)
        )
    pairs = []
    for words in interactions:
        parts = [part.strip() for part in words.split("*")]
        if len(parts) != 2:
            raise ValueError(f"expected interactions as 'column*column', got {words!r}")
        pairs.append(tuple(_place(part, names, "a column") for part in parts))
    columns = Columns(
        observations=roles.observations,
        actions=roles.actions,
        num_actions=sessions.num_actions,
        usual=_usual(sessions),
        bins=edges,
        interactions=tuple((one, other) for one, other in pairs),
    )
    if columns.num_features > MOST_FEATURES:
        raise ValueError(
            f"expected at most {MOST_FEATURES} features, got {columns.num_features}: use "
            "fewer bins or interactions"
        )
    return columns


def _place(name: str, known: Sequence[str], what: str) -> int:
    if name not in known:
        raise ValueError(f"expected {what}, got {name!r}: {nearest(name, known)}")
    return list(known).index(name)


def _edges(sessions: Sessions, index: int, bins: int) -> tuple[float, ...]:
    """Inner edges of bins with about equally many rows, for one observation.

    Equal edges count once. Without an edge above the smallest value there are none, and
    the column stays a number.
    """
    every = max(sessions.num_rows // _QUANTILE_ROWS, 1)
    values = np.concatenate(
        [block.observations[::every, index] for block in sessions.blocks]
    )
    found = np.unique(np.quantile(values, np.arange(1, bins) / bins))
    found = found[found > values.min()].astype(np.float32)
    return tuple(float(edge) for edge in found)


def _usual(sessions: Sessions) -> int:
    if not sessions.num_actions:
        return 0
    counts = np.sum(
        [
            np.bincount(block.actions, minlength=sessions.num_actions)
            for block in sessions.blocks
        ],
        axis=0,
    )
    return int(np.argmax(counts))
