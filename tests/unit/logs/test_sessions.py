"""Tables become sessions, whatever the batches; what cannot be a log is refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from log_maker import ROLES, make_log, make_table
from termdp.logs import sessions as module
from termdp.logs.sessions import Roles, check_learnable, read_sessions
from termdp.logs.sources import Source, open_source


def same(one, other):
    return (
        one.ids == other.ids
        and np.array_equal(one.ends, other.ends)
        and np.array_equal(one.lengths, other.lengths)
        and all(
            np.array_equal(
                np.concatenate([getattr(block, name) for block in one.blocks]),
                np.concatenate([getattr(block, name) for block in other.blocks]),
            )
            for name in ("observations", "actions")
        )
    )


def in_batches(table, rows):
    return Source("x", table.schema, lambda names: table.select(names).to_batches(rows))


@pytest.mark.parametrize("rows", [1, 3, 50])
def test_batches_and_blocks_do_not_matter(monkeypatch, rows):
    table, roles = make_table(0, sessions=20, longest=12, bias=4.0), Roles(**ROLES)
    whole = read_sessions(open_source(table), roles)
    monkeypatch.setattr(module, "BLOCK_ROWS", 10)
    pieces = read_sessions(in_batches(table, rows), roles)
    assert len(whole.blocks) == 1 and len(pieces.blocks) > 3
    assert same(whole, pieces)
    assert pieces.num_rows == table.num_rows and pieces.num_actions == 3
    for index in (0, 7, 19):
        one, other = whole.session(index), pieces.session(index)
        assert np.array_equal(one.observations, other.observations)
        assert len(one) == whole.lengths[index]


def test_parquet_csv_and_data_frames_are_alike(tmp_path):
    table = make_table(1, sessions=30, longest=20, bias=5.0)
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    pa.csv.write_csv(table, tmp_path / "x.csv")
    logs = [table, tmp_path / "x.parquet", str(tmp_path / "x.csv"), table.to_pandas()]
    # Names of sessions may be text, flags may be 0 and 1.
    roles = Roles(**ROLES)
    first, *others = [read_sessions(open_source(log), roles) for log in logs]
    assert all(same(first, other) for other in others)
    frame = table.to_pandas().astype({"session": str, "left": int})
    text = read_sessions(open_source(frame), roles)
    assert text.ids == [str(name) for name in first.ids]
    assert np.array_equal(text.ends, first.ends)


def test_an_end_of_its_own_comes_before_a_stop():
    log = {"s": [1, 1, 2, 3], "x": [0, 1, 2, 3], "stop": [0, 1, 1, 0]}
    log["end"] = [False, False, True, True]
    found = read_sessions(open_source(log), Roles("s", "stop", ("x",), ended="end"))
    assert found.ends.tolist() == [1, 2, 2]


def test_whole_numbers_are_choices_and_decimals_are_quantities():
    log = {"s": [1, 2], "x": [0, 1], "stop": [1, 0], "a": [0, 2], "b": [0.0, 2.0]}
    choice = read_sessions(open_source(log), Roles("s", "stop", ("x",), ("a",)))
    assert choice.num_actions == 3 and choice.blocks[0].actions.shape == (2,)
    more = Roles("s", "stop", ("x",), ("a",), num_actions=5)
    assert read_sessions(open_source(log), more).num_actions == 5
    number = read_sessions(open_source(log), Roles("s", "stop", ("x",), ("b",)))
    assert number.num_actions == 0 and number.blocks[0].actions.shape == (2, 1)


BAD = {
    "interleaved": ({"session": [1, 2, 1, 2]}, "session 1 comes back"),
    "a stop in the middle": ({"left": [1, 0, 0, 1]}, "row 1 of 2 of session 1"),
    "NaN": ({"speed": [1, np.nan, 2, 3]}, "got nan in row 2"),
    "infinite": ({"speed": [1, 2, np.inf, 3]}, "got inf in row 3"),
    "too large": ({"speed": [1, 2, 1e300, 3]}, "got 1e\\+300 in row 3"),
    "empty": ({"speed": [1, None, 2, 3]}, "an empty cell in column 'speed'.*row 2"),
    "text": ({"speed": ["a", "b", "c", "d"]}, "got string \\('a'\\): turn it into"),
    "dates": ({"speed": pd.date_range("2026-01-01", periods=4)}, "got timestamp"),
    "no flag": ({"left": [0, 1, 0, 2]}, "true or false .* got 2 in row 4"),
    "an empty flag": (
        {"left": [None, True, False, True]},
        "in every row, got an empty",
    ),
    "no session": ({"session": [1, 1, None, 2]}, "a session in every row"),
    "negative actions": ({"action": [-1, 0, 1, 0]}, "expected actions 0, 1, 2"),
    "huge actions": ({"action": [0, 10**9, 1, 0]}, "up to 999"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_what_cannot_be_a_log_is_refused(case):
    change, sentence = BAD[case]
    log = {
        "session": [1, 1, 2, 2],
        "speed": [1.0, 2.0, 3.0, 4.0],
        "noise": [1.0, 2.0, 3.0, 5.0],
        "action": [0, 1, 1, 0],
        "left": [False, True, False, True],
    }
    with pytest.raises(ValueError, match=sentence) as caught:
        read_sessions(open_source(pa.table(log | change)), Roles(**ROLES))
    assert "\n" not in str(caught.value)


def test_rows_out_of_order_are_noticed_where_there_is_a_time():
    log = {"s": [1, 1, 1, 2], "t": [1, 2, 2, 0], "x": [1, 2, 3, 4], "stop": [0] * 4}
    roles = Roles("s", "stop", ("x",), time="t")
    with pytest.raises(ValueError, match="'t' to rise .* got 2 after 2 in row 3"):
        read_sessions(in_batches(pa.table(log), 2), roles)
    log["t"] = [1, 2, 3, 0]
    assert read_sessions(in_batches(pa.table(log), 2), roles).num_rows == 4


def test_logs_that_teach_nothing_are_refused():
    def refused(sentence, **columns):
        log = {name: np.asarray(column) for name, column in columns.items()}
        count = len(log["s"])
        log = {
            "x": np.arange(count),
            "y": np.arange(count) % 3,
            "stop": [0] * count,
        } | log
        found = read_sessions(open_source(log), Roles("s", "stop", ("x", "y")))
        with pytest.raises(ValueError, match=sentence):
            check_learnable(found, 2)

    stops = np.arange(8) % 4 == 3
    refused("expected several sessions", s=[1, 1, 1], stop=[0, 0, 1])
    refused("expected some stops in column 'stop', got none in 3", s=[1, 2, 3])
    refused("3 sessions of one stopped row", s=[1, 2, 3], stop=[1, 1, 1])
    refused("at least 2 stopped sessions, got 1", s=[1, 1, 2], stop=[0, 1, 0])
    refused("'y' with 5 in every row", s=[1] * 4 + [2] * 4, stop=stops, y=[5] * 8)


def test_columns_are_named_with_the_nearest(tmp_path):
    source = open_source(make_log(0, sessions=3))
    with pytest.raises(ValueError, match="column 'sped'.*did you mean speed"):
        read_sessions(source, Roles("session", "left", ("sped",)))
    with pytest.raises(ValueError, match="its columns are session, speed, noise"):
        read_sessions(source, Roles("session", "left", ("zzz",)))
    with pytest.raises(ValueError, match="in one role, got 'speed' twice"):
        Roles("session", "left", ("speed", "speed"))
    with pytest.raises(ValueError, match="at least one observation"):
        Roles("session", "left", ())
    for name, content, sentence in (
        ("x.xlsx", b"x", "ends in .parquet, .pq or .csv"),
        ("x.parquet", b"x", "expected a readable table"),
        ("x.csv", b"", "it is empty"),
        ("y.csv", None, "no such file"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=sentence):
            open_source(tmp_path / name)
    with pytest.raises(ValueError, match="got a int"):
        open_source(7)


def test_csv_whose_later_rows_are_of_another_kind(tmp_path, monkeypatch):
    monkeypatch.setattr("termdp.logs.sources.CSV_BLOCK", 64)
    rows = ["session,speed,noise,action,left"]
    rows += [f"{i},{i}.5,{i}.25,1,false" for i in range(50)] + ["99,oops,1.0,1,false"]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(rows))
    with pytest.raises(ValueError, match="in column 'speed' of .* got 'oops'"):
        read_sessions(open_source(path), Roles(**ROLES))
