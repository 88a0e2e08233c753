"""The specification of a run as data, and the job made from it."""

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np

from termdp.agents.methods import (
    Method,
    changed_method,
    find_method,
    unused_numbers,
)
from termdp.envs.base import EnvParams
from termdp.gym.source import GymnasiumSource, is_gymnasium, names_of
from termdp.observer import Observer
from termdp.observer_file import load_observer
from termdp.reading import MEGABYTE, from_plain, read_small
from termdp.registry import REGISTRY, find, make
from termdp.runs.config import (
    ALGORITHM_NUMBERS,
    ALGORITHMS,
    COST_NUMBERS,
    COST_PREFIX,
    FAST_ON_ENSEMBLES,
    FAST_ON_EPISODES,
    FAST_ON_SEQUENCES,
    METHOD_NUMBERS,
    NUMBERS,
    TrainConfig,
    find_preset,
    flat_numbers,
    make_config,
    remembered_steps,
    split_numbers,
)
from termdp.runs.program import Job
from termdp.settings import check, nearest, number, numbers_of
from termdp.wrappers.observe import ObservedEnvironment, ObservedParams, observe

MOST_SNAPSHOTS = 50
# Copies of a Gymnasium environment, and steps of all of them per iteration.
COPIES = 8
ROLLOUT = 2048
_COUNTS = ("steps", "seeds", "seed", "preset", "snapshots")
UNSERIALISED = ("env", "observer", "algorithm")


