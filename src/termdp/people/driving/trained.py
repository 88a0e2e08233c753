"""Trained agents as drivers: from run folders to people's rides.

An agent sees what it saw in training (costs included, where its method uses them), but
nobody stops it: stopping is left to people.
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from termdp.agents.actor_critic import Actor
from termdp.envs.backseat import BackseatDriver
from termdp.observer import Observer, watch
from termdp.people.driving.drivers import Driver
from termdp.people.driving.rides import game
from termdp.runs.agent import Agent, AgentCard, act, initial_memory
from termdp.runs.collect import Mind
from termdp.runs.evaluate import place_of
from termdp.runs.train import load_agents


class AtTheWheel(NamedTuple):
    """What a trained driver decides with: the numbers of its model.

    Attributes:
        mind: the agent's weights, learned costs and method.
        observer: who counts the costs for the method that is told them; None for
            every other method.
    """

    mind: Mind
    observer: Observer | None


@dataclasses.dataclass(frozen=True)
class AgentDriverModel:
    """An agent at the wheel.

    Agents that differ in numbers only are equal as models: the seeds and snapshots of a
    run, and the drivers of a study's rounds, share one compiled program.

    Attributes:
        actor: how it acts.
        remembers: what its memory looks like.
        card: of the first agent of this make.
    """

    actor: Actor
    remembers: tuple[Any, ...]
    card: AgentCard = dataclasses.field(compare=False)

    def start(self, params: AtTheWheel) -> Any:
        """Empty memories: the agent's, and the observer's where it is needed."""
        watched = None
        if params.observer is not None:
            watched = (params.observer.initial_memory(), jnp.float32(0))
        return initial_memory(self.card, self.actor, 1), watched

    def act(
        self, params: AtTheWheel, key: jax.Array, observation: jax.Array, memory: Any
    ) -> tuple[jax.Array, Any]:
        """Sample an action as in training."""
        mine, watched = memory
        mind, observer = params
        if observer is None:
            action, mine = act(self.actor, mind, mine, observation[None], key)
            return action[0], (mine, None)
        seen, window_cost = watched
        action, mine = act(
            self.actor,
            mind,
            mine,
            observation[None],
            key,
            true_window_cost=window_cost,
            bias=observer.bias,
        )
        cost = jnp.asarray(observer.cost(observation, action[0]), jnp.float32)
        seen, step = watch(observer, seen, cost, jnp.float32(1))
        return action[0], (mine, (seen, step.window_cost))


def agent_driver(name: str, agent: Agent) -> Driver:
    """An agent of Backseat Driver as a driver of that name."""
    env, params = place_of(agent)
    road = env.game_env
    if not isinstance(road, BackseatDriver):
        raise ValueError(f"expected a run of Backseat Driver, got one of {env.name}")
    if road.road != game().road or road.observation_kind != "grid":
        raise ValueError(
            "expected a run on the game's own road and grid observation, got one "
            "with other sizes, speeds or images"
        )
    card = agent.card
    # Only the method that is told the true costs needs somebody to count them.
    observer = params.observer if card.method.knows_costs else None
    learns = card.method.learns_costs
    remembers = (card.method.learner_window(card.window), card.costs) if learns else ()
    model = AgentDriverModel(agent.actor, remembers, card)
    return Driver(name, model, AtTheWheel(agent.mind, observer))


def drivers_of_run(path: str | Path) -> list[Driver]:
    """One driver per seed of a run folder, with its newest weights."""
    return [
        agent_driver(
            f"{agent.card.spec.env} {agent.card.spec.method_name} {Path(path).name} "
            f"seed {agent.card.spec.seed}",
            agent,
        )
        for agent in load_agents(Path(path))
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
