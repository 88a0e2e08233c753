"""Results of one or several sweeps, read back for a report."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from termdp.bench.curves import Curve
from termdp.bench.plan import RunKey
from termdp.bench.suites import SUITES, cells
from termdp.bench.sweep_folder import (
    check_alike,
    command_to_resume,
    key_of,
    pack,
    read_curves,
    read_manifest,
    read_records,
)
from termdp.bench.sweep_schema import Label, Words
from termdp.reading import MEGABYTE, Name, Plain, read_json
from termdp.report.names import in_order, split_discount

LEAST_SEEDS = 2
Numbers = Annotated[list[float], msgspec.Meta(min_length=1, max_length=4096)]


class ObserverRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `benchmarks/hard_observers.py` measured of one observer."""

    column: Label
    why: Words
    overrides: dict[str, Plain]
    unobserved: Numbers
    switched_on: Numbers
    oracle: Numbers
    lost: float
    kept: float
    stopped: float
    length: float
    least_bias: float
    bias: float
    oracle_method: Name | msgspec.UnsetType = msgspec.UNSET
    oracle_measured: Name | msgspec.UnsetType = msgspec.UNSET


_SAME = ("steps", "preset", "end_handling")


@dataclasses.dataclass(frozen=True)
class Results:
    """The results to report on.

    Attributes:
        manifests: one per folder.
        records: summaries by (column, row), one per seed.
        curves: learning curves by run.
        columns: labels, in the suites' order.
        rows: labels, in the order of `termdp.report.names`.
        thin: cells with too few seeds for an interval; they are not in `records`.
        missing: number of planned runs that are not there.
        observers: whether hard observers matter, measured separately.
    """

    manifests: list[dict[str, Any]]
    records: dict[tuple[str, str], list[dict[str, Any]]]
    curves: dict[RunKey, Curve]
    columns: list[str]
    rows: list[str]
    thin: list[tuple[str, str]]
    missing: int
    observers: list[dict[str, Any]]

    def has(self, column: str, row: str) -> bool:
        """Whether a cell can be reported on."""
        return (column, row) in self.records

    def values(self, column: str, row: str, name: str = "return_mean") -> np.ndarray:
        """One number per seed, without unknown ones."""
        found = [record[name] for record in self.records.get((column, row), [])]
        return np.array([value for value in found if value is not None], float)

    def mean(self, column: str, row: str, name: str) -> float | None:
        """Mean over seeds; None if no seed has a value."""
        found = self.values(column, row, name)
        return float(np.mean(found)) if len(found) else None

    def family(self, *prefixes: str) -> list[str]:
        """Rows whose method's name begins with this prefix."""
        return [row for row in self.rows if row.startswith(prefixes)]

    def of(self, *methods: str) -> list[str]:
        """Rows of these methods, with any discount."""
        return [row for row in self.rows if split_discount(row)[0] in methods]

    def curves_of(self, column: str, row: str) -> list[Curve]:
        """Learning curves of a cell's seeds."""
        keys = [key_of(record) for record in self.records.get((column, row), [])]
        return [self.curves[key] for key in keys if key in self.curves]

    @property
    def seeds(self) -> int:
        """The greatest number of seeds of a cell."""
        return max(len(records) for records in self.records.values())


def load(paths: Sequence[Path]) -> Results:
    """Read folders with the same settings; a run that is in two counts once."""
    manifests = [read_manifest(path) for path in paths]
    _check_alike(manifests, paths)
    records: dict[RunKey, dict[str, Any]] = {}
    curves: dict[RunKey, Curve] = {}
    for path in paths:
        pack(path)
        for record in read_records(path):
            records.setdefault(key_of(record), record)
        for key, curve in read_curves(path).items():
            curves.setdefault(key, curve)
    if not records:
        names = ", ".join(str(path) for path in paths)
        raise ValueError(
            f"expected finished runs in {names}, got none: continue with "
            f"`{command_to_resume(manifests[0], paths[0])}`"
        )
    return _sorted(manifests, records, curves, paths)


def _check_alike(manifests: list[dict[str, Any]], paths: Sequence[Path]) -> None:
    first = manifests[0]
    check_alike(manifests, paths, _SAME)
    for manifest, path in zip(manifests[1:], paths[1:], strict=True):
        before, now = (m["versions"]["termdp"] for m in (first, manifest))
        if before != now:
            raise ValueError(
                f"expected results of one version of termdp, got {before} in "
                f"{paths[0]} and {now} in {path}: make a report for each"
            )


def _sorted(
    manifests: list[dict[str, Any]],
    records: dict[RunKey, dict[str, Any]],
    curves: dict[RunKey, Curve],
    paths: Sequence[Path],
) -> Results:
    by_cell: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key in sorted(records):
        record = records[key]
        if record["return_mean"] is not None:
            by_cell.setdefault((key.column, key.row), []).append(record)
    thin = [cell for cell, found in by_cell.items() if len(found) < LEAST_SEEDS]
    kept = {cell: found for cell, found in by_cell.items() if cell not in thin}
    if not kept:
        raise ValueError(
            f"expected at least {LEAST_SEEDS} seeds in a cell for an interval, got one "
            f"everywhere in {paths[0]}: run "
            f"`{command_to_resume(manifests[0], paths[0], LEAST_SEEDS)}`"
        )
    return Results(
        manifests=manifests,
        records=kept,
        curves=curves,
        columns=_in_suites_order(column for column, _ in kept),
        rows=in_order(row for _, row in kept),
        thin=thin,
        missing=len(_asked(manifests) - set(records)),
        observers=_observers(paths),
    )


def _asked(manifests: list[dict[str, Any]]) -> set[RunKey]:
    """Every run that the sweeps planned."""
    found = set()
    for manifest in manifests:
        first = manifest.get("seed", 0)
        for cell, seeds in manifest.get("asked", {}).items():
            column, row = cell.split("/")[:2]
            found |= {RunKey(column, row, first + place) for place in range(seeds)}
    return found


def _observers(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """What `benchmarks/hard_observers.py` measured, if it was run."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        file = path / "observers.json"
        if file.exists():
            try:
                rows = read_json(file, list[ObserverRow], MEGABYTE)
            except ValueError as error:
                raise ValueError(
                    f"expected what benchmarks/hard_observers.py wrote in {file}: {error}"
                ) from error
            found |= {row.column: msgspec.to_builtins(row) for row in rows}
    return list(found.values())


def _in_suites_order(columns: Iterable[str]) -> list[str]:
    """The paper's columns, then the other suites'; unknown ones come last."""
    suites = (SUITES["paper"], *SUITES.values())
    known = dict.fromkeys(column.label for s in suites for column, _ in cells(s))
    place = {label: index for index, label in enumerate(known)}
    return sorted(set(columns), key=lambda name: (place.get(name, len(place)), name))