@dataclasses.dataclass(frozen=True)
class RunSpec:
    """What the user asked for: enough to repeat the run, except what is `unserialised`.

    Attributes:
        env: id of the environment, or the name of the user's own environment.
        method: name of the method, or a `Method`.
        preset: `fast` or `paper`.
        algorithm: `ppo`, `a2c`, or the name of the user's own.
        observer: None for the environment's own, False for no observer, or a file.
        init_from: a run (or agent file) whose policy and costs the run starts from.
        numbers: those that differ from method and preset, by flat name.
        env_numbers: numbers of the environment and its observer, for `termdp.make`.
        unserialised: which of `env`, `observer`, `algorithm` were Python objects, which
            no file can hold.
    """

    env: str
    method: str | Method = "termpg"
    steps: int = number(1_000_000, "Steps per seed.", least=1, most=10**15)
    seeds: int = number(
        1, "How many seeds, trained at the same time.", least=1, most=4096
    )
    seed: int = number(0, "The first seed.", least=0, most=2**32 - 1)
    preset: str = "fast"
    algorithm: str = "ppo"
    observer: str | bool | None = None
    init_from: str | None = None
    snapshots: int = number(
        0,
        "Policies to keep during training, the first and the last included.",
        least=0,
        most=MOST_SNAPSHOTS,
    )
    numbers: dict[str, Any] = dataclasses.field(default_factory=dict)
    env_numbers: dict[str, Any] = dataclasses.field(default_factory=dict)
    unserialised: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse impossible counts; JAX's keys take 32 bits of a seed."""
        check(self)
        find_preset(self.preset)
        if self.seed + self.seeds > 2**32:
            raise ValueError(
                f"expected seeds below {2**32}, got {self.seed} and {self.seeds - 1} "
                "after it"
            )

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds of the run: seed … seed + seeds − 1."""
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def method_name(self) -> str:
        """The method's name for tables and summaries."""
        return self.method if isinstance(self.method, str) else "custom"

    def with_observer(self, observer: Any) -> "RunSpec":
        """The same run under another observer, as for `make`; None keeps the old one.

        Changed numbers of the old observer do not carry over.
        """
        if observer is None:
            return self
        own = isinstance(observer, Observer)
        before = _observer_names(self.env)
        numbers = self.env_numbers
        return dataclasses.replace(
            self,
            observer=None if own else _plain_observer(observer),
            env_numbers={n: v for n, v in numbers.items() if n not in before},
            unserialised=tuple(n for n in self.unserialised if n != "observer"),
        )

    def resolved_method(self, env_id: str | None = None) -> Method:
        """The method with its final numbers."""
        changes = {n: v for n, v in self.numbers.items() if n in METHOD_NUMBERS}
        if isinstance(self.method, str):
            method = find_method(self.method, **changes)
        else:
            method = changed_method(self.method, "this method", **changes)
        return method.for_environment(env_id or self.env)

    def to_plain(self) -> dict[str, Any]:
        """The spec as plain data, for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def check_plain(self) -> None:
        """Refuse impossible specifications; for those read from disk."""
        for name, value in {**self.numbers, **self.env_numbers}.items():
            if not isinstance(value, bool | int | float | str | None):
                raise ValueError(f"expected {name} to be a number or a word")
        for name in self.numbers:
            if name not in NUMBERS:
                raise ValueError(f"expected numbers of a run, got {name!r}")
        if not set(self.unserialised) <= set(UNSERIALISED):
            raise ValueError(f"expected some of {', '.join(UNSERIALISED)}")
        if isinstance(self.observer, str) and self.observer != Path(self.observer).name:
            raise ValueError("expected the observer's file in the run's folder")


def spec_from_plain(content: Any) -> RunSpec:
    """Undo `RunSpec.to_plain`; anything unexpected is an error that says where."""
    try:
        spec: RunSpec = from_plain(content, RunSpec)
        return spec
    except ValueError as error:
        raise ValueError(f"expected the description of a run: {error}") from error


def make_spec(
    env: Any,
    method: str | Method,
    config: TrainConfig | Mapping[str, Any] | str | Path | None = None,
    algorithm: Any = "ppo",
    observer: Any = None,
    numbers: Mapping[str, Any] | None = None,
    **others: Any,
) -> RunSpec:
    """A `RunSpec` from what `termdp.train` takes.

    Args:
        env: an id, or an environment.
        method: a name or a `Method`.
        config: other numbers: a `TrainConfig`, a mapping, or a TOML or JSON file.
        algorithm: a name, or an `Algorithm`.
        observer: None, False, a file, or an `Observer`.
        numbers: of the run and its environment, by flat name; they override `config`.
        **others: other fields of `RunSpec`.
    """
    if not isinstance(method, str | Method):
        raise ValueError(
            f"expected a method's name (`termdp methods`) or a Method, got {method!r:.60}"
        )
    unserialised = []
    if not isinstance(env, str):
        unserialised.append("env")
    elif not is_gymnasium(env):
        find(env)
    if isinstance(observer, Observer):
        unserialised.append("observer")
        observer = None
    if isinstance(config, TrainConfig) and algorithm == "ppo":
        algorithm = config.algorithm
    named = {settings: name for name, settings in ALGORITHMS.items()}
    if type(algorithm) in named:
        given_algorithm = {n: getattr(algorithm, n) for n in numbers_of(algorithm)}
        numbers = given_algorithm | dict(numbers or {})
        algorithm = named[type(algorithm)]
    if not isinstance(algorithm, str):
        unserialised.append("algorithm")
        algorithm = type(algorithm).__name__
    in_config = _numbers_of_config(config)
    others = {name: value for name, value in others.items() if value is not None}
    others = {n: in_config.pop(n) for n in _COUNTS if n in in_config} | others
    given = {**in_config, **(numbers or {})}
    given = {name: _plain(value) for name, value in given.items()}
    if is_gymnasium(env):
        _check_no_observer_numbers(given)
    of_run, of_env = split_numbers(given, environment_names(env))
    return RunSpec(
        env=env if isinstance(env, str) else _name_of(env),
        method=method,
        observer=_plain_observer(observer),
        algorithm=algorithm,
        numbers=of_run,
        env_numbers=of_env,
        unserialised=tuple(unserialised),
        **{name: _plain(value) for name, value in others.items()},
    )


def _check_no_observer_numbers(given: Mapping[str, Any]) -> None:
    for name in ("bias", "background", "delay", "leak"):
        if name in given:
            raise ValueError(
                f"expected no {name} with a Gymnasium environment, whose observer is "
                f"what wraps it: set {name} there, or give another observer"
            )


def _name_of(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(getattr(env, "name", None) or getattr(spec, "id", None) or "own")


def _plain_observer(observer: Any) -> Any:
    return str(observer) if isinstance(observer, Path) else observer


def _numbers_of_config(config: Any) -> dict[str, Any]:
    if config is None:
        return {}
    if isinstance(config, TrainConfig):
        others = {**METHOD_NUMBERS, **ALGORITHM_NUMBERS}
        flat = flat_numbers(Method(), config)
        return {name: v for name, v in flat.items() if name not in others}
    if isinstance(config, str | Path):
        return read_config(config)
    if isinstance(config, Mapping):
        if not all(isinstance(name, str) for name in config):
            raise ValueError(f"expected config to have names, got {list(config)!r:.60}")
        return dict(config)
    raise ValueError(
        "expected config to be a TrainConfig, a mapping, or a TOML or JSON file, got "
        f"{type(config).__name__}"
    )


def read_config(path: str | Path) -> dict[str, Any]:
    """The content of a TOML or JSON file: one flat table of names and values."""
    path = Path(path)
    try:
        text = read_small(path, MEGABYTE).decode("utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ValueError(f"expected a config file, got {path}: {error}") from error
    except (ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ValueError(f"expected {kind} in {path}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"expected a table of names and values in {path}")
    for name, value in content.items():
        if isinstance(value, dict | list):
            raise ValueError(
                f"expected a flat table in {path}, but {name} holds another table or "
                "list: write its numbers by their flat names"
            )
    return content


def config_as_toml(spec: RunSpec, method: Method, config: TrainConfig) -> str:
    """All numbers of a run, each with its sentence, as `--config` reads them."""
    head = [
        f"# {spec.env} {spec.method_name}, preset {spec.preset}, {spec.algorithm}",
        "# termdp train ENV METHOD --config THIS_FILE",
    ]
    hints = {"steps": spec.steps, "seeds": spec.seeds, "seed": spec.seed}
    lines = [f"{name} = {value}" for name, value in hints.items()]
    unused = {*unused_numbers(method)}
    unused |= set() if method.learns_costs else set(COST_NUMBERS)
    for name, value in flat_numbers(method, config).items():
        if name in unused:
            continue
        about = NUMBERS[name].metadata["about"]
        lines += ["", *_wrapped(about), _toml_line(name, value)]
    lines += ["", *(_toml_line(name, v) for name, v in spec.env_numbers.items())]
    return "\n".join([*head, "", *lines]).rstrip() + "\n"


def _wrapped(sentence: str) -> list[str]:
    import textwrap

    return [f"# {line}" for line in textwrap.wrap(sentence, 86)]


def _toml_line(name: str, value: Any) -> str:
    if value is None:
        return f"# {name} = none"
    if isinstance(value, bool):
        return f"{name} = {str(value).lower()}"
    return f"{name} = {json.dumps(value)}"


def environment_names(env: Any) -> list[str]:
    """The numbers that can be changed in an environment and its observer, by name."""
    if is_gymnasium(env):
        return names_of(env)
    if isinstance(env, str):
        return find(env).override_names()
    params = getattr(env, "default_params", None)
    return list(getattr(params, "names", []))


def _observer_names(env: str) -> set[str]:
    """Names of the numbers of an environment's observer and of its cost."""
    if env not in REGISTRY:
        return set()
    observer = make(env)[1].observer
    parts = (observer, observer.cost)
    return {
        field.name
        for part in parts
        if dataclasses.is_dataclass(part)
        for field in dataclasses.fields(part)
    }


