"""Make copies of a Gymnasium environment from an id, a function or an instance."""

import contextlib
import importlib
import inspect
import multiprocessing
import signal
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from termdp.envs.spaces import Box
from termdp.gym.copies import Copies
from termdp.gym.encoding import Encoding, encoding_of, spaces_of
from termdp.gym.observer_wrapper import ObserverWrapper
from termdp.gym.vector_wrapper import ObserverVectorWrapper
from termdp.observer import Observer
from termdp.settings import nearest

PREFIX = "gym:"
# Options of an id besides its environment's own arguments.
OWN_NAMES = ("window", "vectorization", "max_episode_steps")
VECTORIZATIONS = ("sync", "async")


def is_gymnasium(env: Any) -> bool:
    """Whether this is `gym:ID`, a Gymnasium environment, or a function that makes one."""
    if isinstance(env, str):
        return env.startswith(PREFIX)
    if isinstance(env, gymnasium.Env | VectorEnv):
        return True
    return callable(env) and not hasattr(env, "reset")


def _in_worker(make: Callable[[], Any]) -> Callable[[], Any]:
    """Make the environment in a worker process that ignores Ctrl-C."""

    def made() -> Any:
        if multiprocessing.parent_process() is not None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return make()

    return made


class GymnasiumSource:
    """Makes copies of an environment, one set for each seed.

    Args:
        given: `gym:ID`, an environment, a vector environment, or a function that makes
            one of the two.
        observer: put around every copy; None adds none.
        options: arguments for the environment of an id.
        any_size: accept images of any size.
    """

    def __init__(
        self,
        given: Any,
        observer: Observer | None = None,
        options: Mapping[str, Any] | None = None,
        any_size: bool = False,
    ):
        self.given = given
        options = dict(options or {})
        self.vectorization = _known(options.pop("vectorization", "sync"))
        self._copies: list[Copies] = []
        self._given = given if isinstance(given, gymnasium.Env | VectorEnv) else None
        self._make = _maker(given, options)
        first = self._given if self._given is not None else self.make()
        self._first: Any = first
        if not isinstance(first, gymnasium.Env | VectorEnv):
            raise ValueError(
                "expected a function that makes a Gymnasium environment, got one that "
                f"makes a {type(first).__name__}"
            )
        self.name = _name_of(given, first)
        self.own_copies = first.num_envs if isinstance(first, VectorEnv) else None
        self.single_spaces = spaces_of(first)
        self.encoding: Encoding = encoding_of(*self.single_spaces, any_size)
        self.around = observer
        self.observer = observer or watching(first)

    def make(self) -> Any:
        """One more environment (or vector environment), as given or made."""
        try:
            return self._make()
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(
                "expected an environment that can be made, but it raised "
                f"{type(error).__name__}: {_one_line(error)}"
            ) from error

    def observation_space(self, params: Any = None) -> Box:
        """Space of the encoded observations."""
        return Box(-np.inf, np.inf, self.encoding.shape, self.encoding.dtype)

    def action_space(self, params: Any = None) -> Any:
        """Action space of one copy."""
        return self.single_spaces[1]

    def can_copy(self) -> bool:
        """Whether more copies than the given instance are possible."""
        if self._given is None:
            return True
        if isinstance(self._given, VectorEnv) or self._given.spec is None:
            return False
        try:
            another = self._make()
        except Exception:
            return False
        another.close()
        return True

    def check_counts(self, num_envs: int, seeds: int) -> None:
        """Refuse more copies than can be made."""
        if self.own_copies is not None and num_envs != self.own_copies:
            raise ValueError(
                f"expected num_envs={self.own_copies}, the number of copies of "
                f"{self.name}, got {num_envs}: leave it out"
            )
        alone = self._given is not None
        several = seeds > 1 if self.own_copies is not None else seeds * num_envs > 1
        if alone and several and not self.can_copy():
            what = f"{num_envs} copies" if seeds == 1 else f"{seeds} seeds"
            raise ValueError(
                f"expected an environment that can be copied for {what}, got an instance "
                f"of {self.name} that cannot: give a function that makes one, as "
                "termdp.train(lambda: MyEnv(), …)"
            )

    def copies(self, run: int, num_envs: int) -> Copies:
        """The copies for one run, by its index; made once and reused."""
        while len(self._copies) <= run:
            env = self._vector_env(num_envs)
            if self.around is not None:
                env = ObserverVectorWrapper(env, self.around)
            self._copies.append(Copies(env, self.encoding, self.name))
        return self._copies[run]

    def _vector_env(self, num_envs: int) -> VectorEnv:
        if self.vectorization == "async" and self.own_copies is None:
            make = _in_worker(self._make)
            # Spawned, not forked: a fork would copy the locks of JAX's threads.
            return AsyncVectorEnv(
                [make] * num_envs,
                context="spawn",
                autoreset_mode=AutoresetMode.DISABLED,
            )
        envs = [self._next() for _ in range(1 if self.own_copies else num_envs)]
        if self.own_copies is not None:
            return envs[0]
        for env in envs[1:]:
            if spaces_of(env) != self.single_spaces:
                raise ValueError(
                    f"expected copies with the same spaces, got {self.single_spaces} and "
                    f"{spaces_of(env)}: make the same environment each time"
                )
        return SyncVectorEnv(
            [lambda env=env: env for env in envs],  # type: ignore[misc]
            autoreset_mode=AutoresetMode.DISABLED,
        )

    def _next(self) -> Any:
        """The first environment, which exists already, then new ones."""
        first, self._first = self._first, None
        return self.make() if first is None else first

    def one(self, **options: Any) -> gymnasium.Env:
        """One environment, for evaluation or a film, with the observer around it."""
        if self.own_copies is not None:
            raise ValueError(
                f"expected a single environment, got {self.name} with "
                f"{self.own_copies} copies: pass env=… with a single one"
            )
        first, self._first = self._first, None
        env = first if first is not None else self.make()
        if options and any(getattr(env, n, None) != v for n, v in options.items()):
            with contextlib.suppress(Exception):
                env = self._make(**options)
        return env if self.around is None else ObserverWrapper(env, self.around)

    def close(self) -> None:
        """Close the environments made here; a given one stays open."""
        if self._given is None:
            for copies in self._copies:
                copies.close()
            if self._first is not None:
                self._first.close()
                self._first = None
        self._copies = []


