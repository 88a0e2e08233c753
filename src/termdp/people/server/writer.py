"""Writes that arrive together are committed together: fewer waits for the disk.

When the future of a write has a result, the write is on disk.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from sqlalchemy.exc import DataError, IntegrityError
from sqlalchemy.orm import Session

from termdp.people.records.database import ConflictError, Database

Job = Callable[[Session], Any]
_MAX_TOGETHER = 256
_OVERTAKEN = (
    "expected unchanged data, but another request changed it meanwhile: load it again"
)


class Writer:
    """A thread that runs the jobs that are waiting together in one transaction."""

    def __init__(self, database: Database):
        self.database = database
        self._jobs: queue.SimpleQueue[tuple[Job, Future] | None] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._worker.start()

    def submit(self, job: Job) -> Future:
        """Queue a job; the future gets its result once on disk, or the refusal."""
        future: Future = Future()
        self._jobs.put((job, future))
        return future

    def close(self) -> None:
        """Finish what was submitted, then stop."""
        self._jobs.put(None)
        self._worker.join()

    def _work(self) -> None:
        is_open = True
        while is_open:
            batch: list[tuple[Job, Future]] = []
            entry = self._jobs.get()
            while entry is not None:
                batch.append(entry)
                if len(batch) == _MAX_TOGETHER:
                    break
                try:
                    entry = self._jobs.get_nowait()
                except queue.Empty:
                    break
            is_open = entry is not None
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[tuple[Job, Future]]) -> None:
        outcomes: list[tuple[Future, Any, Exception | None]] = []
        try:
            with self.database.writing() as session:
                for job, future in batch:
                    try:
                        with session.begin_nested():
                            outcomes.append((future, job(session), None))
                    except (ValueError, DataError) as error:
                        # Refused: only this job is undone.
                        outcomes.append((future, None, error))
                    except IntegrityError:  # another server's write came first
                        outcomes.append((future, None, ConflictError(_OVERTAKEN)))
        except Exception as error:  # the commit failed: none of them is on disk
            for _, future in batch:
                future.set_exception(error)
            return
        for future, result, refusal in outcomes:
            if refusal is None:
                future.set_result(result)
            else:
                future.set_exception(refusal)
