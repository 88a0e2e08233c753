"""Results on disk: one JSON and one Parquet file per run, written when it is finished.

DIR/manifest.json                   settings, version, times
DIR/runs/COLUMN/ROW/seedN.json      summary and settings of a run
DIR/runs/COLUMN/ROW/seedN.parquet   its learning curve (see `termdp.bench.curves`)
DIR/results.json, DIR/curves.parquet    the same for all runs together (`pack`)

Every file appears in one rename, the JSON after the Parquet: a run with a JSON file is
complete.
"""

import dataclasses
import json
import shlex
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from termdp.bench.curves import Curve, read_curve, with_suffix, write_curve
from termdp.bench.execute import JobResult, RunResult
from termdp.bench.plan import Plan, RunKey
from termdp.bench.sweep_schema import check_manifest, checked_record
from termdp.files import is_unused, write_json
from termdp.provenance import commit, hardware, version_of, versions
from termdp.reading import MEGABYTE, UNREADABLE, read_json

FORMAT = 1
_NAMES = ("column", "row", "seed")
MOST_PACKED = 200 * MEGABYTE
AGENTS = "agents"


class SweepFolder:
    """The folder of one sweep; only one process writes to it."""

    def __init__(self, path: Path, manifest: dict[str, Any]):
        self.path = path
        self.manifest = manifest

    @classmethod
    def create(cls, path: Path, plan: Plan, command: str) -> "SweepFolder":
        """Begin a sweep in a new or empty folder."""
        check_unused(path)
        path.mkdir(parents=True, exist_ok=True)
        store = cls(path, _new_manifest(plan, command))
        store.save_manifest()
        return store

    @classmethod
    def reopen(cls, path: Path, plan: Plan, command: str) -> "SweepFolder":
        """Resume a sweep, or start it if the folder is empty."""
        if is_unused(path):
            return cls.create(path, plan, command)
        manifest = read_manifest(path)
        store = cls(path, manifest)
        _check_same_sweep(manifest, plan, path)
        store._check_same_settings(plan)
        manifest["commands"].append(command)
        now = commit()
        if now not in manifest["commits"]:
            manifest["commits"].append(now)
        fresh = _new_manifest(plan, command)
        manifest["seeds"] = max(manifest["seeds"], plan.seeds)
        for name in ("columns", "rows"):
            manifest[name] = manifest[name] | fresh[name]
        before = manifest.setdefault("asked", {})
        for cell, seeds in fresh["asked"].items():
            before[cell] = max(seeds, before.get(cell, 0))
        manifest["left_out"] = fresh["left_out"]
        manifest["failures"] = []
        store.save_manifest()
        return store

    def save_manifest(self) -> None:
        """Write the manifest."""
        write_json(self.path / "manifest.json", self.manifest)

    def finished(self) -> set[RunKey]:
        """Runs that are complete on disk."""
        return {key_of(record) for record in self.records()}

    def records(self) -> list[dict[str, Any]]:
        """Records of the complete runs, in a fixed order."""
        return read_records(self.path)

    def add(self, result: JobResult) -> None:
        """Write a job's runs; they are on disk when this returns."""
        for run in result.runs:
            self._write_run(run)
        self.manifest["programs"].append(result.facts)
        for key, error in result.failures.items():
            self.add_failure([key], error)
        self.save_manifest()

    def add_failure(self, keys: Iterable[RunKey], error: str) -> None:
        """Record a failure."""
        runs = [list(key) for key in keys]
        self.manifest["failures"].append({"runs": runs, "error": error})
        self.save_manifest()

    def close(self, seconds: float) -> None:
        """Record the end of this call and pack the results."""
        self.manifest["wall_s"] = round(self.manifest["wall_s"] + seconds, 3)
        self.manifest["finished"] = _clock()
        self.save_manifest()
        pack(self.path)

    def _write_run(self, run: RunResult) -> None:
        folder = self.path / "runs" / run.key.column / run.key.row
        folder.mkdir(parents=True, exist_ok=True)
        stem = folder / f"seed{run.key.seed}"
        write_curve(stem, run.curve)
        if run.agent is not None:
            stored = self.path / AGENTS / run.key.column / run.key.row
            run.agent.save(with_suffix(stored, ".safetensors"), half=True)
        write_json(with_suffix(stem, ".json"), run.record)

    def _check_same_settings(self, plan: Plan) -> None:
        """Refuse results that were made with other settings."""
        wanted = {
            (cell.column.label, cell.row.label): _as_json(cell.settings())
            for cell in plan.cells
        }
        for record in self.records():
            now = wanted.get((record["column"], record["row"]))
            if now is None or now == record["settings"]:
                continue
            name, was, would = _first_difference(record["settings"], now)
            raise ValueError(
                f"expected results made with the present settings in {self.path}, but "
                f"{record['column']}/{record['row']} has {name} = {was}, now {would}: "
                "choose another --out, or use the version in its manifest.json"
            )


