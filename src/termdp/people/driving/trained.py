"""Trained policies as drivers: from run folders to people's rides.

The policy sees what it saw in training (costs included, where its method uses them), but
nobody stops it: stopping is left to people.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from termdp.agents.actor_critic import PolicyInput
from termdp.envs.backseat import BackseatDriver
from termdp.observer import watch
from termdp.people.driving.drivers import Driver
from termdp.people.driving.rides import game
from termdp.training import cost_features
from termdp.training.evaluate import TrainedRun, open_run
from termdp.training.loop import Trainer
from termdp.training.types import TrainState


class PolicyDriverModel:
    """A trainer's network at the wheel; its weights are the params.

    Hashed by identity: snapshots of one trainer share the compiled program.
    """

    def __init__(self, trainer: Trainer):
        env = trainer.job.env.game_env
        if not isinstance(env, BackseatDriver):
            raise ValueError(
                f"expected a run of Backseat Driver, got one of {env.name}"
            )
        if env.road != game().road or env.observation_kind != "grid":
            raise ValueError(
                "expected a run on the game's own road and grid observation, got one "
                "with other sizes, speeds or images"
            )
        self.learner = trainer.program.learner
        self.observer = trainer.job.params.observer
        self.learns_costs = trainer.program.learns_costs
        members = trainer.job.config.costs.members
        self.memory_shape = (trainer.job.max_window, members + 1, 1)

    def start(self, params: Any) -> Any:
        """Empty memories: of the network, of learned costs, of the true observer."""
        recent = jnp.zeros(self.memory_shape) if self.learns_costs else None
        watched = (self.observer.initial_memory(), jnp.float32(0))
        return self.learner.network.initial_carry((1,)), recent, watched

    def act(
        self, params: Any, key: jax.Array, observation: jax.Array, memory: Any
    ) -> tuple[jax.Array, Any]:
        """Sample an action as in training, then remember what it cost."""
        weights, costs, switches = params
        carry, recent, (seen, window_cost) = memory
        cost = self._cost_features(costs, switches, recent, window_cost)
        batch = PolicyInput(observation[None], cost)
        carry, (policy, _) = self.learner.network.apply(weights, carry, batch)
        action = self.learner.distribution.sample(key, policy)
        if recent is not None:
            newest = cost_features.channel_costs(switches, costs, batch[0], action)
            recent = cost_features.remember(recent, newest)
        true_cost = jnp.asarray(self.observer.cost(observation, action[0]), jnp.float32)
        seen, verdict = watch(self.observer, seen, true_cost, jnp.float32(1))
        return action[0], (carry, recent, (seen, verdict.window_cost))

    def _cost_features(
        self, costs: Any, switches: Any, recent: Any, window_cost: jax.Array
    ) -> jax.Array:
        """What the policy sees of costs, as in `termdp.training.rollout`."""
        true_cost = window_cost[None]
        bias = self.observer.bias
        known = cost_features.features(switches, true_cost - bias, true_cost)
        if recent is None:
            return switches.knows_costs * known
        sums = cost_features.recent_sums(recent, switches.window)
        learned = cost_features.accumulate(switches, costs, sums)
        estimate = cost_features.features(switches, learned.logit, learned.policy_input)
        return jnp.where(switches.knows_costs > 0, known, estimate)


def policy_driver(
    name: str,
    model: PolicyDriverModel,
    trainer: Trainer,
    state: TrainState,
    run: int = 0,
) -> Driver:
    """One of a trainer's runs, in some state of its training, at the wheel."""
    chosen = (state.policy.params, state.costs, trainer.switches)
    return Driver(name, model, jax.tree.map(lambda x: x[run], chosen))


def drivers_of_run(path: str | Path) -> list[Driver]:
    """One driver per seed of a run folder, with its newest weights."""
    found: TrainedRun = open_run(path)
    model = PolicyDriverModel(found.trainer)
    return [
        policy_driver(
            f"{found.settings.env} {found.settings.method} {Path(path).name} seed {seed}",
            model,
            found.trainer,
            found.state,
            index,
        )
        for index, seed in enumerate(found.trainer.job.seeds)
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
