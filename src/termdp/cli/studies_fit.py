"""`termdp studies fit`: an observer fitted to the stops of a study."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from termdp.people.extra import needs_people_packages

if TYPE_CHECKING:
    from termdp.people.records.study_schema import StudyRecord

FIT_BYTES = 16 * 2**20  # more than any fit can use


@dataclass(frozen=True)
class Args:
    """Fit the window classifier to a study's stops, and save it as an observer.

    Windows from 5 to 70 steps and several reaction delays are compared by the likelihood
    of held-out rides. The results folder gets the observers, summary.json, figures and a
    page. `termdp train ENV termpg --observer DIR/observer.safetensors` trains against the
    fitted observer, where ENV is the environment of the study.

    Example: termdp studies fit comfort --out fits/comfort
    """

    study: tyro.conf.Positional[str]
    """A study's name in the store, or a Parquet file from `termdp studies export`."""
    db: str = "people.db"
    """File or URL of the store."""
    out: Path | None = None
    """Folder for the results (default: fits/STUDY)."""
    window: int | None = None
    """Window of the saved observers (default: the one that fits best)."""
    max_window: int = 70
    """The longest window to compare; the shortest is 5."""
    gradient_steps: int = 400
    """Gradient steps per model."""
    seed: int = 0
    """Seed for folds, batches and intervals."""
    json: bool = False
    """Print the summary as JSON."""


@needs_people_packages()
def run(args: Args) -> None:
    """Fit, write the results, print a summary."""
    import dataclasses

    from rich.console import Console

    from termdp.files import room_for
    from termdp.people.models.fit_folder import check_new, write_results
    from termdp.people.models.fitting import check_enough, fit_study, showings_of
    from termdp.people.models.window_choice import FitSettings

    _check(args)
    name, record = _record(args)
    out = args.out or Path("fits") / name
    check_new(out)
    rides = showings_of(record)
    check_enough(rides, name)
    settings = FitSettings(
        windows=tuple(range(5, args.max_window + 1, 5)), seed=args.seed
    )
    config = dataclasses.replace(settings.config, num_steps=args.gradient_steps)
    settings = dataclasses.replace(settings, config=config)
    console = Console(stderr=True)
    with console.status("reading") as status:
        with room_for(out, FIT_BYTES):
            fit = fit_study(
                rides, settings, args.window, status.update, record.study.env
            )
        summary = write_results(out, name, fit, args.seed)
    _remember(args, out)
    if args.json:
        print(json.dumps(summary, indent=2))
        return
    low, high = summary["chosen_window_interval"]
    print(
        f"{name}: {summary['stops']} stops in {summary['reviews']} reviews; window "
        f"{fit.best_window} (95%: {low} … {high}), reaction delay {fit.delay} steps"
    )
    print(f"results in {out}: index.html, summary.json, observer.safetensors")


def _check(args: Args) -> None:
    if args.gradient_steps < 1:
        raise ValueError(
            f"expected at least 1 gradient step, got {args.gradient_steps}"
        )
    if not 10 <= args.max_window <= 200:
        raise ValueError(f"expected --max-window from 10 to 200, got {args.max_window}")
    if args.window is not None and not 1 <= args.window <= 200:
        raise ValueError(f"expected --window from 1 to 200, got {args.window}")


def _record(args: Args) -> tuple[str, "StudyRecord"]:
    from termdp.people.records import dataset

    if args.study.endswith(".parquet"):
        record = dataset.read_record(Path(args.study))
        return record.study.name, record
    from termdp.people.records.study_files import study_record
    from termdp.people.records.study_store import StudyStore

    with StudyStore.open(args.db) as store:
        record = study_record(store, args.study)
        return record.study.name, record


def _remember(args: Args, out: Path) -> None:
    """Tell the store where the observer is, so that the Results page finds it."""
    if args.study.endswith(".parquet"):
        return
    from termdp.people.records.study_store import StudyStore

    with StudyStore.open(args.db) as store:
        store.set_observer(args.study, str((out / "observer.safetensors").resolve()))
