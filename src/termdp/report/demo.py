"""The demo: PPO, TermPG and the oracle on one small environment, and a page about it.

All methods and seeds are one compiled program. What the page says about the difference
depends on the numbers: no difference is claimed unless its interval excludes zero.
"""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from termdp.costs import ensemble
from termdp.intervals import mean_interval
from termdp.pages import Page, Table
from termdp.registry import find
from termdp.report.demo_figures import METHODS, NAMES, cost_figure, learning_figure
from termdp.report.figures import figure_bytes
from termdp.runs.agent import Agent, make_card
from termdp.runs.collect import Rollout
from termdp.runs.evaluate import (
    Evaluation,
    Watched,
    evaluate,
    play_steps,
    watch_episode,
)
from termdp.runs.program import TrainProgram
from termdp.runs.runner import Progress, Runner
from termdp.runs.spec import RunSpec, make_job
from termdp.runs.video import episode_frames, save_video


@dataclasses.dataclass(frozen=True)
class DemoSettings:
    """What the demo runs.

    Attributes:
        env: environment id.
        overrides: its numbers, as for `termdp.make`.
        steps: steps per method and seed.
        seeds: number of seeds.
        episodes: fresh episodes per method and seed for the final comparison.
    """

    env: str = "notifier"
    overrides: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: int = 150_000
    seeds: int = 3
    episodes: int = 128


@dataclasses.dataclass(frozen=True)
class DemoResults:
    """What came out.

    Attributes:
        steps: of the curves' points.
        curves: by name, `[methods, seeds, points]`.
        played: fresh episodes by method, one evaluation per seed.
        agents: by method, one per seed.
        place: the environment and its parameters.
        seconds: of training.
        compile_seconds: of compilation.
    """

    steps: np.ndarray
    curves: dict[str, np.ndarray]
    played: dict[str, list[Evaluation]]
    agents: dict[str, list[Agent]]
    place: tuple[Any, Any]
    seconds: float
    compile_seconds: float

    def returns(self, method: str) -> np.ndarray:
        """Mean return of each seed."""
        return np.array([part.return_mean for part in self.played[method]])

    def stop_rate(self, method: str) -> float:
        """Share of episodes that were stopped."""
        return float(np.mean([part.stop_rate for part in self.played[method]]))


def run_demo(
    settings: DemoSettings, on_progress: Callable[[int, int, str], None]
) -> DemoResults:
    """Train all methods and seeds side by side, then play fresh episodes.

    Args:
        settings: what to run.
        on_progress: gets steps done, steps in all (−1 after training), a few words.
    """
    specs = {
        name: RunSpec(
            settings.env,
            name,
            settings.steps,
            settings.seeds,
            env_numbers=settings.overrides,
        )
        for name in METHODS
    }
    jobs = {name: make_job(spec) for name, spec in specs.items()}
    job = dataclasses.replace(
        jobs["termpg"],
        methods=tuple(m for name in METHODS for m in jobs[name].methods),
        seeds=tuple(s for name in METHODS for s in jobs[name].seeds),
    )
    on_progress(0, settings.steps, "compiling")

    def tell(progress: Progress) -> None:
        words = _words(progress.rows, settings.seeds)
        on_progress(progress.step, progress.steps, words)

    runner = Runner(TrainProgram(job), on_progress=tell)
    state = runner.run()
    agents: dict[str, list[Agent]] = {}
    for run, (name, seed) in enumerate(
        itertools.product(METHODS, range(settings.seeds))
    ):
        card = make_card(specs[name], jobs[name]).of_seed(seed, None)
        weights = jax.tree.map(lambda x, run=run: x[run], state.policy.params)
        costs = jax.tree.map(lambda x, run=run: x[run], state.costs)
        learned = costs if card.method.learns_costs else None
        agents.setdefault(name, []).append(Agent(card, weights, learned))
    played = {}
    for name in METHODS:
        on_progress(-1, -1, f"playing fresh episodes with {NAMES[name]}")
        played[name] = [
            evaluate(
                agent,
                job.env,
                episodes=settings.episodes,
                seed=10_000 + seed,
                params=job.params,
            )
            for seed, agent in enumerate(agents[name])
        ]
    edges = np.unique(
        np.linspace(0, runner.total, min(40, runner.total) + 1).astype(int)
    )
    return DemoResults(
        steps=edges[1:] * job.config.rollout_size,
        curves=_curves(runner, edges, settings.seeds),
        played=played,
        agents=agents,
        place=(job.env, job.params),
        seconds=runner.seconds,
        compile_seconds=runner.compile_seconds,
    )


def verdict(results: DemoResults) -> str:
    """What the numbers support, in words."""
    # Paired by seed.
    gap = mean_interval(results.returns("termpg") - results.returns("pg"))
    interval = f"{gap.value:+.2f} (95% interval {gap.low:+.2f} … {gap.high:+.2f})"
    seeds = len(results.returns("pg"))
    if gap.low > 0:
        return (
            f"TermPG earns more than PPO: the mean difference over {seeds} seeds is "
            f"{interval}. Both saw the same rewards and the same stops; TermPG learned "
            "from the stops what the observer minds."
        )
    if gap.high < 0:
        return (
            f"TermPG earns less than PPO here: the mean difference over {seeds} seeds "
            f"is {interval}."
        )
    return (
        f"The difference between TermPG and PPO is not clear: {interval} over {seeds} "
        "seeds includes zero. More seeds or steps would tell."
    )


