"""A round of a study on disk.

    improve/STUDY/round-00/driver/       the driver that the study began with, as a run
    improve/STUDY/round-01/plan.json     what the round is; written first
    improve/STUDY/round-01/fit/          observer.safetensors, fit.json
    improve/STUDY/round-01/driver/       the driver that was trained under it, as a run

A round counts once it is in the store, which takes one transaction. A folder that the
store does not know was left by a round that ended early. The next round continues in it
if it has the same plan, and otherwise starts over.
"""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

from termdp.files import draft_of, write_json
from termdp.observer import Observer
from termdp.observer_file import save_observer
from termdp.people.driving.drivers import Driver
from termdp.people.driving.trained import agent_driver
from termdp.reading import read_json
from termdp.runs import checkpoint
from termdp.runs.folder import RunFolder
from termdp.runs.train import load_agents

_MOST_BYTES = 1_000_000


@dataclasses.dataclass(frozen=True)
class RoundFolder:
    """The folder of one round.

    Attributes:
        root: the study's folder.
        number: of the round.
    """

    root: Path
    number: int

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.root / f"round-{self.number:02}"

    @property
    def run(self) -> Path:
        """The driver's run."""
        return self.path / "driver"

    @property
    def observer(self) -> Path:
        """The file of the fitted observer."""
        return self.path / "fit" / "observer.safetensors"

    def begin(self, plan: dict[str, Any]) -> None:
        """Make the folder, or continue in it if it has the same plan."""
        file = self.path / "plan.json"
        if _read(file) == plan:
            return
        if self.path.exists():
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True)
        write_json(file, plan)

    def fit(self) -> dict[str, Any] | None:
        """The finished fit; None if there is none yet."""
        return _read(self.path / "fit" / "fit.json")

    def keep_fit(self, observer: Observer, facts: dict[str, Any]) -> None:
        """Write the observer and the facts about its fit, both or neither."""
        with draft_of(self.path / "fit") as draft:
            draft.mkdir()
            save_observer(draft / "observer.safetensors", observer, facts)
            write_json(draft / "fit.json", facts)

    def is_trained(self) -> bool:
        """Whether the driver's training is over."""
        return (self.run / "summary.json").exists()

    def can_resume(self) -> bool:
        """Whether the driver's training left something to continue from."""
        if not (self.run / "config.json").exists():
            return False
        folder, _ = RunFolder.open(self.run)
        return bool(checkpoint.complete(folder.checkpoints))

    def clear_run(self) -> None:
        """Remove what a run left before its first checkpoint."""
        if self.run.exists():
            shutil.rmtree(self.run)

    def copy_run(self, source: Path) -> None:
        """Copy another run to be this round's driver."""
        self.path.mkdir(parents=True, exist_ok=True)
        with draft_of(self.run) as draft:
            shutil.copytree(source, draft)


def driver_in(folder: str, name: str, env: str) -> Driver:
    """The driver in a round's folder: its run's first seed."""
    return agent_driver(name, load_agents(Path(folder) / "driver")[0], env)


def _read(path: Path) -> dict[str, Any] | None:
    """A small JSON object; None if the file is missing or broken."""
    try:
        return read_json(path, dict, _MOST_BYTES)
    except ValueError:
        return None
