"""Checkpoints: all of a training state as safetensors, with a manifest in JSON.

A checkpoint is a folder `checkpoints/<iteration>` that appears in one rename, after its
files are on disk: a kill at any moment leaves the last complete one readable. The
manifest has the digest of every file and of itself. A changed checkpoint is rejected, and
the newest whole one is used instead. Reading one never runs code. Snapshots hold only the
policy's weights, and all of them are kept: `snapshots/<steps>.safetensors`.
"""

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from termdp.array_files import (
    MOST_BYTES,
    Arrays,
    read_arrays,
    save_arrays,
    write_arrays,
)
from termdp.arrays import bytes_of, named_arrays, restore
from termdp.files import draft_of
from termdp.reading import MEGABYTE, UNREADABLE, Plain, from_plain, read_json

STATE_FILE = "state.safetensors"
REPORTS_FILE = "reports.safetensors"
MANIFEST_FILE = "manifest.json"
DAMAGED = ".damaged"
KEEP = 2
MOST_REPORTS = 4096 * MEGABYTE
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The manifest of a checkpoint.

    Attributes:
        iteration: how many iterations are done.
        seconds: spent on them.
        compile_seconds: spent on compiling.
        configuration: everything that decides how the run continues.
        files: the digest of each file.
        digest: of all the above.
    """

    iteration: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    seconds: Seconds = 0.0
    compile_seconds: Seconds = 0.0
    configuration: dict[str, Plain] = {}
    files: dict[str, str] = {}
    digest: str = ""

    def own_digest(self) -> str:
        """The digest of everything else in the manifest."""
        plain = msgspec.to_builtins(self) | {"digest": ""}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


Loaded = tuple[Arrays, Arrays, Manifest]
Shapes = Callable[[Manifest], Any]


def save(folder: Path, state: Any, reports: Arrays, manifest: Manifest) -> Path:
    """Write a checkpoint, then remove all older ones but the last.

    Args:
        folder: the run's `checkpoints` folder.
        state: a pytree of arrays.
        reports: the reports of all iterations so far.
        manifest: what is saved; its digests are filled in here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"{manifest.iteration:08d}"
    with draft_of(final) as draft:
        draft.mkdir()
        save_arrays(draft / STATE_FILE, named_arrays(state))
        rows = {name: np.ascontiguousarray(v) for name, v in reports.items()}
        save_arrays(draft / REPORTS_FILE, rows)
        files = {name: _digest(draft / name) for name in (STATE_FILE, REPORTS_FILE)}
        manifest = msgspec.structs.replace(manifest, files=files)
        manifest = msgspec.structs.replace(manifest, digest=manifest.own_digest())
        content = json.dumps(msgspec.to_builtins(manifest), indent=2)
        (draft / MANIFEST_FILE).write_text(content)
        if final.exists():
            _set_aside(final)
    for old in complete(folder)[:-KEEP]:
        _set_aside(old)
    for leftover in folder.glob(".*.draft"):
        shutil.rmtree(leftover, ignore_errors=True)
    return final


def _set_aside(path: Path) -> None:
    """Rename before removing: a half-removed checkpoint must not look complete."""
    os.replace(path, path.with_name(f".{path.name}.{os.getpid()}.old.draft"))


def complete(folder: Path) -> list[Path]:
    """The complete checkpoints of a run, oldest first."""
    if not folder.is_dir():
        return []
    names = (p for p in folder.iterdir() if re.fullmatch("[0-9]{1,12}", p.name))
    return sorted((p for p in names if p.is_dir()), key=lambda p: int(p.name))


class DamagedError(ValueError):
    """A checkpoint differs from what was written."""