def make_env(
    spec: RunSpec, env: Any = None, params: Any = None, observer: Any = None
) -> tuple[Any, Any]:
    """The environment of a run with its observer, and its parameters.

    Without an observer, one that never stops is added, so that all runs look alike.

    Args:
        spec: the run.
        env: the user's own environment; None if the spec has an id.
        params: parameters of that environment; None for its defaults.
        observer: the user's own `Observer`; None if the spec has it.
    """
    watcher = spec.observer if observer is None else observer
    if env is not None:
        return _own_env(spec, env, params, watcher)
    if params is not None:
        raise ValueError(
            "expected params only with your own environment: give numbers of a listed "
            "one by name (bias=…, window=…)"
        )
    overrides = dict(spec.env_numbers)
    if spec.preset == "paper" and find(spec.env).paper_image:
        overrides = {"observation": "image"} | overrides
    made, params = make(spec.env, observer=watcher, **overrides)
    return _watched(made, params)


def _own_env(spec: RunSpec, env: Any, params: Any, watcher: Any) -> tuple[Any, Any]:
    if isinstance(watcher, str):
        raise ValueError(
            "expected an Observer for your own environment, got a file: read it with "
            "termdp.load_observer"
        )
    if params is None:
        params = getattr(env, "default_params", None)
    if watcher is not None and isinstance(env, ObservedEnvironment):
        # Another observer, or none: remove the old one.
        env, params = env.game_env, params.game
    if isinstance(watcher, Observer):
        env, params = observe(env, watcher), ObservedParams(params, watcher)
    elif watcher is False:
        env, params = _watched(env, params)
    if not hasattr(env, "observer"):
        raise ValueError(
            "expected an environment with an observer, got a bare one: pass "
            "observer=termdp.Observer(cost), or observer=False if nobody watches"
        )
    return env, params.replace(**spec.env_numbers) if spec.env_numbers else params


