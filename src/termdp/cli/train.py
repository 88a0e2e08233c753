"""`termdp train`: train a method and keep the run on disk."""

import dataclasses
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

Word = tyro.conf.Positional[str | None]


@dataclass(frozen=True)
class Args:
    """Train an agent under an observer; seeds run side by side.

    Example: termdp train breakout termpg --steps 1000000 --seeds 5 --out runs/breakout
    """

    env: Annotated[Word, tyro.conf.arg(metavar="ENV")] = None
    """Environment (`termdp envs`)."""
    method: Annotated[Word, tyro.conf.arg(metavar="METHOD")] = None
    """Method (`termdp methods`)."""
    steps: int | None = None
    """Decisions per seed; 1,000,000 unless given."""
    seeds: int | None = None
    """Number of seeds, run side by side; 1 unless given."""
    seed: int | None = None
    """First seed; 0 unless given."""
    preset: str | None = None
    """fast (default) or paper."""
    out: Path | None = None
    """Folder of the run; runs/ENV-METHOD unless given."""
    resume: Path | None = None
    """Go on with the run in this folder; nothing else is needed."""
    observer: Path | None = None
    """File of a fitted observer (`termdp studies fit`) instead of the benchmark's."""
    no_observer: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Nobody watches: the bare game."""
    stop_handling: str | None = None
    """What a stop is for the values: expected, cut or ignored."""
    optimism: str | None = None
    """How cost networks become one: min, std, mean or logit."""
    window_factor: float | None = None
    """The learner's window over the observer's."""
    discount: float | None = None
    """Constant discount of methods without the dynamic one."""
    horizon: float | None = None
    """Constant that the dynamic discount is multiplied by."""
    stop_penalty: float | None = None
    """p, taken from the reward on a stop."""
    cost_penalty: float | None = None
    """α in r − α·C."""
    bonus: float | None = None
    """α in r + α·U(C)."""
    std_factor: float | None = None
    """α in mean − α·std."""
    uncertainty: str | None = None
    """U as range (max − min) or std."""
    snapshots: int | None = None
    """Policies to keep on the way, from the first to the last; none unless given."""
    checkpoint_minutes: float = 2.0
    """Time between checkpoints."""
    tensorboard: bool = False
    """Also write TensorBoard events into the run's folder (extra `tensorboard`)."""
    wandb: bool = False
    """Also report to Weights & Biases (extra `wandb`)."""
    json: bool = False
    """Print the summary as JSON and nothing else on standard output."""


_RUN = ("env", "method", "steps", "seeds", "seed", "preset", "snapshots")
_METHOD = (
    "stop_handling",
    "optimism",
    "window_factor",
    "discount",
    "horizon",
    "stop_penalty",
    "cost_penalty",
    "bonus",
    "std_factor",
    "uncertainty",
)


def run(args: Args) -> None:
    """Train, show progress, save; Ctrl-C saves and says how to go on."""
    from termdp.runs import loggers
    from termdp.runs.train import resume, train

    if args.no_observer and args.observer is not None:
        raise ValueError("expected --observer or --no-observer, got both")
    every = {name: getattr(args, name) for name in (*_RUN, *_METHOD)}
    given: dict[str, Any] = {k: v for k, v in every.items() if v is not None}
    stop = _stop_on_interrupt()
    console = Console(stderr=True)
    if args.resume is not None:
        out = args.resume
        _check_same(out, given, args)
    else:
        if args.env is None or args.method is None:
            raise ValueError(
                "expected an environment and a method (termdp train breakout termpg), "
                "or --resume DIR"
            )
        out = args.out or Path("runs") / f"{args.env}-{args.method}"
    with _bar(console) as bar, loggers.open_all(args, out) as log:
        task = bar.add_task("compiling", total=None, what="")

        def listen(progress: Any) -> None:
            bar.update(task, **_shown(progress))
            log(progress)

        controls: dict[str, Any] = {
            "listen": listen,
            "should_stop": stop,
            "checkpoint_seconds": 60.0 * args.checkpoint_minutes,
        }
        if args.resume is not None:
            result = resume(out, **controls)
        else:
            options: dict[str, Any] = dict(given)
            env, method = options.pop("env"), options.pop("method")
            if args.no_observer or args.observer is not None:
                options["observer"] = args.observer or False
            result = train(env, method, out=out, **options, **controls)
    if result.summary is None:
        print(
            f"interrupted; saved. Go on with: termdp train --resume {out}",
            file=sys.stderr,
        )
        sys.exit(130)
    _show(result.summary, out, args.json)


