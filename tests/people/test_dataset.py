"""Export and import: what a row means, and that nothing changes on the way."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from people_server import recorded, straight
from termdp.cli import main
from termdp.people.driving.drivers import random_driver
from termdp.people.driving.rides import record_with_ends, replay
from termdp.people.records import dataset, tokens
from termdp.people.records.study_files import export_study, import_study
from termdp.people.records.study_store import (
    ConflictError,
    ReviewInput,
    StudyStore,
    record_join,
    record_live,
    record_review,
    to_ride,
)

COLUMNS = [
    *("showing", "step", "observation", "action", "reward"),
    *("game_over", "stopped", "truncated", "supervisor", "latency_ms"),
]


def fill(store):
    """Two supervisors, rides that end in all ways, stops and ends without."""
    store.create_study("comfort", title="Größe ☂", repeat_share=0.5, seed=5, step_ms=20)
    found = record_with_ends(random_driver(), [1, 2, 3], 30)
    rides = [ride for ride, _ in found] + straight(2)
    store.add_rides("comfort", rides, [crash for _, crash in found] + [False] * 2)
    for name in ("ann", "bo", "idle"):
        invite = store.invite("comfort", name)
        study, supervisor = store.invited(invite)
        consent = tokens.digest(study.consent)
        recorded(store, record_join, invite, "n" * 24, consent)
        count = 0
        while name != "idle" and (showing := store.next_showing(supervisor.id)):
            count += 1
            stopped = count % 2 == 0 and len(showing.ride.actions) > 3
            given = ReviewInput(
                client_id=f"client-{showing.id:04d}",
                stopped=stopped,
                step=2,
                latency_ms=10 * count,
                reason=f"reason “{count}”" if stopped else None,
                speed=1 / 3,
                replays=count,
                client_ms=12345,
            )
            recorded(store, record_review, supervisor.id, showing.id, given)
    recorded(store, record_live, 1, straight(1, driver="live")[0], False)


@pytest.fixture
def store(database_url):
    store = StudyStore.open(database_url)
    fill(store)
    yield store
    store.close()


def test_a_row_per_step_shown(store, tmp_path):
    path = tmp_path / "comfort.parquet"
    num_rows = export_study(store, "comfort", path)
    table = pq.read_table(path)
    assert table.column_names == COLUMNS
    assert table.num_rows == num_rows
    rows = table.to_pylist()
    reviewed = [s for s in store.showings("comfort") if s.review]
    assert {row["showing"] for row in rows} == set(range(len(reviewed)))
    for number, shown in enumerate(reviewed):
        mine = [row for row in rows if row["showing"] == number]
        again = replay(to_ride(shown.ride))
        stopped = shown.review.stopped
        num = 3 if stopped else len(again)
        assert [row["step"] for row in mine] == list(range(num))
        assert {row["supervisor"] for row in mine} == {shown.supervisor.name}
        found = dataset.unpack([row["observation"] for row in mine])
        np.testing.assert_array_equal(found, again.observations[:num])
        assert [row["action"] for row in mine] == again.ride.actions[:num].tolist()
        assert [np.float32(row["reward"]) for row in mine] == list(again.rewards[:num])
        ends = [(r["game_over"], r["stopped"], r["truncated"]) for r in mine]
        assert ends[:-1] == [(False, False, False)] * (num - 1)
        crashed = bool(again.game_over[-1])
        last = (crashed and not stopped, stopped, not crashed and not stopped)
        assert ends[-1] == last
        latency = shown.review.latency_ms if stopped else None
        assert [r["latency_ms"] for r in mine] == [None] * (num - 1) + [latency]


def test_export_import_export_gives_the_same_bytes(store, tmp_path):
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    export_study(store, "comfort", first)
    other = StudyStore.open(str(tmp_path / "other.db"))
    assert import_study(other, first) == "comfort"
    export_study(other, "comfort", second)
    assert first.read_bytes() == second.read_bytes()
    # The imported study is alive: a new invite, and the rest can be reviewed.
    invite = other.invite("comfort", "idle")
    supervisor = other.invited(invite)[1]
    assert other.next_showing(supervisor.id) is not None
    other.close()


def test_an_import_never_overwrites(store, tmp_path):
    path = tmp_path / "comfort.parquet"
    export_study(store, "comfort", path)
    with pytest.raises(ConflictError, match="give it another --name"):
        import_study(store, path)
    assert import_study(store, path, "copy") == "copy"
    assert len(store.rides("copy")) == 5


def test_changed_rows_are_found(store, tmp_path):
    path = tmp_path / "comfort.parquet"
    export_study(store, "comfort", path)
    table = pq.read_table(path)
    other = StudyStore.open(str(tmp_path / "other.db"))

    def written(changed):
        pq.write_table(changed, tmp_path / "changed.parquet")
        return tmp_path / "changed.parquet"

    rewards = table["reward"].to_pylist()
    rewards[0] += 0.5
    column = pa.chunked_array([pa.array(rewards, pa.float32())])
    changed = table.set_column(4, dataset.Packing().columns[4], column)
    for wrong, words in (
        (changed, "not what the game does"),
        (table.slice(0, 0), "a column lies outside the file"),
        (table.drop_columns(["reward"]), "columns or metadata"),
        (table.drop_columns(["supervisor"]), "columns or metadata"),
        (table.replace_schema_metadata({}), "columns or metadata"),
    ):
        with pytest.raises(ValueError, match=words):
            import_study(other, written(wrong))
    record = json.loads(table.schema.metadata[dataset.METADATA_KEY])
    old = table.rename_columns(["episode", *COLUMNS[1:]])
    for version, columns in ((1, old), (99, table)):
        record["version"] = version
        meta = {dataset.METADATA_KEY: json.dumps(record).encode()}
        with pytest.raises(ValueError, match=f"version {version}: export the study"):
            import_study(other, written(columns.replace_schema_metadata(meta)))
    assert other.studies() == []
    other.close()


def test_what_is_no_file_is_said(store, tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        import_study(store, tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("not parquet")
    with pytest.raises(ValueError, match="not a Parquet file"):
        import_study(store, tmp_path / "text.parquet")
    with pytest.raises(ValueError, match="expected a folder"):
        export_study(store, "comfort", tmp_path / "none" / "out.parquet")


def test_a_failed_export_leaves_nothing_behind(store, tmp_path, monkeypatch):
    def fail(record):
        raise RuntimeError("disk full")
        yield

    path = tmp_path / "out" / "comfort.parquet"
    path.parent.mkdir()
    path.write_bytes(b"an older export")
    monkeypatch.setattr(dataset, "row_groups", fail)
    with pytest.raises(RuntimeError):
        export_study(store, "comfort", path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == b"an older export"


def test_the_commands(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = StudyStore.open()
    fill(store)
    main(["studies", "export", "comfort", "out.parquet", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert pq.read_metadata("out.parquet").num_rows == rows
    main(["studies", "import", "out.parquet", "--db", "b.db", "--name", "twin"])
    assert "twin: 6 rides, 3 supervisors" in capsys.readouterr().out
    main(["studies", "list", "--db", "b.db", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["rides"]) == ("twin", 6)
    main(["studies", "list"])
    assert "comfort" in capsys.readouterr().out
    create = ["studies", "create", "new", "--rides", "3", "--steps", "10"]
    main([*create, "--invite", "ann", "bo", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["rides"] == 3 and set(found["invites"]) == {"ann", "bo"}
    token = found["invites"]["ann"].rpartition("#")[2]
    assert store.invited(token)[1].name == "ann"
    assert len(store.rides("new")) == 3
    for words, message in (
        (["export", "nosuch", "x.parquet"], "got 'nosuch'"),
        (["create", "new"], "exists"),
        (["create", "n2", "--rides", "-1"], "0 rides or more"),
        (["create", "n2", "--invite", "a b"], "supervisor's name"),
        (["nonsense"], "command of studies"),
    ):
        with pytest.raises(SystemExit) as exit_info:
            main(["studies", *words])
        assert exit_info.value.code == 2
        assert message in capsys.readouterr().err
    assert not Path("x.parquet").exists()
    store.close()
