"""The demo: PPO, TermPG and the oracle on one small environment, and a page about it.

All methods and seeds are one compiled program. What the page says about the difference
depends on the numbers: no difference is claimed unless its interval excludes zero.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from termdp.agents.methods import find_method
from termdp.costs import ensemble
from termdp.registry import find, make
from termdp.report.demo_figures import METHODS, NAMES, cost_figure, learning_figure
from termdp.report.page import Page, figure_bytes
from termdp.report.statistics import mean_interval
from termdp.training.config import TrainConfig
from termdp.training.evaluate import Watched, evaluate, watch_episode
from termdp.training.loop import Job, Trainer
from termdp.training.metrics import summarise
from termdp.training.presets import make_config
from termdp.training.session import chunk_length, chunks
from termdp.training.types import TrainState
from termdp.training.video import episode_frames, save_video


@dataclasses.dataclass(frozen=True)
class DemoSettings:
    """What the demo runs.

    Attributes:
        env: environment id.
        overrides: its parameters, as for `termdp.make`.
        steps: decisions per method and seed.
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
    """What came out: curves `[methods, seeds, points]`, and fresh episodes."""

    steps: np.ndarray
    curves: dict[str, np.ndarray]
    returns: dict[str, np.ndarray]
    stop_rates: dict[str, float]
    trainer: Trainer
    state: TrainState
    seconds: float
    compile_seconds: float


def run_demo(
    settings: DemoSettings, tell: Callable[[int, int, str], None]
) -> DemoResults:
    """Train all methods and seeds side by side, then play fresh episodes.

    Args:
        settings: what to run.
        tell: hears (iterations done, iterations in all, a few words).
    """
    env, params = make(settings.env, **settings.overrides)
    methods = tuple(
        find_method(name) for name in METHODS for _ in range(settings.seeds)
    )
    seeds = tuple(range(settings.seeds)) * len(METHODS)
    draft = Job(env, params, methods, seeds, TrainConfig(), 1)
    config = make_config("fast", env, params, draft.max_window)
    total = config.num_iterations(settings.steps)
    trainer = Trainer(dataclasses.replace(draft, config=config, num_iterations=total))
    tell(0, total, "compiling")
    began = time.perf_counter()
    state = trainer.init()
    trainer.compile(chunk_length(total))
    compiled = time.perf_counter()
    reports: list[dict[str, np.ndarray]] = []
    done = 0
    for count in chunks(total):
        state, report = trainer.advance(state, count)
        done += count
        reports.append({name: np.asarray(values) for name, values in report.items()})
        tell(done, total, _words(reports[-1], settings.seeds))
    trained = time.perf_counter()
    returns, stop_rates = _play(trainer, state, settings, tell)
    merged = {k: np.concatenate([r[k] for r in reports], axis=1) for k in reports[0]}
    points = _windows(total)
    return DemoResults(
        steps=np.array([last for _, last in points]) * config.rollout_size,
        curves={
            name: _curve(merged, points, name, len(METHODS), settings.seeds)
            for name in ("return_mean", "stop_rate", "cost_corr", "cost_mae")
        },
        returns=returns,
        stop_rates=stop_rates,
        trainer=trainer,
        state=state,
        seconds=trained - compiled,
        compile_seconds=compiled - began,
    )


