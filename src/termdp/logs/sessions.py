"""Sessions: a checked log, in blocks of whole sessions.

Every number is held once, as float32 (choices as int16). A bad log is refused with one
sentence that names the session, row or column: a session in two pieces, a stop before the
last row, empty cells, text.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from termdp.costs.buffer import STOPPED
from termdp.logs.sources import Source

# How a session ends besides STOPPED: the log ends first, or the session ends by itself.
CENSORED, GAME_OVER = 0, 2
# Every block but the last has at least this many rows; each ends with a session.
BLOCK_ROWS = 2**17
MOST_ACTIONS = 1000


@dataclasses.dataclass(frozen=True)
class Roles:
    """Which column is which.

    Attributes:
        session: same value on all rows of a session.
        stopped: true on a session's last row if the observer stopped it; None if that
            does not matter.
        observations: numbers.
        actions: one column of whole numbers (a choice), or columns of numbers.
        ended: true on a session's last row if it ended without a stop.
        time: must rise within a session; None trusts the order of the rows.
        num_actions: number of possible actions; None for as many as the log shows.
    """

    session: str
    stopped: str | None
    observations: tuple[str, ...]
    actions: tuple[str, ...] = ()
    ended: str | None = None
    time: str | None = None
    num_actions: int | None = None

    def __post_init__(self) -> None:
        """Refuse a column with two roles, and a log without observations."""
        if not self.observations:
            raise ValueError(
                "expected at least one observation column, got none: name them with "
                "observations (--observations o0 o1 …)"
            )
        names = [*self.observations, *self.actions, self.session]
        names += [name for name in (self.stopped, self.ended) if name is not None]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"expected each column in one role, got {twice[0]!r} twice"
            )

    @property
    def columns(self) -> list[str]:
        """All columns to read."""
        optional = (self.stopped, self.ended, self.time)
        named = [name for name in optional if name is not None]
        return [self.session, *self.observations, *self.actions, *named]


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """Some whole sessions, end to end.

    Attributes:
        observations: `[n, K] float32`.
        actions: `[n]` choices, or `[n, M] float32`.
        first: where each session begins, and the end, `[s + 1]`.
        ends: STOPPED, GAME_OVER or CENSORED, `[s] int8`.
    """

    observations: np.ndarray
    actions: np.ndarray
    first: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        """Rows."""
        return len(self.observations)

    @property
    def lengths(self) -> np.ndarray:
        """Steps of each session, `[s]`."""
        return np.diff(self.first)

    @property
    def owner(self) -> np.ndarray:
        """Which session of the block each row belongs to, `[n]`."""
        return np.repeat(np.arange(len(self.ends)), self.lengths)

    @property
    def begin(self) -> np.ndarray:
        """Where each row's session begins, `[n]`."""
        return np.repeat(self.first[:-1], self.lengths)


@dataclasses.dataclass(frozen=True, eq=False)
class Sessions:
    """A whole log.

    Attributes:
        roles: which column was which.
        blocks: its rows.
        ids: the sessions' names, as in the log.
        num_actions: choices; 0 if actions are numbers or there are none.
    """

    roles: Roles
    blocks: list[Block]
    ids: list[Any]
    num_actions: int

    @property
    def num_rows(self) -> int:
        """Steps of all sessions."""
        return sum(map(len, self.blocks))

    @property
    def ends(self) -> np.ndarray:
        """How each session ended, `[S]`."""
        return np.concatenate([block.ends for block in self.blocks])

    @property
    def lengths(self) -> np.ndarray:
        """Steps of each session, `[S]`."""
        return np.concatenate([block.lengths for block in self.blocks])

    def numbered(self) -> Iterator[tuple[slice, slice, Block]]:
        """Blocks with their places among all rows and all sessions."""
        row = session = 0
        for block in self.blocks:
            rows = slice(row, row + len(block))
            mine = slice(session, session + len(block.ends))
            row, session = rows.stop, mine.stop
            yield rows, mine, block

    def session(self, index: int) -> Block:
        """One session by its number."""
        for _, mine, block in self.numbered():
            if index < mine.stop:
                one = index - mine.start
                rows = slice(*block.first[one : one + 2])
                return Block(
                    block.observations[rows],
                    block.actions[rows],
                    np.array([0, rows.stop - rows.start]),
                    block.ends[one : one + 1],
                )
        raise IndexError(index)


def read_sessions(source: Source, roles: Roles) -> Sessions:
    """Read a log, batch by batch."""
    for name in roles.columns:
        source.check_column(name)
    choice = _is_choice(source, roles)
    reader = _Reader(source.name, roles, choice)
    for batch in source.batches(roles.columns):
        if batch.num_rows:
            reader.add(batch)
    return reader.finish()


def _is_choice(source: Source, roles: Roles) -> bool:
    if len(roles.actions) != 1:
        if roles.num_actions:
            raise ValueError(
                "expected num_actions only with one action column of whole numbers, got "
                f"{len(roles.actions)} action columns"
            )
        return False
    kind = source.schema.field(roles.actions[0]).type
    return pa.types.is_integer(kind) or pa.types.is_boolean(kind)