def _watched(env: Any, params: Any) -> tuple[Any, Any]:
    if isinstance(env, ObservedEnvironment):
        return env, params
    nobody = Observer(_no_cost, window=1, bias=1e9)
    return ObservedEnvironment(env, nobody), ObservedParams(params, nobody)


def _no_cost(observation: Any, action: Any) -> float:
    return 0.0


def make_job(
    spec: RunSpec,
    env: Any = None,
    params: Any = None,
    observer: Any = None,
    algorithm: Any = None,
) -> Job:
    """The job of a run: its environment, method and sizes.

    Args:
        spec: the run.
        env: the user's own environment, as for `make_env`.
        params: its parameters.
        observer: the user's own observer.
        algorithm: the user's own `Algorithm`.
    """
    given = {"env": env, "observer": observer, "algorithm": algorithm}
    check_unserialised(spec, [name for name, v in given.items() if v is not None])
    if is_gymnasium(spec.env if env is None else env):
        return _gymnasium_job(spec, env, params, observer, algorithm)
    env, params = make_env(spec, env, params, observer)
    method = spec.resolved_method()
    window = method.learner_window(remembered_steps(params.observer))
    config = make_config(
        spec.preset,
        env.observation_space(params).shape,
        window if method.learns_costs else None,
        algorithm or spec.algorithm,
        suited_numbers(env, spec),
    ).for_method(method)
    return Job(
        env=env,
        params=params,
        methods=(method,) * spec.seeds,
        seeds=spec.all_seeds,
        config=config,
        num_iterations=config.num_iterations(spec.steps),
    )


def suited_numbers(env: Any, spec: RunSpec) -> dict[str, Any]:
    """A run's numbers, and those that its environment and method add to `fast`.

    An environment chooses a cost network and its other numbers together. If the user
    chooses another cost network, none of the environment's numbers are added.
    """
    game = getattr(env, "game_env", env)
    suited = getattr(game, "fast_numbers", {}) if spec.preset == "fast" else {}
    known = [name for name in NUMBERS if name not in METHOD_NUMBERS]
    for name in suited:
        if name not in known:
            raise ValueError(
                f"expected numbers of training in fast_numbers of {type(game).__name__}, "
                f"got {name!r}: {nearest(name, known)}"
            )
    network = COST_PREFIX + "network"
    if spec.numbers.get(network, suited.get(network)) != suited.get(network):
        suited = {}
    return {**suited, **_suited_to_method(spec), **spec.numbers}


