"""`termdp.train`: a run from beginning to end, in a notebook or behind the command."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np

from termdp.agents.methods import Method, find_method
from termdp.agents.update import PolicyUpdate
from termdp.observer import Observer
from termdp.registry import make
from termdp.training.config import TrainConfig
from termdp.training.loop import Job, Trainer
from termdp.training.presets import for_preset, make_config
from termdp.training.run_folder import OWN, RunFolder, RunSettings
from termdp.training.session import Result, Session
from termdp.wrappers.observe import ObservedEnvironment, ObservedParams


def train(
    env: Any,
    method: str | Method = "termpg",
    *,
    steps: int = 1_000_000,
    seeds: int = 1,
    seed: int = 0,
    preset: str = "fast",
    params: Any = None,
    out: str | Path | None = None,
    **options: Any,
) -> Result:
    """Train a method on an environment, for several seeds at once.

    Args:
        env: an id (`termdp envs`) or an observed environment (`termdp.observe`).
        method: a name (`termdp methods`) or a `Method`.
        steps: decisions per seed.
        seeds: how many seeds, vmapped.
        seed: the first of them.
        preset: `fast` or `paper`.
        params: parameters of your own environment; None for its defaults.
        out: a folder for metrics, checkpoints and summary; None keeps nothing.
        **options: `config` (a `TrainConfig`), `policy_update` (ALG-PG), `listen` (a
            function of `Progress`), `should_stop` (a function asked between chunks),
            `checkpoint_seconds`, `snapshots` (how many policies to keep on the way,
            see `termdp.training.snapshots`); numbers of the method (`optimism`,
            `discount`, …); for an id also what `termdp.make` takes.

    Returns:
        A `Result`; `result.summary["seeds"][0]["return_mean"]` is the score.

    Example:
        >>> import termdp
        >>> result = termdp.train("recommender", "pg", steps=2048)
        >>> round(result.summary["steps"])
        2048
    """
    controls = {name: options.pop(name) for name in CONTROLS if name in options}
    snapshots = options.pop("snapshots", 0)
    if isinstance(options.get("observer"), Path):
        options["observer"] = str(options["observer"])
    options = {name: _plain(value) for name, value in options.items()}
    changes = {name: options.pop(name) for name in METHOD_NUMBERS if name in options}
    config: TrainConfig | None = options.pop("config", None)
    own = {"policy_update": options.pop("policy_update", None)}
    if isinstance(options.get("observer"), Observer):
        own["observer"] = options.pop("observer")
    if not isinstance(env, str):
        _check_own_env(env, options)
        own["env"] = env
    if not isinstance(method, str):
        own["method"] = method
    own = {name: value for name, value in own.items() if value is not None}
    settings = RunSettings(
        env=env if isinstance(env, str) else env.name,
        method=method if isinstance(method, str) else "custom",
        steps=_plain(steps),
        seeds=_plain(seeds),
        seed=_plain(seed),
        preset=preset,
        env_overrides=options,
        method_changes=changes,
        snapshots=snapshots,
        config=None if config is None else dataclasses.asdict(config),
        own=[name for name in OWN if name in own],
    )
    # Make the program before the folder: nothing half-written if it cannot be made.
    trainer = load_trainer(settings, params=params, **own)
    folder = None if out is None else RunFolder.create(Path(out), settings)
    return Session(trainer, settings, folder, **controls).run()


def resume(path: str | Path, **options: Any) -> Result:
    """Go on with a run from its last checkpoint, to the same end bit for bit (CPU).

    Args:
        path: the run's folder.
        **options: what it was begun with from Python and no folder can hold (`env` with
            its `params`, `observer`, `method`, `policy_update`); `listen`, `should_stop`,
            `checkpoint_seconds` as for `train`.
    """
    controls = {name: options.pop(name) for name in CONTROLS if name in options}
    folder, settings = RunFolder.open(Path(path))
    trainer = load_trainer(settings, **options)
    return Session(trainer, settings, folder, **controls).run()


def make_watched(env_id: str, **overrides: Any) -> tuple[Any, Any]:
    """As `termdp.make`, but without observer somebody watches who never stops."""
    env, params = make(env_id, **overrides)
    if isinstance(env, ObservedEnvironment):
        return env, params
    nobody = Observer(_no_cost, window=1, bias=1e9)
    return ObservedEnvironment(env, nobody), ObservedParams(params, nobody)


def _no_cost(observation: Any, action: Any) -> float:
    return 0.0


def load_trainer(settings: RunSettings, *, params: Any = None, **own: Any) -> Trainer:
    """The program of a run.

    Args:
        settings: what was asked for.
        params: parameters of an environment of one's own; None for its defaults.
        **own: what was given from Python, by the names of `settings.own`.
    """
    for name in dict.fromkeys((*settings.own, *own)):
        if (name in own) != (name in settings.own):
            has = "with its own" if name in settings.own else "without an own"
            raise ValueError(
                f"expected what the run was begun with, which is {has} {name}: go on "
                f"from Python, termdp.resume(folder, {_call(settings.own)})"
            )
    env = own.get("env")
    if env is None:
        overrides = for_preset(settings.preset, settings.env) | settings.env_overrides
        if "observer" in own:
            overrides["observer"] = own["observer"]
        env, params = make_watched(settings.env, **overrides)
    elif params is None:
        params = env.default_params
    method = _choose_method(
        own.get("method", settings.method), settings.method_changes
    ).for_environment(settings.env)
    config = settings.config and TrainConfig.from_plain(settings.config)
    update = own.get("policy_update")
    return Trainer(make_job(env, params, method, settings, config or None, update))


def _plain(value: Any) -> Any:
    """NumPy's and JAX's numbers as Python's, which can be written down."""
    is_number = isinstance(value, np.generic | np.ndarray | jax.Array)
    return value.item() if is_number and np.ndim(value) == 0 else value