def check_unused(path: Path) -> None:
    """Refuse a folder that is not empty."""
    if not is_unused(path):
        raise ValueError(
            f"expected a new folder for the results, but {path} exists: choose "
            "another --out, or continue with --resume"
        )


def _new_manifest(plan: Plan, command: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "suite": plan.suite,
        "seeds": plan.seeds,
        "seed": plan.seed,
        "steps": plan.steps,
        "preset": plan.preset,
        "end_handling": plan.end_handling,
        "columns": {
            cell.column.label: _as_json(dataclasses.asdict(cell.column))
            for cell in plan.cells
        },
        "rows": {
            cell.row.label: _as_json(dataclasses.asdict(cell.row))
            for cell in plan.cells
        },
        "asked": {
            f"{cell.column.label}/{cell.row.label}": plan.seeds for cell in plan.cells
        },
        "left_out": plan.left_out,
        "commands": [command],
        "commits": [commit()],
        "versions": versions(),
        "hardware": hardware(),
        "begun": _clock(),
        "finished": None,
        "wall_s": 0.0,
        "programs": [],
        "failures": [],
    }


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a sweep, of a format this version understands."""
    try:
        manifest: dict[str, Any] = read_json(path / "manifest.json", dict)
    except ValueError as error:
        raise ValueError(
            f"expected the folder of a benchmark, got {path}: its manifest.json is "
            f"missing or damaged ({error})"
        ) from error
    found = manifest.get("format")
    if found != FORMAT:
        made = manifest.get("versions")
        made_by = made.get("termdp") if isinstance(made, dict) else None
        raise ValueError(
            f"expected results of format {FORMAT}, but {path} has format {found!r:.20}: "
            f"use termdp {made_by or 'of the version that wrote it'!s:.30}"
        )
    try:
        check_manifest(manifest)
    except ValueError as error:
        raise ValueError(
            f"expected the folder of a benchmark, got {path}: its manifest.json is "
            f"damaged ({error}); start in another folder"
        ) from error
    return manifest


def command_to_resume(
    manifest: dict[str, Any], path: Path, seeds: int | None = None
) -> str:
    """The command that resumes a sweep, with another number of seeds if given."""
    try:
        words = shlex.split(manifest["commands"][-1])
    except ValueError:  # changed since it was written
        words = ["termdp", "bench", str(manifest["suite"])]
    for option in ("--out", "--seeds") if seeds is not None else ("--out",):
        if option in words:
            place = words.index(option)
            del words[place : place + 2]
    words = [word for word in words if word != "--resume"]
    words += [] if seeds is None else ["--seeds", str(seeds)]
    return shlex.join([*words, "--resume", "--out", str(path)])


def _check_same_sweep(manifest: dict[str, Any], plan: Plan, path: Path) -> None:
    asked = {
        "suite": plan.suite,
        "seed": plan.seed,
        "steps": plan.steps,
        "preset": plan.preset,
        "end_handling": plan.end_handling,
    }
    for name, value in asked.items():
        # Older sweeps do not say their first seed, which was always 0.
        before = manifest.get(name, 0)
        if before != value:
            raise ValueError(
                f"expected {name} {before} as in {path}, got {value}: choose another "
                "--out"
            )
    made_by, here = manifest["versions"]["termdp"], version_of("termdp")
    if made_by != here:
        raise ValueError(
            f"expected results made by termdp {here}, but those in {path} were made by "
            f"{made_by}: choose another --out, or continue with that version"
        )


def read_records(path: Path) -> list[dict[str, Any]]:
    """All complete runs of a folder, packed or not; damaged ones count as missing."""
    found: dict[RunKey, dict[str, Any]] = {}
    packed = path / "results.json"
    if packed.exists():
        try:
            found |= _unpacked_records(read_json(packed, dict, MOST_PACKED))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"expected {packed} to hold packed results, but it is damaged "
                f"({str(error)[:200]}): "
                "remove it if the folder runs/ is there"
            ) from error
    for file in (path / "runs").glob("*/*/seed*.json"):
        try:
            record = read_json(file, dict, MEGABYTE)
            record = checked_record(record, record.get("settings"))
        except ValueError as error:
            if UNREADABLE in str(error):
                raise ValueError(f"expected a run in {file}, but {error}") from error
            continue
        if file.parts[-3:] == _file_of(key_of(record)).parts[-3:]:
            found[key_of(record)] = record
    return [found[key] for key in sorted(found)]


def _file_of(key: RunKey) -> Path:
    return Path("runs") / key.column / key.row / f"seed{key.seed}.json"


def read_curves(path: Path) -> dict[RunKey, Curve]:
    """Learning curves of all complete runs."""
    try:
        packed = read_curve(path / "curves")
        curves = {} if packed is None else _unpacked(packed)
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"expected learning curves in {path / 'curves'}.*, but they are damaged "
            f"({error}): remove the file if the folder runs/ is there"
        ) from error
    for record in read_records(path):
        key = key_of(record)
        stem = path / "runs" / key.column / key.row / f"seed{key.seed}"
        try:
            curve = read_curve(stem)
        except ValueError as error:
            raise ValueError(
                f"expected a learning curve in {stem}.*, but it is damaged: remove "
                f"{stem}.json and the files beside it, then continue with --resume"
            ) from error
        if curve is not None:
            curves[key] = curve
    return curves


def check_alike(
    manifests: Sequence[dict[str, Any]], paths: Sequence[Path], names: Sequence[str]
) -> None:
    """Refuse folders whose manifests differ in one of these names."""
    first = manifests[0]
    for manifest, path in zip(manifests, paths, strict=True):
        for name in names:
            if manifest.get(name) != first.get(name):
                raise ValueError(
                    f"expected folders with the same {name}, got {first.get(name)} in "
                    f"{paths[0]} and {manifest.get(name)} in {path}"
                )


def pack(path: Path) -> None:
    """Put all complete runs into two files, small enough for a repository."""
    write_packed(path, read_records(path), read_curves(path))


def write_packed(
    path: Path, records: list[dict[str, Any]], curves: dict[RunKey, Curve]
) -> None:
    """Write `results.json` and `curves.parquet`; nothing if there are no curves."""
    keys = [key for key in map(key_of, records) if key in curves]
    if not keys:
        return
    lengths = [len(curves[key]["step"]) for key in keys]
    together = {
        name: np.repeat([getattr(key, name) for key in keys], lengths)
        for name in _NAMES
    }
    for name in curves[keys[0]]:
        together[name] = np.concatenate([curves[key][name] for key in keys])
    if write_curve(path / "curves", together).suffix == ".parquet":
        (path / "curves.npz").unlink(missing_ok=True)
    write_json(path / "results.json", _packed_records(records))


def _packed_records(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Store settings once per cell: all its seeds share them."""
    return {
        "settings": {f"{r['column']}/{r['row']}": r["settings"] for r in records},
        "runs": [{k: v for k, v in r.items() if k != "settings"} for r in records],
    }


def _unpacked_records(content: dict[str, Any]) -> dict[RunKey, dict[str, Any]]:
    found = {}
    for run in content["runs"]:
        settings = content["settings"][f"{run['column']}/{run['row']}"]
        found[key_of(run)] = checked_record(run, settings)
    return found


def _unpacked(columns: Curve) -> dict[RunKey, Curve]:
    rows: dict[RunKey, list[int]] = {}
    for index, key in enumerate(zip(*(columns[n] for n in _NAMES), strict=True)):
        rows.setdefault(RunKey(str(key[0]), str(key[1]), int(key[2])), []).append(index)
    return {
        key: {n: v[places] for n, v in columns.items() if n not in _NAMES}
        for key, places in rows.items()
    }


def key_of(record: dict[str, Any]) -> RunKey:
    """Which run a record is of."""
    return RunKey(record["column"], record["row"], record["seed"])


def _first_difference(before: Any, now: Any, name: str = "") -> tuple[str, Any, Any]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                return _first_difference(
                    before.get(key), now.get(key), f"{name}.{key}".lstrip(".")
                )
    return name, before, now


def _as_json(content: Any) -> Any:
    return json.loads(json.dumps(content))


def _clock() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
