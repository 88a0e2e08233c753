"""Progress of a sweep: a table on a terminal, one line per job elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from termdp.bench.events import Event
from termdp.bench.plan import BenchJob
from termdp.bench.speeds import Speeds

STYLES = {
    "waiting": "dim",
    "sent": "dim",
    "started": "cyan",
    "running": "bold",
    "finished": "green",
    "failed": "red",
}


@contextlib.contextmanager
def shown(
    jobs: list[BenchJob], speeds: Speeds, jobs_at_once: int = 1
) -> Iterator[Callable[[Event], None]]:
    """Show a sweep on standard error; yields the function to call with its events."""
    progress = Progress(jobs, speeds, jobs_at_once)
    if not sys.stderr.isatty():
        yield lambda event: _tell(progress, event)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(
        get_renderable=lambda: picture(progress, console.height),
        console=console,
        refresh_per_second=4,
    ):
        yield progress.hear


class Progress:
    """Jobs done, running, failed, and the time left."""

    def __init__(self, jobs: list[BenchJob], speeds: Speeds, jobs_at_once: int = 1):
        self.jobs = jobs
        self.jobs_at_once = jobs_at_once
        self.speeds = speeds
        self.state = {job.name: "waiting" for job in jobs}
        self.fraction = {job.name: 0.0 for job in jobs}
        self.notes = {job.name: "" for job in jobs}
        self.began = time.perf_counter()

    def hear(self, event: Event) -> None:
        """Handle one event of an engine."""
        name = event.job.name
        self.state[name] = event.kind
        self.fraction[name] = event.fraction
        if event.result is not None:
            facts = event.result.facts
            self.notes[name] = (
                f"{facts['steps_per_s']:,.0f}/s, {facts['wall_s']:.0f} s "
                f"+ {facts['compile_s']:.0f} s compiling"
            )
        if event.error:
            self.notes[name] = event.error

    def seconds_left(self) -> float:
        """Time left at the expected speed of each job, without compilation."""
        each = [
            (1.0 - self.fraction[job.name]) * job.all_steps / self.speeds.of(job)
            for job in self.jobs
            if self.state[job.name] not in ("finished", "failed")
        ]
        return max(sum(each) / self.jobs_at_once, max(each, default=0.0))

    def counts(self) -> str:
        """One line: jobs by state, time spent and time left."""
        states = list(self.state.values())
        done, failed = states.count("finished"), states.count("failed")
        running, sent = states.count("running"), states.count("sent")
        waiting = states.count("started") + states.count("waiting")
        now = f"{running} running, {waiting} waiting or compiling"
        if sent:
            now = f"{sent} with the cluster"
        spent = time.perf_counter() - self.began
        return (
            f"{done} of {len(states)} jobs done, {now}, {failed} failed; "
            f"{_clock(spent)} spent, about {_clock(self.seconds_left())} left"
        )


def _tell(progress: Progress, event: Event) -> None:
    progress.hear(event)
    if event.kind in ("finished", "failed"):
        name = event.job.name
        line = f"{progress.counts()} | {name}: {event.kind}, {progress.notes[name]}"
        print(line, file=sys.stderr, flush=True)


def picture(progress: Progress, height: int) -> Any:
    """The table: all jobs if they fit on the screen, else the unfinished ones."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    room, jobs = max(4, height - 4), progress.jobs
    if len(jobs) > room:
        jobs = [job for job in jobs if progress.state[job.name] != "finished"][:room]
    table = Table(box=None, pad_edge=False, show_header=False)
    for job in jobs:
        state = progress.state[job.name]
        table.add_row(
            job.name,
            Text(f"{len(job.runs)} runs", style="dim"),
            Text("compiling" if state == "started" else state, style=STYLES[state]),
            ProgressBar(total=1.0, completed=progress.fraction[job.name], width=24),
            Text(progress.notes[job.name], "dim", overflow="ellipsis", no_wrap=True),
        )
    return Group(Text(progress.counts()), table)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
