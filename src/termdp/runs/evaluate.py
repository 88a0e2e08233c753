"""Evaluate a trained agent: many fresh episodes, or one in detail."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.costs import ensemble
from termdp.gym.copies import TRUTH, end_of
from termdp.gym.source import GymnasiumSource, is_gymnasium, watching
from termdp.intervals import mean_interval
from termdp.observer import Observer
from termdp.runs.agent import Agent, accumulated_after, read_agent
from termdp.runs.collect import (
    Mind,
    Rollout,
    RolloutState,
    collect,
    initial_rollout_state,
)
from termdp.runs.result import Result
from termdp.runs.shipped import agent_path
from termdp.runs.spec import RunSpec, make_env, make_source
from termdp.runs.train import load_agents

CHUNK = 64
MOST_EPISODES = 100_000
ENDS = ("game_over", "stopped", "truncated")


@dataclasses.dataclass(frozen=True, repr=False)
class Evaluation:
    """Fresh episodes of an agent, or of all agents of a run.

    Attributes:
        returns: sum of rewards of each episode.
        lengths: steps of each episode.
        ends: how each ended, one of `ENDS`.
        parts: the evaluation of each seed of a run, by seed; empty for one agent.
    """

    returns: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray
    parts: dict[int, "Evaluation"] = dataclasses.field(default_factory=dict)

    @property
    def return_mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def return_interval(self) -> tuple[float, float] | None:
        """95% interval of the mean: over seeds if there are several, else episodes."""
        over_seeds = [part.return_mean for part in self.parts.values()]
        values = over_seeds if len(over_seeds) > 1 else self.returns
        if len(values) < 2:
            return None
        interval = mean_interval(np.asarray(values))
        return float(interval.low), float(interval.high)

    @property
    def length_mean(self) -> float:
        """Mean length."""
        return float(np.mean(self.lengths))

    @property
    def stop_rate(self) -> float:
        """Share of episodes that the observer stopped."""
        return self._rate("stopped")

    @property
    def game_over_rate(self) -> float:
        """Share of episodes that the game itself ended."""
        return self._rate("game_over")

    @property
    def truncated_rate(self) -> float:
        """Share of episodes that reached the time limit."""
        return self._rate("truncated")

    def _rate(self, end: str) -> float:
        return float(np.mean(self.ends == end))

    def to_plain(self) -> dict[str, Any]:
        """The evaluation as plain data, for JSON."""
        interval = self.return_interval
        return {
            "episodes": len(self.returns),
            "return_mean": self.return_mean,
            "return_interval": None if interval is None else list(interval),
            "length_mean": self.length_mean,
            "stop_rate": self.stop_rate,
            "game_over_rate": self.game_over_rate,
            "truncated_rate": self.truncated_rate,
        }

    def __repr__(self) -> str:
        interval = self.return_interval
        words = "" if interval is None else " ({:.4g} … {:.4g})".format(*interval)
        return (
            f"Evaluation({len(self.returns)} episodes: return {self.return_mean:.4g}"
            f"{words}, length {self.length_mean:.4g}, stopped {self.stop_rate:.1%}, "
            f"game over {self.game_over_rate:.1%})"
        )


def evaluate(
    agent: Agent | Result | str | Path,
    env: Any = None,
    observer: Any = None,
    episodes: int = 128,
    deterministic: bool = False,
    seed: int = 0,
    params: Any = None,
) -> Evaluation:
    """Play fresh episodes, each from its beginning to its end.

    Args:
        agent: an `Agent`, a `Result`, or the folder of a run (all its seeds).
        env: None for the environment of training, an id (also `gym:ID`), a JAX
            environment, a Gymnasium environment, or a function that makes one.
        observer: an `Observer`, its file, None for the one in training (for an id, the
            environment's own), or False for no observer.
        episodes: how many, per agent.
        deterministic: take the most probable actions instead of sampling.
        seed: of the evaluation episodes.
        params: parameters of your own JAX environment.

    Examples:
        >>> import termdp
        >>> agent = termdp.train("recommender", "pg", steps=2048).agent()
        >>> found = termdp.evaluate(agent, observer=False, episodes=4)
        >>> found.stop_rate
        0.0
    """
    for name, value, most in (
        ("episodes", episodes, MOST_EPISODES),
        ("seed", seed, 2**32 - 1),
    ):
        least = 1 if name == "episodes" else 0
        is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not is_whole or not least <= value <= most:
            raise ValueError(
                f"expected {name} from {least} to {most}, got {value!r:.60}"
            )
    agents = agents_of(agent)
    if env is None and isinstance(agent, Result):
        job = agent.program.job
        if isinstance(job.env, GymnasiumSource):
            env = job.env.given
            observer = job.env.around if observer is None else observer
        elif observer is None or "env" in agent.spec.unserialised:
            env, params = job.env, job.params
    source = gymnasium_place_of(agents[0], env, observer)
    if source is None:
        play = functools.partial(_play, *place_of(agents[0], env, params, observer))
    else:
        play = functools.partial(_play_gymnasium, source.one())
    key = jax.random.key(seed)
    try:
        parts = {
            one.card.spec.seed: play(
                one,
                episodes,
                jax.random.fold_in(key, one.card.spec.seed),
                deterministic,
            )
            for one in agents
        }
    finally:
        if source is not None:
            source.close()
    return _pooled(parts)


def agents_of(agent: Agent | Result | str | Path) -> list[Agent]:
    """One agent, or those of all seeds of a run."""
    if isinstance(agent, Agent):
        return [agent]
    if isinstance(agent, Result):
        return [agent.agent(seed) for seed in agent.spec.all_seeds]
    path = agent_path(agent)
    return load_agents(path) if path.is_dir() else [read_agent(path)]


def place_of(
    agent: Agent, env: Any = None, params: Any = None, observer: Any = None
) -> tuple[Any, Any]:
    """The observed environment where an agent plays, and its parameters.

    It never differs from training unless asked for: an error says what must be given.
    """
    spec = agent.card.spec
    if params is not None and (env is None or isinstance(env, str)):
        raise ValueError(
            "expected params only with your own environment: change the numbers of a "
            "listed one with termdp.make, and pass what it returns"
        )
    own = observer if isinstance(observer, Observer) else None
    if env is None:
        given = () if observer is None else ("observer",)
        for name in ("env", "observer"):
            if name in spec.unserialised and name not in given:
                raise ValueError(
                    f"expected {name}=…, since the agent was trained with your own "
                    f"{name}, which no file can hold"
                )
        env, params = make_env(spec.with_observer(observer), observer=own)
    elif isinstance(env, str):
        there = RunSpec(env=env, preset=spec.preset).with_observer(observer)
        env, params = make_env(there, observer=own)
    else:
        # Use the numbers of training if it is the same environment.
        same = params is None and getattr(env, "name", None) == spec.env
        numbers = spec.env_numbers if same and observer is None else {}
        there = RunSpec(env=spec.env, env_numbers=numbers, unserialised=("env",))
        env, params = make_env(there.with_observer(observer), env, params, own)
    _check_fits(agent, env, params)
    return env, params


def gymnasium_place_of(
    agent: Agent, env: Any = None, observer: Any = None
) -> GymnasiumSource | None:
    """The environment where an agent plays, if it is a Gymnasium one; else None.

    Args:
        agent: the agent.
        env: `gym:ID`, an environment, a function that makes one, or None for the id that
            the agent was trained on.
        observer: an `Observer`, its file, None for the one in training (for no further
            one if `env` is given), or False for no further one.
    """
    spec = agent.card.spec
    if not is_gymnasium(spec.env if env is None else env):
        return None
    if env is None or env == spec.env:
        if "observer" in spec.unserialised and observer is None:
            raise ValueError(
                "expected observer=…, since the agent was trained with your own "
                "observer, which no file can hold"
            )
        there = spec.with_observer(observer)
    else:
        there = RunSpec(env="own").with_observer(observer)
    numbers = {"network": "grid"}  # any size: the agent was trained on these images
    there = dataclasses.replace(there, numbers=numbers)
    own = observer if isinstance(observer, Observer) else None
    source = make_source(there, env, own)
    expected = agent.card.encoding
    if expected is not None and source.encoding != expected:
        raise ValueError(
            f"expected an environment with observations and actions as in training, got "
            f"{source.single_spaces[0]} and {source.single_spaces[1]} from {source.name}"
        )
    return source


def _check_fits(agent: Agent, env: Any, params: Any) -> None:
    shape = tuple(env.observation_space(params).shape)
    actions = getattr(env.action_space(params), "n", None)
    card = agent.card
    if shape != card.observation_shape or actions != card.num_actions:
        raise ValueError(
            f"expected an environment with observations of shape "
            f"{card.observation_shape} and {card.num_actions} actions, as in training, "
            f"got {shape} and {actions} from {env.name}"
        )


_collect = jax.jit(
    collect, static_argnames=("actor", "env", "num_steps", "deterministic")
)


def _play(
    env: Any,
    params: Any,
    agent: Agent,
    episodes: int,
    key: jax.Array,
    deterministic: bool,
) -> Evaluation:
    """Each environment plays one episode: otherwise short ones would count too often."""
    state = _begin(agent, env, params, episodes, key)
    returns = np.full(episodes, np.nan)
    lengths = np.zeros(episodes, int)
    ends = np.full(episodes, "", object)
    limit = int(params.max_steps_in_episode)
    for _ in range(-(-limit // CHUNK)):
        key, key_play = jax.random.split(key)
        state, played = _collect(
            agent.actor, agent.mind, env, params, state, key_play, CHUNK, deterministic
        )
        played = jax.tree.map(np.asarray, played)
        ended = played.ended
        for index in np.flatnonzero(ended.any(axis=0) & np.isnan(returns)):
            first = int(np.argmax(ended[:, index]))
            returns[index] = played.episode_returns[first, index]
            lengths[index] = played.episode_lengths[first, index]
            ends[index] = next(e for e in ENDS if getattr(played, e)[first, index])
        if not np.isnan(returns).any():
            break
    return Evaluation(returns, lengths, ends)


def play_steps(
    agent: Agent, env: Any, params: Any, key: jax.Array, num_envs: int, num_steps: int
) -> Rollout:
    """A rollout of fresh environments, `[num_steps, num_envs]`."""
    state = _begin(agent, env, params, num_envs, key)
    return _collect(agent.actor, agent.mind, env, params, state, key, num_steps, False)[
        1
    ]


def _begin(
    agent: Agent, env: Any, params: Any, num_envs: int, key: jax.Array
) -> RolloutState:
    recent = agent.initial_state(num_envs).recent_costs
    return initial_rollout_state(agent.actor, env, params, key, num_envs, recent)


def _play_gymnasium(
    env: Any, agent: Agent, episodes: int, key: jax.Array, deterministic: bool
) -> Evaluation:
    """One episode after the other of a Gymnasium environment."""
    seed = int(jax.random.randint(key, (), 0, 2**31 - 1))
    agent.reseed(seed)
    returns, lengths, ends = [], [], []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        state, total, length, end = None, 0.0, 0, ""
        while not end:
            action, state = agent.predict(observation, state, None, deterministic)
            observation, reward, terminated, truncated, info = env.step(action)
            total, length = total + float(reward), length + 1
            end = end_of(terminated, truncated, info)
        returns.append(total)
        lengths.append(length)
        ends.append(end)
    return Evaluation(np.array(returns), np.array(lengths), np.array(ends, object))


def _pooled(parts: dict[int, Evaluation]) -> Evaluation:
    if len(parts) == 1:
        return next(iter(parts.values()))
    every = list(parts.values())
    return Evaluation(
        returns=np.concatenate([part.returns for part in every]),
        lengths=np.concatenate([part.lengths for part in every]),
        ends=np.concatenate([part.ends for part in every]),
        parts=parts,
    )


@dataclasses.dataclass(frozen=True)
class Watched:
    """One episode, step by step.

    Attributes:
        states: the game's state before each step; for a Gymnasium environment a picture.
        observations: what the agent saw.
        actions: what it did.
        rewards: the reward of each step.
        costs: true cost of each step; None if unknown.
        window_costs: true accumulated cost after each step; None if unknown.
        learned_window_costs: the ensemble's estimate of it; None without an ensemble.
        stop_probabilities: the true ones; None if unknown.
        learned_stop_probabilities: the ensemble's; None without an ensemble.
        bias: the observer's b; None if unknown.
        end: how it ended.
        total: its return.
    """

    states: list[Any]
    observations: list[Any]
    actions: list[Any]
    rewards: np.ndarray
    costs: np.ndarray | None
    window_costs: np.ndarray | None
    learned_window_costs: np.ndarray | None
    stop_probabilities: np.ndarray | None
    learned_stop_probabilities: np.ndarray | None
    bias: float | None
    end: str
    total: float


def watch_episode(
    agent: Agent,
    env: Any,
    params: Any,
    key: jax.Array,
    limit: int,
    deterministic: bool = False,
) -> Watched:
    """Play one episode of at most `limit` steps and record everything."""
    state = _begin(agent, env, params, 1, key)
    learns = agent.card.method.learns_costs
    states, observations, actions, rows, estimates = [], [], [], [], []
    for step in range(limit):
        states.append(jax.tree.map(lambda x: x[0], state.env_states.game))
        observations.append(np.asarray(state.observations[0]))
        before = state
        key_step = jax.random.fold_in(key, step)
        state, played = _collect(
            agent.actor, agent.mind, env, params, state, key_step, 1, deterministic
        )
        rows.append(played)
        executed = agent.actor.distribution.executed(played.actions[0])
        actions.append(np.asarray(executed[0]))
        if learns:
            estimates.append(
                _learned(agent.mind, before.recent_costs, before.observations, executed)
            )
        if bool(played.ended[0, 0]):
            break
    last = rows[-1]
    end = next((e for e in ENDS if bool(getattr(last, e)[0, 0])), "cut short")
    learned = np.array(estimates) if learns else None
    return Watched(
        states=states,
        observations=observations,
        actions=actions,
        rewards=np.array([float(row.rewards[0, 0]) for row in rows]),
        costs=_column(rows, "costs"),
        window_costs=_column(rows, "window_costs"),
        learned_window_costs=None if learned is None else learned[:, 0],
        stop_probabilities=_column(rows, "stop_probabilities"),
        learned_stop_probabilities=None if learned is None else learned[:, 1],
        bias=float(params.observer.bias),
        end=end,
        total=float(last.episode_returns[0, 0]),
    )


def watch_gymnasium(agent: Agent, env: Any, seed: int, limit: int) -> Watched:
    """Play and record an episode of a Gymnasium environment that draws itself."""
    if env.render_mode != "rgb_array":
        raise ValueError(
            "expected an environment that can render, got one without "
            "render_mode='rgb_array': make it with that mode"
        )
    agent.reseed(seed)
    observation, _ = env.reset(seed=seed)
    state: Any = agent.initial_state()
    learns = agent.card.method.learns_costs
    pictures: list[np.ndarray] = []
    observations, actions, rewards, infos, estimates = [], [], [], [], []
    end = ""
    while not end and len(pictures) < limit:
        pictures.append(np.asarray(env.render()))
        observations.append(observation)
        before = state
        action, state = agent.predict(observation, state)
        if learns:
            estimates.append(_learned_at(agent, observation, action, before))
        observation, reward, terminated, truncated, info = env.step(action)
        actions.append(action)
        rewards.append(float(reward))
        infos.append(info)
        end = end_of(terminated, truncated, info)
    learned = np.array(estimates) if learns else None
    true = {n: np.array([i.get(n, np.nan) for i in infos], float) for n in TRUTH}
    known = {n: None if np.isnan(x).any() else x for n, x in true.items()}
    observer = watching(env)
    return Watched(
        states=pictures,
        observations=observations,
        actions=actions,
        rewards=np.array(rewards),
        costs=known["cost"],
        window_costs=known["window_cost"],
        learned_window_costs=None if learned is None else learned[:, 0],
        stop_probabilities=known["stop_probability"],
        learned_stop_probabilities=None if learned is None else learned[:, 1],
        bias=None if observer is None else float(observer.bias),
        end=end or "cut short",
        total=sum(rewards),
    )


def _learned_at(agent: Agent, observation: Any, action: Any, state: Any) -> jax.Array:
    """`_learned` for one step of a Gymnasium environment."""
    encoding = agent.card.encoding
    batch = np.asarray(observation)[None]
    start = 0
    if encoding is not None:
        batch = encoding.encode(observation, is_single=True)
        start = encoding.action_start if agent.card.num_actions else 0
    actions = jnp.asarray(action)[None] - start
    return _learned(agent.mind, state.recent_costs, agent.seen(batch), actions)


@jax.jit
def _learned(
    mind: Mind, recent: Any, observations: Any, executed: jax.Array
) -> jax.Array:
    """Accumulated cost and stop probability after one step, by the ensemble's mean."""
    after = accumulated_after(mind, recent, observations, executed)
    probability = jax.nn.sigmoid(after.mean - jnp.mean(ensemble.biases(mind.costs)))
    return jnp.stack([after.mean[0], probability[0]])


def _column(rows: list[Rollout], name: str) -> np.ndarray:
    return np.array([float(getattr(row.truth, name)[0, 0]) for row in rows])
