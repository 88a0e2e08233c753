"""A run on disk: what it is, versions, metrics, checkpoints, summary.

DIR/config.json        the run's `RunSpec`, its numbers, what its agent looks like
DIR/metrics.jsonl      one line per seed and iteration
DIR/checkpoints/…      see `termdp.runs.checkpoint`
DIR/snapshots/…        policies on the way, if asked for
DIR/observer.safetensors    a copy of the observer, if one from a file watches
DIR/summary.json       results, written when the run is complete
"""

import dataclasses
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from termdp.files import write_json
from termdp.provenance import versions
from termdp.runs.agent import AgentCard, card_from_plain
from termdp.runs.spec import RunSpec, spec_from_plain

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
        """Begin a run; an existing folder is left alone.

        Args:
            path: where.
            spec: what was asked for.
            card: what its agent looks like.
            numbers: all numbers of the run, settled.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ValueError(
                f"expected a new folder for the run, but {path} exists: choose another "
                f"--out, or go on with `termdp train --resume {path}`"
            )
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
        if isinstance(spec.observer, str):
            # A copy, so that the run needs nothing else to resume.
            shutil.copyfile(spec.observer, path / OBSERVER_FILE)
            spec = dataclasses.replace(spec, observer=OBSERVER_FILE)
        card = dataclasses.replace(card, spec=spec)
        record |= {
            "spec": spec.to_plain(),
            "agent": card.to_plain(),
            "versions": versions(),
        }
        write_json(folder.config, record)
        folder.metrics.touch()
        return folder

    @classmethod
    def open(cls, path: Path) -> tuple["RunFolder", RunSpec]:
        """An existing run and what it was asked for."""
        folder = cls(path)
        spec = spec_from_plain(folder._record()["spec"])
        if isinstance(spec.observer, str):
            spec = dataclasses.replace(spec, observer=str(path / spec.observer))
        return folder, spec

    def numbers(self) -> dict[str, Any]:
        """All numbers of the run, settled."""
        return dict(self._record()["numbers"])

    def card(self) -> AgentCard:
        """What the run's agent looks like."""
        return card_from_plain(self._record()["agent"])

    def _record(self) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(self.config.read_text())
            found = record.get("format", 1)
            if found == FORMAT and {"spec", "agent", "numbers"} <= set(record):
                return record
        except (OSError, AttributeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"expected the folder of a run, got {self.path}: its config.json is "
                f"missing or damaged ({type(error).__name__})"
            ) from error
        made_by = record.get("versions", {}).get("termdp", "an older version")
        raise ValueError(
            f"expected a run of format {FORMAT}, but {self.path} has format {found}: "
            f"train it anew, or read it with termdp {made_by}"
        )

    def extend(self, steps: int) -> None:
        """Write down that the run goes on to more steps; its summary is out of date."""
        record = self._record()
        record["spec"]["steps"] = steps
        write_json(self.config, record)
        self.summary.unlink(missing_ok=True)

    def append_metrics(self, lines: Iterable[dict[str, Any]]) -> int:
        """Add lines; returns the file's length once they are on disk."""
        with self.metrics.open("a") as file:
            for line in lines:
                file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
            return file.tell()

    def cut_metrics(self, length: int) -> None:
        """Forget lines that were written after a checkpoint."""
        with self.metrics.open("a") as file:
            if file.tell() < length:
                raise ValueError(
                    f"expected {self.metrics} as it was written, but it is shorter: "
                    "training cannot go on from here"
                )
            file.truncate(length)
