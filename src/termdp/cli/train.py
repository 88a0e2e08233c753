"""`termdp train`: train a method and keep the run on disk."""

import dataclasses
import json
import re
import signal
import sys
import typing
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from termdp.agents.methods import Method
from termdp.cli.pairs import name_and_value, parsed
from termdp.costs.config import COST_PREFIX, CostConfig
from termdp.runs.config import (
    ALGORITHMS,
    ALIASES,
    GROUPS,
    NUMBERS,
    TrainConfig,
)
from termdp.settings import expectation, nearest

MOST_MINUTES = 366 * 24 * 60
Word = tyro.conf.Positional[str | None]
COLUMNS = (
    *("seed", "return_mean", "length_mean", "stop_rate", "game_over_rate"),
    *("cost_mae", "cost_corr", "bias"),
)


def _types() -> dict[str, Any]:
    """The type of every number, by flat name."""
    found: dict[str, Any] = {}
    for settings in (Method, *ALGORITHMS.values(), TrainConfig):
        found |= typing.get_type_hints(settings)
    of_costs = typing.get_type_hints(CostConfig)
    return found | {COST_PREFIX + name: hint for name, hint in of_costs.items()}


TYPES = _types()


def _flags(group: str) -> type:
    """A dataclass with one optional flag per number of the group."""
    fields = []
    for name, field in GROUPS[group].items():
        expected = expectation(TYPES[name], field.metadata)
        says_something = field.metadata["choices"] or any(
            limit is not None for limit in field.metadata["limits"].values()
        )
        about = field.metadata["about"]
        about += f" {expected.capitalize()}." if says_something else ""
        old = [f"--{a.replace('_', '-')}" for a, new in ALIASES.items() if new == name]
        arg = tyro.conf.arg(
            help=about,
            help_behavior_hint="",
            metavar=_metavar(name),
            aliases=old or None,
        )
        fields.append((name, Annotated[str | None, arg], None))
    name = f"{group.title().replace(' ', '')}Flags"
    made = dataclasses.make_dataclass(name, fields, frozen=True)
    made.__doc__ = f"Numbers of the {group}; the preset gives the rest."
    return made


def _metavar(name: str) -> str:
    kinds = typing.get_args(TYPES[name]) or (TYPES[name],)
    words = {int: "INT", float: "FLOAT", str: "WORD", bool: "true|false"}
    return "|".join(words[kind] for kind in kinds if kind in words)


NO_PREFIX = tyro.conf.arg(name="")
OF_METHOD, OF_ALGORITHM = _flags("method"), _flags("algorithm")
OF_SIZES, OF_COSTS = _flags("sizes"), _flags("cost learner")


@dataclass(frozen=True)
class Args:
    """Train agents under an observer, several seeds at once.

    Example: termdp train breakout termpg --steps 1000000 --seeds 5 --out runs/breakout
    """

    env: Annotated[Word, tyro.conf.arg(metavar="ENV")] = None
    """Environment (`termdp envs`), or gym:ID for an environment of Gymnasium."""
    method: Annotated[Word, tyro.conf.arg(metavar="METHOD")] = None
    """Method (`termdp methods`)."""
    steps: int | None = None
    """Steps per seed; 1,000,000 unless given. With --resume: the total, old steps too."""
    seeds: int | None = None
    """Number of seeds, trained at the same time; 1 unless given."""
    seed: int | None = None
    """First seed; 0 unless given."""
    preset: str | None = None
    """fast (default) or paper."""
    algorithm: str | None = None
    """Policy-gradient algorithm: ppo (default) or a2c."""
    config: Path | None = None
    """TOML or JSON file of numbers; flags override it."""
    print_config: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print all numbers of this run as TOML (for --config) and exit."""
    out: Path | None = None
    """Folder of the run; runs/ENV-METHOD unless given."""
    resume: Path | None = None
    """Continue the run in this folder; no other argument is needed."""
    init_from: Path | None = None
    """Start from the policy and cost networks of this run."""
    observer: Path | None = None
    """File of a fitted observer: replaces the environment's, or watches gym:ID."""
    no_observer: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Train without an observer: nobody stops the game."""
    window: int | None = None
    """Steps that the observer remembers; for gym:ID, the window of the learned costs."""
    bias: float | None = None
    """The observer's bias b; a larger one is more patient."""
    set: tuple[str, ...] = ()
    """Other numbers of the environment, as NAME=VALUE."""
    snapshots: int | None = None
    """How many policies to keep during training; none unless given."""
    checkpoint_minutes: float = 2.0
    """Minutes between checkpoints."""
    tensorboard: bool = False
    """Also write TensorBoard events into the run's folder (extra `tensorboard`)."""
    wandb: bool = False
    """Also report to Weights & Biases (extra `wandb`)."""
    json: bool = False
    """Print only the summary on standard output, as JSON."""
    # These classes are made at run time, so mypy cannot know them.
    of_method: Annotated[OF_METHOD, NO_PREFIX] = OF_METHOD()  # type: ignore[valid-type]
    of_algorithm: Annotated[OF_ALGORITHM, NO_PREFIX] = OF_ALGORITHM()  # type: ignore[valid-type]
    of_sizes: Annotated[OF_SIZES, NO_PREFIX] = OF_SIZES()  # type: ignore[valid-type]
    of_costs: Annotated[OF_COSTS, NO_PREFIX] = OF_COSTS()  # type: ignore[valid-type]


