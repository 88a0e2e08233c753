"""A run on disk: specification, versions, metrics, checkpoints, summary.

DIR/config.json        the run's `RunSpec`, its numbers, its agent's description
DIR/metrics.jsonl      one line per seed and iteration
DIR/checkpoints/…      see `termdp.runs.checkpoint`
DIR/snapshots/…        policies kept during training, if asked for
DIR/observer.safetensors    a copy of the observer, if it came from a file
DIR/summary.json       results, written when the run is complete
"""

import contextlib
import dataclasses
import json
import os
import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from termdp.files import (
    LOCK,
    draft_of,
    is_leftover,
    is_unused,
    told_in_words,
    write_json,
)
from termdp.provenance import versions
from termdp.reading import MEGABYTE, Name, Plain, from_plain, read_json
from termdp.runs.agent import AgentCard
from termdp.runs.spec import RunSpec

FORMAT = 2
OBSERVER_FILE = "observer.safetensors"


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.metrics = path / "metrics.jsonl"
        self.summary = path / "summary.json"
        self.config = path / "config.json"

    @classmethod
    def create(
        cls, path: Path, spec: RunSpec, card: AgentCard, numbers: dict[str, Any]
    ) -> "RunFolder":
        """Begin a run in a new or empty folder; any other is refused.

        Args:
            path: the folder.
            spec: the run's specification.
            card: description of its agent.
            numbers: all final numbers of the run.
        """
        check_unbegun(path)
        record = {"format": FORMAT, "numbers": numbers}
        try:
            json.dumps([spec.to_plain(), record])
        except TypeError as error:
            raise ValueError(
                "expected options that can be written down (numbers, words) for a run "
                f"with a folder, got others: {error}"
            ) from error
        path.mkdir(parents=True, exist_ok=True)
        folder = cls(path)
        for leftover in path.iterdir():
            if leftover.name != LOCK:
                leftover.unlink()
        if isinstance(spec.observer, str):
            # A copy, so that the run needs nothing else to resume.
            with draft_of(path / OBSERVER_FILE) as draft:
                shutil.copyfile(spec.observer, draft)
            spec = dataclasses.replace(spec, observer=OBSERVER_FILE)
        card = dataclasses.replace(card, spec=spec)
        record |= {
            "spec": spec.to_plain(),
            "agent": card.to_plain(),
            "versions": versions(),
        }
        folder.metrics.touch()
        # Written last: the run has begun once this file exists.
        write_json(folder.config, record)
        return folder

    @classmethod
    def open(cls, path: Path) -> tuple["RunFolder", RunSpec]:
        """Open an existing run."""
        folder = cls(path)
        spec = folder._record().spec
        if isinstance(spec.observer, str):
            spec = dataclasses.replace(spec, observer=str(path / spec.observer))
        return folder, spec

    def numbers(self) -> dict[str, Any]:
        """All final numbers of the run."""
        return dict(self._record().numbers)

    def card(self) -> AgentCard:
        """The description of the run's agent."""
        return self._record().agent

    def _record(self) -> "Record":
        try:
            content = read_json(self.config, dict, MEGABYTE)
        except ValueError as error:
            begin = ""
            if is_unused(self.path) or _is_unbegun(self.path):
                begin = (
                    "; nothing was begun there: begin with `termdp train ENV METHOD`"
                )
            raise ValueError(
                f"expected the folder of a run, got {self.path}: its config.json is "
                f"missing or damaged ({error}){begin}"
            ) from error
        found = content.get("format", 1)
        if found != FORMAT:
            made = content.get("versions")
            made_by = made.get("termdp") if isinstance(made, dict) else None
            raise ValueError(
                f"expected a run of format {FORMAT}, but {self.path} has format "
                f"{found!r:.20}: train it again, or read it with termdp "
                f"{made_by or 'an older version'!s:.20}"
            )
        try:
            record: Record = from_plain(content, Record)
            record.spec.check_plain()
        except ValueError as error:
            raise ValueError(
                f"expected the description of a run in {self.config}, but it is "
                f"damaged: {error}"
            ) from error
        return record

    def extend(self, steps: int) -> None:
        """Record that the run continues for more steps; its summary is out of date."""
        record = self._record()
        spec = dataclasses.replace(record.spec, steps=steps)
        record = msgspec.structs.replace(record, spec=spec)
        write_json(self.config, msgspec.to_builtins(record))
        self.summary.unlink(missing_ok=True)

    def append_metrics(self, lines: Iterable[dict[str, Any]]) -> None:
        """Add lines; they are on disk when this returns."""
        with told_in_words(self.metrics), self.metrics.open("a") as file:
            file.write(_as_lines(lines))
            file.flush()
            os.fsync(file.fileno())

    def set_metrics(self, lines: Iterable[dict[str, Any]]) -> None:
        """Keep only these lines in the file: drop those written after a checkpoint.

        Lines that were lost or changed are restored, with a warning.
        """
        wanted = _as_lines(lines).encode()
        found = b""
        with contextlib.suppress(FileNotFoundError), self.metrics.open("rb") as file:
            found = file.read(len(wanted) + 1)
        if found[: len(wanted)] != wanted:
            warnings.warn(
                f"{self.metrics} is not as it was written: it is restored from the "
                "checkpoint",
                stacklevel=2,
            )
        elif len(found) == len(wanted):
            return
        with draft_of(self.metrics) as draft:
            draft.write_bytes(wanted)

    def was_trained(self) -> bool:
        """Whether other files than checkpoints show that training had begun."""
        has_metrics = self.metrics.exists() and self.metrics.stat().st_size > 0
        others = (self.summary, self.path / "snapshots")
        return has_metrics or any(path.exists() for path in others)


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `config.json` holds."""

    format: int
    numbers: dict[str, Plain]
    spec: RunSpec
    agent: AgentCard
    versions: dict[str, Name]


def _as_lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def check_unbegun(path: Path) -> None:
    """Refuse a folder that is not empty."""
    if not _is_unbegun(path):
        raise ValueError(
            f"expected a new folder for the run, but {path} exists: choose another "
            f"--out, or continue with `termdp train --resume {path}`"
        )


def _is_unbegun(path: Path) -> bool:
    """Whether a run may begin in a folder: empty, or with leftovers of a killed run."""
    if is_unused(path):
        return True
    if not path.is_dir() or not (path / LOCK).exists():
        return False
    mine = {OBSERVER_FILE, "metrics.jsonl"}
    return all(is_leftover(found) or found.name in mine for found in path.iterdir())
