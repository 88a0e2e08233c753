"""Try other numbers for a method, on the seeds that are for choosing (below 100).

python benchmarks/tuning.py asterix_hard --methods pg termpg --vary value_coef=1,0.5
python benchmarks/tuning.py backseat --methods termpg --vary cost_hidden=32,128 --seeds 3

Every column is compiled once for all methods, numbers and seeds: real numbers are traced.
Each whole number or word of the settings (`cost_hidden`, `optimism`) needs a program of
its own; those of methods do not. Prints the mean return over the last tenth, its standard
error over seeds, and the correlation of costs. Reports use seeds from 1000 on.
"""

import argparse
import copy
import dataclasses
import itertools
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from termdp.agents.method_params import method_params
from termdp.bench.suites import HARD_COLUMNS, PAPER_COLUMNS, RECOMMENDER
from termdp.costs.config import CostConfig
from termdp.runs import metrics
from termdp.runs.config import COST_PREFIX, METHOD_NUMBERS, NUMBERS, remembered_steps
from termdp.runs.program import initial_state, make_recipe, train_iteration
from termdp.runs.spec import RunSpec, make_job

COLUMNS = {c.label: c for c in (*PAPER_COLUMNS, RECOMMENDER, *HARD_COLUMNS)}


def main() -> None:
    """Read the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("columns", nargs="+", choices=[*COLUMNS, "all"])
    parser.add_argument("--methods", nargs="+", default=["termpg"])
    parser.add_argument("--vary", nargs="*", default=[], help="name=value,value …")
    parser.add_argument("--each", action="store_true", help="one at a time, no product")
    parser.add_argument("--set", nargs="*", default=[], help="name=value for all")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="append JSON lines here")
    args = parser.parse_args()
    if args.seed + args.seeds > 100:
        parser.error("expected seeds below 100: those above are for reporting")
    names = list(COLUMNS) if "all" in args.columns else args.columns
    fixed = {k: v[0] for k, v in map(_parsed, args.set)}
    for column in names:
        for row in tried(column, args, fixed):
            print(line(row), flush=True)
            if args.out:
                with args.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def tried(column, args, fixed):
    """Rows of one column: every method with every choice of numbers."""
    varied = dict(map(_parsed, args.vary))
    if args.each:
        choices = [{}] + [{n: v} for n, values in varied.items() for v in values]
    else:
        choices = [
            dict(zip(varied, values, strict=True))
            for values in itertools.product(*varied.values())
        ]
    programs = {}
    for method, choice in itertools.product(args.methods, choices):
        static = {n: v for n, v in choice.items() if not is_traced(n, v)}
        key = json.dumps({n: v for n, v in static.items() if n not in METHOD_NUMBERS})
        programs.setdefault(key, []).append((method, choice))
    for group in programs.values():
        yield from run_group(column, group, args, fixed)


def is_traced(name, value):
    """Whether a number can differ between the runs of one program."""
    return isinstance(value, float) and name not in METHOD_NUMBERS


def run_group(column, group, args, fixed):
    """Runs of one program: (method, choice) × seeds; one row for each pair."""
    jobs = [one_job(COLUMNS[column], *pair, args, fixed) for pair in group]
    job = dataclasses.replace(
        jobs[0],
        methods=tuple(m for j in jobs for m in j.methods),
        seeds=tuple(s for j in jobs for s in j.seeds),
        config=max((j.config for j in jobs), key=lambda c: c.costs.segment_length),
    )
    reports, compile_s, run_s = trained(job, traced_numbers(job, group, args.seeds))
    last = max(1, job.num_iterations // 10)
    for index, (method, choice) in enumerate(group):
        found = []
        for run in range(index * args.seeds, (index + 1) * args.seeds):
            mine = {n: x[run, -last:] for n, x in reports.items()}
            found.append(metrics.summarise(mine, job.methods[run]))
        yield {
            "column": column,
            "method": method,
            "choice": choice,
            "fixed": fixed,
            "returns": [s["return_mean"] for s in found],
            "stop_rate": float(np.mean([s["stop_rate"] for s in found])),
            "cost_corr": [s["cost_corr"] for s in found],
            "compile_s": round(compile_s, 1),
            "run_s": round(run_s, 1),
            "runs": len(job.seeds),
            "steps": args.steps,
        }


def one_job(place, method, choice, args, fixed):
    """A method with its choice of numbers, except for those that are traced."""
    numbers = fixed | {n: v for n, v in choice.items() if not is_traced(n, v)}
    if method == "pg_matched" and place.matched_discount:
        numbers = {"discount": place.matched_discount} | numbers
    return make_job(
        RunSpec(
            place.env,
            method,
            steps=args.steps,
            seeds=args.seeds,
            seed=args.seed,
            numbers=numbers,
            env_numbers=place.overrides,
        )
    )


def traced_numbers(job, group, seeds):
    """Each varied real number, `[R]`: the choice's own, or the default."""
    chosen = [{n: v for n, v in c.items() if is_traced(n, v)} for _, c in group]
    names = sorted({name for choice in chosen for name in choice})
    defaults = {name: _default(job.config, name) for name in names}
    return {
        name: jnp.asarray(
            np.repeat([float((defaults | choice)[name]) for choice in chosen], seeds)
        )
        for name in names
    }


