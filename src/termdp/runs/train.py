"""`termdp.train`, `resume` and `load`: a run from beginning to end, and its agents."""

import contextlib
import dataclasses
import inspect
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from termdp.agents.methods import Method
from termdp.agents.value_scale import initial_scale, with_plain_values
from termdp.arrays import restore
from termdp.files import write_json
from termdp.folder_lock import only_writer
from termdp.gym.source import GymnasiumSource
from termdp.runs import checkpoint
from termdp.runs.agent import (
    Agent,
    agent_from_arrays,
    make_card,
    named_under,
    read_agent,
)
from termdp.runs.config import NUMBERS, TrainConfig, flat_numbers
from termdp.runs.folder import RunFolder, check_unbegun
from termdp.runs.host_program import HostProgram
from termdp.runs.improve import TrainState
from termdp.runs.numbers import Numbers
from termdp.runs.program import Job, TrainProgram
from termdp.runs.progress import progress_bar
from termdp.runs.result import Result
from termdp.runs.runner import CHECKPOINT_SECONDS, Progress, Runner
from termdp.runs.shipped import agent_path
from termdp.runs.spec import RunSpec, make_job, make_spec

if TYPE_CHECKING:
    from termdp.observer import Observer

MOST_SECONDS = 366 * 86_400.0
OnProgress = Callable[[Progress], None] | Literal[False] | None


def train(  # noqa: PLR0913 - what users give by name
    env: Any,
    method: str | Method = "termpg",
    *,
    steps: int | None = None,
    seeds: int | None = None,
    seed: int | None = None,
    preset: str | None = None,
    config: TrainConfig | Mapping[str, Any] | str | Path | None = None,
    observer: "Observer | str | Path | Literal[False] | None" = None,
    params: Any = None,
    init_from: str | Path | None = None,
    algorithm: Any = "ppo",
    snapshots: int = 0,
    out: str | Path | None = None,
    on_progress: OnProgress = None,
    should_stop: Callable[[], bool] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    **numbers: Unpack[Numbers],
) -> Result:
    """Train a method on an environment, for several seeds at once.

    Args:
        env: an id (`termdp envs`), `gym:ID` for a registered Gymnasium environment, a
            JAX environment with gymnax's API, a Gymnasium environment or vector
            environment, or a function that makes one of the last two.
        method: a name (`termdp methods`) or a `Method`.
        steps: steps per seed; 1,000,000 unless given here or in `config`.
        seeds: how many seeds, trained at the same time; 1 unless given.
        seed: the first seed; 0 unless given.
        preset: `fast` (unless given) or `paper`.
        config: these and other numbers: a `TrainConfig`, a mapping, or a TOML or JSON
            file.
        observer: an `Observer`, its file, None for the environment's own, or False for
            no observer.
        params: parameters of your own environment; None for its defaults.
        init_from: a run's folder (or an agent's file) to start from: its policy, and
            its cost networks if both learn costs. Its seeds are used in turn.
        algorithm: `ppo`, `a2c`, or your own `Algorithm`.
        snapshots: how many policies to keep during training, the first and the last
            included.
        out: a folder for metrics, checkpoints and summary; None keeps nothing.
        on_progress: a function of `Progress`, called between chunks; None draws a bar in
            terminals and notebooks, False nothing.
        should_stop: called between chunks; if it returns True, the run stops and can be
            resumed.
        checkpoint_seconds: time between checkpoints.
        **numbers: of method, algorithm, sizes, cost learner (`cost_…`), or environment
            (`window`, `bias`, …). `termdp train --print-config` lists them.

    Returns:
        A `Result`; `result.summary["seeds"][0]["return_mean"]` is the score, and
        `result.agent()` acts.

    Examples:
        >>> import termdp
        >>> result = termdp.train("recommender", "pg", steps=2048, learning_rate=1e-3)
        >>> result.summary["steps"]
        2048
    """
    own = {
        "env": None if isinstance(env, str) else env,
        "observer": observer if _is_observer(observer) else None,
    }
    spec = make_spec(
        env,
        method,
        config,
        algorithm,
        observer,
        numbers,
        steps=steps,
        seeds=seeds,
        seed=seed,
        preset=preset,
        init_from=None if init_from is None else str(init_from),
        snapshots=snapshots,
    )
    check_checkpoint_seconds(checkpoint_seconds)
    if spec.snapshots and out is None:
        raise ValueError("expected out=… with snapshots: they are kept in its folder")
    # Before the folder: if the program cannot be made, nothing is half-written.
    if "algorithm" in spec.unserialised:
        own["algorithm"] = algorithm
    program = make_program(make_job(spec, params=params, **own))
    prepare = None if init_from is None else _start_from(init_from, program)
    controls = (prepare, on_progress, should_stop, checkpoint_seconds)
    if out is None:
        return _run(program, spec, None, *controls)
    check_unbegun(Path(out))
    with only_writer(Path(out)):
        card = make_card(spec, program.job)
        flat = flat_numbers(program.job.methods[0], program.job.config)
        folder = RunFolder.create(Path(out), spec, card, flat)
        return _run(program, spec, folder, *controls)


