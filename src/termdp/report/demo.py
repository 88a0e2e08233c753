"""The demo: PG, TermPG and the oracle learn to drive with a passenger who may stop them.

All methods and seeds are one compiled program. A difference is claimed only if its
interval excludes zero.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from termdp.costs import ensemble
from termdp.envs.backseat_costs import BackseatSteeringCost
from termdp.intervals import mean_interval
from termdp.observer import Observer
from termdp.report.names import method_name
from termdp.runs.agent import Agent, make_card
from termdp.runs.collect import Rollout
from termdp.runs.evaluate import (
    Evaluation,
    Watched,
    evaluate,
    play_steps,
    watch_episode,
)
from termdp.runs.program import Job, TrainProgram
from termdp.runs.runner import Progress, Runner
from termdp.runs.spec import RunSpec, make_job

METHODS = ("pg", "termpg", "oracle")
ENVIRONMENT = "backseat"
# A short road of three lanes: small networks learn it in minutes.
ROAD = {"lanes": 3, "rows": 13, "agent_row": 8}
TURN_COST, WINDOW, BIAS = 0.5, 60, 8.0
FIRST_SEED = 1000  # the passenger and the road were chosen on seeds below 100
LONGEST_FILM = 400
CLOSE_ENOUGH = 0.03  # a ride whose return is within this share of the mean is typical
MOST_TRIALS = 24


@dataclasses.dataclass(frozen=True)
class DemoSettings:
    """What the demo runs.

    Attributes:
        steps: steps per method and seed.
        seeds: number of seeds.
        episodes: fresh episodes per method and seed for the final comparison.
    """

    steps: int = 120_000
    seeds: int = 5
    episodes: int = 128


@dataclasses.dataclass(frozen=True)
class DemoResults:
    """What was measured.

    Attributes:
        steps: at how many steps each point of the curves lies, `[points]`.
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

    def length(self, method: str) -> float:
        """Mean length of episodes."""
        return float(np.mean([part.length_mean for part in self.played[method]]))


def passenger() -> Observer:
    """The observer: each turn of the wheel costs, and counts for `WINDOW` steps."""
    return Observer(BackseatSteeringCost(TURN_COST), window=WINDOW, bias=BIAS)


def run_demo(
    settings: DemoSettings, on_progress: Callable[[int, int, str], None]
) -> DemoResults:
    """Train all methods and seeds together, then play fresh episodes.

    Args:
        settings: what to run.
        on_progress: gets steps done and steps in all (both −1 after training), and a few
            words.
    """
    specs = {
        name: RunSpec(
            ENVIRONMENT,
            name,
            settings.steps,
            settings.seeds,
            seed=FIRST_SEED,
            env_numbers=ROAD,
            unserialised=("observer",),
        )
        for name in METHODS
    }
    jobs = {name: make_job(s, observer=passenger()) for name, s in specs.items()}
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
    agents = _agents(runner.run(), specs, jobs, settings.seeds)
    played = {}
    for name in METHODS:
        on_progress(-1, -1, f"playing fresh episodes with {method_name(name)}")
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


def _agents(
    state: Any, specs: dict[str, RunSpec], jobs: dict[str, Job], seeds: int
) -> dict[str, list[Agent]]:
    found: dict[str, list[Agent]] = {}
    for run, (name, seed) in enumerate(itertools.product(METHODS, range(seeds))):
        card = make_card(specs[name], jobs[name]).of_seed(FIRST_SEED + seed, None)
        weights = jax.tree.map(lambda x, run=run: x[run], state.policy.params)
        costs = jax.tree.map(lambda x, run=run: x[run], state.costs)
        learned = costs if card.method.learns_costs else None
        found.setdefault(name, []).append(Agent(card, weights, learned))
    return found


def verdict(results: DemoResults) -> str:
    """What the numbers support, in words."""
    # Paired by seed.
    gap = mean_interval(results.returns("termpg") - results.returns("pg"))
    interval = f"{gap.value:+.2f} (95% interval {gap.low:+.2f} … {gap.high:+.2f})"
    seeds = len(results.returns("pg"))
    if gap.low > 0:
        return (
            f"TermPG earns more than PG (plain PPO): the mean difference over {seeds} "
            f"seeds is {interval}."
        )
    if gap.high < 0:
        return (
            f"TermPG earns less than PG (plain PPO) here: the mean difference over "
            f"{seeds} seeds is {interval}."
        )
    return (
        f"The difference between TermPG and PG (plain PPO) is not clear: {interval} over "
        f"{seeds} seeds includes zero. More seeds or steps may decide it."
    )


def typical_agent(results: DemoResults, method: str) -> Agent:
    """The seed whose mean return is nearest to the mean of all."""
    returns = results.returns(method)
    return results.agents[method][int(np.argmin(np.abs(returns - returns.mean())))]


def typical_ride(results: DemoResults, method: str) -> Watched:
    """A ride to film: by the typical agent, ended as most are, return near the mean."""
    agent = typical_agent(results, method)
    mean = float(results.returns(method).mean())
    is_usually_stopped = results.stop_rate(method) > 0.5

    def oddness(ride: Watched) -> tuple[bool, float]:
        is_stopped = ride.end == "stopped"
        return is_stopped != is_usually_stopped, abs(ride.total - mean)

    rides: list[Watched] = []
    for trial in range(MOST_TRIALS):
        key = jax.random.key(trial)
        rides.append(watch_episode(agent, *results.place, key, LONGEST_FILM))
        if oddness(rides[-1]) <= (False, CLOSE_ENOUGH * abs(mean)):
            break
    return min(rides, key=oddness)


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


def _curves(runner: Runner, edges: np.ndarray, seeds: int) -> dict[str, np.ndarray]:
    """`[methods, seeds, points]` by name; NaN where nothing is known."""
    names = ("return_mean", "stop_rate", "cost_corr")
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
            parts.append(f"{method_name(method)} {np.mean(known):.2f}")
    return "return: " + ", ".join(parts)
