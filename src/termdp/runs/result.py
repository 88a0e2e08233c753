"""The result of a run in Python: a summary, curves, agents."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np

from termdp.agents.value_scale import with_plain_values
from termdp.runs.agent import Agent, make_card
from termdp.runs.host_program import HostProgram
from termdp.runs.improve import TrainState
from termdp.runs.program import Job, TrainProgram
from termdp.runs.runner import Runner
from termdp.runs.spec import RunSpec


def agent_of_run(
    spec: RunSpec, job: Job, state: TrainState, run: int, return_mean: float | None
) -> Agent:
    """The agent of one run of a job.

    Args:
        spec: the run's specification.
        job: the run and those trained with it.
        state: of all of them, `[R, ...]`.
        run: index of the run.
        return_mean: return over the last tenth of training; None if unknown.
    """
    card = make_card(spec, job, run).of_seed(job.seeds[run], return_mean)
    mine = (state.policy, state.costs, state.observation_scale)
    policy, costs, scale = jax.tree.map(lambda x: x[run], mine)
    weights = with_plain_values(policy.params, policy.value_scale)
    return Agent(card, weights, costs, scale=scale)


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """A finished (or interrupted) run.

    Attributes:
        summary: the content of `summary.json`; None if interrupted.
        rows: one dictionary per seed and iteration, as in `metrics.jsonl`;
            `pandas.DataFrame(result.rows)` makes a table of them.
        spec: the run's specification.
        program: the compiled program.
        state: the final state, `[seeds, ...]`.
        folder: where the run is on disk, if anywhere.
    """

    summary: dict[str, Any] | None
    rows: list[dict[str, Any]]
    spec: RunSpec
    program: TrainProgram | HostProgram
    state: TrainState
    folder: Path | None

    @classmethod
    def of(cls, runner: Runner, spec: RunSpec) -> "Result":
        """The result of a runner."""
        assert runner.state is not None
        summary = None
        if runner.taken == runner.total:
            seeds = [runner.last_tenth(run) for run in range(len(runner.job.seeds))]
            for entry in seeds:
                del entry["step"]
            summary = {
                "env": spec.env,
                "method": spec.method_name,
                "preset": spec.preset,
                **runner.facts(),
                "seeds": seeds,
            }
        return cls(
            summary=summary,
            rows=runner.rows(0, runner.taken),
            spec=spec,
            program=runner.program,
            state=runner.state,
            folder=None if runner.folder is None else runner.folder.path,
        )

    def agent(self, seed: int | None = None) -> Agent:
        """The trained agent of a seed; None for the one with the best return."""
        seeds = list(self.spec.all_seeds)
        returns = [self._last_return(one) for one in seeds]
        if seed is None:
            known = [-np.inf if value is None else value for value in returns]
            seed = seeds[int(np.argmax(known))]
        if seed not in seeds:
            words = ", ".join(map(str, seeds))
            raise ValueError(f"expected a seed of this run ({words}), got {seed}")
        run = seeds.index(seed)
        return agent_of_run(self.spec, self.program.job, self.state, run, returns[run])

    def _last_return(self, seed: int) -> float | None:
        if self.summary is not None:
            entries = {entry["seed"]: entry for entry in self.summary["seeds"]}
            value: float | None = entries[seed]["return_mean"]
            return value
        mine = [row["return_mean"] for row in self.rows if row["seed"] == seed]
        known = [value for value in mine if value is not None]
        return known[-1] if known else None

    def plot(self) -> Any:
        """Return and stop rate while training, one line per seed; a Matplotlib figure."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.2), layout="constrained")
        panels = {"return_mean": "return", "stop_rate": "episodes stopped"}
        for axes, (name, title) in zip(
            figure.subplots(1, len(panels)), panels.items(), strict=True
        ):
            for seed in self.spec.all_seeds:
                steps, values = self._curve(seed, name)
                axes.plot(steps, values, label=f"seed {seed}", linewidth=1.4)
            axes.set_xlabel("steps")
            axes.set_title(title)
            axes.grid(alpha=0.3)
        if self.spec.seeds > 1:
            figure.axes[0].legend(fontsize=8)
        figure.suptitle(f"{self.spec.method_name} on {self.spec.env}")
        return figure

    def _curve(self, seed: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Means over fiftieths of the run, weighted by episodes."""
        mine = [row for row in self.rows if row["seed"] == seed and row["episodes"]]
        parts = np.array_split(np.arange(len(mine)), min(50, max(1, len(mine))))
        points = []
        for part in parts:
            some = [mine[place] for place in part]
            if some:
                weights = [row["episodes"] for row in some]
                mean = np.average([row[name] for row in some], weights=weights)
                points.append((some[-1]["step"], mean))
        steps, values = zip(*points, strict=True) if points else ((), ())
        return np.array(steps), np.array(values)

    def __repr__(self) -> str:
        """One line per seed, at most ten."""
        head = f"Result({self.spec.method_name} on {self.spec.env}"
        if self.summary is None:
            steps = self.rows[-1]["step"] if self.rows else 0
            return f"{head}, interrupted after {steps:,} steps)"
        lines = [f"{head}, {self.summary['steps']:,} steps per seed)"]
        for entry in self.summary["seeds"][:10]:
            shown = {n: entry[n] for n in ("return_mean", "length_mean", "stop_rate")}
            words = ", ".join(
                f"{name.replace('_', ' ')} {'–' if v is None else format(v, '.4g')}"
                for name, v in shown.items()
            )
            lines.append(f"  seed {entry['seed']}: {words}")
        if self.spec.seeds > 10:
            lines.append(f"  … and {self.spec.seeds - 10} more seeds")
        return "\n".join(lines)