def _check_same(out: Path, given: dict[str, Any], args: Args) -> None:
    """An argument next to --resume must not contradict the run."""
    from termdp.agents.methods import find_method
    from termdp.runs.folder import RunFolder

    _, settings = RunFolder.open(out)
    method = find_method(settings.method, **settings.method_changes)
    method = method.for_environment(settings.env)
    known = dataclasses.asdict(method) | dataclasses.asdict(settings)
    known["stop_handling"] = method.handles_stops
    for name, value in given.items():
        if known.get(name) != value:
            flag = name if name in ("env", "method") else f"--{name.replace('_', '-')}"
            raise ValueError(
                f"expected {flag} {known.get(name)} as in {out}, got {value}: a run "
                "resumes with the configuration it began with"
            )
    _check_same_observer(out, settings.env_overrides.get("observer"), args)
    if args.out is not None and args.out.resolve() != out.resolve():
        raise ValueError(f"expected no --out next to --resume {out}, got {args.out}")


def _check_same_observer(out: Path, known: Any, args: Args) -> None:
    """--observer and --no-observer next to --resume must say what the run has."""
    if args.no_observer and known is not False:
        raise ValueError(f"expected no --no-observer: the run in {out} has an observer")
    if args.observer is None:
        return
    has_file = isinstance(known, str)
    if not has_file or args.observer.read_bytes() != Path(known).read_bytes():
        raise ValueError(
            f"expected the observer that the run in {out} began with, got "
            f"{args.observer}: leave it out"
        )


def _stop_on_interrupt() -> Callable[[], bool]:
    """First Ctrl-C: finish the chunk, save, stop. Second: stop at once."""
    asked: list[int] = []

    def on_signal(signum: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(signum)
        print("stopping after this chunk; Ctrl-C again to drop it", file=sys.stderr)

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, on_signal)
    return lambda: bool(asked)


def _bar(console: Console) -> ProgressBar:
    return ProgressBar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[what]}"),
        console=console,
        disable=not console.is_terminal,
    )


def _shown(progress: Any) -> dict[str, Any]:
    """Means over seeds for the progress bar."""

    def mean(name: str) -> str:
        values = [row[name] for row in progress.rows if row.get(name) is not None]
        return f"{sum(values) / len(values):.3g}" if values else "–"

    rate = progress.step * len(progress.rows) / max(progress.seconds, 1e-9)
    what = (
        f"return {mean('return_mean')}  length {mean('length_mean')}  "
        f"stopped {mean('stop_rate')}  cost error {mean('cost_mae')}  {rate:,.0f}/s"
    )
    return {
        "description": f"{progress.step:,} steps",
        "total": progress.steps,
        "completed": progress.step,
        "what": what,
    }


def _show(summary: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    title = (
        f"{summary['env']} {summary['method']}: {summary['steps']:,} steps per seed, "
        f"{summary['steps_per_s']:,.0f}/s; last tenth of training"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    names = list(summary["seeds"][0])
    for name in names:
        # As `termdp eval` says it; the longer word would be cut in 80 columns.
        heading = name.replace("terminated", "game over").replace("_", " ")
        table.add_column(heading, justify="right")
    for row in summary["seeds"]:
        table.add_row(*("–" if row[n] is None else f"{row[n]:.4g}" for n in names))
    Console().print(table)
    print(f"run saved in {out}")
