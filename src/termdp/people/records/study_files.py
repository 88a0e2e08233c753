"""Export a study from the store to a file and import it; `dataset` has the format."""

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import select

from termdp.people.records import audit, dataset, study_schema
from termdp.people.records.study_schema import (
    MistakePart,
    RidePart,
    ShowingPart,
    StudyPart,
    StudyRecord,
    SupervisorPart,
)
from termdp.people.records.study_store import (
    DEFAULT_CONSENT,
    ConflictError,
    StudyStore,
    check_name,
    to_ride,
)
from termdp.people.records.tables import (
    Mistake,
    Review,
    Showing,
    StoredRide,
    Study,
    Supervisor,
)

SHIPPED = "simulated_passengers.parquet"
STUDY = StudyPart.__struct_fields__
SUPERVISOR = SupervisorPart.__struct_fields__
RIDE = tuple(n for n in RidePart.__struct_fields__ if n != "actions")
SHOWING = ("position", "is_repeat", "shown_ms")
REVIEW = tuple(
    name
    for name in ShowingPart.__struct_fields__
    if name not in (*SHOWING, "supervisor", "ride", "mistakes")
)
MISTAKE = MistakePart.__struct_fields__


def export_study(
    store: StudyStore, name: str, path: Path, who: str | None = None
) -> int:
    """Write a study to a file; returns the number of rows."""
    if not path.parent.is_dir():
        raise ValueError(
            f"expected a folder for the file, but {path.parent} is not a folder"
        )
    num_rows = dataset.write(path, study_record(store, name))
    with store.database.writing() as session:
        audit.note(session, who or store.who, "exported", name)
    return num_rows


def study_record(store: StudyStore, name: str) -> StudyRecord:
    """All of a study as plain data, without tokens and without open showings."""
    study = store.study(name)
    rides = store.rides(name, live=None)
    supervisors = store.supervisors(name)
    numbers = {ride.id: ride.number for ride in rides}
    places = {supervisor.id: i for i, supervisor in enumerate(supervisors)}
    mistakes = store.mistakes(name)
    showings = [
        {
            "supervisor": places[showing.supervisor_id],
            "ride": numbers[showing.ride_id],
            **_values(showing, SHOWING),
            **_values(showing.review, REVIEW),
            "mistakes": [_values(m, MISTAKE) for m in mistakes[showing.id]],
        }
        for showing in store.showings(name)
        if showing.review is not None
    ]
    return study_schema.convert(
        {
            "format": study_schema.FORMAT,
            "version": study_schema.FORMAT_VERSION,
            "observation_shape": list(dataset.Packing(study.env).shape),
            "study": _values(study, STUDY),
            "supervisors": [_values(s, SUPERVISOR) for s in supervisors],
            "rides": [
                {**_values(r, RIDE), "actions": to_ride(r, study.env).digits}
                for r in rides
            ],
            "showings": showings,
        }
    )


def import_study(store: StudyStore, path: Path, name: str | None = None) -> str:
    """Read a file into a store, in one transaction; returns the study's name.

    Nobody can log in as one of the people in it: tokens come only from this server.

    Args:
        store: where it must not exist yet.
        path: the file.
        name: another name for the study, if wanted.
    """
    if name is not None:
        check_name(name, "study name")
    record = dataset.read(path)
    chosen = record.study.name if name is None else name
    add_study(store, record, chosen)
    return chosen


def add_study(store: StudyStore, record: StudyRecord, chosen: str) -> None:
    """Add a record to a store as a new study named `chosen`, in one transaction."""
    with store.database.writing() as session:
        query = select(Study).where(Study.name == chosen)
        if session.scalars(query).one_or_none() is not None:
            raise ConflictError(
                f"expected a study that is new to this store, but {chosen!r} "
                "exists: give it another --name"
            )
        study = Study(**{**_values(record.study, STUDY), "name": chosen})
        session.add(study)
        session.flush()
        supervisors = [
            Supervisor(study_id=study.id, **_values(s, SUPERVISOR))
            for s in record.supervisors
        ]
        rides = {
            row.number: StoredRide(
                study_id=study.id,
                **_values(row, RIDE),
                actions=row.ride(record.study.env).actions.tobytes(),
            )
            for row in record.rides
        }
        # In this order, so that ids grow as they did in the first store.
        for row in [*supervisors, *rides.values()]:
            session.add(row)
            session.flush()
        for shown in record.showings:
            showing = Showing(
                supervisor_id=supervisors[shown.supervisor].id,
                ride_id=rides[shown.ride].id,
                **_values(shown, SHOWING),
                review=Review(**_values(shown, REVIEW)),
            )
            session.add(showing)
            session.flush()
            session.add_all(
                Mistake(showing_id=showing.id, **_values(m, MISTAKE))
                for m in shown.mistakes
            )
        audit.note(session, store.who, "imported", chosen)


def shipped_record() -> StudyRecord:
    """The study that comes with the package: 600 rides, five SIMULATED passengers."""
    with as_file(files("termdp.people") / "data" / SHIPPED) as path:
        return dataset.read_record(path)


def practice_record(most_rides: int) -> StudyRecord:
    """Rides to practise with, and what five SIMULATED passengers made of them.

    They come from the shipped study: the first rides that some passenger has reviewed,
    without the second showings.
    """
    record = shipped_record()
    first = [s for s in record.showings if not s.is_repeat]
    chosen = sorted({showing.ride for showing in first})[:most_rides]
    return msgspec.structs.replace(
        record,
        study=msgspec.structs.replace(
            record.study, title="Practice", consent=DEFAULT_CONSENT
        ),
        rides=[ride for ride in record.rides if ride.number in chosen],
        showings=[showing for showing in first if showing.ride in chosen],
    )


def _values(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
