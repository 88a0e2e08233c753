"""`termdp bench`: run a benchmark suite."""

import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from termdp.cli.pairs import name_and_value

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Args:
    """Run a suite of experiments: methods × environments × seeds.

    Example: termdp bench paper --seeds 5 --out results/paper
    """

    suite: Annotated[
        tyro.conf.Positional[str | None], tyro.conf.arg(metavar="SUITE")
    ] = None
    """Suite (`termdp bench --list`)."""
    list: bool = False
    """Show what each suite runs and about how long it takes here."""
    engine: str = "local"
    """local: all devices of this machine. ray: a Ray cluster (extra `ray`)."""
    address: str | None = None
    """Address of the Ray cluster; unless given, one is started on this machine."""
    seeds: int | None = None
    """Runs per cell; the suite's number unless given (5 for most)."""
    seed: int = 0
    """First seed."""
    steps: int | None = None
    """Steps per run; the suite's number unless given (1,000,000 for most)."""
    preset: str = "fast"
    """fast or paper."""
    envs: tuple[str, ...] | None = None
    """Only these environments of the suite."""
    methods: tuple[str, ...] | None = None
    """Only these methods of the suite."""
    end_handling: Annotated[str | None, tyro.conf.arg(aliases=["--stop-handling"])] = (
        None
    )
    """How all methods treat ends: expected, cut or ignored."""
    set: tuple[str, ...] = ()
    """Numbers of algorithm, sizes and cost learner for all methods, as NAME=VALUE."""
    out: Path | None = None
    """Folder of the results; results/SUITE unless given."""
    resume: bool = False
    """Run only what the folder lacks."""
    runs_per_job: int | None = None
    """Most runs in one compiled program; unless given, engine and device decide."""
    gather: tuple[Path, ...] = ()
    """Run nothing: put the results of these folders together in OUT."""
    agents: bool = False
    """Also keep the agents of the first seed in OUT/agents, for termdp.load."""
    json: bool = False
    """Print only JSON on standard output, for programs."""


def run(args: Args) -> None:
    """Plan, run and save; exit with code 1 if a job failed."""
    if args.list:
        _show_suites(args)
        return
    if args.gather:
        _gather(args)
        return
    if args.suite is None:
        raise ValueError("expected a suite (termdp bench paper), or --list")
    from termdp.bench.suites import find_suite

    find_suite(args.suite)
    engine, platform, jobs_at_once = _engine(args)
    from termdp.bench.plan import make_jobs
    from termdp.bench.speeds import Speeds
    from termdp.bench.sweep import sweep
    from termdp.bench.sweep_folder import SweepFolder, check_unused
    from termdp.cli.bench_progress import shown
    from termdp.folder_lock import only_writer

    plan = _plan(args, args.suite)
    speeds = Speeds(platform)
    most_runs = _most_runs(args, plan, platform)
    out = args.out or Path("results") / args.suite
    command = "termdp " + shlex.join(sys.argv[1:])
    begin = SweepFolder.reopen if args.resume else SweepFolder.create
    if not args.resume:
        check_unused(out)
    with only_writer(out):
        folder = begin(out, plan, command)
        for label, why in plan.left_out.items():
            print(f"termdp: {label} is left out: {why}", file=sys.stderr)
        finished = folder.finished()
        jobs = make_jobs(plan, finished, most_runs, as_alone=platform == "cpu")
        with shown(jobs, speeds, jobs_at_once) as hear:
            try:
                outcome = sweep(engine(jobs), folder, speeds, hear)
            except KeyboardInterrupt:
                outcome = None
    if outcome is None:
        print(
            f"interrupted; finished runs are in {out}. Continue with the same command "
            "and --resume",
            file=sys.stderr,
        )
        sys.stderr.flush()
        # A thread may be inside a compilation that cannot be interrupted.
        os._exit(130)
    _tell(args, out, outcome, len(finished))
    if outcome.failures:
        sys.exit(1)


def _gather(args: Args) -> None:
    from termdp.bench.gather import gather
    from termdp.pages import counted

    only = Args(gather=args.gather, out=args.out, json=args.json)
    if args.out is None or args != only:
        raise ValueError(
            "expected --gather with --out and nothing else: termdp bench --gather "
            "results/part1 results/part2 --out results/whole"
        )
    found = gather(args.gather, args.out)
    if args.json:
        print(json.dumps({"out": str(args.out), **vars(found)}, indent=2))
        return
    print(f"{counted(found.runs, 'run')} in {args.out}")
    if found.repeated:
        print(f"{counted(found.repeated, 'run')} left out: an earlier folder has them")
    if found.outdated:
        print(
            f"{counted(found.outdated, 'run')} left out: an earlier folder has their "
            "method and environment with other settings"
        )


