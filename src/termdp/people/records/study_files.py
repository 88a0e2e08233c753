"""Export a study from the store to a file and import it; `dataset` has the format."""

from pathlib import Path
from typing import Any

from sqlalchemy import select

from termdp.people.records import dataset
from termdp.people.records.study_store import ConflictError, StudyStore, check_name
from termdp.people.records.tables import (
    Review,
    Showing,
    StoredRide,
    Study,
    Supervisor,
)

_STUDY = (
    "name",
    "title",
    "consent",
    "step_ms",
    "repeat_share",
    "seed",
    "created_ms",
)
_SUPERVISOR = ("name", "kind", "consent_hash", "joined_ms", "created_ms")
_RIDE = ("number", "seed", "driver", "crashed", "live", "created_ms")
_SHOWING = ("position", "is_repeat", "shown_ms")
_REVIEW = (
    "client_id",
    "stopped",
    "step",
    "latency_ms",
    "reason",
    "created_ms",
    "speed",
    "replays",
    "skew_ms",
)


def export_study(store: StudyStore, name: str, path: Path) -> int:
    """Write a study to a file; returns the number of rows."""
    if not path.parent.is_dir():
        raise ValueError(f"expected a folder for the file, but {path.parent} is none")
    return dataset.write(path, study_record(store, name))


def study_record(store: StudyStore, name: str) -> dict[str, Any]:
    """All of a study as plain data, without tokens and without open showings."""
    study = store.study(name)
    rides = store.rides(name, live=None)
    supervisors = store.supervisors(name)
    numbers = {ride.id: ride.number for ride in rides}
    places = {supervisor.id: i for i, supervisor in enumerate(supervisors)}
    showings = [
        {
            "supervisor": places[showing.supervisor_id],
            "ride": numbers[showing.ride_id],
            **_facts(showing, _SHOWING),
            **_facts(showing.review, _REVIEW),
        }
        for showing in store.showings(name)
        if showing.review is not None
    ]
    return {
        "format": dataset.FORMAT,
        "version": dataset.FORMAT_VERSION,
        "observation_shape": list(dataset._SHAPE),
        "study": _facts(study, _STUDY),
        "supervisors": [_facts(s, _SUPERVISOR) for s in supervisors],
        "rides": [
            {**_facts(r, _RIDE), "actions": "".join(map(str, r.actions))} for r in rides
        ],
        "showings": showings,
    }


def import_study(store: StudyStore, path: Path, name: str | None = None) -> str:
    """Read a file into a store, in one transaction; returns the study's name.

    Args:
        store: where it must not exist yet.
        path: the file.
        name: another name for the study, if wanted.
    """
    record = dataset.read(path)
    facts = record["study"] | ({} if name is None else {"name": check_name(name)})
    with store.database.writing() as session:
        query = select(Study).where(Study.name == facts["name"])
        if session.scalars(query).one_or_none() is not None:
            raise ConflictError(
                f"expected a study that is new to this store, but {facts['name']!r} "
                "exists: give it another --name"
            )
        study = Study(**facts)
        session.add(study)
        session.flush()
        supervisors = [
            Supervisor(study_id=study.id, **s) for s in record["supervisors"]
        ]
        rides = {
            row["number"]: StoredRide(
                study_id=study.id,
                **{n: row[n] for n in _RIDE},
                actions=dataset.ride_of(row).actions.tobytes(),
            )
            for row in record["rides"]
        }
        # In this order, so that ids grow as they did in the first store.
        for row in [*supervisors, *rides.values()]:
            session.add(row)
            session.flush()
        for row in record["showings"]:
            showing = Showing(
                supervisor_id=supervisors[row["supervisor"]].id,
                ride_id=rides[row["ride"]].id,
                **{n: row[n] for n in _SHOWING},
                review=Review(**{n: row[n] for n in _REVIEW}),
            )
            session.add(showing)
            session.flush()
    return str(facts["name"])


def _facts(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
