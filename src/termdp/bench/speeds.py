"""Time estimates for suites, from speeds measured here or recorded elsewhere."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec

from termdp.bench.plan import BenchJob
from termdp.files import write_json
from termdp.reading import MEGABYTE, read_json

# Steps per second, preset fast. CPU: two cores (TermPG on Breakout, one run after the
# other; TermPG on the recommender for vectors). GPU: one NVIDIA H200, with as many
# parallel runs as a column of `hard` has (five for the recurrent policy).
RECORDED = {
    "cpu": {
        "grid": 7_000.0,
        "recurrent": 1_800.0,
        "vector": 40_000.0,
        "compile_s": 20.0,
    },
    "gpu": {
        "grid": 1_600_000.0,
        "recurrent": 180_000.0,
        "vector": 5_900_000.0,
        "compile_s": 55.0,
    },
}
# Speed with the preset `paper`, as a share of that with `fast`. Twelve runs of TermPG on
# the H200 made 39,000 steps/s beside other programs. On a CPU it is a guess.
PAPER_FACTOR = 0.03


class Speeds:
    """Steps per second of this machine, as far as known."""

    def __init__(self, platform: str, path: Path | None = None):
        self.platform = "cpu" if platform == "cpu" else "gpu"
        self.path = path or _memory()
        self._known = _read(self.path)

    def of(self, job: BenchJob) -> float:
        """Steps per second of a job."""
        measured = self._known.get(self._name(job))
        return float(measured["steps_per_s"]) if measured else self._recorded(job)

    def is_measured(self, job: BenchJob) -> bool:
        """Whether a job of this kind has run here before."""
        return self._name(job) in self._known

    def seconds(self, jobs: Iterable[BenchJob]) -> float:
        """The time that jobs should take one after the other.

        The next program compiles while one runs; equal programs are compiled once.
        """
        compiled, ready, done = set(), 0.0, 0.0
        for job in jobs:
            program = (self._name(job), job.config, len(job.runs))
            if program not in compiled:
                compiled.add(program)
                ready += self._compiling(job)
            done = max(done, ready) + job.all_steps / self.of(job)
        return done

    def remember(self, job: BenchJob, facts: dict[str, Any]) -> None:
        """Note how fast a job was, for the next estimate."""
        names = ("steps_per_s", "compile_s")
        self._known[self._name(job)] = {name: facts[name] for name in names}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.path, self._known)
        except OSError:
            pass  # only an estimate: ignore errors

    def _compiling(self, job: BenchJob) -> float:
        """Seconds of compilation: the last measured ones, else recorded ones."""
        measured = self._known.get(self._name(job), {})
        return float(measured.get("compile_s", RECORDED[self.platform]["compile_s"]))

    def _recorded(self, job: BenchJob) -> float:
        kind = "vector" if job.config.network == "vector" else "grid"
        speed = RECORDED[self.platform]["recurrent" if job.recurrent else kind]
        if job.preset == "paper":
            speed *= PAPER_FACTOR
        if self.platform == "cpu":
            speed *= (os.cpu_count() or 1) / 2
        return speed

    def _name(self, job: BenchJob) -> str:
        kind = job.program or "feed-forward"
        return f"{self.platform}/{job.preset}/{job.env}/{kind}"


def _memory() -> Path:
    return Path.home() / ".cache" / "termdp" / "bench_speeds.json"


class Speed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The remembered speed of a kind of job."""

    steps_per_s: Annotated[float, msgspec.Meta(gt=0, le=1e15)]
    compile_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path, dict[str, Speed], MEGABYTE)
        return {name: msgspec.to_builtins(speed) for name, speed in found.items()}
    except ValueError:
        return {}
