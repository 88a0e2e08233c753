"""A trained policy at work: fresh episodes counted, or one watched closely."""

import dataclasses
import functools
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.arrays import restore
from termdp.costs import ensemble
from termdp.training import checkpoint, cost_features, rollout
from termdp.training.loop import Trainer
from termdp.training.run_folder import RunFolder, RunSettings
from termdp.training.train import load_trainer
from termdp.training.types import Scene, TrainState

CHUNK = 64
ENDS = ("game_over", "stopped", "truncated")


@dataclasses.dataclass(frozen=True)
class TrainedRun:
    """A run read back from its folder.

    Attributes:
        settings: what was asked for.
        trainer: its program.
        state: its newest state, `[seeds, ...]`.
        folder: where it is.
    """

    settings: RunSettings
    trainer: Trainer
    state: TrainState
    folder: Path


def open_run(path: str | Path, **own: Any) -> TrainedRun:
    """Read a run with its newest checkpoint.

    Args:
        path: the run's folder.
        **own: what it was begun with from Python, as for `termdp.training.train.resume`.
    """
    folder, settings = RunFolder.open(Path(path))
    trainer = load_trainer(settings, **own)
    arrays, _, _ = checkpoint.load_latest(folder.checkpoints)
    state = restore(jax.eval_shape(trainer.init), arrays)
    return TrainedRun(settings, trainer, state, folder.path)


@dataclasses.dataclass(frozen=True)
class Episodes:
    """Finished episodes, one entry each.

    Attributes:
        returns: sums of rewards.
        lengths: decisions.
        ends: how each ended, one of `ENDS`.
    """

    returns: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray

    def rate(self, end: str) -> float:
        """Share of episodes that ended this way."""
        return float(np.mean(self.ends == end))


