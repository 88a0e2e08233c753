"""A sweep: jobs go to an engine, and results are written to disk as they come."""

import dataclasses
import time
from collections.abc import Callable, Iterable

from termdp.bench.events import Event
from termdp.bench.plan import RunKey
from termdp.bench.speeds import Speeds
from termdp.bench.sweep_folder import SweepFolder


@dataclasses.dataclass
class Outcome:
    """The outcome of a sweep.

    Attributes:
        finished: runs that this call finished.
        failures: failed runs, each group with a sentence.
        seconds: total time.
    """

    finished: list[RunKey] = dataclasses.field(default_factory=list)
    failures: list[tuple[tuple[RunKey, ...], str]] = dataclasses.field(
        default_factory=list
    )
    seconds: float = 0.0


def sweep(
    events: Iterable[Event],
    folder: SweepFolder,
    speeds: Speeds | None = None,
    on_progress: Callable[[Event], None] = lambda event: None,
) -> Outcome:
    """Save the results of an engine.

    Args:
        events: of a running engine.
        folder: for the results; no other process writes there.
        speeds: remembers how fast jobs were.
        on_progress: gets every event after it was handled.
    """
    outcome, began = Outcome(), time.perf_counter()
    try:
        for event in events:
            if event.kind == "finished":
                _keep(event, folder, outcome)
                if speeds is not None and event.result is not None:
                    speeds.remember(event.job, event.result.facts)
            elif event.kind == "failed":
                folder.add_failure(event.job.keys, event.error)
                outcome.failures.append((event.job.keys, event.error))
            on_progress(event)
    finally:
        outcome.seconds = time.perf_counter() - began
        folder.close(outcome.seconds)
    return outcome


def _keep(event: Event, folder: SweepFolder, outcome: Outcome) -> None:
    assert event.result is not None
    folder.add(event.result)
    outcome.finished += [run.key for run in event.result.runs]
    for key, error in event.result.failures.items():
        outcome.failures.append(((key,), error))
