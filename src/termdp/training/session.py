"""A run's work on the host: between chunks it looks, writes, and tells.

The device works in chunks of iterations; between them the host looks for trouble, writes
metrics and checkpoints, and tells whoever listens.
"""

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.arrays import restore
from termdp.training import checkpoint, snapshots
from termdp.training.loop import Job, Trainer
from termdp.training.metrics import summarise
from termdp.training.run_folder import RunFolder, RunSettings, write_json
from termdp.training.types import TrainState

SUMMARY_KEYS = (
    "return_mean",
    "length_mean",
    "stop_rate",
    "game_over_rate",
    "cost_mae",
    "cost_corr",
)
CHECKPOINT_SECONDS = 120.0
CHUNK_SECONDS = 20.0  # how long Ctrl-C and a due checkpoint may have to wait
LATEST = (
    "bias",
    "cost_loss",
    "dead_members",
    "policy_loss",
    "value_loss",
    "entropy",
    "kl",
)


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a listener hears after every chunk.

    Attributes:
        step: decisions per seed so far.
        steps: decisions per seed in all.
        seconds: since training began, compilation excluded.
        rows: one per seed, the names of `metrics.jsonl`, for the chunk.
    """

    step: int
    steps: int
    seconds: float
    rows: list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Result:
    """A finished (or interrupted) run.

    Attributes:
        summary: what `summary.json` says; None if interrupted.
        rows: one dictionary per seed and iteration, as in `metrics.jsonl`.
        trainer: the compiled program, for evaluation.
        state: the final state, `[seeds, ...]`.
        folder: where the run is on disk, if anywhere.
    """

    summary: dict[str, Any] | None
    rows: list[dict[str, Any]]
    trainer: Trainer
    state: TrainState
    folder: Path | None


class Session:
    """One process's work on a run: from where it stands to its end."""

    def __init__(
        self,
        trainer: Trainer,
        settings: RunSettings,
        folder: RunFolder | None,
        listen: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ):
        self.trainer = trainer
        self.settings = settings
        self.folder = folder
        self.listen = listen or (lambda progress: None)
        self.should_stop = should_stop or (lambda: False)
        self.checkpoint_seconds = checkpoint_seconds
        self.total = trainer.job.num_iterations
        self.chunk = chunk_length(self.total)
        self.snapshots = list(snapshots.planned(self.total, settings.snapshots))
        self.reports: dict[str, np.ndarray] = {}
        self.done = 0
        self.seconds = 0.0
        self.compile_seconds = 0.0
        self.metrics_length = 0
        self.pace: float | None = None  # seconds per iteration

    def run(self) -> Result:
        """Train until the end, or until `should_stop` says so."""
        began = time.perf_counter()
        state = self._begin()
        self.trainer.compile(self.chunk)
        self.compile_seconds += time.perf_counter() - began
        saved = time.perf_counter()
        while self.done < self.total and not self.should_stop():
            state = self._advance(state)
            if time.perf_counter() - saved > self.checkpoint_seconds:
                self._save(state)
                saved = time.perf_counter()
        if self.done:
            self._save(state)
        summary = self._summary() if self.done == self.total else None
        if summary is not None and self.folder is not None:
            write_json(self.folder.summary, summary)
        path = None if self.folder is None else self.folder.path
        return Result(summary, self._rows(0, self.done), self.trainer, state, path)

    def _begin(self) -> TrainState:
        if self.folder is None or not checkpoint.complete(self.folder.checkpoints):
            if self.folder is not None:
                self.folder.cut_metrics(0)
            state = self.trainer.init()
            self._save(state)
            self._take_snapshot(state)
            return state
        arrays, self.reports, manifest = checkpoint.load_latest(self.folder.checkpoints)
        check_same_configuration(manifest.get("configuration"), self.trainer.job)
        state = restore(jax.eval_shape(self.trainer.init), arrays)
        try:
            self.done = int(manifest["iteration"])
            self.seconds = float(manifest["seconds"])
            self.compile_seconds = float(manifest["compile_seconds"])
            self.metrics_length = int(manifest["metrics_length"])
        except (KeyError, TypeError, ValueError) as error:
            newest = checkpoint.complete(self.folder.checkpoints)[-1]
            raise ValueError(
                f"expected a complete checkpoint, but the manifest in {newest} is "
                f"damaged ({type(error).__name__}): remove it to go on from an older one"
            ) from error
        self.folder.cut_metrics(self.metrics_length)
        self.snapshots = [at for at in self.snapshots if at > self.done]
        return state

    def _advance(self, state: TrainState) -> TrainState:
        began = time.perf_counter()
        count = self._next_count()
        state, reports = self.trainer.advance(state, count)
        new = {name: np.asarray(report) for name, report in reports.items()}
        check_health(new, state, self.done * self._size, self.trainer.job)
        took = time.perf_counter() - began
        self.seconds += took
        self.pace = took / count
        self.reports = {
            name: np.concatenate([self.reports[name], report], axis=1)
            if name in self.reports
            else report
            for name, report in new.items()
        }
        first, self.done = self.done, self.done + count
        self._take_snapshot(state)
        if self.folder is not None:
            rows = self._rows(first, self.done)
            self.metrics_length = self.folder.append_metrics(rows)
        self.listen(
            Progress(
                step=self.done * self._size,
                steps=self.total * self._size,
                seconds=self.seconds,
                rows=[self._row(run, first, self.done) for run in self._runs],
            )
        )
        return state

    def _next_count(self) -> int:
        """Iterations until the host looks again: one first, to see how long it takes."""
        affordable = 1 if self.pace is None else int(CHUNK_SECONDS / self.pace)
        return min(self.chunk, self.total - self.done, max(1, affordable))

    @property
    def _size(self) -> int:
        return self.trainer.job.config.rollout_size

    @property
    def _runs(self) -> range:
        return range(len(self.trainer.job.seeds))

    def _rows(self, first: int, last: int) -> list[dict[str, Any]]:
        return [
            self._row(run, iteration, iteration + 1)
            for iteration in range(first, last)
            for run in self._runs
        ]

    def _row(self, run: int, first: int, last: int) -> dict[str, Any]:
        """The report of one seed over some iterations."""
        part = {k: v[run, first:last] for k, v in self.reports.items()}
        row = {
            "step": last * self._size,
            "seed": self.trainer.job.seeds[run],
            **summarise({name: values.sum(axis=0) for name, values in part.items()}),
            "episodes": int(part["episodes"].sum()),
            "bias": None,
        }
        for name in LATEST:
            if name in part:
                row[name] = float(part[name][-1])
        return row

    def _summary(self) -> dict[str, Any]:
        job = self.trainer.job
        first = self.total - max(1, self.total // 10)
        seeds = []
        for run in self._runs:
            row = self._row(run, first, self.total)
            entry = {"seed": row["seed"], **{name: row[name] for name in SUMMARY_KEYS}}
            seeds.append(entry | {"bias": row.get("bias")})
        steps = self.total * self._size
        return {
            "env": self.settings.env,
            "method": self.settings.method,
            "preset": self.settings.preset,
            "steps": steps,
            "compile_s": round(self.compile_seconds, 3),
            "wall_s": round(self.seconds, 3),
            "steps_per_s": round(steps * len(job.seeds) / self.seconds, 1),
            "seeds": seeds,
        }

    def _save(self, state: TrainState) -> None:
        if self.folder is None:
            return
        facts = {
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "metrics_length": self.metrics_length,
            "configuration": configuration(self.trainer.job),
        }
        checkpoint.save(self.folder.checkpoints, self.done, state, self.reports, facts)

    def _take_snapshot(self, state: TrainState) -> None:
        """Keep the policy if one of the planned moments has come."""
        due = [at for at in self.snapshots if at <= self.done]
        if not due or self.folder is None:
            return
        self.snapshots = self.snapshots[len(due) :]
        snapshots.save(self.folder.path, self.done * self._size, state.policy.params)


def chunk_length(total: int) -> int:
    """Iterations per call to the device at most: a fiftieth."""
    return max(1, total // 50)


def chunks(total: int) -> list[int]:
    """Iterations of each call to the device; the last one may be shorter."""
    most = chunk_length(total)
    return [min(most, total - done) for done in range(0, total, most)]


def configuration(job: Job) -> dict[str, Any]:
    """All that decides how a run goes on, as plain data."""
    method = dataclasses.asdict(job.methods[0])
    del method["description"]
    facts = {
        **method,
        **dataclasses.asdict(job.config),
        "policy_update": "PPO" if job.policy_update is None else "custom",
        "num_iterations": job.num_iterations,
    }
    found: dict[str, Any] = json.loads(json.dumps(facts))
    return found


def check_same_configuration(before: dict[str, Any] | None, job: Job) -> None:
    """Refuse to go on with other numbers than the run began with."""
    now = configuration(job)
    differing = [name for name in now if before and before.get(name) != now[name]]
    if differing:
        raise ValueError(
            "expected to resume with the configuration that the run began with, got "
            f"another {', '.join(differing)}: go on from Python with what it was begun "
            "with, or with the version of termdp in its config.json"
        )


def check_health(
    reports: dict[str, np.ndarray], state: TrainState, step: int, job: Job
) -> None:
    """Stop with one sentence when something is not a number."""
    observations = np.asarray(state.scene.observations)
    if observations.dtype.kind == "f" and not np.all(np.isfinite(observations)):
        raise ValueError(
            f"expected finite observations, got NaN or infinity from {job.env.name} "
            f"after step {step}: training has stopped, earlier checkpoints are kept"
        )
    for name, values in sorted(reports.items()):
        bad = ~np.isfinite(values)
        if bad.any():
            run, iteration = np.argwhere(bad)[0][:2]
            at = step + (int(iteration) + 1) * job.config.rollout_size
            raise ValueError(
                f"expected training to stay finite, but {name} became "
                f"{values[run, iteration]} at step {at} of seed {job.seeds[run]}: "
                "training has stopped, earlier checkpoints are kept"
            )
    learned = (state.policy.params, state.costs and state.costs.params)
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(learned)]
    if not np.all(finite):
        raise ValueError(
            f"expected finite parameters, got NaN or infinity after step {step}: "
            "training has stopped, earlier checkpoints are kept"
        )
