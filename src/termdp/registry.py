"""From an id to an environment: the catalogue's lines made real.

Games are imported only when one is made.
"""

import dataclasses
import importlib
import inspect
from pathlib import Path
from typing import Any

from termdp.catalogue import REGISTRY, EnvironmentSpec, find
from termdp.observer import Observer
from termdp.wrappers.observe import ObservedEnvironment, observe

__all__ = ["REGISTRY", "EnvironmentSpec", "find", "make"]


def make(
    env_id: str, observer: Observer | bool | str | Path | None = None, **overrides: Any
) -> tuple[Any, Any]:
    """Make an environment and its parameters, as gymnax does.

    Args:
        env_id: one of `termdp.registry.REGISTRY` (`termdp envs` lists them).
        observer: who watches; None for the benchmark's observer, False for nobody, a
            path for an observer on disk (`termdp studies fit`).
        **overrides: arguments of the game's constructor (`use_minimal_action_set`),
            its parameters (`sticky_prob`), the observer's (`window`, `bias`) or the
            cost's (`width`).

    Returns:
        (env, params), with gymnax's API: `env.reset(key, params)`, `env.step(key,
        state, action, params)`. Changing numbers in `params` does not recompile.

    Example:
        >>> import jax, termdp
        >>> env, params = termdp.make("breakout", bias=4.0)
        >>> observation, state = env.reset(jax.random.key(0), params)
    """
    spec = find(env_id)
    constructor = set(inspect.signature(_load(spec.game).__init__).parameters)
    arguments = {
        name: overrides.pop(name) for name in list(overrides) if name in constructor
    }
    game = _load(spec.game)(**arguments)
    if observer is False:
        return game, _replace_game_params(game.default_params, overrides)
    if observer is None or observer is True:
        # The benchmark's costs are known to be sound: no need to try them out first.
        env = ObservedEnvironment(game, benchmark_observer(spec, game))
    else:
        env = observe(game, _checked(observer, game))
    params = env.default_params.replace(**overrides)
    return ObservedEnvironment(game, params.observer), params


def _checked(observer: Observer | str | Path, game: Any) -> Observer:
    """The observer, read from disk if it is a path; refused if it knows other games."""
    if isinstance(observer, str | Path):
        read = _load("termdp.observer_file:load_observer")
        return _checked(read(observer), game)
    check = getattr(getattr(observer, "cost", None), "check_game", None)
    if check is not None:
        check(game)
    return observer


def benchmark_observer(spec: EnvironmentSpec, game: Any) -> Observer:
    """The benchmark's observer of a game."""
    if spec.observer is not None:
        return _checked(_load(spec.observer)(), game)
    cost = _load(spec.cost_function)
    # A cost that depends on the game's make-up (its items, say) is built from it.
    build = getattr(cost, "for_game", lambda game: cost())
    return Observer(build(game), window=spec.window, bias=spec.bias)


def _replace_game_params(params: Any, overrides: dict[str, Any]) -> Any:
    known = [field.name for field in dataclasses.fields(params)]
    for name in overrides:
        if name not in known:
            raise ValueError(
                f"expected a parameter of the game ({', '.join(known)}), got {name!r}"
            )
    return params.replace(**overrides)


def _load(path: str) -> Any:
    """What `module:name` means; modules are under `termdp.envs` unless said."""
    module, name = path.split(":")
    full = module if module.startswith("termdp.") else f"termdp.envs.{module}"
    return getattr(importlib.import_module(full), name)
