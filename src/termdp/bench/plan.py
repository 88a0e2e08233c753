"""From a suite to jobs: which runs share a compiled program.

The runs of a job share an environment and all sizes, so they can share a program. On the
CPU a job holds only runs that would have the same program alone, and the program runs
them one after the other: a run's bits do not depend on the others. On an accelerator the
runs of a program go in parallel, so the last bits depend on how many there are.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from termdp.agents.methods import IDENTITY, Method
from termdp.bench.suites import Column, Row, Suite, cells
from termdp.registry import REGISTRY
from termdp.runs.config import (
    METHOD_NUMBERS,
    NUMBERS,
    TrainConfig,
    flat_numbers,
    make_config,
    remembered_steps,
)
from termdp.runs.program import Job
from termdp.runs.spec import RunSpec, make_env, suited_numbers
from termdp.settings import nearest


class RunKey(NamedTuple):
    """Names one run in the results."""

    column: str
    row: str
    seed: int


@dataclasses.dataclass(frozen=True)
class Cell:
    """A method on an environment.

    Attributes:
        column: the environment.
        row: the method's name and numbers.
        spec: both of these as the specification of a run.
        method: the method with all its numbers.
        config: sizes and rates.
        learner_window: window of the method's cost learner; None if it learns no costs.
    """

    column: Column
    row: Row
    spec: RunSpec
    method: Method
    config: TrainConfig
    learner_window: int | None

    def settings(self) -> dict[str, Any]:
        """All settings that decide the results, as plain data."""
        return {
            "env": self.spec.env,
            "env_numbers": dict(self.spec.env_numbers),
            "preset": self.spec.preset,
            **{name: getattr(self.method, name) for name in IDENTITY},
            "numbers": flat_numbers(self.method, self.config),
        }


@dataclasses.dataclass(frozen=True)
class BenchJob:
    """Runs that are compiled into one program and finish together.

    Attributes:
        name: unique in a sweep, for display.
        runs: all of one game and one configuration.
        steps: steps per run.
    """

    name: str
    runs: tuple[tuple[Cell, int], ...]
    steps: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns (game and observer) of these runs."""
        return tuple({cell.column.label: cell.column for cell, _ in self.runs}.values())

    @property
    def env(self) -> str:
        """Id of the environment of all its runs."""
        return self.runs[0][0].column.env

    @property
    def config(self) -> TrainConfig:
        """The configuration of all its runs."""
        return self.runs[0][0].config

    @property
    def preset(self) -> str:
        """The preset of all its runs."""
        return self.runs[0][0].spec.preset

    @property
    def program(self) -> str:
        """The kind of program that all its runs need; empty for most."""
        return self.runs[0][0].method.program

    @property
    def recurrent(self) -> bool:
        """Whether the policies have memory."""
        return self.runs[0][0].method.recurrent

    @property
    def keys(self) -> tuple[RunKey, ...]:
        """Names of its runs."""
        return tuple(RunKey(c.column.label, c.row.label, s) for c, s in self.runs)

    @property
    def all_steps(self) -> int:
        """Steps of all runs together."""
        return self.steps * len(self.runs)

    def training_job(self, multiple: int = 1) -> Job:
        """The runs as a job for the training loop.

        Args:
            multiple: the number of runs becomes a multiple of this (the number of
                devices); the last run is repeated to fill up.
        """
        missing = -len(self.runs) % multiple
        runs = [*self.runs, *([self.runs[-1]] * missing)]
        env, by_column = shared_env({c.column.label: c.spec for c, _ in self.runs})
        each = tuple(by_column[cell.column.label] for cell, _ in runs)
        return Job(
            env=env,
            params=each[0],
            run_params=each if len(by_column) > 1 else None,
            methods=tuple(cell.method for cell, _ in runs),
            seeds=tuple(seed for _, seed in runs),
            config=self.config,
            num_iterations=self.config.num_iterations(self.steps),
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """A suite with its final numbers.

    Attributes:
        suite: name of the suite.
        cells: methods on environments.
        seeds: how many.
        seed: the first seed.
        steps: steps per run.
        preset: `fast` or `paper`.
        end_handling: how all methods treat ends; None for each method's own.
        left_out: columns that cannot run here, and why.
    """

    suite: str
    cells: tuple[Cell, ...]
    seeds: int
    seed: int
    steps: int
    preset: str
    end_handling: str | None = None
    left_out: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def runs(self) -> tuple[tuple[Cell, int], ...]:
        """Every run."""
        seeds = range(self.seed, self.seed + self.seeds)
        return tuple((cell, seed) for cell in self.cells for seed in seeds)


def make_plan(
    suite: Suite,
    seeds: int | None = None,
    steps: int | None = None,
    preset: str = "fast",
    envs: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    numbers: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Plan:
    """Work out a suite's final numbers.

    Args:
        suite: what to run.
        seeds: runs per cell; None for the suite's number.
        steps: steps per run; None for the suite's number.
        preset: `fast` or `paper`.
        envs: labels or ids of the columns to keep; None for all.
        methods: labels of the rows to keep; None for all.
        numbers: of algorithm, sizes and cost learner, for all methods alike;
            `end_handling`, too.
        seed: the first seed.
    """
    numbers = dict(numbers or {})
    _check_numbers(numbers)
    seeds = suite.seeds if seeds is None else seeds
    steps = suite.steps if steps is None else steps
    pairs = _chosen(cells(suite), envs, methods, suite.name)
    left_out = {
        column.label: f"there is no environment {column.env!r} in this version"
        for column, _ in pairs
        if column.env not in REGISTRY
    }
    made = tuple(
        _cells_of(
            column,
            [row for _, row in group],
            RunSpec(
                column.env,
                steps=steps,
                seeds=seeds,
                seed=seed,
                preset=preset,
                numbers=numbers,
                env_numbers=column.overrides,
            ),
        )
        for column, group in _by_column(pairs)
        if column.label not in left_out
    )
    found = tuple(itertools.chain.from_iterable(made))
    if not found:
        raise ValueError(f"expected environments to run, got none: {left_out}")
    for cell in found:
        cell.config.num_iterations(steps)
    ends = numbers.get("end_handling")
    return Plan(suite.name, found, seeds, seed, steps, preset, ends, left_out)


def _check_numbers(numbers: Mapping[str, Any]) -> None:
    """Refuse numbers that distinguish methods, and unknown ones."""
    known = [n for n in NUMBERS if n not in METHOD_NUMBERS] + ["end_handling"]
    for name in numbers:
        if name in METHOD_NUMBERS and name not in known:
            raise ValueError(
                "expected numbers of algorithm, sizes or cost learner for a whole suite, "
                f"got {name}: it makes a method what it is (termdp train has it)"
            )
        if name not in known:
            raise ValueError(
                f"expected numbers of training for a whole suite, got {name!r}: "
                f"{nearest(name, known)}"
            )


def _chosen(
    pairs: Iterable[tuple[Column, Row]],
    envs: Sequence[str] | None,
    methods: Sequence[str] | None,
    suite: str,
) -> list[tuple[Column, Row]]:
    pairs = list(pairs)
    columns = [name for c, _ in pairs for name in (c.label, c.env)]
    _check_known("environments", envs, columns, suite)
    _check_known("methods", methods, [row.label for _, row in pairs], suite)
    # `breakout` is the column of that label, or all columns of that game without one.
    labels = {column.label for column, _ in pairs}
    ids = set(envs or ()) - labels
    return [
        (column, row)
        for column, row in pairs
        if (envs is None or column.label in envs or column.env in ids)
        and (methods is None or row.label in methods)
    ]


def _check_known(
    what: str, asked: Sequence[str] | None, known: Sequence[str], suite: str
) -> None:
    for name in asked or ():
        if name not in known:
            words = ", ".join(dict.fromkeys(known))
            raise ValueError(
                f"expected {what} of the suite {suite} ({words}), got {name!r}"
            )


def _by_column(pairs: Iterable[tuple[Column, Row]]) -> Any:
    ordered: dict[str, list[tuple[Column, Row]]] = {}
    for column, row in pairs:
        ordered.setdefault(column.label, []).append((column, row))
    return [(group[0][0], group) for group in ordered.values()]


def _cells_of(column: Column, rows: Sequence[Row], base: RunSpec) -> list[Cell]:
    env, params = make_env(base)
    shape = env.observation_space(params).shape
    window = remembered_steps(params.observer)
    found = []
    for row in rows:
        numbers = dict(row.changes)
        if column.matched_discount is not None and row.method == "pg_matched":
            numbers = {"discount": column.matched_discount} | numbers
        numbers |= base.numbers
        spec = dataclasses.replace(base, method=row.method, numbers=numbers)
        method = spec.resolved_method()
        looks_back = method.learner_window(window)
        suited = suited_numbers(env, spec)
        config = make_config(base.preset, shape, looks_back, numbers=suited)
        config = config.for_method(method)
        learner_window = looks_back if method.learns_costs else None
        found.append(Cell(column, row, spec, method, config, learner_window))
    return found


# ---- which columns can share a program: an observer is data, like a method ----------

# One memory size for all, so that observers with different windows look alike.
_ANY_WINDOW = 2**30


def program_kind(spec: RunSpec) -> Any:
    """A value that is equal for environments that can share a program.

    Such environments differ only in numbers that are not fixed at compilation.
    """
    _, params = make_env(spec)
    fixed = tuple(
        (name, str(value))
        for name, value in spec.env_numbers.items()
        if name not in params.names
    )
    structure = jax.tree.structure(_remembering(params, _ANY_WINDOW))
    return spec.env, spec.preset, fixed, structure


def shared_env(specs: dict[str, RunSpec]) -> tuple[Any, dict[str, Any]]:
    """One environment for several columns, and each column's parameters by label."""
    made = {label: make_env(spec) for label, spec in specs.items()}
    env = next(iter(made.values()))[0]
    if len(made) == 1:
        return env, {label: params for label, (_, params) in made.items()}
    most = max(params.observer.capacity for _, params in made.values())
    return env, {
        label: _remembering(params, most) for label, (_, params) in made.items()
    }


def _remembering(params: Any, steps: int) -> Any:
    """The observer with memory for this many steps, so that its window can change."""
    return params.replace(observer=params.observer.replace(capacity=steps))


def make_jobs(
    plan: Plan,
    finished: Iterable[RunKey] = (),
    most_runs: Callable[[BenchJob], int | None] = lambda job: None,
    as_alone: bool = False,
) -> list[BenchJob]:
    """Jobs for the missing runs.

    Args:
        plan: all runs that are wanted.
        finished: runs that are already done.
        most_runs: the most runs in a job; None for no limit.
        as_alone: only runs that would have the same program alone share one (CPUs).
    """
    done = set(finished)
    groups: dict[Any, list[tuple[Cell, int]]] = {}
    kinds = {c.column.label: program_kind(c.spec) for c in _one_per_column(plan.cells)}
    for cell, seed in plan.runs:
        if RunKey(cell.column.label, cell.row.label, seed) not in done:
            shared = (
                kinds[cell.column.label],
                cell.method.program,
                cell.config,
                # A program that learns costs learns them for all of its runs, with room
                # for the longest of their windows.
                cell.learner_window,
                cell.column.label if as_alone else None,
            )
            groups.setdefault(shared, []).append((cell, seed))
    jobs: list[BenchJob] = []
    names: dict[str, int] = {}
    for (_, program, _, window, _), runs in groups.items():
        whole = BenchJob("", tuple(runs), plan.steps)
        label = " + ".join(column.label for column in whole.columns)
        learns = "" if window is None else f"window {window}"
        name = " ".join(word for word in (label, program, learns) if word)
        for part in _parts(runs, most_runs(whole)):
            names[name] = names.get(name, 0) + 1
            number = f" {names[name]}" if names[name] > 1 else ""
            jobs.append(BenchJob(name + number, tuple(part), plan.steps))
    return jobs


def _one_per_column(found: Iterable[Cell]) -> list[Cell]:
    return list({cell.column.label: cell for cell in found}.values())


def _parts(runs: list[Any], most: int | None) -> list[list[Any]]:
    if most is None or most >= len(runs):
        return [runs]
    count = -(-len(runs) // most)
    size = -(-len(runs) // count)
    return [runs[start : start + size] for start in range(0, len(runs), size)]
