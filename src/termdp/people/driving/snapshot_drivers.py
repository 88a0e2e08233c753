"""Rides of varying quality: from snapshots of agents on their way to expertise.

Appendix D ("Human Termination Data"), arXiv:2205.15376: an agent is trained without
termination, snapshots of it are kept, and each of them drives.
"""

from pathlib import Path

import jax
import jax.numpy as jnp

from termdp.people.driving.drivers import Driver
from termdp.people.driving.trained import agent_driver
from termdp.runs import checkpoint
from termdp.runs.train import load_agents


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
    first = [agent_driver("", agent) for agent in agents]
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
            drivers.append(Driver(name, first[index].model, params._replace(mind=mind)))
    return drivers
