"""A sweep: jobs go to an engine, results come back and are on disk at once."""

import dataclasses
import time
from collections.abc import Callable, Iterable

from termdp.bench.events import Event
from termdp.bench.plan import RunKey
from termdp.bench.speeds import Speeds
from termdp.bench.store import Store


@dataclasses.dataclass
class Outcome:
    """What a sweep came to.

    Attributes:
        finished: runs that were finished by this call.
        failures: (runs, sentence) of what failed.
        seconds: how long it took, all in all.
    """

    finished: list[RunKey] = dataclasses.field(default_factory=list)
    failures: list[tuple[tuple[RunKey, ...], str]] = dataclasses.field(
        default_factory=list
    )
    seconds: float = 0.0


def sweep(
    events: Iterable[Event],
    store: Store,
    speeds: Speeds | None = None,
    listen: Callable[[Event], None] = lambda event: None,
) -> Outcome:
    """Keep what an engine brings.

    Args:
        events: an engine at work.
        store: where results go; nobody else writes there.
        speeds: remembers how fast jobs were.
        listen: hears every event after it was dealt with.
    """
    outcome, began = Outcome(), time.perf_counter()
    try:
        for event in events:
            if event.kind == "finished":
                _keep(event, store, outcome)
                if speeds is not None and event.result is not None:
                    speeds.remember(event.job, event.result.facts)
            elif event.kind == "failed":
                store.add_failure(event.job.keys, event.error)
                outcome.failures.append((event.job.keys, event.error))
            listen(event)
    finally:
        outcome.seconds = time.perf_counter() - began
        store.close(outcome.seconds)
    return outcome


def _keep(event: Event, store: Store, outcome: Outcome) -> None:
    assert event.result is not None
    store.add(event.result)
    outcome.finished += [run.key for run in event.result.runs]
    for key, error in event.result.failures.items():
        outcome.failures.append(((key,), error))
