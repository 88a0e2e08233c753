"""A run on disk: settings, versions, metrics, checkpoints, summary.

DIR/config.json        what was asked for, enough to resume
DIR/metrics.jsonl      one line per seed and iteration
DIR/checkpoints/…      see `termdp.training.checkpoint`
DIR/snapshots/…        policies on the way, if asked for: `termdp.training.snapshots`
DIR/observer.safetensors    a copy of the observer, if one from disk watches
DIR/summary.json       results, written when the run is complete
"""

import dataclasses
import json
import os
import shutil
from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any

from termdp.provenance import versions

# The host sees the policy about fifty times in a run, see `session.chunk_length`.
MOST_SNAPSHOTS = 50
OBSERVER_FILE = "observer.safetensors"
OWN = ("env", "observer", "method", "policy_update")
_NO_JSON = (json.JSONDecodeError, UnicodeDecodeError)


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """What a person asked for; saved as `config.json`.

    Attributes:
        env: id of the environment.
        method: name of the method.
        steps: decisions per seed.
        seeds: number of seeds.
        seed: the first of them.
        preset: `fast` or `paper`.
        env_overrides: as for `termdp.make`.
        method_changes: numbers of the method that differ from the table.
        snapshots: how many policies to keep on the way, from the first to the last.
        config: sizes and rates of one's own as plain data; None for the preset's.
        own: what was given from Python and is not in the folder: any of `OWN`.
    """

    env: str
    method: str
    steps: int = 1_000_000
    seeds: int = 1
    seed: int = 0
    preset: str = "fast"
    env_overrides: dict[str, Any] = dataclasses.field(default_factory=dict)
    method_changes: dict[str, Any] = dataclasses.field(default_factory=dict)
    snapshots: int = 0
    config: dict[str, Any] | None = None
    own: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        """Check the counts."""
        for name in ("steps", "seeds", "seed", "snapshots"):
            if not isinstance(getattr(self, name), Integral):
                found = getattr(self, name)
                raise TypeError(f"expected {name} to be a whole number, got {found!r}")
        if self.seeds < 1:
            raise ValueError(f"expected seeds to be at least 1, got {self.seeds}")
        if self.seed < 0:
            raise ValueError(f"expected seed to be at least 0, got {self.seed}")
        if self.seed + self.seeds > 2**32:
            # JAX's keys take 32 bits of a seed: larger ones would repeat others.
            raise ValueError(
                f"expected seeds below {2**32}, got {self.seed} and {self.seeds - 1} "
                "after it"
            )
        if not 0 <= self.snapshots <= MOST_SNAPSHOTS:
            raise ValueError(
                f"expected snapshots from 0 to {MOST_SNAPSHOTS}, got {self.snapshots}"
            )

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """Seed … seed + seeds − 1."""
        return tuple(range(self.seed, self.seed + self.seeds))


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path):
        self.path = path

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        """The line-by-line record."""
        return self.path / "metrics.jsonl"

    @property
    def summary(self) -> Path:
        """The results, once complete."""
        return self.path / "summary.json"

    @classmethod
    def create(cls, path: Path, settings: RunSettings) -> "RunFolder":
        """Begin a run; an existing folder is left alone."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ValueError(
                f"expected a new folder for the run, but {path} exists: choose another "
                f"--out, or go on with `termdp train --resume {path}`"
            )
        try:
            json.dumps(dataclasses.asdict(settings))
        except TypeError as error:
            raise ValueError(
                "expected options that can be written down (numbers, words) for a run "
                f"with a folder, got others: {error}"
            ) from error
        path.mkdir(parents=True, exist_ok=True)
        folder = cls(path)
        settings = folder._with_own_observer(settings)
        record = {"settings": dataclasses.asdict(settings), "versions": versions()}
        write_json(path / "config.json", record)
        folder.metrics.touch()
        return folder

    @classmethod
    def open(cls, path: Path) -> tuple["RunFolder", RunSettings]:
        """An existing run and what it was asked for."""
        try:
            record = json.loads((path / "config.json").read_text())
            settings = RunSettings(**record["settings"])
        except (OSError, KeyError, TypeError, *_NO_JSON) as error:
            raise ValueError(
                f"expected the folder of a run, got {path}: its config.json is missing "
                f"or damaged ({type(error).__name__})"
            ) from error
        observer = settings.env_overrides.get("observer")
        if isinstance(observer, str):
            settings.env_overrides["observer"] = str(path / observer)
        return cls(path), settings

    def _with_own_observer(self, settings: RunSettings) -> RunSettings:
        """Copy an observer from disk, so that the run needs nothing else to resume."""
        source = settings.env_overrides.get("observer")
        if not isinstance(source, str):
            return settings
        shutil.copyfile(source, self.path / OBSERVER_FILE)
        overrides = settings.env_overrides | {"observer": OBSERVER_FILE}
        return dataclasses.replace(settings, env_overrides=overrides)

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


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file in one rename: readers see the old or the new one."""
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("w") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
