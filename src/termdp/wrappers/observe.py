"""An observer around any JAX environment (`termdp.envs.base`, gymnax).

The game and the observer stay separate: the observed environment's state holds the game's
state next to the observer's memory, and its parameters hold the game's next to the
observer's. An episode ends in exactly one of three ways: `game_over`, `stopped`,
`truncated`, in this order of precedence.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs.base import Environment, Game, Step
from termdp.observer import (
    Observer,
    ObserverMemory,
    check_fits,
    checked_cost,
    forget,
    watch,
)
from termdp.settings import nearest
from termdp.wrappers.environment_checks import check_api, check_cost, check_environment


@struct.dataclass
class ObservedState:
    """State of the game, memory of the observer, and observation of the agent.

    Attributes:
        game: the game's own state.
        memory: the observer's memory of this episode.
        observation: o_t, for the next cost c(o_t, a_t).
    """

    game: Any
    memory: ObserverMemory
    observation: Any

    @property
    def time(self) -> Any:
        """Steps played in this episode, as the game counts them."""
        return self.game.time


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ObservedParams:
    """Parameters of the game and of its observer; all of them traced."""

    game: Any
    observer: Observer

    @property
    def max_steps_in_episode(self) -> Any:
        """The game's time limit."""
        return self.game.max_steps_in_episode

    @property
    def names(self) -> list[str]:
        """All numbers that `replace` can change."""
        return [*_names(self.game), *_names(self.observer), *_names(self.observer.cost)]

    def replace(self, **changes: Any) -> "ObservedParams":
        """A copy with some numbers changed, of the game, the observer or the cost.

        A name may be `game`, `observer`, a parameter of the game (`sticky_prob`), of
        the observer (`bias`) or of its cost function (`width`).
        """
        game = changes.pop("game", self.game)
        observer = changes.pop("observer", self.observer)
        for name, value in changes.items():
            if name in _names(game):
                game = game.replace(**{name: value})
            elif name in _names(observer):
                observer = observer.replace(**{name: value})
            elif name in _names(observer.cost):
                cost = observer.cost.replace(**{name: value})
                observer = observer.replace(cost=cost)
            else:
                raise ValueError(
                    f"expected a parameter ({', '.join(self.names)}), got {name!r}: "
                    f"{nearest(name, self.names)}"
                )
        return ObservedParams(game, observer)


def _names(parameters: Any) -> list[str]:
    if not dataclasses.is_dataclass(parameters):
        return []
    return [field.name for field in dataclasses.fields(parameters)]


@struct.dataclass
class _Played:
    """One step of the game: the state after it, and the one after a reset."""

    reward: jax.Array
    game_over: jax.Array
    truncated: jax.Array
    info: dict[str, Any]
    final_observation: Any
    ongoing: tuple[Any, Any]
    fresh: tuple[Any, Any]
    needs_reset: jax.Array


