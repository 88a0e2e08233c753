"""`termdp demo`: a small real comparison in a few minutes, and a page about it."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@dataclass(frozen=True)
class Args:
    """Compare PG (plain PPO), TermPG and the oracle, and write a page to look at.

    Example: termdp demo --out demo
    """

    out: Path = Path("demo")
    """Folder for the page and its films."""
    steps: int | None = None
    """Steps per method and seed; 120,000 unless given."""
    seeds: int = 5
    """Number of seeds."""


def run(args: Args) -> None:
    """Train, play, write the page."""
    from termdp.report.demo import DemoSettings, run_demo, verdict
    from termdp.report.demo_page import write_page

    if not 2 <= args.seeds <= 4096:
        raise ValueError(
            f"expected --seeds from 2 (for an interval) to 4096, got {args.seeds}"
        )
    if args.steps is not None and not 1 <= args.steps <= 10**9:
        raise ValueError(f"expected --steps from 1 to {10**9}, got {args.steps}")
    if args.out.exists() and not args.out.is_dir():
        raise ValueError(f"expected a folder for the page, got the file {args.out}")
    defaults = DemoSettings()
    steps = defaults.steps if args.steps is None else args.steps
    settings = DemoSettings(seeds=args.seeds, steps=steps)
    console = Console()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}"),
        console=console,
    ) as bar:
        task = bar.add_task("demo", total=None, what="")

        def on_progress(done: int, total: int, what: str) -> None:
            if done >= 0:
                bar.update(task, completed=done, total=total, what=what)
            else:
                bar.update(task, what=what)

        results = run_demo(settings, on_progress)
        bar.update(task, what="drawing the page")
        page = write_page(results, settings, args.out)
    print(verdict(results))
    print(f"look at {page.resolve()}")