def _play(
    trainer: Trainer, state: TrainState, settings: DemoSettings, tell: Any
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    returns, stops = {}, {}
    for index, method in enumerate(METHODS):
        tell(-1, -1, f"playing fresh episodes with {NAMES[method]}")
        played = [
            evaluate(
                trainer,
                state,
                index * settings.seeds + seed,
                settings.episodes,
                jax.random.key(10_000 + seed),
            )
            for seed in range(settings.seeds)
        ]
        returns[method] = np.array([episodes.returns.mean() for episodes in played])
        stops[method] = float(np.mean([e.rate("stopped") for e in played]))
    return returns, stops


def verdict(results: DemoResults) -> str:
    """What the numbers support, in words."""
    # Paired by seed.
    gap = mean_interval(results.returns["termpg"] - results.returns["pg"])
    interval = f"{gap.value:+.2f} (95% interval {gap.low:+.2f} … {gap.high:+.2f})"
    seeds = len(results.returns["pg"])
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
            f"{np.mean(results.returns[method]):.2f}",
            ", ".join(f"{value:.2f}" for value in results.returns[method]),
            f"{results.stop_rates[method]:.0%}",
        ]
        for method in METHODS
    ]
    page.table(["method", "mean return", "per seed", "episodes stopped"], rows)
    page.paragraph(
        f"Environment {settings.env}, {settings.steps:,} decisions per seed, "
        f"{settings.seeds} seeds, {settings.episodes} fresh episodes each; "
        f"{results.seconds:.0f} s of training for all nine runs together and "
        f"{results.compile_seconds:.0f} s of compilation on this machine."
    )
    page.heading("Learning")
    curves = figure_bytes(learning_figure(results.steps, results.curves))
    (out / "learning.png").write_bytes(curves)
    learned = figure_bytes(cost_figure(*cost_pairs(results, settings)))
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


def cost_pairs(
    results: DemoResults, settings: DemoSettings
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """True and learned costs of some steps of TermPG, one array per seed."""
    truths, guesses = [], []
    trainer = results.trainer
    first = METHODS.index("termpg") * settings.seeds
    for run in range(first, first + settings.seeds):
        state, switches = (
            jax.tree.map(lambda x, run=run: x[run], tree)
            for tree in (results.state, trainer.switches)
        )
        _, played = trainer.play(
            state.policy,
            state.costs,
            switches,
            state.scene,
            jax.random.key(run),
            num_steps=trainer.job.config.rollout_steps,
        )
        executed = trainer.program.learner.distribution.executed(played.actions)
        members = ensemble.member_costs(state.costs, played.seen.observation, executed)
        truths.append(np.asarray(played.true_costs).ravel())
        guesses.append(np.asarray(members.mean(axis=0)).ravel())
    return truths, guesses


def _films(
    results: DemoResults, settings: DemoSettings, out: Path
) -> list[tuple[bytes, str, str]]:
    game = results.trainer.job.env.game_env
    films = []
    for index, method in enumerate(METHODS):
        run = index * settings.seeds
        watched: Watched = watch_episode(
            results.trainer, results.state, run, jax.random.key(7), 200
        )
        path = out / f"{method}.gif"
        save_video(path, episode_frames(watched, settings.env, game), fps=15)
        end = "to the time limit" if watched.end == "truncated" else watched.end
        end = end.replace("_", " ")
        caption = f"{NAMES[method]}: return {watched.total:.1f}, {end}"
        films.append((path.read_bytes(), "gif", caption))
    return films


def _windows(total: int) -> list[tuple[int, int]]:
    """Up to 40 stretches of iterations, one per point of a curve."""
    edges = np.unique(np.linspace(0, total, min(40, total) + 1).astype(int))
    return list(itertools.pairwise(edges))


def _curve(
    reports: dict[str, np.ndarray], points: Any, name: str, methods: int, seeds: int
) -> np.ndarray:
    values = np.full((methods, seeds, len(points)), np.nan)
    for run in range(methods * seeds):
        for place, (first, last) in enumerate(points):
            sums = {k: v[run, first:last].sum(axis=0) for k, v in reports.items()}
            found = summarise(sums)[name]
            if found is not None:
                values[run // seeds, run % seeds, place] = found
    return values


def _words(report: dict[str, np.ndarray], seeds: int) -> str:
    parts = []
    for index, method in enumerate(METHODS):
        mine = slice(index * seeds, (index + 1) * seeds)
        episodes = report["episodes"][mine].sum()
        if episodes:
            parts.append(f"{method} {report['return_sum'][mine].sum() / episodes:.2f}")
    return "return: " + ", ".join(parts)
