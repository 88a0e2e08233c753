"""The demo's page: films on top, then results, then what was learned."""

from pathlib import Path

import numpy as np

from termdp.pages import Page, Table, counted
from termdp.render.film import Film, Look, save_gif
from termdp.report import figures
from termdp.report.demo import (
    BIAS,
    ENVIRONMENT,
    FIRST_SEED,
    METHODS,
    TURN_COST,
    WINDOW,
    DemoResults,
    DemoSettings,
    cost_pairs,
    typical_ride,
    verdict,
)
from termdp.report.demo_figures import cost_figure, learning_figures
from termdp.report.names import method_name
from termdp.runs.evaluate import Watched
from termdp.runs.video import episode_scene

LOOK = Look(width=420, game_height=380, font_size=18)  # read on a phone, too
STEPS_PER_SECOND, PICTURES_PER_STEP = 8.0, 2
WHO = {
    "pg": "PG is plain PPO. It is stopped like the others and never learns why.",
    "termpg": "TermPG learns what the passenger minds, from the stops alone.",
    "oracle": "The oracle was told what the passenger minds. It shows what is possible.",
}
ENDS = {
    "stopped": "the passenger stops the ride",
    "game_over": "the car crashes",
    "truncated": "the time is up",
    "cut short": "the film is cut",
}


def write_page(results: DemoResults, settings: DemoSettings, out: Path) -> Path:
    """The page, its films and its pictures under `out`."""
    out.mkdir(parents=True, exist_ok=True)
    page = Page(
        "Driving with a passenger who can stop the ride",
        "Three agents learn to drive. The passenger on the back seat feels a little "
        "queasier with every turn of the wheel, says nothing, and may stop the ride at "
        "any moment. Only one of the agents is told what the passenger minds.",
        wide=True,
    )
    rides = {method: typical_ride(results, method) for method in METHODS}
    page.films(_films(rides, results, out))
    page.paragraph(
        "The agent drives the red car and earns 0.1 per step for every car on the screen "
        "that it has left behind. Upper curve: how queasy the passenger is; each bar is "
        "a turn of the wheel. At the dashed line the passenger stops the ride with "
        "probability one half at each step. Lower curve: that probability. Red is the "
        "truth, blue is what TermPG believes."
    )
    page.heading("Results")
    page.findings([verdict(results), typical(rides, results)])
    page.table(_table(results))
    _add_learning(page, results, out)
    _add_costs(page, results, out)
    page.heading("How it was done")
    page.paragraph(_how(results, settings))
    page.heading("What to do next")
    page.commands(
        [
            "termdp envs                                  # all environments",
            "termdp train breakout termpg --seeds 3       # train on a game",
            "termdp video runs/breakout-termpg film.gif",
            "termdp eval runs/breakout-termpg",
        ]
    )
    path = out / "index.html"
    page.save(path)
    return path


def _films(
    rides: dict[str, Watched], results: DemoResults, out: Path
) -> list[tuple[bytes, str]]:
    """A film of each ride, all as long as the longest so that they loop together."""
    env, _ = results.place
    scenes = {
        method: episode_scene(
            ride, ENVIRONMENT, env.game_env, method_name(method), PICTURES_PER_STEP
        )
        for method, ride in rides.items()
    }
    longest = max(len(scene.pictures) for scene in scenes.values())
    steps = max(scene.steps for scene in scenes.values())
    found = []
    for method, scene in scenes.items():
        path = out / f"{method}.gif"
        film = Film([scene], LOOK, longest, steps)
        save_gif(path, film, STEPS_PER_SECOND * PICTURES_PER_STEP)
        words = f"{WHO[method]} {sight(rides[method])}"
        found.append((path.read_bytes(), words))
    return found


def sight(ride: Watched) -> str:
    """One sentence about what a film shows."""
    assert ride.costs is not None
    steps, turns = len(ride.rewards), int(np.sum(ride.costs > 0))
    return (
        f"Here it steers {counted(turns, 'time')} in {steps} steps; then "
        f"{ENDS[ride.end]}."
    )


def typical(rides: dict[str, Watched], results: DemoResults) -> str:
    """How the films' returns compare with the means of the table."""
    parts = []
    for method, ride in rides.items():
        mean = results.returns(method).mean()
        parts.append(f"{method_name(method)} {ride.total:.1f} (mean {mean:.1f})")
    return (
        "The films show typical rides, with returns near the means of the table: "
        f"{', '.join(parts)}."
    )


def _table(results: DemoResults) -> Table:
    rows = [
        [
            method_name(method),
            f"{np.mean(results.returns(method)):.2f}",
            ", ".join(f"{value:.2f}" for value in results.returns(method)),
            f"{results.length(method):.0f}",
            f"{results.stop_rate(method):.0%}",
        ]
        for method in METHODS
    ]
    headings = ["method", "mean return", "per seed", "steps per ride", "stopped"]
    return Table("", "", headings, rows)


def _add_learning(page: Page, results: DemoResults, out: Path) -> None:
    page.heading("How they learned")
    drawn = []
    for name, words, figure in learning_figures(results.steps, results.curves):
        svg = figures.save(figure, out / "figures", name)
        drawn.append((svg, words))
    page.plots(drawn, "Lines: mean over seeds. Bands: 95% intervals of the mean (t).")


def _add_costs(page: Page, results: DemoResults, out: Path) -> None:
    truths, guesses = cost_pairs(results)
    truth, guess = np.concatenate(truths), np.concatenate(guesses)
    page.heading("What TermPG learned about the passenger")
    steered, straight = guess[truth > 0], guess[truth <= 0]
    if len(steered) and len(straight):
        # Adding 0 turns −0 into 0.
        page.paragraph(
            f"It learned that a turn of the wheel costs {steered.mean():.2f} and going "
            f"straight on {round(float(straight.mean()), 2) + 0.0:.2f}. The truth, which "
            f"it was never told, is {TURN_COST:g} and 0."
        )
    svg = figures.save(cost_figure(truths, guesses), out / "figures", "costs")
    page.plots(
        [(svg, "Learned costs of single steps, two columns per seed")],
        "Stops do not fix the scale: costs and patience may shrink together. Only order "
        "and spacing count.",
    )


def _how(results: DemoResults, settings: DemoSettings) -> str:
    runs = len(METHODS) * settings.seeds
    return (
        f"Backseat Driver on a short road of three lanes. A turn of the wheel costs "
        f"{TURN_COST:g}; the passenger remembers {WINDOW} steps, and at a sum of "
        f"{BIAS:g} stops with probability one half at each step. "
        f"{settings.steps:,} steps per seed, {counted(settings.seeds, 'seed')} from "
        f"{FIRST_SEED} on (road and passenger were chosen on others), "
        f"{settings.episodes} fresh rides each. {results.seconds:.0f} s of training for "
        f"all {runs} runs together and {results.compile_seconds:.0f} s of compilation on "
        "this machine, starting from nothing."
    )
