"""Checkpoints: all of a training state as safetensors, with a manifest in JSON.

A checkpoint is a folder `checkpoints/<iteration>` that appears in one rename, after its
files are on disk: a kill at any moment leaves the last complete one readable. Nothing
here can execute code when read.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from termdp.arrays import named_arrays

STATE_FILE = "state.safetensors"
REPORTS_FILE = "reports.safetensors"
MANIFEST_FILE = "manifest.json"
KEEP = 2


def save(
    folder: Path, iteration: int, state: Any, reports: dict[str, np.ndarray], extra: Any
) -> Path:
    """Write a checkpoint; older ones but the last are removed afterwards.

    Args:
        folder: the run's `checkpoints` folder.
        iteration: how many iterations are done.
        state: a pytree of arrays.
        reports: what the iterations so far reported.
        extra: further facts for the manifest, plain data.
    """
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"{iteration:08d}"
    draft = folder / f".{iteration:08d}.{os.getpid()}.draft"
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir()
    save_file(named_arrays(state), draft / STATE_FILE)
    save_file(
        {k: np.ascontiguousarray(v) for k, v in reports.items()}, draft / REPORTS_FILE
    )
    manifest = {
        "iteration": iteration,
        "files": {name: _digest(draft / name) for name in (STATE_FILE, REPORTS_FILE)},
        **extra,
    }
    (draft / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2))
    for path in [*draft.iterdir(), draft]:
        _to_disk(path)
    if final.exists():
        _set_aside(final)
    os.replace(draft, final)
    _to_disk(folder)
    for old in complete(folder)[:-KEEP]:
        _set_aside(old)
    for leftover in folder.glob(".*.draft"):
        shutil.rmtree(leftover, ignore_errors=True)
    return final


def _set_aside(path: Path) -> None:
    """Rename before removing: what is half removed must not look complete."""
    os.replace(path, path.with_name(f".{path.name}.{os.getpid()}.old.draft"))


def complete(folder: Path) -> list[Path]:
    """The complete checkpoints of a run, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.name.isdigit() and p.is_dir())


def load_latest(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any], dict]:
    """Arrays, reports and manifest of the newest checkpoint that is whole.

    A damaged one is an error that names the older one to fall back on, if there is one.
    """
    found = complete(folder)
    if not found:
        raise ValueError(
            f"expected a run with a checkpoint, got none in {folder}: was the run "
            "stopped before its first one?"
        )
    return load(found[-1])


def load(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any], dict]:
    """Arrays, reports and manifest of one checkpoint, checked against its digests."""
    advice = f"remove {path} to go on from an older checkpoint"
    try:
        manifest = json.loads((path / MANIFEST_FILE).read_text())
        digests = manifest["files"]
        for name in (STATE_FILE, REPORTS_FILE):
            if _digest(path / name) != digests[name]:
                raise ValueError(
                    f"expected {path / name} as it was written, but it is damaged: "
                    f"{advice}"
                )
        return load_file(path / STATE_FILE), load_file(path / REPORTS_FILE), manifest
    except (
        OSError,
        json.JSONDecodeError,
        UnicodeDecodeError,
        KeyError,
        TypeError,
        SafetensorError,
    ) as error:
        raise ValueError(
            f"expected a complete checkpoint, but {path} is damaged "
            f"({type(error).__name__}): {advice}"
        ) from error


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