_RUN = ("env", "method", "steps", "seeds", "seed", "preset", "algorithm", "snapshots")


def run(args: Args) -> None:
    """Train, show progress, save; Ctrl-C saves and says how to resume."""
    if args.no_observer and args.observer is not None:
        raise ValueError("expected --observer or --no-observer, got both")
    if not 0 < args.checkpoint_minutes <= MOST_MINUTES:
        raise ValueError(
            f"expected --checkpoint-minutes above 0 and at most {MOST_MINUTES} (a year), "
            f"got {args.checkpoint_minutes}"
        )
    if args.print_config:
        _print_config(args)
        return
    warnings.showwarning = _say_warning
    if args.resume is None:
        out, begin = _begin(args)
    else:
        out, begin = args.resume, _resume(args, args.resume)
    from termdp.runs import loggers
    from termdp.runs.progress import progress_bar

    with progress_bar() as draw, loggers.open_all(args, out) as log:

        def on_progress(progress: Any) -> None:
            if draw is not None:
                draw(progress)
            log(progress)

        result = begin(
            on_progress=on_progress,
            should_stop=_stop_on_interrupt(),
            checkpoint_seconds=60.0 * args.checkpoint_minutes,
        )
    if result.summary is None:
        print(
            f"interrupted and saved. Continue with: termdp train --resume {out}",
            file=sys.stderr,
        )
        sys.exit(130)
    _show(result.summary, out, args.json)


def given_numbers(args: Args) -> dict[str, Any]:
    """Numbers of the run and the environment given as flags, by flat name."""
    found: dict[str, Any] = {}
    for group in (args.of_method, args.of_algorithm, args.of_sizes, args.of_costs):
        for name, text in vars(group).items():
            if text is not None:
                found[name] = _value(name, text)
    for name in ("window", "bias"):
        if getattr(args, name) is not None:
            found[name] = getattr(args, name)
    for pair in args.set:
        name, value = name_and_value(pair)
        found[name] = value
    return found


def _value(name: str, text: str) -> Any:
    """A flag's text, converted to the number's type."""
    kinds = typing.get_args(TYPES[name]) or (TYPES[name],)
    value = text if str in kinds and text.lower() != "none" else parsed(text)
    if value is not None and not isinstance(value, str) and str in kinds:
        value = text
    if isinstance(value, str) and str not in kinds:
        expected = expectation(TYPES[name], NUMBERS[name].metadata)
        flag = name.replace("_", "-")
        raise ValueError(f"expected --{flag} to be {expected}, got {text!r}")
    return value


def _asked(args: Args) -> tuple[dict[str, Any], dict[str, Any]]:
    """The run's arguments and its numbers; flags override the file."""
    from termdp.runs.spec import read_config

    in_file = {} if args.config is None else read_config(args.config)
    flags = {name: getattr(args, name) for name in _RUN}
    asked = {name: in_file.pop(name) for name in _RUN if name in in_file}
    asked |= {name: value for name, value in flags.items() if value is not None}
    return asked, in_file | given_numbers(args)