def _suited_to_method(spec: RunSpec) -> dict[str, Any]:
    """The numbers that a run's method adds to `fast`."""
    if spec.preset != "fast":
        return {}
    method = spec.resolved_method()
    takes_sequences = method.recurrent and spec.algorithm == "ppo"
    return {
        **(FAST_ON_ENSEMBLES if method.compares_networks else {}),
        **(FAST_ON_EPISODES if method.cost_memory != "window" else {}),
        **(FAST_ON_SEQUENCES if takes_sequences else {}),
    }


def _gymnasium_job(
    spec: RunSpec, env: Any, params: Any, observer: Any, algorithm: Any
) -> Job:
    """The job of a run on a Gymnasium environment."""
    if params is not None:
        raise ValueError(
            "expected no params with a Gymnasium environment: they are for JAX ones"
        )
    method = spec.resolved_method()
    check_gymnasium_method(method, spec.method_name)
    if observer is None and spec.observer is False:
        raise ValueError(
            "expected no observer=False (--no-observer) with a Gymnasium environment: it "
            "reports its own stops (info['stopped']). Leave it out"
        )
    source = make_source(spec, env, observer)
    window = spec.env_numbers.get("window")
    if window is None and source.observer is not None:
        window = remembered_steps(source.observer)
    # The real observer is unknown: this one only says the window.
    watcher = Observer(_no_cost, window=30 if window is None else window, bias=1e9)
    copies = source.own_copies or (COPIES if source.can_copy() else 1)
    copies = spec.numbers.get("num_envs", copies)
    steps = max(1, ROLLOUT // copies) if isinstance(copies, int) and copies > 0 else 1
    config = make_config(
        spec.preset,
        source.encoding.shape,
        method.learner_window(int(watcher.window or 1))
        if method.learns_costs
        else None,
        algorithm or spec.algorithm,
        {"num_envs": copies, "rollout_steps": steps} | suited_numbers(source, spec),
    ).for_method(method)
    return Job(
        env=source,
        params=ObservedParams(EnvParams(), watcher),
        methods=(method,) * spec.seeds,
        seeds=spec.all_seeds,
        config=config,
        num_iterations=config.num_iterations(spec.steps),
    )


def make_source(
    spec: RunSpec, env: Any = None, observer: Any = None
) -> GymnasiumSource:
    """Where the copies of a run's Gymnasium environment come from.

    Args:
        spec: the run.
        env: the user's own environment, or a function; None if the spec has an id.
        observer: the user's own `Observer`; None if the spec has it.
    """
    if observer is None and isinstance(spec.observer, str):
        observer = load_observer(spec.observer)
    options = {n: v for n, v in spec.env_numbers.items() if n != "window"}
    any_size = spec.numbers.get("network") == "grid"
    return GymnasiumSource(
        spec.env if env is None else env, observer, options, any_size
    )


def check_gymnasium_method(method: Method, name: str) -> None:
    """Refuse methods that need more than a Gymnasium environment reports."""
    if method.knows_costs:
        raise ValueError(
            f"expected a method that learns from stops alone, got {name}: a Gymnasium "
            "environment does not report true costs"
        )
    if method.has_reference:
        raise ValueError(
            f"expected a method without an unobserved phase, got {name}: the observer of "
            "a Gymnasium environment cannot be switched off"
        )


def check_unserialised(spec: RunSpec, given: list[str]) -> None:
    """Check that the Python objects of a run, and no others, are given again."""
    for name in UNSERIALISED:
        if (name in given) == (name in spec.unserialised):
            continue
        call = ", ".join(f"{n}=…" for n in spec.unserialised)
        if name in spec.unserialised:
            raise ValueError(
                f"expected {name}=…, since the run began with your own {name}, which no "
                f"file can hold: continue from Python, with {call}"
            )
        raise ValueError(
            f"expected no {name}=…, since the run began without one of your own: leave "
            f"it out{', and give ' + call if call else ''}"
        )


def _plain(value: Any) -> Any:
    """Numbers of NumPy and JAX as Python numbers, for JSON."""
    is_number = isinstance(value, np.generic | np.ndarray | jax.Array)
    return value.item() if is_number and np.ndim(value) == 0 else value
