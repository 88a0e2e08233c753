"""The loop on the host: compile, start, advance in chunks, check, save, report.

Training, benchmarks and the demo all run here. The device works in chunks of iterations.
Between them the host checks that all numbers are finite, writes metrics and checkpoints,
and calls `on_progress`. The host reads one chunk behind, so that the device never waits.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from termdp.agents.methods import IDENTITY
from termdp.agents.value_scale import with_plain_values
from termdp.arrays import restore
from termdp.runs import checkpoint
from termdp.runs.advice import Adviser
from termdp.runs.config import flat_numbers
from termdp.runs.folder import RunFolder
from termdp.runs.host_program import HostProgram
from termdp.runs.improve import TrainState
from termdp.runs.metrics import LATEST_NAMES, Reports, summarise
from termdp.runs.program import Job, TrainProgram

CHECKPOINT_SECONDS = 120.0
CHUNK_SECONDS = 20.0  # how long Ctrl-C and a due checkpoint may wait
CHUNKS = 50


@dataclasses.dataclass(frozen=True)
class Progress:
    """What `on_progress` gets after every chunk.

    Attributes:
        step: steps per seed so far.
        steps: total steps per seed.
        seconds: since training began, compilation excluded.
        make_rows: makes `rows`.
    """

    step: int
    steps: int
    seconds: float
    make_rows: Callable[[], list[dict[str, Any]]] = dataclasses.field(repr=False)

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One row per run for the chunk, with the names of `metrics.jsonl`."""
        return self.make_rows()