def about(env_id: str) -> str:
    """The environment and its observer, in words."""
    spec = find(env_id)
    return (
        f"{spec.description}. The observer minds: {spec.cost}. It forgets after "
        f"{spec.window} steps and says nothing, but the more has built up, the likelier "
        "it ends the episode. How much has built up cannot be seen."
    )


def write_page(results: DemoResults, settings: DemoSettings, out: Path) -> Path:
    """The page, its videos and its picture under `out`."""
    out.mkdir(parents=True, exist_ok=True)
    page = Page(
        "An observer who can end the episode",
        "PPO knows nothing of the observer. TermPG learns, from nothing but the stops, "
        "what the observer charges for. The oracle was told.",
    )
    page.paragraph(about(settings.env))
    page.heading("What came out")
    page.paragraph(verdict(results))
    rows = [
        [
            NAMES[method],
            f"{np.mean(results.returns(method)):.2f}",
            ", ".join(f"{value:.2f}" for value in results.returns(method)),
            f"{results.stop_rate(method):.0%}",
        ]
        for method in METHODS
    ]
    headings = ["method", "mean return", "per seed", "episodes stopped"]
    page.table(Table("", "", headings, rows))
    page.paragraph(
        f"Environment {settings.env}, {settings.steps:,} steps per seed, "
        f"{settings.seeds} seeds, {settings.episodes} fresh episodes each; "
        f"{results.seconds:.0f} s of training for all nine runs together and "
        f"{results.compile_seconds:.0f} s of compilation on this machine."
    )
    page.heading("Learning")
    curves = figure_bytes(learning_figure(results.steps, results.curves))
    (out / "learning.png").write_bytes(curves)
    learned = figure_bytes(cost_figure(*cost_pairs(results)))
    (out / "costs.png").write_bytes(learned)
    page.figure(
        curves,
        "png",
        "Return while training, share of episodes that the observer stopped, and how "
        "well the learned cost follows the true one (TermPG). Lines: mean over seeds; "
        "bands: 95% intervals of the mean (t).",
    )
    page.heading("What TermPG took the observer to mind")
    page.figure(
        learned,
        "png",
        "Cost of single steps: what TermPG learned from the stops against the truth, "
        "which it was never told, one panel per seed. Stops leave the scale loose (costs "
        "and bias may shrink together), so order and spacing count.",
    )
    page.heading("One episode of each")
    page.figures(_films(results, settings, out))
    page.heading("What to do next")
    page.commands(
        [
            "termdp envs                                  # all environments",
            "termdp train breakout termpg --seeds 3       # the real thing",
            "termdp video runs/breakout-termpg film.gif",
            "termdp eval runs/breakout-termpg",
        ]
    )
    path = out / "index.html"
    page.save(path)
    return path


def cost_pairs(results: DemoResults) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """True and learned costs of some steps of TermPG, one array per seed."""
    truths, guesses = [], []
    for seed, agent in enumerate(results.agents["termpg"]):
        played: Rollout = play_steps(
            agent, *results.place, jax.random.key(seed), 64, 64
        )
        assert played.truth is not None
        executed = agent.actor.distribution.executed(played.actions)
        members = ensemble.member_costs(
            agent.mind.costs, played.inputs.observation, executed
        )
        truths.append(np.asarray(played.truth.costs).ravel())
        guesses.append(np.asarray(members.mean(axis=0)).ravel())
    return truths, guesses


def _films(
    results: DemoResults, settings: DemoSettings, out: Path
) -> list[tuple[bytes, str, str]]:
    env, params = results.place
    films = []
    for method in METHODS:
        agent = results.agents[method][0]
        watched: Watched = watch_episode(agent, env, params, jax.random.key(7), 200)
        path = out / f"{method}.gif"
        save_video(path, episode_frames(watched, settings.env, env.game_env), fps=15)
        end = "to the time limit" if watched.end == "truncated" else watched.end
        end = end.replace("_", " ")
        caption = f"{NAMES[method]}: return {watched.total:.1f}, {end}"
        films.append((path.read_bytes(), "gif", caption))
    return films


def _curves(runner: Runner, edges: np.ndarray, seeds: int) -> dict[str, np.ndarray]:
    """`[methods, seeds, points]` by name; NaN where nothing is known."""
    names = ("return_mean", "stop_rate", "cost_corr", "cost_mae")
    found = {n: np.full((len(METHODS), seeds, len(edges) - 1), np.nan) for n in names}
    for run in range(len(METHODS) * seeds):
        for place, (first, last) in enumerate(itertools.pairwise(edges)):
            row = runner.row(run, int(first), int(last))
            for name in names:
                if row[name] is not None:
                    found[name][run // seeds, run % seeds, place] = row[name]
    return found


def _words(rows: list[dict[str, Any]], seeds: int) -> str:
    parts = []
    for index, method in enumerate(METHODS):
        mine = [row["return_mean"] for row in rows[index * seeds : (index + 1) * seeds]]
        known = [value for value in mine if value is not None]
        if known:
            parts.append(f"{method} {np.mean(known):.2f}")
    return "return: " + ", ".join(parts)
