"""A progress bar in terminals and notebooks, but not in log files."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from termdp.runs.runner import Progress


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[Progress], None] | None]:
    """A function of `Progress` that draws a bar; None where there is no bar."""
    console = Console(stderr=True)
    if not (console.is_terminal or _in_notebook()):
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[what]}"),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("compiling", total=None, what="")
        yield lambda progress: bar.update(task, **shown(progress))


def shown(progress: Progress) -> dict[str, Any]:
    """Means over seeds, for the bar."""

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


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "Terminal" not in type(shell).__name__