def _begin(args: Args) -> tuple[Path, Callable[..., Any]]:
    from termdp.runs.train import train

    asked, numbers = _asked(args)
    if "env" not in asked or "method" not in asked:
        raise ValueError(
            "expected an environment and a method (termdp train breakout termpg), "
            "or --resume DIR"
        )
    env, method = asked.pop("env"), asked.pop("method")
    out = args.out or Path("runs") / f"{_as_file_name(env)}-{method}"
    observer: Any = False if args.no_observer else args.observer

    def begin(**controls: Any) -> Any:
        return train(
            env,
            method,
            out=out,
            observer=observer,
            init_from=args.init_from,
            config=numbers,
            **asked,
            **controls,
        )

    return out, begin


def _as_file_name(env: str) -> str:
    """An id as part of a folder's name: gym:a/B-v0 becomes a-B-v0."""
    return re.sub("[:/]", "-", env.removeprefix("gym:"))


def _resume(args: Args, out: Path) -> Callable[..., Any]:
    from termdp.runs.train import resume

    asked, numbers = _asked(args)
    steps = asked.pop("steps", None)
    _check_same(args, out, asked | numbers)
    return lambda **controls: resume(out, steps=steps, **controls)


def _check_same(args: Args, out: Path, given: dict[str, Any]) -> None:
    """Refuse arguments that contradict the run to resume."""
    from termdp.runs.folder import RunFolder

    folder, spec = RunFolder.open(out)
    known = {
        **folder.numbers(),
        **spec.env_numbers,
        **{name: getattr(spec, name) for name in _RUN},
    }
    for name, value in given.items():
        if known.get(name) != value:
            flag = name if name in ("env", "method") else f"--{name.replace('_', '-')}"
            why = "" if name in known else f" {nearest(name, known)}"
            raise ValueError(
                f"expected {flag} {known.get(name)} as in {out}, got {value}: a run "
                f"resumes with the configuration it began with.{why}"
            )
    if args.no_observer and spec.observer is not False:
        raise ValueError(f"expected no --no-observer: the run in {out} has an observer")
    if args.observer is not None and not _same_file(args.observer, spec.observer):
        raise ValueError(
            f"expected the observer that the run in {out} began with, got "
            f"{args.observer}: leave it out"
        )
    if args.out is not None and args.out.resolve() != out.resolve():
        raise ValueError(f"expected no --out next to --resume {out}, got {args.out}")
    if args.init_from is not None:
        raise ValueError(f"expected no --init-from next to --resume {out}")


def _same_file(given: Path, known: Any) -> bool:
    return isinstance(known, str) and given.read_bytes() == Path(known).read_bytes()


def _print_config(args: Args) -> None:
    from termdp.runs.spec import config_as_toml, make_job, make_spec

    asked, numbers = _asked(args)
    env, method = asked.pop("env", "breakout"), asked.pop("method", "termpg")
    observer = False if args.no_observer else args.observer
    algorithm = asked.pop("algorithm", "ppo")
    spec = make_spec(env, method, None, algorithm, observer, numbers, **asked)
    job = make_job(spec)
    print(config_as_toml(spec, job.methods[0], job.config), end="")


def _say_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"termdp: warning: {message}", file=sys.stderr)


def _stop_on_interrupt() -> Callable[[], bool]:
    """First Ctrl-C: finish the chunk, save, stop. Second: stop at once."""
    asked: list[int] = []

    def on_signal(signum: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(signum)
        print(
            "stopping after this chunk; press Ctrl-C again to drop it", file=sys.stderr
        )

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, on_signal)
    return lambda: bool(asked)


def _show(summary: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    title = (
        f"{summary['env']} {summary['method']}: {summary['steps']:,} steps per seed, "
        f"{summary['steps_per_s']:,.0f}/s; last tenth of training"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name.replace("_", " "), justify="right")
    for row in summary["seeds"]:
        table.add_row(*("–" if row[n] is None else f"{row[n]:.4g}" for n in COLUMNS))
    Console().print(table)
    print(f"run saved in {out}. Use it: termdp eval {out}")