class _Reader:
    """Collects batches into blocks of whole sessions, and checks them."""

    def __init__(self, name: str, roles: Roles, choice: bool):
        self.name, self.roles, self.choice = name, roles, choice
        self.blocks: list[Block] = []
        self.ids: list[Any] = []
        self.seen: set[Any] = set()
        self.row = 0  # rows of the log before this batch
        self.waiting: list[tuple[np.ndarray, ...]] = []
        self.waiting_rows = 0
        self.last_time: float | None = None
        self.most_action = 0

    def add(self, batch: pa.RecordBatch) -> None:
        names = self.roles
        session = batch.column(names.session)
        if session.null_count:
            raise self._bad("a session in every row", names.session, session)
        starts = self._starts(session)
        observations = np.stack(
            [self._numbers(batch, name) for name in names.observations], axis=1
        )
        actions = self._actions(batch)
        stopped = self._flags(batch, names.stopped)
        ended = self._flags(batch, names.ended)
        self._check_time(batch, starts)
        self.waiting.append((observations, actions, starts, stopped, ended))
        self.waiting_rows += len(starts)
        self.row += len(starts)
        if self.waiting_rows >= BLOCK_ROWS and starts.any():
            self._cut()

    def finish(self) -> Sessions:
        self._cut(everything=True)
        if not self.blocks:
            raise ValueError(f"expected rows in {self.name}, got none")
        found = self.most_action + 1 if self.choice else 0
        if self.choice and self.roles.num_actions is not None:
            if self.roles.num_actions < found:
                raise ValueError(
                    f"expected actions from 0 to {self.roles.num_actions - 1}, as "
                    f"num_actions says, got {found - 1} in {self.roles.actions[0]!r}"
                )
            found = self.roles.num_actions
        return Sessions(self.roles, self.blocks, self.ids, found)

    def _starts(self, session: Any) -> np.ndarray:
        """True on first rows of sessions; a session in two pieces is refused."""
        if pa.types.is_dictionary(session.type):
            session = session.dictionary_decode()
        starts = np.ones(len(session), bool)
        changed = pc.not_equal(session.slice(1), session.slice(0, len(session) - 1))
        starts[1:] = changed.to_numpy(zero_copy_only=False)
        first = session[0].as_py()
        if self.ids and self.ids[-1] == first:
            starts[0] = False
        new = session.filter(pa.array(starts)).to_pylist()
        for name in new:
            if name in self.seen:
                raise ValueError(
                    f"expected all rows of a session together, but session {name!r} "
                    f"comes back in {self.name} after another one: sort the rows by "
                    f"{self.roles.session!r}, then by time"
                )
            self.seen.add(name)
        self.ids += new
        return starts

    def _numbers(self, batch: pa.RecordBatch, name: str) -> np.ndarray:
        column = batch.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)
        ):
            got = pc.drop_null(column)
            example = repr(got[0].as_py()) if len(got) else "nothing"
            raise ValueError(
                f"expected numbers in column {name!r} of {self.name}, got {kind} "
                f"({example[:40]}): turn it into numbers first"
            )
        if column.null_count:
            raise self._bad("a number in every row", name, column)
        if pa.types.is_boolean(kind):
            column = column.cast(pa.uint8())
        found = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore"):
            numbers: np.ndarray = found.astype(np.float32)
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise ValueError(
                f"expected finite numbers in column {name!r} of {self.name}, got "
                f"{found[row]} in row {self.row + row + 1}: fill or drop such rows"
            )
        return numbers

    def _actions(self, batch: pa.RecordBatch) -> np.ndarray:
        names = self.roles.actions
        if not names:
            return np.zeros((batch.num_rows, 0), np.float32)
        columns = [self._numbers(batch, name) for name in names]
        if not self.choice:
            return np.stack(columns, axis=1)
        chosen = columns[0]
        if chosen.min() < 0 or chosen.max() >= MOST_ACTIONS:
            raise ValueError(
                f"expected actions 0, 1, 2 … up to {MOST_ACTIONS - 1} in column "
                f"{names[0]!r}, got {int(chosen.min())} to {int(chosen.max())}: number "
                "the choices, or give the column decimals (1.0) if it is a quantity"
            )
        self.most_action = max(self.most_action, int(chosen.max()))
        return chosen.astype(np.int16)

    def _flags(self, batch: pa.RecordBatch, name: str | None) -> np.ndarray:
        if name is None:
            return np.zeros(batch.num_rows, bool)
        column = batch.column(name)
        if column.null_count:
            raise self._bad("true or false in every row", name, column)
        if pa.types.is_boolean(column.type):
            flags: np.ndarray = column.to_numpy(zero_copy_only=False)
            return flags
        numbers = self._numbers(batch, name)
        if not np.isin(numbers, (0, 1)).all():
            row = int(np.argmin(np.isin(numbers, (0, 1))))
            raise ValueError(
                f"expected true or false (or 1 and 0) in column {name!r} of {self.name},"
                f" got {numbers[row]:g} in row {self.row + row + 1}"
            )
        return numbers == 1

    def _check_time(self, batch: pa.RecordBatch, starts: np.ndarray) -> None:
        if self.roles.time is None:
            return
        time = self._numbers(batch, self.roles.time).astype(np.float64)
        before = np.append(np.nan if self.last_time is None else self.last_time, time)
        back = ~starts & ~(time > before[:-1]) & ~np.isnan(before[:-1])
        if back.any():
            row = int(np.argmax(back))
            raise ValueError(
                f"expected {self.roles.time!r} to rise within a session of {self.name}, "
                f"got {time[row]:g} after {before[row]:g} in row {self.row + row + 1}: "
                "sort the rows"
            )
        self.last_time = float(time[-1])

    def _bad(self, expected: str, name: str, column: Any) -> ValueError:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        return ValueError(
            f"expected {expected}, got an empty cell in column {name!r} of {self.name}, "
            f"row {self.row + row + 1}: fill or drop such rows"
        )

    def _cut(self, everything: bool = False) -> None:
        """Make a block of the finished sessions."""
        if not self.waiting:
            return
        parts = [np.concatenate(part) for part in zip(*self.waiting, strict=True)]
        first = np.flatnonzero(parts[2])
        end = len(parts[2]) if everything else int(first[-1])
        rest = [part[end:].copy() for part in parts]
        self.waiting = [tuple(rest)] if len(rest[0]) else []
        self.waiting_rows = len(rest[0])
        if end == 0:
            return
        first = np.append(first[first < end], end)
        observations, actions, _, stopped, ended = (part[:end] for part in parts)
        done = len(self.ids) - len(first) + 1 - (0 if everything else 1)
        ends = self._ends(first, stopped, ended, done)
        self.blocks.append(
            Block(observations.copy(), actions.copy(), first.astype(np.int64), ends)
        )

    def _ends(
        self, first: np.ndarray, stopped: np.ndarray, ended: np.ndarray, done: int
    ) -> np.ndarray:
        last = first[1:] - 1
        for flags, name, what in (
            (stopped, self.roles.stopped, "stop"),
            (ended, self.roles.ended, "end"),
        ):
            inner = flags.copy()
            inner[last] = False
            if inner.any():
                row = int(np.argmax(inner))
                index = int(np.searchsorted(first, row, "right")) - 1
                raise ValueError(
                    f"expected a {what} ({name!r}) only on the last row of a session, "
                    f"got one on row {row - first[index] + 1} of "
                    f"{first[index + 1] - first[index]} of session "
                    f"{self.ids[done + index]!r}: what follows is another session"
                )
        found = np.where(stopped[last], STOPPED, CENSORED)
        # As everywhere: the session's own end wins over a stop.
        return np.where(ended[last], GAME_OVER, found).astype(np.int8)