class Runner:
    """Trains the runs of a compiled program from their present state to the end.

    Args:
        program: what to run.
        folder: where to save; None keeps nothing.
        snapshots: how many policies to keep during training.
        prepare: a function that changes the first state (to start from another run).
        on_progress: a function of `Progress`, or None.
        should_stop: called between chunks; True stops.
        checkpoint_seconds: time between checkpoints.
        advise: warn about observers that no agent can please.
        raise_troubles: raise an error when a run is no longer finite; otherwise note it
            in `troubles` and continue.
    """

    def __init__(  # noqa: PLR0913 - all but two by name
        self,
        program: TrainProgram | HostProgram,
        folder: RunFolder | None = None,
        *,
        snapshots: int = 0,
        prepare: Callable[[TrainState], TrainState] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        raise_troubles: bool = True,
        advise: bool = True,
    ):
        self.program = program
        self.folder = folder
        self.prepare = prepare
        self.on_progress = on_progress
        self.should_stop = should_stop or (lambda: False)
        self.checkpoint_seconds = checkpoint_seconds
        self.raise_troubles = raise_troubles
        self.total = program.job.num_iterations
        self.chunk = chunk_length(self.total)
        self.snapshots = list(checkpoint.planned_snapshots(self.total, snapshots))
        self.reports: Reports = {}
        self.troubles: dict[int, str] = {}
        self.adviser = Adviser(program.job.params) if advise else None
        self.state: TrainState | None = None
        self.done = 0  # iterations sent to the device
        self.taken = 0  # iterations whose reports were read
        self.seconds = 0.0
        self.compile_seconds = 0.0
        self._pending: Any = None
        self._pace: float | None = None  # seconds per iteration

    @property
    def job(self) -> Job:
        """The job."""
        return self.program.job

    def run(self) -> TrainState:
        """Train until the end or until `should_stop` returns True; returns the state."""
        state = self.begin()
        saved = self._looked = time.perf_counter()
        while self.done < self.total and not self.should_stop():
            count = self._next_count()
            state, report = self.program.advance(state, count)
            self._take()  # the chunk before, while the device works on this one
            self._pending, self.done = report, self.done + count
            is_due = time.perf_counter() - saved > self.checkpoint_seconds
            if is_due or self._pace is None or self._snapshot_is_due():
                self._take()
                self._take_snapshot(state)
                if is_due:
                    self._save(state)
                    saved = time.perf_counter()
        self._take()
        self._take_snapshot(state)
        if self.done:
            self._save(state)
        self.state = jax.block_until_ready(state)
        return self.state

    def begin(self) -> TrainState:
        """Compile, and make the first state or restore the last one."""
        began = time.perf_counter()
        self.program.compile_all(self.chunk)
        state = self._restored()
        if state is None:
            state = self.program.init()
            if self.prepare is not None:
                state = self.prepare(state)
            self._save(state)
            self._take_snapshot(state)
        self.compile_seconds += time.perf_counter() - began
        return state

    def _restored(self) -> TrainState | None:
        """The newest checkpoint's state; None if the run has not started."""
        if self.folder is None:
            return None
        if not checkpoint.complete(self.folder.checkpoints):
            self._check_unbegun(self.folder)
            return None
        shapes = self.program.shapes()

        def shapes_of(manifest: checkpoint.Manifest) -> Any:
            check_same_configuration(manifest.configuration, self.job)
            return shapes

        arrays, self.reports, manifest = checkpoint.load_latest(
            self.folder.checkpoints, shapes_of
        )
        state: TrainState = restore(shapes, arrays)
        self._check_reports(manifest.iteration)
        checkpoint.set_damaged_aside(self.folder.checkpoints, manifest.iteration)
        self.done = self.taken = manifest.iteration
        self.seconds, self.compile_seconds = manifest.seconds, manifest.compile_seconds
        self.folder.set_metrics(self.rows(0, self.done))
        self.snapshots = [at for at in self.snapshots if at > self.done]
        return state

    def _check_unbegun(self, folder: RunFolder) -> None:
        """Without a checkpoint a run may only begin if nothing was trained before."""
        if folder.was_trained():
            raise ValueError(
                f"expected checkpoints in {folder.checkpoints}, but they are gone, while "
                "other files show that the run had begun: it cannot continue. Put them "
                "back, or train from the start in another folder"
            )
        folder.set_metrics([])

    def _check_reports(self, iteration: int) -> None:
        """Check the number of reports: as many as iterations, and of all runs."""
        runs = len(self.job.seeds)
        for name, values in self.reports.items():
            if values.shape[:2] != (runs, iteration):
                raise ValueError(
                    f"expected reports of {runs} runs and {iteration} iterations, got "
                    f"{name} of shape {values.shape}: the checkpoint is another run's"
                )

    def _next_count(self) -> int:
        """Iterations of the next chunk; the first chunk has one, to measure its time."""
        affordable = 1 if self._pace is None else int(CHUNK_SECONDS / self._pace)
        return min(self.chunk, self.total - self.done, max(1, affordable))

    def _take(self) -> None:
        """Read the reports of the running chunk; check, write, report progress."""
        if self._pending is None:
            return
        new = self.program.unpack(self._pending)
        self._pending = None
        count = self.done - self.taken
        now = time.perf_counter()
        self.seconds += now - self._looked
        self._pace, self._looked = (now - self._looked) / count, now
        troubles = find_troubles(
            new, self.taken * self.job.config.rollout_size, self.job
        )
        if troubles and self.raise_troubles:
            sentence = next(iter(troubles.values()))
            kept = "" if self.folder is None else ", earlier checkpoints are kept"
            raise ValueError(f"{sentence}: training has stopped{kept}")
        self.troubles = troubles | self.troubles
        self.reports = joined(self.reports, new)
        first, self.taken = self.taken, self.done
        if self.folder is not None:
            self.folder.append_metrics(self.rows(first, self.taken))
        if self.adviser is not None:
            self.adviser.look(new)
            if isinstance(self.program, HostProgram):
                self.adviser.look_for_stops(self.reports, self.taken == self.total)
        self._tell(first, self.taken)

    def _tell(self, first: int, last: int) -> None:
        if self.on_progress is None:
            return
        size = self.job.config.rollout_size
        runs = range(len(self.job.seeds))
        self.on_progress(
            Progress(
                step=last * size,
                steps=self.total * size,
                seconds=self.seconds,
                make_rows=lambda: [self.row(run, first, last) for run in runs],
            )
        )

    def rows(self, first: int, last: int) -> list[dict[str, Any]]:
        """One row per iteration and run."""
        return [
            self.row(run, iteration, iteration + 1)
            for iteration in range(first, last)
            for run in range(len(self.job.seeds))
        ]

    def row(self, run: int, first: int, last: int) -> dict[str, Any]:
        """The metrics of one run over the iterations `first` … `last` − 1."""
        part = {name: values[run, first:last] for name, values in self.reports.items()}
        row = {
            "step": last * self.job.config.rollout_size,
            "seed": self.job.seeds[run],
            **summarise(part, self.job.methods[run]),
        }
        named: tuple[str, ...] = LATEST_NAMES
        if self.job.methods[run].constrained:
            named = (*named, "multiplier")
        latest = {name: part[name] for name in named if name in part}
        return row | {name: float(values[-1]) for name, values in latest.items()}

    def last_tenth(self, run: int) -> dict[str, Any]:
        """The summary of a finished run."""
        return self.row(run, self.total - max(1, self.total // 10), self.total)

    def facts(self) -> dict[str, Any]:
        """Steps, times, speed and memory."""
        steps = self.taken * self.job.config.rollout_size
        speed = steps * len(self.job.seeds) / max(self.seconds, 1e-9)
        return {
            "steps": steps,
            "compile_s": round(self.compile_seconds, 3),
            "wall_s": round(self.seconds, 3),
            "steps_per_s": round(speed, 1),
            "bytes_per_run": self._bytes_per_run(),
        }

    def _bytes_per_run(self) -> int:
        """What a run keeps between iterations: networks, optimiser, experience."""
        leaves = jax.tree.leaves(self.state)
        return int(sum(leaf.nbytes for leaf in leaves) // len(self.job.seeds))

    def _save(self, state: TrainState) -> None:
        if self.folder is None:
            return
        manifest = checkpoint.Manifest(
            iteration=self.done,
            seconds=self.seconds,
            compile_seconds=self.compile_seconds,
            configuration=configuration(self.job),
        )
        checkpoint.save(self.folder.checkpoints, state, self.reports, manifest)

    def _snapshot_is_due(self) -> bool:
        return bool(self.snapshots) and self.snapshots[0] <= self.done

    def _take_snapshot(self, state: TrainState) -> None:
        """Keep the policy if a snapshot is due."""
        if self.folder is None or not self._snapshot_is_due():
            return
        self.snapshots = [at for at in self.snapshots if at > self.done]
        step = self.done * self.job.config.rollout_size
        plain = jax.vmap(with_plain_values)
        weights = plain(state.policy.params, state.policy.value_scale)
        checkpoint.save_snapshot(self.folder.path, step, weights)


def chunk_length(total: int) -> int:
    """The most iterations per call to the device: a fiftieth of the run, at least 1."""
    return max(1, total // CHUNKS)


def joined(before: Reports, new: Reports) -> Reports:
    """Concatenated reports `[R, iterations, ...]`."""
    if not before:
        return new
    return {
        name: np.concatenate([before[name], rows], axis=1) for name, rows in new.items()
    }


def configuration(job: Job) -> dict[str, Any]:
    """Everything that must be the same in a resumed run, as plain data."""
    method = job.methods[0]
    return {
        **flat_numbers(method, job.config),
        **{name: getattr(method, name) for name in IDENTITY},
        "algorithm": type(job.config.algorithm).__name__,
    }


def check_same_configuration(before: dict[str, Any] | None, job: Job) -> None:
    """Refuse to resume with other numbers than the run started with."""
    now = configuration(job)
    differing = [name for name in now if before and before.get(name) != now[name]]
    if differing:
        raise ValueError(
            "expected to resume with the configuration that the run began with, got "
            f"another {', '.join(differing)}: continue from Python with the original "
            "objects, or with the version of termdp in its config.json"
        )


def find_troubles(reports: Reports, step: int, job: Job) -> dict[int, str]:
    """Which runs are no longer finite, each with a sentence that names the cause.

    Args:
        reports: of a chunk, `[R, iterations, ...]`.
        step: steps per run before the chunk.
        job: what is run.
    """
    found: dict[int, str] = {}
    for name, what in (
        ("reward_sum", f"rewards, got NaN or infinity from {job.env.name}"),
        ("bad_observations", f"observations, got NaN or infinity from {job.env.name}"),
        ("bad_parameters", "parameters, got NaN or infinity"),
        *((name, f"training, but {name} became NaN or infinite") for name in reports),
    ):
        values = reports[name]
        bad = ~np.isfinite(values) | (name.startswith("bad_") & (values > 0))
        for run in np.flatnonzero(bad.reshape(len(values), -1).any(axis=1)):
            iteration = int(np.argwhere(bad[run])[0][0])
            at = step + (iteration + 1) * job.config.rollout_size
            sentence = f"expected finite {what} at step {at} of seed {job.seeds[run]}"
            found.setdefault(int(run), sentence)
    return found
