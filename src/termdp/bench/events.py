"""Events that an engine reports while it works; both engines use them."""

import dataclasses
from typing import Literal

from termdp.bench.execute import JobResult
from termdp.bench.plan import BenchJob


@dataclasses.dataclass(frozen=True)
class Event:
    """Something happened to a job.

    Attributes:
        kind: `sent` (to a cluster), `started` (compiling), `running` (with the fraction
            done), `finished` (with a result) or `failed` (with a sentence).
        job: the job.
        fraction: how much of it is done.
        result: of a finished job.
        error: of a failed job.
    """

    kind: Literal["sent", "started", "running", "finished", "failed"]
    job: BenchJob
    fraction: float = 0.0
    result: JobResult | None = None
    error: str = ""


def sentence(error: BaseException) -> str:
    """An error in one line."""
    words = " ".join(str(error).split()) or type(error).__name__
    return f"{type(error).__name__}: {words}"[:500]
