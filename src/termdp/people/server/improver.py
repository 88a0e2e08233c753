"""Rounds while people ride: `termdp serve --improve MINUTES`.

Each round runs in a separate process (`round_process`) with the lowest priority, so
that it uses only what the server leaves. It runs the command `termdp studies improve`,
with the same guarantees: if it is killed, the study is unchanged, and a later round
continues its work.
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from termdp.people.records.rounds import count_reviews, rounds_of
from termdp.people.records.study_store import StudyStore

LONGEST_MINUTES = 7 * 24 * 60.0
# A round needs this many new reviews: as many as the first fit.
NEW_REVIEWS = 20
_ENDING_SECONDS = 20.0


def check_minutes(minutes: float) -> None:
    """Refuse a time between rounds that is not above 0, or longer than a week."""
    if not 0 < minutes <= LONGEST_MINUTES:
        raise ValueError(
            f"expected --improve above 0 and at most {LONGEST_MINUTES:.0f} minutes (a "
            f"week), got {minutes:g}"
        )


@contextlib.contextmanager
def improving(db: str, minutes: float | None, folder: Path) -> Iterator[None]:
    """Do rounds in the background while the block runs; None does nothing."""
    if minutes is None:
        yield
        return
    improver = Improver(db, minutes, folder)
    improver.start()
    try:
        yield
    finally:
        improver.close()


class Improver:
    """Checks for new reviews every few minutes; starts a process to learn from them.

    Args:
        db: the store.
        minutes: time between two checks.
        folder: where rounds are kept, with a folder for each study.
    """

    def __init__(self, db: str, minutes: float, folder: Path):
        self.db = db
        self.seconds = 60.0 * minutes
        self.folder = folder
        self._closing = threading.Event()
        self._process: subprocess.Popen | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Start checking; the first check comes after one interval."""
        self._thread.start()

    def close(self) -> None:
        """End the current round; a later one continues its work."""
        self._closing.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()  # nothing is lost: a round counts only once it is complete
            process.wait(_ENDING_SECONDS)

    def _work(self) -> None:
        while not self._closing.wait(self.seconds):
            try:
                for study in self.studies_with_news():
                    if not self._closing.is_set():
                        self._round(study)
            except (OSError, ValueError) as error:
                _say(f"no round now: {error}")

    def studies_with_news(self) -> list[str]:
        """Studies with enough new reviews since the last round."""
        with StudyStore.open(self.db) as store:
            return [
                row["name"]
                for row in store.studies()
                if _has_news(store, row["name"], row["stops"])
            ]

    def _round(self, study: str) -> None:
        words = [str(os.getpid()), study, self.db, str(self.folder / study)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "termdp.people.server.round_process", *words],
            env=os.environ | {"XLA_FLAGS": _one_thread()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C goes to the server, which then ends this process. It stays in the
            # server's session: Linux compares priorities only within a session.
            process_group=0,
        )
        _, said = self._process.communicate()
        if self._process.returncode != 0 and not self._closing.is_set():
            last = said.strip().splitlines()[-1:] or ["it was killed"]
            _say(f"the round of {study} has ended early: {last[0]}")


def _has_news(store: StudyStore, study: str, stops: int) -> bool:
    done = rounds_of(store, study)
    before = done[-1].reviews if done else 0
    if count_reviews(store, study) - before < NEW_REVIEWS or stops < NEW_REVIEWS:
        return False
    return any(
        person.kind == "person" and person.joined_ms is not None
        for person in store.supervisors(study)
    )


def _one_thread() -> str:
    """Flags that keep a round to one core; the others are left to the server."""
    flags = os.environ.get("XLA_FLAGS", "")
    return f"{flags} --xla_cpu_multi_thread_eigen=false".strip()


def _say(words: str) -> None:
    print(f"termdp: {words}", file=sys.stderr, flush=True)
