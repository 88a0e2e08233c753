"""Trained agents as drivers: loaded from run folders, files or names.

An agent sees what it saw in training (costs included, where its method uses them), but
nobody stops it: stopping is left to people.
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from termdp.agents.actor_critic import Actor
from termdp.observer import Observer, watch
from termdp.people.driving.drivers import (
    STYLES,
    Driver,
    random_driver,
    scripted_driver,
)
from termdp.people.driving.ride import BACKSEAT, ROADS
from termdp.people.driving.rides import game
from termdp.runs.agent import Agent, AgentCard, act, initial_memory, read_agent
from termdp.runs.collect import Mind
from termdp.runs.evaluate import place_of
from termdp.runs.shipped import agent_path, shipped_agents
from termdp.runs.train import load_agents


class AtTheWheel(NamedTuple):
    """The params of a trained driver's model.

    Attributes:
        mind: the agent's weights, learned costs and method.
        observer: computes the true costs for the method that is told them; None for
            every other method.
    """

    mind: Mind
    observer: Observer | None


@dataclasses.dataclass(frozen=True)
class AgentDriverModel:
    """A trained agent as a driver's model.

    Agents that differ in numbers only are equal as models: the seeds and snapshots of a
    run, and the drivers of a study's rounds, share one compiled program.

    Attributes:
        actor: how it acts.
        remembers: what its memory looks like.
        card: of the first agent with this model; not compared.
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


def agent_driver(name: str, agent: Agent, env: str = BACKSEAT) -> Driver:
    """An agent as a driver with a name; refused if trained on another environment."""
    there, params = place_of(agent)
    card = agent.card
    mine, wanted = getattr(there, "game_env", there), game(env)
    if type(mine) is not type(wanted):
        raise OtherGameError(
            f"expected a run of {env}, got one of {card.spec.env}: an agent plays only "
            "the game that it was trained on"
        )
    if not _plays_alike(mine, wanted):
        raise ValueError(
            f"expected a run on {env} as it is, got one with other sizes, speeds, "
            "actions or images"
        )
    # Only the method that is told the true costs needs an observer to compute them.
    observer = params.observer if card.method.knows_costs else None
    learns = card.method.learns_costs
    remembers = (card.method.learner_window(card.window), card.costs) if learns else ()
    model = AgentDriverModel(agent.actor, remembers, card)
    return Driver(name, model, AtTheWheel(agent.mind, observer), env)


class OtherGameError(ValueError):
    """An agent was trained on another game than the one asked for."""


def _plays_alike(mine: Any, wanted: Any) -> bool:
    """Whether two games of one kind have the same observations, actions and road."""
    spaces = [
        (
            tuple(found.observation_space(found.default_params).shape),
            found.action_space(found.default_params).n,
            getattr(found, "road", None),
        )
        for found in (mine, wanted)
    ]
    return bool(spaces[0] == spaces[1])


def drivers_of_run(path: str | Path, env: str = BACKSEAT) -> list[Driver]:
    """One driver per seed of a run folder, with its newest weights."""
    return [
        agent_driver(
            f"{agent.card.spec.env} {agent.card.spec.method_name} {Path(path).name} "
            f"seed {agent.card.spec.seed}",
            agent,
            env,
        )
        for agent in load_agents(Path(path))
    ]


def drivers_in(folder: str | Path, env: str = BACKSEAT) -> list[Driver]:
    """The drivers of all runs of an environment in a folder, or of the one run there."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"expected a folder of runs, got {folder}: no such folder")
    runs = sorted({path.parent for path in folder.glob("**/config.json")})
    drivers = []
    for run in runs:
        try:
            drivers += drivers_of_run(run, env)
        except OtherGameError:
            continue
        except ValueError as error:
            raise ValueError(f"{run}: {error}") from error
    if not drivers:
        raise OtherGameError(
            f"expected runs of {env} in {folder}, found none: train one with "
            f"`termdp train {env} termpg --out {folder}/NAME`, or leave out the folder"
        )
    return drivers


def usual_drivers(env: str = BACKSEAT) -> list[Driver]:
    """The default drivers of an environment.

    Planners on a road; in other games a random player and the shipped agents.
    """
    if env in ROADS:
        return [dataclasses.replace(scripted_driver(s), env=env) for s in STYLES]
    names = [card.name for card in shipped_agents() if card.name.startswith(f"{env}/")]
    return [random_driver(env), *(shipped_driver(name, env) for name in names)]


def shipped_driver(name: str, env: str) -> Driver:
    """An agent that comes with the package, by its name, or one in a file."""
    return agent_driver(name, read_agent(agent_path(name)), env)