def evaluate(
    trainer: Trainer, state: TrainState, run: int, episodes: int, key: jax.Array
) -> Episodes:
    """Play fresh episodes, each from its beginning to its end, with one run's policy.

    Every environment plays exactly one episode, so that long ones are not missed.
    """
    scene, agent, switches = _begin(trainer, state, run, episodes, key)
    returns = np.full(episodes, np.nan)
    lengths = np.zeros(episodes, int)
    ends = np.full(episodes, "", object)
    limit = int(trainer.job.params.max_steps_in_episode)
    for _ in range(-(-limit // CHUNK)):
        key, key_play = jax.random.split(key)
        scene, played = trainer.play(*agent, switches, scene, key_play, num_steps=CHUNK)
        played = jax.tree.map(np.asarray, played)
        ended = played.ended
        for index in np.flatnonzero(ended.any(axis=0) & np.isnan(returns)):
            first = int(np.argmax(ended[:, index]))
            returns[index] = played.episode_returns[first, index]
            lengths[index] = played.episode_lengths[first, index]
            ends[index] = next(e for e in ENDS if getattr(played, e)[first, index])
        if not np.isnan(returns).any():
            break
    return Episodes(returns, lengths, ends)


def evaluation_table(run: TrainedRun, episodes: int, seed: int) -> dict[str, Any]:
    """Mean return with its 95% interval, and how episodes ended, per seed and in all."""
    rows, everything = [], []
    for index, run_seed in enumerate(run.trainer.job.seeds):
        key = jax.random.fold_in(jax.random.key(seed), run_seed)
        played = evaluate(run.trainer, run.state, index, episodes, key)
        everything.append(played)
        rows.append({"seed": run_seed, **_describe(played)})
    pooled = Episodes(
        *(
            np.concatenate([getattr(e, field.name) for e in everything])
            for field in dataclasses.fields(Episodes)
        )
    )
    return {
        "env": run.settings.env,
        "method": run.settings.method,
        "episodes": episodes,
        "seeds": rows,
        "all": _describe(pooled),
    }


def _describe(played: Episodes) -> dict[str, Any]:
    mean, half_width = confidence_interval(list(played.returns))
    return {
        "return_mean": mean,
        # One episode has no interval; JSON has no NaN.
        "return_interval": None
        if math.isnan(half_width)
        else [mean - half_width, mean + half_width],
        "length_mean": float(np.mean(played.lengths)),
        "stop_rate": played.rate("stopped"),
        "game_over_rate": played.rate("game_over"),
        "truncated_rate": played.rate("truncated"),
    }


def confidence_interval(values: list[float]) -> tuple[float, float]:
    """Mean and half-width of its 95% interval (normal approximation)."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, math.nan
    return mean, float(1.96 * np.std(values, ddof=1) / math.sqrt(len(values)))


@dataclasses.dataclass(frozen=True)
class Watched:
    """One episode, step by step.

    Attributes:
        states: the game's state before each step.
        observations: what the agent saw.
        costs: true cost of each step.
        window_costs: true accumulated cost after each step.
        learned_window_costs: the ensemble's mean of it; None without one.
        stop_probabilities: true.
        learned_stop_probabilities: the ensemble's; None without one.
        bias: the observer's b.
        end: how it ended.
        total: its return.
    """

    states: list[Any]
    observations: list[Any]
    costs: np.ndarray
    window_costs: np.ndarray
    learned_window_costs: np.ndarray | None
    stop_probabilities: np.ndarray
    learned_stop_probabilities: np.ndarray | None
    bias: float
    end: str
    total: float


def watch_episode(
    trainer: Trainer, state: TrainState, run: int, key: jax.Array, limit: int
) -> Watched:
    """Play one episode of at most `limit` steps and keep everything."""
    scene, agent, switches = _begin(trainer, state, run, 1, key)
    learned = jax.jit(functools.partial(_learned, trainer.program.learner.distribution))
    states, observations, rows = [], [], []
    for step in range(limit):
        states.append(jax.tree.map(lambda x: x[0], scene.env_states.game))
        observations.append(np.asarray(scene.observations[0]))
        before = scene
        key_step = jax.random.fold_in(key, step)
        scene, played = trainer.play(*agent, switches, scene, key_step, num_steps=1)
        estimate = None
        if agent[1] is not None:
            estimate = learned(switches, agent[1], before, played)
        rows.append((played, estimate))
        if bool(played.ended[0, 0]):
            break
    last = rows[-1][0]
    end = next((e for e in ENDS if bool(getattr(last, e)[0, 0])), "cut short")
    estimates = None if agent[1] is None else np.array([r[1] for r in rows])
    return Watched(
        states=states,
        observations=observations,
        costs=_column(rows, "true_costs"),
        window_costs=_column(rows, "true_window_costs"),
        learned_window_costs=None if estimates is None else estimates[:, 0],
        stop_probabilities=_column(rows, "true_stop_probabilities"),
        learned_stop_probabilities=None if estimates is None else estimates[:, 1],
        bias=float(trainer.job.params.observer.bias),
        end=end,
        total=float(last.episode_returns[0, 0]),
    )


def _begin(
    trainer: Trainer, state: TrainState, run: int, num_envs: int, key: jax.Array
) -> tuple[Scene, tuple[Any, Any], Any]:
    """Fresh environments, one run's policy and costs, and its switches."""
    mine = jax.tree.map(lambda x: x[run], (state.policy, state.costs))
    switches = jax.tree.map(lambda x: x[run], trainer.switches)
    memory = None
    if state.scene.recent_costs is not None:
        shape = (*state.scene.recent_costs.shape[1:3], num_envs)
        memory = jnp.zeros(shape)
    program = trainer.program
    scene = rollout.initial_scene(program.world, program.learner, key, num_envs, memory)
    return scene, mine, switches


def _learned(
    distribution: Any, switches: Any, costs: Any, before: Scene, played: Any
) -> Any:
    """Accumulated cost and stop probability after one step, by the ensemble's mean."""
    assert before.recent_costs is not None
    executed = distribution.executed(played.actions[0])
    newest = cost_features.channel_costs(switches, costs, before.observations, executed)
    recent = cost_features.remember(before.recent_costs, newest)
    sums = cost_features.recent_sums(recent, switches.window)
    accumulated = cost_features.accumulate(switches, costs, sums)
    probability = jax.nn.sigmoid(accumulated.mean - jnp.mean(ensemble.biases(costs)))
    return jnp.stack([accumulated.mean[0], probability[0]])


def _column(rows: list[Any], name: str) -> np.ndarray:
    return np.array([float(getattr(played, name)[0, 0]) for played, _ in rows])