def _plan(args: Args, suite: str) -> Any:
    from termdp.bench.plan import make_plan
    from termdp.bench.suites import find_suite

    numbers = dict(map(name_and_value, args.set))
    if args.end_handling is not None:
        numbers["end_handling"] = args.end_handling
    return make_plan(
        find_suite(suite),
        args.seeds,
        args.steps,
        args.preset,
        args.envs,
        args.methods,
        numbers,
        args.seed,
    )


def _engine(args: Args) -> tuple[Any, str, int]:
    """The engine (a function from jobs to events), its platform, its jobs at once."""
    if args.engine not in ENGINES:
        raise ValueError(
            f"expected an engine ({', '.join(ENGINES)}), got {args.engine!r}"
        )
    if args.engine == "local":
        if args.address is not None:
            raise ValueError(
                f"expected --address with --engine ray only, got {args.address}: add "
                "--engine ray, or leave out --address"
            )
        from functools import partial

        from termdp.bench.local import run_local

        agents_of = args.seed if args.agents else None
        return partial(run_local, agents_of=agents_of), _platform(), 1
    if args.agents:
        raise ValueError(
            "expected --agents with the engine local only: workers of a cluster send "
            "back numbers, not networks"
        )
    from termdp.bench import cluster

    # Before JAX starts: Ray forks, and its workers need the devices.
    engine = cluster.connect(args.address)
    import jax

    jax.config.update("jax_platforms", "cpu")
    return engine, cluster.platform(), cluster.jobs_at_once()


def _platform() -> str:
    import jax

    return str(jax.devices()[0].platform)


def _most_runs(args: Args, plan: Any, platform: str) -> Any:
    """How many runs a job may hold: as given, or what suits the engine."""
    if args.runs_per_job is not None:
        if args.runs_per_job < 1:
            raise ValueError(
                f"expected --runs-per-job to be at least 1, got {args.runs_per_job}"
            )
        return lambda job: args.runs_per_job
    if args.engine == "ray":
        return lambda job: plan.seeds
    from termdp.bench.local import runs_per_job

    return lambda job: runs_per_job(job, platform)


def _show_suites(args: Args) -> None:
    from termdp.bench.plan import make_jobs
    from termdp.bench.speeds import Speeds
    from termdp.bench.suites import SUITES

    platform = _platform()
    speeds = Speeds(platform)
    rows = []
    for name in SUITES if args.suite is None else (args.suite,):
        plan = _plan(args, name)
        most_runs = _most_runs(args, plan, platform)
        jobs = make_jobs(plan, most_runs=most_runs, as_alone=platform == "cpu")
        rows.append(
            {
                "suite": name,
                "about": SUITES[name].about,
                "environments": list(dict.fromkeys(c.column.label for c in plan.cells)),
                "left_out": plan.left_out,
                "methods": list(dict.fromkeys(c.row.label for c in plan.cells)),
                "seeds": plan.seeds,
                "steps": plan.steps,
                "runs": len(plan.runs),
                "programs": len(jobs),
                "seconds": round(speeds.seconds(jobs)),
                "speed_measured_here": all(speeds.is_measured(job) for job in jobs),
            }
        )
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    _print_suites(rows)


def _print_suites(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.padding import Padding

    from termdp.pages import counted

    console = Console()
    for row in rows:
        star = "" if row["speed_measured_here"] else "*"
        console.print(
            f"[bold]{row['suite']}[/bold]  {row['about']}\n"
            f"  {row['runs']} runs of {row['steps']:,} steps ({row['seeds']} seeds) "
            f"in {counted(row['programs'], 'program')}: "
            f"[bold]about {duration(row['seconds'])}{star}[/bold]",
            highlight=False,
        )
        for name in ("environments", "methods"):
            words = "  ".join(row[name])
            console.print(Padding(f"[dim]{name}[/dim]  {words}", (0, 0, 0, 2)))
        for label, why in row["left_out"].items():
            console.print(Padding(f"[dim]without {label}: {why}[/dim]", (0, 0, 0, 2)))
        console.print()
    if not all(row["speed_measured_here"] for row in rows):
        print("* estimated from another machine's speed; no such job has run here yet")


def duration(seconds: float) -> str:
    """A time in words, with a fitting unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.1f} days"


def _tell(args: Args, out: Path, outcome: Any, before: int) -> None:
    failures = [
        {"runs": [list(key) for key in keys], "error": error}
        for keys, error in outcome.failures
    ]
    if args.json:
        found = {
            "out": str(out),
            "finished": len(outcome.finished),
            "finished_before": before,
            "failures": failures,
            "wall_s": round(outcome.seconds, 3),
        }
        print(json.dumps(found, indent=2))
        return
    already = f" ({before} had finished before)" if before else ""
    print(
        f"{len(outcome.finished)} runs finished{already} in {duration(outcome.seconds)}; "
        f"results in {out}. Look at them: termdp report {out}"
    )
    for failure in failures:
        first = "/".join(str(part) for part in failure["runs"][0])
        more = len(failure["runs"]) - 1
        others = f" and {more} more" if more else ""
        print(f"failed: {first}{others}: {failure['error']}", file=sys.stderr)