def _call(names: list[str]) -> str:
    return ", ".join(f"{name}=…" for name in names) or "nothing of your own"


CONTROLS = ("listen", "should_stop", "checkpoint_seconds")
METHOD_NUMBERS = tuple(
    field.name
    for field in dataclasses.fields(Method)
    if field.name not in ("description", "recurrent", "learns_costs", "knows_costs")
)


def make_job(
    env: Any,
    params: Any,
    method: Method,
    settings: RunSettings,
    config: TrainConfig | None = None,
    policy_update: PolicyUpdate | None = None,
) -> Job:
    """The job of one method and several seeds."""
    draft = Job(env, params, (method,), (0,), config or TrainConfig(), 1)
    window = draft.max_window if method.learns_costs else 1
    config = config or make_config(settings.preset, env, params, window)
    return Job(
        env=env,
        params=params,
        methods=(method,) * settings.seeds,
        seeds=settings.all_seeds,
        config=config,
        num_iterations=config.num_iterations(settings.steps),
        policy_update=policy_update,
    )


# Numbers that mean nothing to a method without learned costs.
_COST_NUMBERS = (
    "optimism",
    "std_factor",
    "uncertainty",
    "window_factor",
    "cost_penalty",
    "bonus",
)


def _choose_method(method: str | Method, changes: dict[str, Any]) -> Method:
    if isinstance(method, Method):
        chosen, name = dataclasses.replace(method, **changes), "this method"
    else:
        chosen, name = find_method(method, **changes), method
    for number in changes:
        why = ""
        if number in _COST_NUMBERS and not chosen.learns_costs:
            why = "learns no costs"
        elif number == "discount" and chosen.dynamic_discount:
            why = "has the dynamic discount"
        elif number == "horizon" and not chosen.dynamic_discount:
            why = "has a constant discount"
        if why:
            raise ValueError(
                f"expected only numbers that {name} uses, got {number}: it {why}"
            )
    return chosen


def _check_own_env(env: Any, options: dict[str, Any]) -> None:
    if options:
        raise ValueError(
            f"expected no further options with an environment of your own, got "
            f"{', '.join(options)}: change its params instead"
        )
    if not hasattr(env, "observer"):
        raise ValueError(
            "expected an environment with an observer, got a bare one: wrap it with "
            "termdp.observe(env, termdp.Observer(cost))"
        )