def watching(env: Any) -> Observer | None:
    """The `Observer` that is already around an environment; None for none."""
    while env is not None:
        if isinstance(env, ObserverWrapper | ObserverVectorWrapper):
            return env.observer
        inside = getattr(env, "envs", None)
        env = inside[0] if inside else getattr(env, "env", None)
    return None


def names_of(env: Any) -> list[str]:
    """Names of the options that may be given with an environment."""
    if not isinstance(env, str):
        return ["window"]
    spec = _spec_of(env)
    names = [*OWN_NAMES, *spec.kwargs]
    creator = _entry_point(spec)
    if creator is not None:
        parameters = inspect.signature(creator).parameters.values()
        names += [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    return list(dict.fromkeys(names))


def _entry_point(spec: Any) -> Any:
    if not isinstance(spec.entry_point, str):
        return spec.entry_point
    module, _, name = spec.entry_point.partition(":")
    try:
        return getattr(importlib.import_module(module), name, None)
    except Exception:  # `make` says what is missing
        return None


def _spec_of(env: str) -> Any:
    """The registered specification of `gym:ID`."""
    env_id = env.removeprefix(PREFIX)
    if not env_id:
        raise ValueError("expected gym:ID, as gym:CartPole-v1, got no id")
    module, colon, name = env_id.rpartition(":")
    try:
        if colon:
            importlib.import_module(module)
        return gymnasium.spec(name)
    except ImportError as error:
        raise ValueError(
            f"expected a module that can be imported before the colon of {env_id!r}: "
            f"{error}"
        ) from error
    except gymnasium.error.Error as error:
        raise ValueError(
            f"expected a registered Gymnasium id, got {name!r}: "
            f"{nearest(name, gymnasium.registry)} Put the module before an id of another "
            "package, as gym:highway_env:highway-v0"
        ) from error


def _maker(given: Any, options: dict[str, Any]) -> Callable[..., Any]:
    if isinstance(given, str):
        spec = _spec_of(given)
        return lambda **more: gymnasium.make(spec, **{**options, **more})
    if options:
        raise ValueError(
            f"expected {', '.join(options)} only with gym:ID: set them where you make "
            "your environment"
        )
    if isinstance(given, gymnasium.Env):
        return lambda **more: _made_again(given, more)
    return given if callable(given) else lambda: given


def _made_again(env: gymnasium.Env, options: dict[str, Any]) -> gymnasium.Env:
    if env.spec is None:
        raise ValueError(
            "expected an environment that can be made again, got your own instance"
        )
    return gymnasium.make(env.spec, **options)


def _name_of(given: Any, first: Any) -> str:
    if isinstance(given, str):
        return given
    spec = getattr(first, "spec", None)
    return spec.id if spec is not None else type(first.unwrapped).__name__


def _known(vectorization: Any) -> str:
    if vectorization not in VECTORIZATIONS:
        raise ValueError(
            f"expected vectorization to be one of {', '.join(VECTORIZATIONS)}, got "
            f"{vectorization!r}"
        )
    return str(vectorization)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