def check_learnable(sessions: Sessions, least: int) -> None:
    """Refuse logs that no observer can be learned from.

    Args:
        sessions: the log.
        least: how many stopped sessions are needed.
    """
    ends = sessions.ends
    stops = int((ends == STOPPED).sum())
    if len(ends) < 2:
        raise ValueError(
            f"expected several sessions in column {sessions.roles.session!r}, got one: "
            "a fit is checked on sessions that it has not seen"
        )
    if stops == 0:
        raise ValueError(
            f"expected some stops in column {sessions.roles.stopped!r}, got none in "
            f"{len(ends)} sessions: there is nothing to learn from"
        )
    labelled = sessions.num_rows - int((ends == GAME_OVER).sum())
    if labelled == stops:
        raise ValueError(
            f"expected steps without a stop, got {stops} sessions of one stopped row "
            "each: keep the rows before a stop too"
        )
    if stops < least:
        raise ValueError(
            f"expected at least {least} stopped sessions, got {stops}: collect more"
        )
    _check_constant(sessions)


def _check_constant(sessions: Sessions) -> None:
    names = (*sessions.roles.observations, *sessions.roles.actions)
    first: np.ndarray | None = None
    varies = np.zeros(len(names), bool)
    for block in sessions.blocks:
        rows = np.column_stack([block.observations, block.actions])
        first = rows[0] if first is None else first
        varies |= (rows != first).any(axis=0)
    assert first is not None
    for name, changes, value in zip(names, varies, first, strict=True):
        if not changes:
            raise ValueError(
                f"expected columns that vary, got {name!r} with {value:g} in every row: "
                "leave it out"
            )


def chosen_columns(source: Source, given: dict[str, Any]) -> dict[str, Any]:
    """Roles as given, the rest by the kind of log; an error for missing ones."""
    found = dict(given)
    for role, value in source.defaults.items():
        if found.get(role) is None or found.get(role) == ():
            found[role] = value
    stopped, ended = found.get("stopped"), found.get("ended")
    if ended is not None and ended == stopped and given.get("ended") is None:
        found["ended"] = None
    for role in ("session", "stopped"):
        if found.get(role) is None:
            names: Sequence[str] = source.schema.names
            raise ValueError(
                f"expected the name of the {role} column of {source.name}, got none: "
                f"one of {', '.join(names[:12])} (--{role} NAME)"
            )
    return found
