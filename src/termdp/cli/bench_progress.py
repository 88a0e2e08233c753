"""The table that shows a sweep at work."""

import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from termdp.bench.events import Event
from termdp.bench.plan import BenchJob
from termdp.bench.speeds import Speeds

STATES = {
    "waiting": "dim",
    "started": "cyan",
    "running": "bold",
    "finished": "green",
    "failed": "red",
}


class ProgressTable:
    """Jobs done, running, failed, and the time left; plain lines where nobody looks."""

    def __init__(self, jobs: list[BenchJob], speeds: Speeds, console: Console):
        self.jobs = jobs
        self.speeds = speeds
        self.console = console
        self.state = {job.name: "waiting" for job in jobs}
        self.fraction = {job.name: 0.0 for job in jobs}
        self.notes = {job.name: "" for job in jobs}
        self.began = time.perf_counter()
        self.live: Live | None = None

    def __enter__(self) -> "ProgressTable":
        if self.console.is_terminal:
            self.live = Live(
                get_renderable=self._picture, console=self.console, refresh_per_second=4
            )
            self.live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.live is not None:
            self.live.__exit__(*error)

    def hear(self, event: Event) -> None:
        """Take note of what an engine tells."""
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
        if self.live is None and event.kind in ("finished", "failed"):
            print(
                f"{self._counts()} | {name}: {event.kind}, {self.notes[name]}",
                file=self.console.file,
                flush=True,
            )

    def seconds_left(self) -> float:
        """Work left at the speed of such jobs, waiting for programs not counted."""
        return sum(
            (1.0 - self.fraction[job.name]) * job.decisions / self.speeds.of(job)
            for job in self.jobs
            if self.state[job.name] not in ("finished", "failed")
        )

    def _counts(self) -> str:
        states = list(self.state.values())
        done, failed = states.count("finished"), states.count("failed")
        running = states.count("running")
        left = self.seconds_left()
        spent = time.perf_counter() - self.began
        return (
            f"{done} of {len(states)} jobs done, {running} running, {failed} failed; "
            f"{_clock(spent)} spent, about {_clock(left)} left"
        )

    def _picture(self) -> Group:
        table = Table(box=None, pad_edge=False, show_header=False)
        for job in self._shown():
            state = self.state[job.name]
            table.add_row(
                job.name,
                f"[dim]{len(job.runs)} runs[/dim]",
                Text("compiling" if state == "started" else state, style=STATES[state]),
                ProgressBar(total=1.0, completed=self.fraction[job.name], width=24),
                Text(self.notes[job.name], style="dim", overflow="ellipsis"),
            )
        return Group(Text(self._counts()), table)

    def _shown(self) -> list[BenchJob]:
        """All jobs if they fit on the screen, else those that are not finished."""
        room = max(4, self.console.height - 4)
        if len(self.jobs) <= room:
            return self.jobs
        open_jobs = [j for j in self.jobs if self.state[j.name] != "finished"]
        return open_jobs[:room]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
