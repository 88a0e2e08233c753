"""Rides of varying quality: from snapshots of agents on their way to expertise.

Appendix D ("Human Termination Data"), arXiv:2205.15376: an agent is trained without
termination, snapshots of it are kept, and each of them drives.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp

from termdp.people.driving.drivers import Driver, random_driver
from termdp.people.driving.ride import BACKSEAT
from termdp.people.driving.trained import agent_driver, shipped_driver
from termdp.runs import checkpoint
from termdp.runs.train import load_agents


def chosen_drivers(names: Sequence[str], env: str) -> list[Driver]:
    """Drivers by folders of runs, by files or names of agents, and `random`.

    Args:
        names: a folder stands for all snapshots in it, each run's weakest first.
        env: what they must be able to drive in.
    """
    found = []
    for name in names:
        if name == "random":
            found.append(random_driver(env))
        elif Path(name).is_dir():
            found += snapshot_drivers(name, env)
        else:
            found.append(shipped_driver(name, env))
    return found


def runs_in(folder: Path, env: str = BACKSEAT) -> list[Path]:
    """The run folders in a folder; the folder itself if it is one."""
    if not folder.is_dir():
        raise ValueError(f"expected a folder of runs, got {folder}: no such folder")
    found = sorted({path.parent for path in folder.glob("**/config.json")})
    if not found:
        raise ValueError(
            f"expected runs in {folder}, found none: train one with `termdp train "
            f"{env} pg --no-observer --snapshots 12 --out {folder}/NAME`"
        )
    return found


def snapshot_drivers(folder: str | Path, env: str = BACKSEAT) -> list[Driver]:
    """One driver per run, seed and snapshot, each run's weakest first."""
    runs = runs_in(Path(folder), env)
    return [driver for run in runs for driver in _of_run(run, env)]


def _of_run(path: Path, env: str) -> list[Driver]:
    agents = load_agents(path)
    steps = checkpoint.snapshot_steps(path)
    if len(steps) < 2:
        raise ValueError(
            f"expected a run with snapshots, got {path} with {len(steps)}: train it "
            "with --snapshots 12, so that its rides range from random to expert"
        )
    if agents[0].card.spec.observer is not False:
        raise ValueError(
            f"expected a run without an observer, got {path}: its agent has learned to "
            "avoid stops; train it with --no-observer"
        )
    first = [agent_driver("", agent, env) for agent in agents]
    weights = [agent.mind.weights for agent in agents]
    template = jax.eval_shape(lambda: jax.tree.map(lambda *x: jnp.stack(x), *weights))
    drivers = []
    for step in steps:
        taken = checkpoint.load_snapshot(path, step, template)
        for index, agent in enumerate(agents):
            mine = jax.tree.map(lambda x, index=index: x[index], taken)
            spec = agent.card.spec
            name = f"{spec.method_name} {path.name} seed {spec.seed} after {step} steps"
            params = first[index].params
            mind = params.mind._replace(weights=mine)
            params = params._replace(mind=mind)
            drivers.append(dataclasses.replace(first[index], name=name, params=params))
    return drivers