def load_latest(folder: Path, shapes: Shapes | None = None) -> Loaded:
    """Arrays, reports and manifest of the newest whole checkpoint.

    A damaged one is skipped with a warning. One that may not be read is an error.

    Args:
        folder: the run's `checkpoints` folder.
        shapes: see `load`.
    """
    found = complete(folder)
    if not found:
        raise ValueError(
            f"expected a run with a checkpoint, got none in {folder}: was the run "
            "stopped before its first one?"
        )
    reasons = []
    for path in reversed(found):
        try:
            loaded = load(path, shapes)
        except DamagedError as error:
            reasons.append(str(error))
            continue
        for reason in reasons:
            warnings.warn(f"{reason}: {path.name} is used instead", stacklevel=2)
        return loaded
    raise DamagedError(f"{reasons[0]}, and there is no other whole one")


def load(path: Path, shapes: Shapes | None = None) -> Loaded:
    """Arrays, reports and manifest of one checkpoint, checked against its digests.

    Args:
        path: the checkpoint.
        shapes: a function from the manifest to the shapes of the state; a larger state
            is not read. It may refuse the manifest.
    """
    manifest = _checked_manifest(path)
    room = MOST_BYTES if shapes is None else bytes_of(shapes(manifest))
    try:
        state = read_arrays(path / STATE_FILE, room)
        return state, read_arrays(path / REPORTS_FILE, MOST_REPORTS), manifest
    except ValueError as error:
        raise ValueError(
            f"expected the checkpoint of this run in {path}: {error}"
        ) from error


def _checked_manifest(path: Path) -> Manifest:
    """The manifest, if it and all files are as they were written."""
    try:
        content = read_json(path / MANIFEST_FILE, dict, MEGABYTE)
        manifest: Manifest = from_plain(content, Manifest)
        if manifest.digest != manifest.own_digest():
            raise ValueError("its manifest was changed since it was written")
        if manifest.iteration != int(path.name):
            raise ValueError(f"its manifest is that of iteration {manifest.iteration}")
        for name in (STATE_FILE, REPORTS_FILE):
            if _digest(path / name) != manifest.files.get(name):
                raise ValueError(f"{name} was changed since it was written")
    except (ValueError, OSError) as error:
        if UNREADABLE in str(error) or isinstance(error, PermissionError):
            raise ValueError(
                f"expected a checkpoint in {path}, but {UNREADABLE}"
            ) from error
        raise DamagedError(
            f"expected a whole checkpoint, but {path} is damaged ({error})"
        ) from error
    return manifest


def set_damaged_aside(folder: Path, used: int) -> None:
    """Rename checkpoints newer than the one in use, which are damaged; delete none."""
    for path in complete(folder):
        if int(path.name) > used:
            target = path.with_name(path.name + DAMAGED)
            if target.exists():
                shutil.rmtree(target)
            os.replace(path, target)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def planned_snapshots(total: int, count: int) -> tuple[int, ...]:
    """After which of `total` iterations to take `count` snapshots, 0 and all included.

    Policies change most at the beginning, so the i-th is at i²/(count − 1)² of the run.
    """
    if count == 0:
        return ()
    shares = (np.arange(count) / max(count - 1, 1)) ** 2
    return tuple(sorted({round(total * float(share)) for share in shares}))


def save_snapshot(run: Path, step: int, weights: Any) -> Path:
    """Write the policy's weights `[seeds, ...]` after `step` steps."""
    path = _snapshot(run, step)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(path, named_arrays(weights))
    return path


def snapshot_steps(run: Path) -> list[int]:
    """After how many steps the run has snapshots, in order."""
    found = (run / "snapshots").glob("*.safetensors")
    return sorted(int(path.stem) for path in found if path.stem.isdigit())


def load_snapshot(run: Path, step: int, template: Any) -> Any:
    """The weights `[seeds, ...]` of one snapshot, in the form of `template`."""
    path = _snapshot(run, step)
    try:
        return restore(template, read_arrays(path, bytes_of(template)))
    except ValueError as error:
        raise ValueError(
            f"expected a snapshot of a policy in {path}, but: {error}"
        ) from error


def _snapshot(run: Path, step: int) -> Path:
    return run / "snapshots" / f"{step:010d}.safetensors"
