"""The results of several sweeps in one folder: for a sweep that ran in parts.

Parts may come from several machines and several versions. The manifest of the whole says
for each cell at which commit, and on what device, its runs were made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from termdp.bench.curves import Curve
from termdp.bench.plan import RunKey
from termdp.bench.sweep_folder import (
    check_alike,
    check_unused,
    key_of,
    read_curves,
    read_manifest,
    read_records,
    write_packed,
)
from termdp.files import write_json

# What all runs of a folder share.
ALIKE = ("format", "seed", "steps", "preset", "end_handling")


@dataclass(frozen=True)
class Gathered:
    """How many runs were taken, and how many were left out.

    Attributes:
        runs: how many are in the new folder.
        repeated: how many were there already, from an earlier part.
        outdated: how many were left out because an earlier part has their cell with
            other settings.
    """

    runs: int
    repeated: int
    outdated: int


def gather(parts: Sequence[Path], out: Path) -> Gathered:
    """Write a folder with the runs of all parts; the parts stay as they are.

    Where two parts have the same run, the first counts. A cell has one kind of settings,
    those of the first part that has it.

    Args:
        parts: folders of `termdp bench`.
        out: a new folder.
    """
    if not parts:
        raise ValueError("expected folders of results to put together, got none")
    check_unused(out)
    manifests = [read_manifest(part) for part in parts]
    check_alike(manifests, parts, ALIKE)
    records: dict[RunKey, dict[str, Any]] = {}
    curves: dict[RunKey, Curve] = {}
    settings: dict[str, Any] = {}
    commits: dict[str, set[str]] = {}
    devices: dict[str, set[str]] = {}
    repeated = outdated = 0
    for part, manifest in zip(parts, manifests, strict=True):
        drawn = read_curves(part)
        for record in read_records(part):
            key, cell = key_of(record), f"{record['column']}/{record['row']}"
            if settings.setdefault(cell, record["settings"]) != record["settings"]:
                outdated += 1
            elif key in records:
                repeated += 1
            else:
                records[key] = record
                commits.setdefault(cell, set()).update(_commits_of(manifest, cell))
                devices.setdefault(cell, set()).update(_devices_of(manifest, cell))
                if key in drawn:
                    curves[key] = drawn[key]
    if not records:
        raise ValueError(
            f"expected finished runs in {', '.join(map(str, parts))}, got none"
        )
    out.mkdir(parents=True, exist_ok=True)
    ordered = [records[key] for key in sorted(records)]
    write_packed(out, ordered, curves)
    made = {"commits_of": _listed(commits), "devices_of": _listed(devices)}
    write_json(out / "manifest.json", _manifest_of(manifests, ordered) | made)
    return Gathered(len(records), repeated, outdated)


def _commits_of(manifest: dict[str, Any], cell: str) -> list[str]:
    """The commits of a part's cell; a part may itself have been gathered."""
    found: list[str] = manifest.get("commits_of", {}).get(cell, manifest["commits"])
    return found


def _devices_of(manifest: dict[str, Any], cell: str) -> list[str]:
    """The devices on which a part's cell ran."""
    here = [manifest.get("hardware", {}).get("device", "unknown")]
    found: list[str] = manifest.get("devices_of", {}).get(cell, here)
    return found


def _listed(made: dict[str, set[str]]) -> dict[str, list[str]]:
    return {cell: sorted(names) for cell, names in sorted(made.items())}


def _manifest_of(
    manifests: list[dict[str, Any]], records: list[dict[str, Any]]
) -> dict[str, Any]:
    """One manifest for all parts; it lists no column and no row without runs."""
    cells = {f"{record['column']}/{record['row']}" for record in records}
    asked: dict[str, int] = {}
    for manifest in manifests:
        for cell, seeds in manifest.get("asked", {}).items():
            if cell in cells:
                asked[cell] = max(seeds, asked.get(cell, 0))
    columns = {record["column"] for record in records}
    rows = {record["row"] for record in records}
    return {name: manifests[0].get(name) for name in ALIKE} | {
        "suite": manifests[0]["suite"],
        "seeds": max(manifest["seeds"] for manifest in manifests),
        "columns": _united(manifests, "columns", columns),
        "rows": _united(manifests, "rows", rows),
        "asked": dict(sorted(asked.items())),
        "left_out": {},
        "commands": [c for manifest in manifests for c in manifest["commands"]],
        "commits": _distinct([c for m in manifests for c in m["commits"]]),
        "versions": _either([m["versions"] for m in manifests]),
        "hardware": _either([m.get("hardware", {}) for m in manifests]),
        "begun": min(manifest.get("begun", "") for manifest in manifests),
        "finished": max(manifest.get("finished") or "" for manifest in manifests),
        "wall_s": round(sum(manifest["wall_s"] for manifest in manifests), 3),
        "programs": [p for manifest in manifests for p in manifest["programs"]],
        "failures": _failures(manifests, records),
    }


def _failures(
    manifests: list[dict[str, Any]], records: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What failed in some part and was not finished in another."""
    finished = {key_of(record) for record in records}
    found = []
    for manifest in manifests:
        for failure in manifest["failures"]:
            runs = [run for run in failure["runs"] if RunKey(*run) not in finished]
            if runs:
                found.append({**failure, "runs": runs})
    return found


def _united(
    manifests: list[dict[str, Any]], name: str, wanted: set[str]
) -> dict[str, Any]:
    """Descriptions by label, the first one of each."""
    found: dict[str, Any] = {}
    for manifest in manifests:
        for label, described in manifest[name].items():
            if label in wanted:
                found.setdefault(label, described)
    return found


def _either(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """What the parts say by name; several values, as one text, where they differ."""
    found = {}
    for name in _distinct([name for fact in facts for name in fact]):
        values = _distinct([fact[name] for fact in facts if name in fact])
        found[name] = values[0] if len(values) == 1 else " or ".join(map(str, values))
    return found


def _distinct(words: list[Any]) -> list[Any]:
    return list(dict.fromkeys(words))
