"""Snapshots of a policy while it learns, from random to expert.

Checkpoints hold everything and only the newest are kept; a snapshot holds the policy's
parameters alone, and all of them stay: DIR/snapshots/<decisions>.safetensors.
"""

import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from termdp.arrays import named_arrays, restore


def planned(total: int, count: int) -> tuple[int, ...]:
    """After which of `total` iterations to take `count` snapshots, 0 and all included.

    Policies change most in the beginning, so the distances grow: i²/(count − 1)².
    """
    if count == 0:
        return ()
    shares = (np.arange(count) / max(count - 1, 1)) ** 2
    return tuple(sorted({round(total * float(share)) for share in shares}))


def folder_of(run: Path) -> Path:
    """Where a run keeps its snapshots."""
    return run / "snapshots"


def save(run: Path, step: int, params: Any) -> Path:
    """Write the policy's parameters `[seeds, ...]` after `step` decisions."""
    folder = folder_of(run)
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"{step:010d}.safetensors"
    draft = folder / f".{final.name}.draft"
    save_file(named_arrays(params), draft)
    os.replace(draft, final)
    return final


def steps_of(run: Path) -> list[int]:
    """After how many decisions the run has snapshots, in order."""
    found = folder_of(run).glob("*.safetensors")
    return sorted(int(path.stem) for path in found if path.stem.isdigit())


def load(run: Path, step: int, template: Any) -> Any:
    """The parameters `[seeds, ...]` of one snapshot, in the form of `template`."""
    path = folder_of(run) / f"{step:010d}.safetensors"
    try:
        arrays = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ValueError(
            f"expected a snapshot of a policy, but {path} cannot be read "
            f"({type(error).__name__})"
        ) from error
    return jax.tree.map(np.asarray, restore(template, arrays))
