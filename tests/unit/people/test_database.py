"""Databases old, new, foreign and unreachable."""

import pytest
from sqlalchemy import inspect, text

from termdp.people.records import migrations
from termdp.people.records.database import Database
from termdp.people.records.study_store import StudyStore, UnreachableError, to_ride
from termdp.people.records.tables import Base


def columns(engine):
    found = {}
    inspector = inspect(engine)
    for table in Base.metadata.sorted_tables:
        unique = inspector.get_unique_constraints(table.name)
        foreign = inspector.get_foreign_keys(table.name)
        found[table.name] = (
            {
                column["name"]: (str(column["type"]), column["nullable"])
                for column in inspector.get_columns(table.name)
            },
            sorted(tuple(sorted(u["column_names"])) for u in unique),
            sorted((f["referred_table"], *f["constrained_columns"]) for f in foreign),
            inspector.get_pk_constraint(table.name)["constrained_columns"],
            sorted(tuple(i["column_names"]) for i in inspector.get_indexes(table.name)),
        )
    return found


def test_migrations_arrive_at_the_tables(database_url):
    database = Database.open(database_url)
    migrated = columns(database.engine)
    with database.writing() as session:
        for table in reversed(Base.metadata.sorted_tables):
            session.execute(text(f"DROP TABLE {table.name}"))
        Base.metadata.create_all(session.connection())
    assert columns(database.engine) == migrated
    database.close()


# Names before version 3, in the order of replacement.
RENAMED = {
    "assignment_id": "showing_id",
    "assignments": "showings",
    "decision_ms": "step_ms",
    "decision": "step",
    "policy": "driver",
}


@pytest.mark.parametrize("version", range(1, migrations.NEWEST))
def test_an_old_store_opens_with_all_it_holds(database_url, monkeypatch, version):
    with monkeypatch.context() as patch:
        patch.setattr(
            "termdp.people.records.database.migrate",
            lambda connection: migrations.migrate(connection, version),
        )
        database = Database.open(database_url)
    with database.writing() as session:
        for table, names, values in (
            (
                "studies",
                "id, name, title, consent, decision_ms, repeat_share, seed, created_ms",
                "1, 'old', 'Old', 'yes?', 250, 0.1, 0, 1",
            ),
            (
                "supervisors",
                "id, study_id, name, kind, token_hash, joined_ms, created_ms",
                "1, 1, 'ann', 'person', 'digest', 5, 1",
            ),
            (
                "rides",
                "id, study_id, number, seed, policy, actions, crashed, live, created_ms",
                "1, 1, 0, 5, 'someone', :actions, false, false, 1",
            ),
            (
                "assignments",
                "id, supervisor_id, ride_id, position, is_repeat, shown_ms",
                "1, 1, 1, 0, false, 7",
            ),
            (
                "reviews",
                "id, assignment_id, client_id, stopped, decision, latency_ms, reason, "
                "created_ms",
                "1, 1, 'client', true, 2, 90, 'why', 8",
            ),
        ):
            statement = f"INSERT INTO {table} ({names}) VALUES ({values})"
            if version >= 3:
                for old, new in RENAMED.items():
                    statement = statement.replace(old, new)
            actions = {"actions": b"\0\1\2"} if table == "rides" else {}
            session.execute(text(statement), actions)
    database.close()

    with StudyStore.open(database_url) as store:
        with store.database.reading() as session:
            assert migrations.version(session.connection()) == migrations.NEWEST
        (showing,) = store.showings("old")
        review = showing.review
        assert (review.step, review.reason, review.latency_ms) == (2, "why", 90)
        assert (review.speed, review.replays, review.skew_ms) == (1.0, 0, None)
        study = store.study("old")
        assert (study.step_ms, study.observer) == (250, None)
        assert study.env == "backseat"  # there was nothing else then
        ride = to_ride(showing.ride)
        assert (ride.driver, ride.actions.tolist()) == ("someone", [0, 1, 2])
        assert store.high_scores(1) == []
        (ann,) = store.supervisors("old")
        # From version 4 on it is written with the token.
        assert (ann.token_ms, ann.invite_ms) == (5 if version < 4 else None, None)
    StudyStore.open(database_url).close()  # nothing more to do


def test_a_store_of_a_newer_version_is_left_alone(database_url):
    store = StudyStore.open(database_url)
    with store.database.writing() as session:
        session.execute(text("INSERT INTO schema_version VALUES (99, 0)"))
    store.close()
    with pytest.raises(ValueError, match="version 99: it was made by a newer"):
        StudyStore.open(database_url)


def test_a_foreign_database_is_left_alone(database_url):
    database = Database.open(database_url)
    with database.writing() as session:
        session.execute(text("DROP TABLE schema_version"))
    database.close()
    with pytest.raises(ValueError, match="other tables"):
        StudyStore.open(database_url)


@pytest.mark.parametrize(
    "url, message",
    [
        ("postgresql+psycopg://nobody@127.0.0.1:1/none", "cannot be opened"),
        ("/nowhere/at/all/people.db", "cannot be opened"),
        ("postgresql+psycopg://me:secret@127.0.0.1:1/none", r"me:\*\*\*@"),
    ],
)
def test_an_unreachable_database_is_named(url, message):
    with pytest.raises(UnreachableError, match=message):
        StudyStore.open(url)


@pytest.mark.parametrize(
    "url, message",
    [
        ("mysql://x/y", "sqlite or postgresql"),
        ("sqlite:///:memory:", "in memory"),
        ("://", "database URL"),
    ],
)
def test_a_wrong_url_is_explained(url, message):
    with pytest.raises(ValueError, match=message):
        StudyStore.open(url)


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path):
    path = tmp_path / "notes.db"
    path.write_text("not a database, but dear to somebody\n" * 100)
    before = path.read_bytes()
    with pytest.raises(UnreachableError, match="not a database"):
        StudyStore.open(str(path))
    assert path.read_bytes() == before


def test_sqlite_writes_through_to_the_disk(tmp_path):
    store = StudyStore.open(str(tmp_path / "s.db"))
    with store.database.reading() as session:
        assert session.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert session.execute(text("PRAGMA synchronous")).scalar() == 2
        assert session.execute(text("PRAGMA foreign_keys")).scalar() == 1
    store.close()
