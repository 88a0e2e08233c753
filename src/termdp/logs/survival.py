"""Start–stop survival tables (id, start, stop, event, covariates) as logs.

A row is a stretch of time with constant covariates. It becomes one row per time step; the
event, if there is one, is on the last of them.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from termdp.logs.sessions import Roles
from termdp.logs.sources import BATCH_ROWS, Source

MOST_STEPS = 10**6


def expanded(
    source: Source, interval: tuple[str, str], roles: Roles, step: float
) -> Source:
    """The table with one row per time step.

    Args:
        source: the table; the rows of an id follow one another in time.
        interval: names of the start and stop columns.
        roles: of the other columns; `stopped` is the event.
        step: length of a time step.
    """
    if not 0 < step < np.inf:
        raise ValueError(f"expected a step above 0, got {step!r}")
    for name in interval:
        source.check_column(name)

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        last: tuple[object, float] | None = None
        for batch in source.batches([*names, *interval]):
            start, stop = (_times(batch, name, source.name) for name in interval)
            last = _check(batch.column(roles.session), start, stop, last, source.name)
            steps = np.maximum(np.ceil((stop - start) / step - 1e-9), 1).astype(int)
            if steps.max(initial=0) > MOST_STEPS:
                raise ValueError(
                    f"expected rows of at most {MOST_STEPS} time steps, got one from "
                    f"{start[steps.argmax()]:g} to {stop[steps.argmax()]:g}: give a "
                    "longer step"
                )
            yield from _repeated(batch.select(list(names)), steps, roles)

    return dataclasses.replace(source, read=read)


def _repeated(
    batch: pa.RecordBatch, steps: np.ndarray, roles: Roles
) -> Iterator[pa.RecordBatch]:
    """Each row once per time step, in batches; the event only on the row's last step."""
    ends = np.cumsum(steps)
    for first in range(0, int(ends[-1]) if len(ends) else 0, BATCH_ROWS):
        places = np.arange(first, min(first + BATCH_ROWS, int(ends[-1])))
        rows = np.searchsorted(ends, places, side="right")
        part = batch.take(pa.array(rows))
        is_last = pa.array(places == ends[rows] - 1)
        for name in (roles.stopped, roles.ended):
            if name is not None:
                place = part.schema.get_field_index(name)
                flags = part.column(place).cast(pa.int64())
                flags = pa.compute.if_else(is_last, flags, 0)
                field = pa.field(name, pa.int64())
                part = part.set_column(place, field, flags)
        yield part


def _times(batch: pa.RecordBatch, name: str, where: str) -> np.ndarray:
    column = batch.column(name)
    try:
        numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise ValueError(
            f"expected times in column {name!r} of {where}, got {column.type}"
        ) from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"expected a time in every row of {name!r} of {where}")
    return np.asarray(numbers)


def _check(
    session: pa.Array,
    start: np.ndarray,
    stop: np.ndarray,
    last: tuple[object, float] | None,
    where: str,
) -> tuple[object, float] | None:
    """Refuse rows that end before they begin, or that overlap."""
    if not (stop > start).all():
        row = int(np.argmin(stop > start))
        raise ValueError(
            f"expected rows of {where} that stop after they start, got {start[row]:g} "
            f"to {stop[row]:g} for {session[row].as_py()!r}"
        )
    names = session.to_pylist()
    for name, begin, end in zip(names, start.tolist(), stop.tolist(), strict=True):
        if last is not None and last[0] == name and begin < last[1]:
            raise ValueError(
                f"expected the rows of {name!r} in {where} one after the other in time, "
                f"got one that starts at {begin:g} after one that stops at {last[1]:g}"
            )
        last = (name, end)
    return last