def resume(  # noqa: PLR0913 - likewise
    path: str | Path,
    *,
    steps: int | None = None,
    env: Any = None,
    params: Any = None,
    observer: "Observer | None" = None,
    algorithm: Any = None,
    on_progress: OnProgress = None,
    should_stop: Callable[[], bool] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Result:
    """Continue a run from its last checkpoint; on the CPU it ends with the same bits.

    With more `steps` it continues beyond the planned end. Falling rates then continue as
    in a run of the new length: a run of 1M steps that is extended to 2M continues at half
    of its first rate.

    Args:
        path: the run's folder.
        steps: total steps per seed; None for the planned number.
        env: your own environment, if the run has one.
        params: its parameters.
        observer: your own observer, if the run has one.
        algorithm: your own algorithm, if the run has one.
        on_progress: as for `train`.
        should_stop: as for `train`.
        checkpoint_seconds: as for `train`.
    """
    check_checkpoint_seconds(checkpoint_seconds)
    folder, spec = RunFolder.open(Path(path))
    if steps is not None and steps < spec.steps:
        raise ValueError(
            f"expected at least the {spec.steps} steps that were planned for the run in "
            f"{path}, got {steps}"
        )
    longer = spec if steps is None else dataclasses.replace(spec, steps=steps)
    program = make_program(make_job(longer, env, params, observer, algorithm))
    with only_writer(folder.path):
        if not checkpoint.complete(folder.checkpoints):
            warnings.warn(
                f"there is no checkpoint in {folder.path}: the run begins at its first "
                "step",
                stacklevel=2,
            )
        if longer.steps > spec.steps:
            folder.extend(longer.steps)
        return _run(
            program, longer, folder, None, on_progress, should_stop, checkpoint_seconds
        )


def make_program(job: Job) -> TrainProgram | HostProgram:
    """The program that trains a job: on the device, or with environments on the host."""
    is_gymnasium = isinstance(job.env, GymnasiumSource)
    return HostProgram(job) if is_gymnasium else TrainProgram(job)


def check_checkpoint_seconds(seconds: Any) -> None:
    """Refuse impossible times; 0 saves after every chunk."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds <= MOST_SECONDS:
        raise ValueError(
            f"expected checkpoint_seconds from 0 to {MOST_SECONDS:g} (a year), got "
            f"{seconds!r:.60}"
        )


def _run(
    program: TrainProgram | HostProgram,
    spec: RunSpec,
    folder: RunFolder | None,
    prepare: Any,
    on_progress: OnProgress,
    should_stop: Callable[[], bool] | None,
    checkpoint_seconds: float,
) -> Result:
    bar = progress_bar() if on_progress is None else contextlib.nullcontext(on_progress)
    with bar as listener:
        runner = Runner(
            program,
            folder,
            snapshots=spec.snapshots,
            prepare=prepare,
            on_progress=listener or None,
            should_stop=should_stop,
            checkpoint_seconds=checkpoint_seconds,
        )
        try:
            runner.run()
        finally:
            program.close()
    result = Result.of(runner, spec)
    if result.summary is not None and folder is not None:
        write_json(folder.summary, result.summary)
    return result


def load(path: str | Path, seed: int | None = None) -> Agent:
    """A trained agent: from a run's folder, a file of `agent.save`, or the package.

    It needs neither the code of the environment nor that of the observer.

    Args:
        path: the folder, the file, or a name that `termdp agents` lists.
        seed: which of a run's seeds; None for the one with the best return.

    Examples:
        >>> import termdp
        >>> agent = termdp.load("breakout/termpg")
        >>> action, state = agent.predict(observation)  # doctest: +SKIP
    """
    path = agent_path(path)
    if path.is_dir():
        agents = load_agents(path)
        if seed is None:
            return max(agents, key=lambda agent: _score(agent.card.return_mean))
        chosen = [agent for agent in agents if agent.card.spec.seed == seed]
        if not chosen:
            known = ", ".join(str(agent.card.spec.seed) for agent in agents)
            raise ValueError(f"expected a seed of {path} ({known}), got {seed}")
        return chosen[0]
    agent = read_agent(path)
    if seed is not None and seed != agent.card.spec.seed:
        raise ValueError(
            f"expected no seed for a single agent, or {agent.card.spec.seed}, got {seed}"
        )
    return agent


def load_agents(path: Path) -> list[Agent]:
    """The agents of all seeds of a run's folder, as its newest checkpoint has them."""
    folder, spec = RunFolder.open(path)
    card = dataclasses.replace(folder.card(), spec=spec)
    card.check()
    arrays, reports, _ = checkpoint.load_latest(folder.checkpoints)
    policy = named_under(".policy.params", arrays)
    scales = named_under(".policy.value_scale", arrays)
    costs = named_under(".costs.average", arrays)
    seen = named_under(".observation_scale", arrays)
    saved = (*policy.values(), *scales.values(), *costs.values(), *seen.values())
    if any(array.shape[:1] != (spec.seeds,) for array in saved):
        raise ValueError(
            f"expected the networks of {spec.seeds} seeds in {path}, as its config.json "
            "says, but its checkpoint has others"
        )
    agents = []
    for run, seed in enumerate(spec.all_seeds):
        mine = card.of_seed(seed, _last_returns(reports, run))
        agent = agent_from_arrays(
            mine,
            {name: array[run] for name, array in policy.items()},
            {name: array[run] for name, array in costs.items()},
            {name: array[run] for name, array in seen.items()},
        )
        scale = restore(initial_scale(), {n: array[run] for n, array in scales.items()})
        weights = with_plain_values(agent.mind.weights, scale)
        agents.append(Agent(mine, weights, agent.mind.costs, scale=agent.scale))
    return agents


def _last_returns(reports: Mapping[str, np.ndarray], run: int) -> float | None:
    """Mean return over the last tenth of the training so far."""
    if "episodes" not in reports:
        return None
    last = max(1, reports["episodes"].shape[1] // 10)
    episodes = float(reports["episodes"][run, -last:].sum())
    total = float(reports["return_sum"][run, -last:].sum())
    return total / episodes if episodes else None


def _score(value: float | None) -> float:
    return -np.inf if value is None else value


def _start_from(
    source: str | Path, program: TrainProgram | HostProgram
) -> Callable[[TrainState], TrainState]:
    """A function that puts the networks of another run into a first state."""
    path = Path(source)
    agents = load_agents(path) if path.is_dir() else [read_agent(path)]
    runs = [agents[run % len(agents)] for run in range(len(program.job.seeds))]
    wanted = program.shapes()
    weights = _stacked([agent.mind.weights for agent in runs])
    _check_alike(wanted.policy.params, weights, path, "policy")
    average = None
    if wanted.costs is not None and runs[0].mind.costs is not None:
        average = _stacked([agent.mind.costs.average for agent in runs])
        _check_alike(wanted.costs.average, average, path, "cost networks")

    def prepare(state: TrainState) -> TrainState:
        policy = dataclasses.replace(state.policy, params=weights)
        costs = state.costs
        if average is not None:
            # Two copies, because the first step may overwrite the memory of either.
            costs = dataclasses.replace(
                costs,
                params=jax.tree.map(jnp.copy, average),
                average=average,
                has_bias=jnp.ones(len(runs), bool),
            )
        return dataclasses.replace(state, policy=policy, costs=costs)

    return prepare


def _stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _check_alike(wanted: Any, found: Any, path: Path, what: str) -> None:
    shapes = [jax.tree.map(np.shape, tree) for tree in (wanted, found)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"expected a run whose {what} fit this one (the same kind of observations, "
            f"actions and sizes), got {path}"
        )


def _is_observer(value: Any) -> bool:
    return value is not None and not isinstance(value, bool | str | Path)


def _with_all_numbers(function: Any) -> None:
    """Give a function the names of all numbers, for `help` and completion."""
    signature = inspect.signature(function)
    fixed = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
    further = [p for p in signature.parameters.values() if p.kind == p.VAR_KEYWORD]
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in NUMBERS
    ]
    function.__signature__ = signature.replace(parameters=[*fixed, *named, *further])


_with_all_numbers(train)