class ObservedEnvironment(Environment):
    """An environment with an observer in its state; made by `observe`."""

    def __init__(self, env: Any, observer: Observer):
        self.game_env = env
        self.observer = observer
        self._is_bare = _is_bare(env)

    @property
    def default_params(self) -> Any:
        """The game's default parameters and the observer's."""
        return ObservedParams(self.game_env.default_params, self.observer)

    @partial(jax.jit, static_argnames=("self",))
    def reset(
        self, key: jax.Array, params: ObservedParams | None = None
    ) -> tuple[Any, ObservedState]:
        """Begin an episode under the observer."""
        params = self.default_params if params is None else params
        observation, game = self.game_env.reset(key, params.game)
        memory = params.observer.initial_memory()
        return observation, ObservedState(game, memory, observation)

    @partial(jax.jit, static_argnames=("self",))
    def step(
        self,
        key: jax.Array,
        state: ObservedState,
        action: Any,
        params: ObservedParams | None = None,
    ) -> Step:
        """One step of the game, watched by the observer, with automatic reset.

        Returns:
            gymnax's six values; `terminated = game_over | stopped`. `info` holds
            `game_over`, `stopped`, `truncated` (at most one of them true), `cost`,
            `window_cost`, `stop_probability` and `final_observation`, the observation
            before any reset.
        """
        params = self.default_params if params is None else params
        key_game, key_stop = jax.random.split(key)
        observer = params.observer
        cost = jnp.asarray(observer.cost(state.observation, action), jnp.float32)
        memory, observed = watch(
            observer, state.memory, cost, jax.random.uniform(key_stop)
        )
        play = self._play_bare if self._is_bare else self._play_wrapped
        played = play(key_game, state.game, action, params.game)

        stopped = observed.stop & ~played.game_over
        truncated = played.truncated & ~played.game_over & ~stopped
        terminated = played.game_over | stopped
        begins_anew = played.needs_reset | stopped
        observation, game = _choose(begins_anew, played.fresh, played.ongoing)
        if self._is_bare and isinstance(self.game_env, Game):
            # Such games may compute the observation once, from the chosen state.
            observation = self.game_env.next_obs(
                begins_anew, played.fresh[0], played.ongoing[0], game
            )
        memory = forget(memory, terminated | truncated)
        info = {
            **played.info,
            "terminated": terminated,
            "truncated": truncated,
            "game_over": played.game_over,
            "stopped": stopped,
            "cost": cost,
            "window_cost": observed.window_cost,
            "stop_probability": observed.stop_probability,
            "final_observation": played.final_observation,
        }
        state = ObservedState(game, memory, observation)
        return observation, state, played.reward, terminated, truncated, info

    def _play_bare(
        self, key: jax.Array, game: Any, action: Any, params: Any
    ) -> _Played:
        """Step the game itself and prepare its next episode."""
        env = self.game_env
        split = env.split_key if isinstance(env, Game) else jax.random.split
        key, key_reset = split(key)
        final_obs, final_game, reward, game_over, info = env.step_env(
            key, game, action, params
        )
        truncated = env.is_truncated(final_game, params)
        if isinstance(env, Game):
            fresh = env.next_episode(key_reset, final_game, params)
        else:
            fresh = env.reset_env(key_reset, params)
        return _Played(
            reward=reward,
            game_over=game_over,
            truncated=truncated,
            info=info,
            final_observation=final_obs,
            ongoing=(final_obs, final_game),
            fresh=fresh,
            needs_reset=game_over | truncated,
        )

    def _play_wrapped(
        self, key: jax.Array, game: Any, action: Any, params: Any
    ) -> _Played:
        """Step an environment that resets itself when its own episode ends."""
        key, key_reset = jax.random.split(key)
        obs, game, reward, terminated, truncated, info = self.game_env.step(
            key, game, action, params
        )
        return _Played(
            reward=reward,
            game_over=terminated,
            truncated=truncated,
            info=info,
            final_observation=info.get("final_observation", obs),
            ongoing=(obs, game),
            fresh=self.game_env.reset(key_reset, params),
            needs_reset=jnp.zeros_like(terminated),
        )

    @property
    def name(self) -> str:
        """The game's name."""
        return self.game_env.name

    @property
    def num_actions(self) -> int:
        """Number of the game's actions."""
        return self.game_env.num_actions

    def action_space(self, params: ObservedParams | None = None) -> Any:
        """The game's action space."""
        return self.game_env.action_space(_game_params(params))

    def observation_space(self, params: ObservedParams | None = None) -> Any:
        """The game's observation space."""
        return self.game_env.observation_space(_game_params(params))


def observe(env: Any, observer: Observer) -> ObservedEnvironment:
    """Put an observer around any JAX environment with gymnax's API.

    Args:
        env: the environment or wrapper; it does not know about the observer.
        observer: the observer; its cost is traced, see `termdp.Observer`.

    Returns:
        An environment with the same API. Its `default_params` hold the game's
        parameters and the observer's; see `ObservedEnvironment.step` for the rest.

    Examples:
        >>> import gymnax, termdp
        >>> game, _ = gymnax.make("CartPole-v1")
        >>> off_centre = lambda observation, action: abs(observation[0])
        >>> env = termdp.observe(game, termdp.Observer(off_centre, bias=3.0))
        >>> params = env.default_params.replace(bias=2.0, max_steps_in_episode=200)
    """
    if isinstance(env, ObservedEnvironment):
        raise ValueError(
            f"expected an environment without observer, but {env.name} has one: "
            "observe its game instead (env.game_env)"
        )
    if not isinstance(observer, Observer):
        raise ValueError(f"expected a termdp.Observer, got {observer!r}")
    check_api(env)
    params = env.default_params
    seen, action = check_environment(env, params)
    check_fits(observer, seen.shape, env.action_space(params))
    check_cost(observer.cost, seen, action)
    key = jax.random.key(0)
    observation, _ = env.reset(key, params)
    checked_cost(observer, observation, env.action_space(params).sample(key))
    return ObservedEnvironment(env, observer)


def _is_bare(env: Any) -> bool:
    """Whether `env.step` is just `step_env` with an automatic reset.

    Wrappers with their own `step` hide the game's inner step: they are played through it,
    and only a stop resets them from outside. gymnax's base class is recognised by its
    name, because gymnax need not be installed.
    """
    owner = next((base for base in type(env).__mro__ if "step" in vars(base)), None)
    gymnax_base = ("gymnax.environments.environment", "Environment")
    return (
        owner is Game or (owner and (owner.__module__, owner.__name__)) == gymnax_base
    )


def _choose(which: jax.Array, if_true: Any, if_false: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(which, x, y), if_true, if_false)


def _game_params(params: Any) -> Any:
    return params.game if isinstance(params, ObservedParams) else params
