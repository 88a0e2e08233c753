"""`termdp fit`: an observer from a log of sessions and their stops."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

FIT_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Args:
    """Fit an observer to a log: what makes people stop, how long they remember.

    A log is a table with one row per step, in order, session after session: Parquet,
    CSV, a LeRobot v3 folder, or minari:ID. A start–stop survival table (id, start, stop,
    event, covariates) works too, with --interval.

    The results are the observer (for `termdp train ENV METHOD --observer
    DIR/observer.safetensors`), fit.json, stops.csv and a page to look at.

    Example: termdp fit log.parquet --session user --stopped left --observations o0 o1
    --actions a --out fits/users
    """

    log: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="LOG")]
    """A .parquet or .csv file, a LeRobot folder, or minari:ID."""
    out: Path
    """Folder for the results; it must not exist."""
    session: str | None = None
    """Column with the same value on all rows of a session."""
    stopped: str | None = None
    """Column that is true on the row after which the observer stopped the session."""
    observations: tuple[str, ...] = ()
    """Columns with the observation of each step, all numbers."""
    actions: tuple[str, ...] = ()
    """The action: one column of whole numbers from 0, or columns of real numbers."""
    ended: str | None = None
    """Column that is true on the last row of a session that ended without a stop."""
    time: str | None = None
    """Column that must rise within a session; used only as a check."""
    interval: tuple[str, str] | None = None
    """Columns with the start and stop times of a survival table."""
    step: float = 1.0
    """Length of a time step in a survival table."""
    model: str = "linear"
    """linear (with intervals) or network."""
    memory: str = "window"
    """window, leak (exponential forgetting), or best: the better of the two."""
    window: int | None = None
    """Steps that the observer remembers, if known."""
    windows: tuple[int, ...] = ()
    """Windows to compare on held-out sessions; a grid from 1 to 320 unless given."""
    delays: tuple[int, ...] = (0,)
    """Reaction delays to compare, in steps."""
    bins: int | None = None
    """Cut observations into this many bins."""
    binned: tuple[str, ...] = ()
    """Which observations to cut; all unless given."""
    interactions: tuple[str, ...] = ()
    """Products of two columns, as speed*action."""
    num_actions: int | None = None
    """Number of possible actions, if the log does not show them all."""
    seed: int = 0
    """Seed of folds, samples and bootstraps."""
    json: bool = False
    """Print fit.json."""


def run(args: Args) -> None:
    """Fit, write the results, print a summary."""
    from rich.console import Console

    from termdp.files import room_for
    from termdp.logs.fit import fit
    from termdp.logs.folder import check_new, write_fit

    check_new(args.out)
    if not 0 <= args.seed < 2**32:
        raise ValueError(f"expected --seed from 0 to {2**32 - 1}, got {args.seed}")
    with Console(stderr=True).status("reading") as status:
        with room_for(args.out, FIT_BYTES):
            found = fit(
                args.log,
                session=args.session,
                stopped=args.stopped,
                observations=args.observations,
                actions=args.actions,
                ended=args.ended,
                time=args.time,
                interval=args.interval,
                step=args.step,
                model=args.model,
                memory=args.memory,
                window=args.window,
                windows=args.windows or None,
                delays=args.delays,
                bins=args.bins,
                binned=args.binned,
                interactions=args.interactions,
                num_actions=args.num_actions,
                seed=args.seed,
                on_progress=status.update,
            )
        status.update("drawing")
        summary = write_fit(found, args.out)
    if args.json:
        print(json.dumps(summary, indent=2))
        return
    between = summary["window_interval"] or summary["leak_interval"]
    sure = "" if between is None else " (95%: {:.3g} … {:.3g})".format(*between)
    print(
        f"{summary['stops']} stops in {summary['sessions']} sessions: {found.memory}"
        f"{sure}, bias {found.bias:.3g}, held-out AUC {summary['auc']:.3f}, log loss "
        f"{summary['log_loss']:.4g} (constant: {summary['baseline_log_loss']:.4g})"
    )
    for note in summary["notes"]:
        print(f"note: {note}")
    print(
        f"results in {args.out}: index.html, fit.json, stops.csv, observer.safetensors"
    )
