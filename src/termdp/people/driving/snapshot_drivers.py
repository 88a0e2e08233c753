"""Rides of varying quality: from snapshots of agents on their way to expertise.

Appendix D ("Human Termination Data"), arXiv:2205.15376: an agent is trained without
termination, snapshots of it are kept, and each of them drives.
"""

import dataclasses
from pathlib import Path

from termdp.people.driving.drivers import Driver
from termdp.people.driving.trained import PolicyDriverModel, policy_driver
from termdp.training import snapshots
from termdp.training.evaluate import TrainedRun, open_run


def runs_in(folder: Path) -> list[Path]:
    """The run folders in a folder, or the one that it is."""
    if not folder.is_dir():
        raise ValueError(f"expected a folder of runs, got {folder}: no such folder")
    found = sorted({path.parent for path in folder.glob("**/config.json")})
    if not found:
        raise ValueError(
            f"expected runs in {folder}, found none: train one with `termdp train "
            f"backseat pg --no-observer --snapshots 12 --out {folder}/NAME`"
        )
    return found


def snapshot_drivers(folder: str | Path) -> list[Driver]:
    """One driver per run, seed and snapshot, each run's weakest first."""
    return [driver for run in runs_in(Path(folder)) for driver in _of_run(run)]


def _of_run(path: Path) -> list[Driver]:
    run = open_run(path)
    steps = snapshots.steps_of(path)
    if len(steps) < 2:
        raise ValueError(
            f"expected a run with snapshots, got {path} with {len(steps)}: train it "
            "with --snapshots 12, so that its rides range from random to expert"
        )
    if run.settings.env_overrides.get("observer") is not False:
        raise ValueError(
            f"expected a run without an observer, got {path}: its agent has learned to "
            "avoid stops; train it with --no-observer"
        )
    model = PolicyDriverModel(run.trainer)
    return [
        _at_step(run, path, model, step, index)
        for step in steps
        for index in range(run.settings.seeds)
    ]


def _at_step(
    run: TrainedRun, path: Path, model: PolicyDriverModel, step: int, index: int
) -> Driver:
    """The driver that a run's seed was after `step` steps."""
    params = snapshots.load(path, step, run.state.policy.params)
    policy = dataclasses.replace(run.state.policy, params=params)
    state = dataclasses.replace(run.state, policy=policy)
    seed = run.settings.all_seeds[index]
    name = f"{run.settings.method} {path.name} seed {seed} after {step} steps"
    return policy_driver(name, model, run.trainer, state, index)
