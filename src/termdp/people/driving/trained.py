"""Trained agents as drivers: from run folders to people's rides.

An agent sees what it saw in training (costs included, where its method uses them), but
nobody stops it: stopping is left to people.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from termdp.envs.backseat import BackseatDriver
from termdp.observer import watch
from termdp.people.driving.drivers import Driver
from termdp.people.driving.rides import game
from termdp.runs.agent import Agent, act, initial_memory
from termdp.runs.evaluate import place_of
from termdp.runs.train import load_agents


class AgentDriverModel:
    """An agent at the wheel; its weights are the driver's params.

    Hashed by identity: the seeds and snapshots of one run share the compiled program.
    """

    def __init__(self, agent: Agent):
        env, params = place_of(agent)
        road = env.game_env
        if not isinstance(road, BackseatDriver):
            raise ValueError(
                f"expected a run of Backseat Driver, got one of {env.name}"
            )
        if road.road != game().road or road.observation_kind != "grid":
            raise ValueError(
                "expected a run on the game's own road and grid observation, got one "
                "with other sizes, speeds or images"
            )
        self.card = agent.card
        self.actor = agent.actor
        # Only the method that is told the true costs needs somebody to count them.
        self.observer = params.observer if agent.card.method.knows_costs else None

    def start(self, params: Any) -> Any:
        """Empty memories: the agent's, and the observer's where it is needed."""
        watched = None
        if self.observer is not None:
            watched = (self.observer.initial_memory(), jnp.float32(0))
        return initial_memory(self.card, self.actor, 1), watched

    def act(
        self, params: Any, key: jax.Array, observation: jax.Array, memory: Any
    ) -> tuple[jax.Array, Any]:
        """Sample an action as in training."""
        mine, watched = memory
        if self.observer is None:
            action, mine = act(self.actor, params, mine, observation[None], key)
            return action[0], (mine, None)
        seen, window_cost = watched
        action, mine = act(
            self.actor,
            params,
            mine,
            observation[None],
            key,
            true_window_cost=window_cost,
            bias=self.observer.bias,
        )
        cost = jnp.asarray(self.observer.cost(observation, action[0]), jnp.float32)
        seen, step = watch(self.observer, seen, cost, jnp.float32(1))
        return action[0], (mine, (seen, step.window_cost))


def drivers_of_run(path: str | Path) -> list[Driver]:
    """One driver per seed of a run folder, with its newest weights."""
    agents = load_agents(Path(path))
    model = AgentDriverModel(agents[0])
    return [
        Driver(
            f"{agent.card.spec.env} {agent.card.spec.method_name} {Path(path).name} "
            f"seed {agent.card.spec.seed}",
            model,
            agent.mind,
        )
        for agent in agents
    ]


def drivers_in(folder: str | Path) -> list[Driver]:
    """The drivers of all Backseat Driver runs in a folder (or of the run it is)."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"expected a folder of runs, got {folder}: no such folder")
    runs = sorted({path.parent for path in folder.glob("**/config.json")})
    drivers = []
    for run in runs:
        try:
            drivers += drivers_of_run(run)
        except ValueError as error:
            if "Backseat Driver" not in str(error):
                raise ValueError(f"{run}: {error}") from error
    if not drivers:
        raise ValueError(
            f"expected runs of Backseat Driver in {folder}, found none: train one with "
            f"`termdp train backseat termpg --out {folder}/NAME`, or leave out the folder"
        )
    return drivers
