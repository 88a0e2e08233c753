"""Checkpoints: all of a training state as safetensors, with a manifest in JSON.

A checkpoint is a folder `checkpoints/<iteration>` that appears in one rename, after its
files are on disk: a kill at any moment leaves the last complete one readable. Nothing
here can execute code when read. Snapshots hold the policy's weights alone, and all of
them stay: `snapshots/<steps>.safetensors`.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from termdp.arrays import named_arrays, restore
from termdp.files import draft_of

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
    with draft_of(final) as draft:
        draft.mkdir()
        save_file(named_arrays(state), draft / STATE_FILE)
        rows = {name: np.ascontiguousarray(v) for name, v in reports.items()}
        save_file(rows, draft / REPORTS_FILE)
        files = (STATE_FILE, REPORTS_FILE)
        manifest = {
            "iteration": iteration,
            "files": {name: _digest(draft / name) for name in files},
            **extra,
        }
        (draft / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2))
        if final.exists():
            _set_aside(final)
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
    """Arrays, reports and manifest of the newest checkpoint; an error if damaged."""
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


def planned_snapshots(total: int, count: int) -> tuple[int, ...]:
    """After which of `total` iterations to take `count` snapshots, 0 and all included.

    Policies change most in the beginning, so the distances grow: i²/(count − 1)².
    """
    if count == 0:
        return ()
    shares = (np.arange(count) / max(count - 1, 1)) ** 2
    return tuple(sorted({round(total * float(share)) for share in shares}))


def save_snapshot(run: Path, step: int, weights: Any) -> Path:
    """Write the policy's weights `[seeds, ...]` after `step` steps."""
    path = _snapshot(run, step)
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        save_file(named_arrays(weights), draft)
    return path


def snapshot_steps(run: Path) -> list[int]:
    """After how many steps the run has snapshots, in order."""
    found = (run / "snapshots").glob("*.safetensors")
    return sorted(int(path.stem) for path in found if path.stem.isdigit())


def load_snapshot(run: Path, step: int, template: Any) -> Any:
    """The weights `[seeds, ...]` of one snapshot, in the form of `template`."""
    path = _snapshot(run, step)
    try:
        return restore(template, load_file(path))
    except (OSError, SafetensorError) as error:
        raise ValueError(
            f"expected a snapshot of a policy in {path}, but it is missing or damaged"
        ) from error


def _snapshot(run: Path, step: int) -> Path:
    return run / "snapshots" / f"{step:010d}.safetensors"


def restored(template: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A state like `template` (a function that makes one) from a checkpoint's arrays."""
    return restore(jax.eval_shape(template), arrays)
