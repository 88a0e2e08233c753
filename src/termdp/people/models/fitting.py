"""From a study's showings to fitted observers: what `termdp studies fit` does."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from termdp.logs.held_out import HeldOut
from termdp.observer import Observer
from termdp.people.driving.ride import BACKSEAT
from termdp.people.driving.rides import replay
from termdp.people.models.senses import senses_of
from termdp.people.models.showing_data import ShowingData
from termdp.people.models.window_choice import (
    FIRST_WINDOW,
    FitSettings,
    Group,
    compare,
    constant_log_likelihood,
    fit_whole,
    make_group,
    personal_groups,
)
from termdp.people.records.study_schema import StudyRecord

MEMBERS = 3
MIN_REVIEWS = 20
POOLED = "pooled"


@dataclasses.dataclass(frozen=True, eq=False)
class StudyFit:
    """What was found in a study.

    Attributes:
        env: the environment that was watched.
        delay: the reaction delay, in steps.
        window: the window of the saved observers.
        best_window: the one chosen by held-out likelihood; `window` unless that was
            asked for.
        delays: held-out likelihoods by delay, at the paper's window, of models of each
            supervisor; of one model for all if no supervisor has enough stops.
        windows: the same by window, at the chosen delay.
        pooled_windows: the same of one model for all, by window.
        groups: the supervisors with models of their own.
        pooled: all supervisors together.
        observers: the final models by name, fitted to all showings.
        constant: log-likelihood per showing of a model without costs.
    """

    env: str
    delay: int
    window: int
    best_window: int
    delays: HeldOut
    windows: HeldOut
    pooled_windows: HeldOut
    groups: list[Group]
    pooled: Group
    observers: dict[str, Observer]
    constant: float


def showings_of(record: StudyRecord) -> list[ShowingData]:
    """The showings of a study's record (`study_files.study_record`, `dataset.read`)."""
    rides = {row.number: row for row in record.rides}
    needed = {row.ride for row in record.showings}
    again = {
        number: replay(rides[number].ride(record.study.env))
        for number in sorted(needed)
    }
    found = []
    for row in record.showings:
        played = again[row.ride]
        own_end = "game_over" if played.game_over[-1] else "truncated"
        length = row.num_steps
        found.append(
            ShowingData(
                ride=str(row.ride),
                supervisor=record.supervisors[row.supervisor].name,
                observations=played.observations[:length],
                actions=played.ride.actions[:length],
                end="stopped" if row.stopped else own_end,
            )
        )
    return found


def check_enough(showings: Sequence[ShowingData], name: str) -> None:
    """Refuse studies with too few reviews or stops to fit."""
    stops = sum(showing.end == "stopped" for showing in showings)
    check_counts(len(showings), stops, name)


def check_counts(reviews: int, stops: int, name: str) -> None:
    """The same check, given only the numbers."""
    if reviews < MIN_REVIEWS:
        raise ValueError(
            f"expected at least {MIN_REVIEWS} reviewed rides in study {name}, got "
            f"{reviews}: let supervisors review more"
        )
    if stops < MIN_REVIEWS or stops == reviews:
        raise ValueError(
            f"expected at least {MIN_REVIEWS} stops in study {name}, and some reviews "
            f"without a stop, got {stops} stops in {reviews} reviews: let supervisors "
            "review more"
        )


def fit_study(
    showings: Sequence[ShowingData],
    settings: FitSettings,
    window: int | None = None,
    on_progress: Callable[[str], None] = lambda what: None,
    env: str = BACKSEAT,
) -> StudyFit:
    """Choose delay and window, then fit the observers.

    Args:
        showings: the showings.
        settings: how to fit.
        window: the window of the saved observers; None for the chosen one.
        on_progress: called with a few words about the present step.
        env: the environment that was watched.
    """
    on_progress("reading the showings")
    senses = senses_of(env, showings)
    groups = personal_groups(senses, showings, settings)
    pooled = make_group(senses, POOLED, list(showings), settings)
    shared = pooled_settings(settings)
    compared, how = (groups, settings) if groups else ([pooled], shared)
    on_progress("comparing reaction delays")
    pairs = [(FIRST_WINDOW, delay) for delay in settings.delays]
    delays = compare(compared, pairs, settings.delays, how)
    delay = delays.best
    pairs = [(window, delay) for window in settings.windows]
    on_progress("comparing windows, all supervisors together")
    together = compare([pooled], pairs, settings.windows, shared)
    windows = together
    if groups:
        on_progress("comparing windows, a model for each supervisor")
        windows = compare(groups, pairs, settings.windows, settings)
    chosen = windows.best if window is None else window
    on_progress("fitting the observers")
    observers = final_observers([pooled], chosen, delay, shared)
    if groups:
        observers |= final_observers(groups, chosen, delay, settings)
    labels = pooled.packed.labels(delay)
    return StudyFit(
        env=env,
        delay=delay,
        window=chosen,
        best_window=windows.best,
        delays=delays,
        windows=windows,
        pooled_windows=together,
        groups=groups,
        pooled=pooled,
        observers=observers,
        constant=constant_log_likelihood(labels, len(showings)),
    )


def pooled_settings(settings: FitSettings) -> FitSettings:
    """Settings for one model of all supervisors: larger draws, because of more data."""
    draws = 2 * settings.config.segments_per_step
    config = dataclasses.replace(settings.config, segments_per_step=draws)
    return dataclasses.replace(settings, config=config)


def final_observers(
    groups: Sequence[Group],
    window: int,
    delay: int,
    settings: FitSettings,
) -> dict[str, Observer]:
    """For each group an ensemble on all its showings; each member has its bootstrap."""
    config = dataclasses.replace(settings.config, members=MEMBERS)
    settings = dataclasses.replace(settings, config=config)
    fitted = jax.device_get(fit_whole(groups, window, delay, settings))
    found = {}
    for index, group in enumerate(groups):
        mine = jax.tree.map(lambda x, i=index: jnp.asarray(x[i, 0]), fitted)
        networks = mine.costs.average.network
        cost = group.senses.cost(networks, mine.scale, mine.costs.network)
        found[group.name] = Observer(cost, window=window, bias=float(mine.bias))
    return found