def trained(job, traced):
    """Reports of all runs by name, `[R, iterations, ...]`, and seconds."""
    recipe, window = make_recipe(job), remembered_steps(job.params.observer)
    methods = [method_params(m, window) for m in job.methods]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *methods)
    keys = jnp.stack([jax.random.key(s) for s in job.seeds])
    shapes = {}

    def run(key, method, hyper):
        mine = with_numbers(recipe, hyper, job.num_iterations)
        state = initial_state(mine, job.env, job.params, key, job.max_window)

        def one(state, _):
            state, report = train_iteration(mine, job.env, job.params, method, state)
            shapes.update({name: x.shape for name, x in report.items()})
            return state, metrics.pack(report)

        return jax.lax.scan(one, state, None, job.num_iterations)[1]

    began = time.perf_counter()
    program = jax.jit(of_all(run)).lower(keys, stacked, traced).compile()
    compiled = time.perf_counter()
    rows = np.asarray(program(keys, stacked, traced))
    seconds = time.perf_counter() - compiled
    return metrics.unpack(rows, shapes), compiled - began, seconds


def of_all(run):
    """All runs: together on a GPU, one after the other on a CPU, where that is faster."""
    if jax.default_backend() != "cpu":
        return jax.vmap(run)
    return lambda *each: jax.lax.map(lambda one: run(*one), each)


def with_numbers(recipe, hyper, num_iterations):
    """The recipe with some numbers replaced by traced ones."""
    algorithm, config = copy.copy(recipe.config.algorithm), copy.copy(recipe.config)
    costs = _Unchecked(**vars(recipe.config.costs))
    for name, value in hyper.items():
        if name.startswith(COST_PREFIX):
            object.__setattr__(costs, name.removeprefix(COST_PREFIX), value)
        elif hasattr(algorithm, name):
            object.__setattr__(algorithm, name, value)
        else:
            object.__setattr__(config, name, value)
    object.__setattr__(config, "algorithm", algorithm)
    object.__setattr__(config, "costs", costs)
    optimiser = algorithm.make_optimiser(num_iterations)
    learner = dataclasses.replace(recipe.learner, optimiser=optimiser)
    return dataclasses.replace(recipe, learner=learner, config=config)


class _Unchecked(CostConfig):
    """Settings with traced numbers, whose values nobody knows yet."""

    def __post_init__(self):
        """Check nothing."""


def _default(config, name):
    if name.startswith(COST_PREFIX):
        value = getattr(config.costs, name.removeprefix(COST_PREFIX))
    else:
        value = getattr(config.algorithm, name, getattr(config, name, None))
    return 1e12 if value is None else value


def line(row):
    """One row as a line of text."""
    returns = np.asarray(row["returns"], float)
    error = returns.std(ddof=1) / len(returns) ** 0.5 if len(returns) > 1 else 0.0
    known = [c for c in row["cost_corr"] if c is not None]
    corr = f"{np.mean(known):.2f}" if known else "    "
    choice = " ".join(f"{n}={v}" for n, v in row["choice"].items())
    return (
        f"{row['column']:20} {row['method']:16} {returns.mean():8.2f} ± {error:6.2f} "
        f"stop {row['stop_rate']:.2f} corr {corr} {row['compile_s']:5.1f}+"
        f"{row['run_s']:5.1f}s {choice}"
    )


def _parsed(text):
    name, values = text.split("=")
    if name not in NUMBERS:
        raise SystemExit(f"expected a number of a run, got {name!r}")
    return name, [_value(v) for v in values.split(",")]


def _value(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"none": None, "true": True, "false": False}.get(text, text)


if __name__ == "__main__":
    main()
