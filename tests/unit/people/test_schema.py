"""Databases old, new, foreign and unreachable."""

import pytest
from sqlalchemy import inspect, text

from termdp.people.records import migrations
from termdp.people.records.database import Database
from termdp.people.records.store import Store, UnreachableError, to_ride
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


def test_a_store_of_version_1_opens_with_all_it_holds(database_url, monkeypatch):
    with monkeypatch.context() as patch:
        old = migrations.MIGRATIONS[:1]
        patch.setattr(
            "termdp.people.records.database.migrate",
            lambda c: migrations.migrate(c, len(old)),
        )
        database = Database.open(database_url)
    with database.writing() as session:
        for statement in (
            "INSERT INTO studies VALUES (1, 'old', 'Old', 'yes?', 200, 0.1, 0, 1)",
            "INSERT INTO supervisors VALUES "
            "(1, 1, 'ann', 'person', NULL, NULL, NULL, NULL, 5, 1)",
            "INSERT INTO assignments VALUES (1, 1, 1, 0, false, 7)",
            "INSERT INTO reviews VALUES (1, 1, 'client', true, 2, 90, 'why', 8)",
        ):
            if statement.startswith("INSERT INTO assignments"):
                session.execute(
                    text(
                        "INSERT INTO rides VALUES "
                        "(1, 1, 0, 5, 'someone', :actions, false, false, 1)"
                    ),
                    {"actions": b"\0\1\2"},
                )
            session.execute(text(statement))
    database.close()

    store = Store.open(database_url)
    with store.database.reading() as session:
        assert migrations.version(session.connection()) == migrations.NEWEST
    (shown,) = store.showings("old")
    review = shown.review
    assert (review.decision, review.reason, review.latency_ms) == (2, "why", 90)
    assert (review.speed, review.replays, review.skew_ms) == (1.0, 0, None)
    assert store.study("old").observer is None
    assert to_ride(shown.ride).actions.tolist() == [0, 1, 2]
    assert store.high_scores(1) == []
    store.close()
    Store.open(database_url).close()  # nothing more to do


def test_a_store_of_a_newer_version_is_left_alone(database_url):
    store = Store.open(database_url)
    with store.database.writing() as session:
        session.execute(text("INSERT INTO schema_version VALUES (99, 0)"))
    store.close()
    with pytest.raises(ValueError, match="version 99: it was made by a newer"):
        Store.open(database_url)


def test_a_foreign_database_is_left_alone(database_url):
    database = Database.open(database_url)
    with database.writing() as session:
        session.execute(text("DROP TABLE schema_version"))
    database.close()
    with pytest.raises(ValueError, match="other tables"):
        Store.open(database_url)


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
        Store.open(url)


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
        Store.open(url)


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path):
    path = tmp_path / "notes.db"
    path.write_text("not a database, but dear to somebody\n" * 100)
    before = path.read_bytes()
    with pytest.raises(UnreachableError, match="not a database"):
        Store.open(str(path))
    assert path.read_bytes() == before


def test_sqlite_writes_through_to_the_disk(tmp_path):
    store = Store.open(str(tmp_path / "s.db"))
    with store.database.reading() as session:
        assert session.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert session.execute(text("PRAGMA synchronous")).scalar() == 2
        assert session.execute(text("PRAGMA foreign_keys")).scalar() == 1
    store.close()
