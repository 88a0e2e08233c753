"""One round: fit an observer to all stops so far, train the driver, record new rides.

A round enters the study all at once: `records.rounds.add_round` is one transaction. A
round that was killed continues where it left off (`round_folder`).
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from termdp.folder_lock import only_writer
from termdp.people.driving.rides import record_rides
from termdp.people.driving.trained import drivers_of_run
from termdp.people.improving.learning import chosen_delay, round_observers
from termdp.people.improving.round_folder import RoundFolder, driver_in
from termdp.people.improving.settings import RoundSettings
from termdp.people.models.fitting import POOLED, check_counts, showings_of
from termdp.people.records.rounds import (
    add_round,
    drivers_in_study,
    rounds_of,
)
from termdp.people.records.study_files import study_record
from termdp.people.records.study_store import ConflictError, StudyStore
from termdp.people.records.tables import Round
from termdp.runs.folder import RunFolder
from termdp.runs.runner import Progress
from termdp.runs.train import resume, train

# Small networks learn this game as well as large ones, in less than half the time.
SMALL = {"hidden": 64, "filters": 8}
_SIZES = ("network", "filters", "hidden", "lstm_size")


def improve(
    store: StudyStore,
    study: str,
    folder: Path,
    settings: RoundSettings,
    on_progress: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """Do one round; returns a summary of it.

    Args:
        store: where the study is.
        study: its name.
        folder: where the rounds of this study are kept.
        settings: how.
        on_progress: called with a few words about the present step.
    """
    folder = folder.resolve()
    found = store.study(study)
    env, created_ms = found.env, found.created_ms
    with only_writer(folder):
        done = rounds_of(store, study)
        if settings.driver is not None and not done:
            _check_driver(Path(settings.driver), env)
        _check_news(store, study, done)
        number = done[-1].number + 1 if done else 1
        plan = {"study": study, "created_ms": created_ms, "number": number}
        here = RoundFolder(folder, number)
        before = _before(folder, done, settings, plan | {"env": env}, on_progress)
        here.begin(plan | dataclasses.asdict(settings))
        fit = here.fit() or _fit(store, study, here, settings, on_progress)
        _train(here, before, env, settings, on_progress)
        on_progress("driving")
        names = drivers_in_study(store, study)
        rounds = [] if done else [_row(before, _free_name("round 0", names), None)]
        rounds.append(_row(here, _free_name(f"round {number}", names), fit))
        known = [*done, *rounds]
        rides, crashed = _rides(known, env, settings, number)
        add_round(store, study, rounds, rides, crashed, here.observer)
    return {
        "study": study,
        "round": number,
        "driver": rounds[-1].driver,
        "folder": str(here.path),
        **fit,
        "rides": len(rides),
        "crashes": sum(crashed),
    }


def _check_driver(run: Path, env: str) -> None:
    """Refuse runs that cannot drive here, and runs still being trained."""
    drivers_of_run(run, env)
    if not (run / "summary.json").exists():
        raise ValueError(
            f"expected a run that is complete, got {run}: end it with `termdp train "
            f"--resume {run}`"
        )


def _check_news(store: StudyStore, study: str, done: list[Round]) -> None:
    """Refuse a round without enough reviews, or without new ones."""
    (row,) = [row for row in store.studies() if row["name"] == study]
    check_counts(row["reviews"], row["stops"], study)
    if done and row["reviews"] <= done[-1].reviews:
        raise ConflictError(
            f"expected reviews since round {done[-1].number} of {study}, got none: let "
            "supervisors review its rides first (termdp serve)"
        )


def _before(
    folder: Path,
    done: list[Round],
    settings: RoundSettings,
    plan: dict[str, Any],
    on_progress: Callable[[str], None],
) -> RoundFolder:
    """The driver to continue from: the last round's, or the first driver."""
    if done:
        last = RoundFolder(folder, done[-1].number)
        if str(last.path) != done[-1].folder or not last.is_trained():
            raise ValueError(
                f"expected the driver of round {done[-1].number} in {last.path}, but it "
                f"is in {done[-1].folder}: give the folder that the rounds began in"
            )
        return last
    first = RoundFolder(folder, 0)
    begun = {"driver": settings.driver, "steps": settings.start_steps}
    first.begin(plan | {"number": 0} | begun | {"seed": settings.seed})
    if settings.driver is not None and not first.run.exists():
        first.copy_run(Path(settings.driver))
    if not first.is_trained():
        _train_or_resume(
            first,
            plan["env"],
            "pg",
            on_progress,
            observer=False,
            steps=settings.start_steps,
            seed=settings.seed,
            config=SMALL,
        )
    return first


def _fit(
    store: StudyStore,
    study: str,
    here: RoundFolder,
    settings: RoundSettings,
    on_progress: Callable[[str], None],
) -> dict[str, Any]:
    """An observer of all supervisors, fitted to all stops so far."""
    on_progress("reading the showings")
    record = study_record(store, study)
    env, showings = record.study.env, showings_of(record)
    on_progress("fitting the observer")
    delay = settings.delay
    if delay is None:
        delay = chosen_delay(showings, settings.window, settings.seed, env)
    fitted = round_observers(
        {POOLED: showings},
        settings.window,
        delay,
        settings.seed,
        settings.gradient_steps,
        env=env,
    )
    facts = {
        "study": study,
        "supervisor": "together",
        "reaction_delay": delay,
        "stops": sum(showing.end == "stopped" for showing in showings),
        "reviews": len(showings),
    }
    here.keep_fit(fitted[POOLED], facts)
    return facts


def _train(
    here: RoundFolder,
    before: RoundFolder,
    env: str,
    settings: RoundSettings,
    on_progress: Callable[[str], None],
) -> None:
    if here.is_trained():
        return
    numbers = RunFolder.open(before.run)[0].numbers()
    _train_or_resume(
        here,
        env,
        settings.method,
        on_progress,
        observer=here.observer,
        init_from=before.run,
        steps=settings.steps,
        seed=settings.seed + here.number,
        config={name: numbers[name] for name in _SIZES if name in numbers},
    )


def _train_or_resume(
    here: RoundFolder,
    env: str,
    method: str,
    on_progress: Callable[[str], None],
    **how: Any,
) -> None:
    def tell(progress: Progress) -> None:
        share = progress.step / progress.steps
        on_progress(f"round {here.number}: training the driver, {share:.0%}")

    on_progress(f"round {here.number}: training the driver")
    if here.can_resume():
        resume(here.run, on_progress=tell)
    else:
        here.clear_run()
        train(env, method, out=here.run, on_progress=tell, **how)


def _rides(known: list[Round], env: str, settings: RoundSettings, number: int) -> Any:
    """New rides, mixed: every other one by the new driver, the rest by earlier ones."""
    drivers = [driver_in(row.folder, row.driver, env) for row in known]
    new = drivers[-1]
    in_turn = [driver for earlier in drivers[:-1] for driver in (new, earlier)]
    roads = np.random.SeedSequence([settings.seed, number]).generate_state(1)[0]
    return record_rides(in_turn, settings.rides, settings.ride_steps, int(roads))


def _row(here: RoundFolder, name: str, fit: dict[str, Any] | None) -> Round:
    return Round(
        number=here.number,
        driver=name,
        folder=str(here.path),
        reviews=0 if fit is None else fit["reviews"],
        stops=0 if fit is None else fit["stops"],
    )


def _free_name(name: str, taken: set[str]) -> str:
    """A driver's name that is new to the study, which may have imported rides."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name} ({count})"
    return found
