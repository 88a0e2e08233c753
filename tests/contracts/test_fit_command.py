"""`termdp fit`: a log becomes a folder; bad input is one sentence and leaves nothing."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import termdp
from log_maker import make_table
from termdp.cli import main

ROLES = ["--session", "session", "--stopped", "left"]
COLUMNS = ["--observations", "speed", "noise", "--actions", "action"]
FILES = {"observer.safetensors", "fit.json", "stops.csv", "index.html"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def table():
    return make_table(0, sessions=150, longest=80)


def test_a_log_becomes_a_folder(folder, table, capsys):
    pa.parquet.write_table(table, "log.parquet")
    main(["fit", "log.parquet", *ROLES, *COLUMNS, "--windows", "5", "20", "--out", "f"])
    said = capsys.readouterr().out
    assert "window 20 (95%: " in said and "results in f" in said
    assert {path.name for path in (folder / "f").iterdir()} == FILES
    found = json.loads((folder / "f" / "fit.json").read_text())
    assert found["window"] == 20 and found["window_interval"] == [20, 20]
    assert found["costs"]["speed"]["interval"][0] > 0
    for name in ("log_loss", "auc", "calibration_error", "baseline_log_loss", "bias"):
        assert np.isfinite(found[name])
    assert [row["window"] for row in found["memories"]] == [5, 20]
    observer = termdp.load_observer("f/observer.safetensors")
    assert observer.window == 20 and float(observer.bias) == found["bias"]
    stops = pa.csv.read_csv("f/stops.csv")
    assert stops.num_rows == found["stops"]
    page = (folder / "f" / "index.html").read_text()
    for words in ("How soon they leave", "What makes them leave", "Three sessions"):
        assert words in page
    assert "http://" not in page.split("</style>")[1].split("base64")[0]
    assert sorted(path.name for path in folder.iterdir()) == ["f", "log.parquet"]


def test_json_csv_and_a_given_window(table, capsys):
    pa.csv.write_csv(table, "log.csv")
    words = ["fit", "log.csv", *ROLES, *COLUMNS, "--window", "20", "--out", "f"]
    main([*words, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["window"] == 20 and found["window_interval"] is None


def test_names_cannot_break_the_page(table, capsys):
    odd = "<script>alert(1)</script> $x_1$"
    names = ["session", odd, "noise", "action", "left"]
    pa.parquet.write_table(table.rename_columns(names), "log.parquet")
    words = ["fit", "log.parquet", *ROLES, "--observations", odd, "noise"]
    main([*words, "--actions", "action", "--window", "20", "--out", "f"])
    with open("f/index.html") as file:
        page = file.read()
    assert "<script>alert" not in page and "&lt;script&gt;" in page


def refusal(capsys, *words):
    with pytest.raises(SystemExit) as left:
        main(["fit", *map(str, words)])
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.out == "" and "Traceback" not in captured.err
    assert captured.err.count("\n") == 1, captured.err
    assert captured.err.startswith("termdp: ")
    return captured.err


def changed(table, **columns):
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values))
    return table


def bad_logs(table):
    """Name → a table that is no log, and what is said of it."""
    rows = table.num_rows
    lone = table.filter(pa.compute.equal(table["session"], 0))
    speed = table["speed"].to_numpy().copy()
    speed[7] = np.nan
    left = table["left"].to_numpy(zero_copy_only=False).copy()
    left[3] = True
    stops = table.filter(table["left"])
    return {
        "a misnamed column": (
            table.rename_columns(["session", "sped", "noise", "action", "left"]),
            "did you mean sped",
        ),
        "interleaved": (
            table.take(np.argsort(np.arange(rows) % 2, kind="stable")),
            "comes back",
        ),
        "a stop in the middle": (changed(table, left=left), "row 4 of"),
        "NaN": (changed(table, speed=speed), "got nan in row 8"),
        "text": (changed(table, speed=["fast"] * rows), "expected numbers in column"),
        "no stops": (changed(table, left=[False] * rows), "expected some stops"),
        "only stops": (stops, "sessions of one stopped row"),
        "one session": (lone, "expected several sessions"),
        "a constant column": (changed(table, speed=[1.0] * rows), "leave it out"),
        "no rows": (table.slice(0, 0), "expected rows in"),
    }


def test_bad_logs_are_one_sentence_and_leave_nothing(folder, table, capsys):
    for name, (log, sentence) in bad_logs(table).items():
        pa.parquet.write_table(log, "log.parquet")
        said = refusal(capsys, "log.parquet", *ROLES, *COLUMNS, "--out", "f")
        assert sentence in said, (name, said)
        assert [path.name for path in folder.iterdir()] == ["log.parquet"], name


def test_bad_words_are_one_sentence_and_leave_nothing(folder, table, capsys):
    pa.parquet.write_table(table, "log.parquet")
    (folder / "log.xlsx").write_bytes(b"PK")
    (folder / "broken.parquet").write_bytes(b"PAR1 is not all")
    (folder / "there").mkdir()
    (folder / "there" / "notes.txt").write_text("mine")
    before = sorted(path.name for path in folder.iterdir())
    log, out = ["log.parquet", *ROLES, *COLUMNS], ["--out", "f"]
    for words, sentence in (
        ([*log, "--out", "there"], "there exists: choose another --out"),
        ([*log, *out, "--windows", "5", "0"], "windows from 1 to 100000 steps, got 0"),
        ([*log, *out, "--window", "-3"], "got -3"),
        ([*log, *out, "--window", "3", "--windows", "5"], "got both"),
        ([*log, *out, "--model", "tree"], "model to be one of linear, network"),
        ([*log, *out, "--seed", "-1"], "--seed from 0"),
        (["log.xlsx", *ROLES, *COLUMNS, *out], "ends in .parquet, .pq or .csv"),
        (["broken.parquet", *ROLES, *COLUMNS, *out], "expected a readable table"),
        (["nowhere.csv", *ROLES, *COLUMNS, *out], "no such file"),
        (["there", *ROLES, *COLUMNS, *out], "no readable meta/info.json"),
        (["log.parquet", *COLUMNS, *out], "the name of the session column"),
        (["log.parquet", *ROLES, *out], "at least one observation column"),
    ):
        said = refusal(capsys, *words)
        assert sentence in said, said
        assert sorted(path.name for path in folder.iterdir()) == before


def test_a_folder_that_cannot_be_written_is_one_sentence(table, capsys):
    pa.parquet.write_table(table, "log.parquet")
    with open("file", "w"):
        pass
    said = refusal(capsys, "log.parquet", *ROLES, *COLUMNS, "--out", "file/f")
    assert "file" in said


def test_a_large_file_is_read_in_batches(folder):
    """Most of it is a column that nobody asks for: it never takes memory."""
    table = make_table(0, sessions=1500, longest=150)
    wide = table.append_column("notes", pa.array(["x" * 4000] * table.num_rows))
    pa.parquet.write_table(wide, "log.parquet", use_dictionary=False, compression=None)
    del wide
    size = (folder / "log.parquet").stat().st_size
    assert size > 250e6
    words = ["fit", "log.parquet", *ROLES, *COLUMNS, "--window", "20", "--out", "f"]
    code = (
        "import resource, sys\n"
        "from termdp.cli import main\n"
        "import termdp.logs.fit, termdp.logs.folder, termdp.observer_file, rich.console\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"main({words!r})\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(1024 * (after - before), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert int(done.stderr.split()[-1]) < size / 2


def test_a_fitted_observer_watches_a_gymnasium_environment(folder):
    """From a log of CartPole to an agent that is trained under who wrote it."""
    rng = np.random.default_rng(0)
    names = ["x", "v", "angle", "turn"]
    rows = {name: rng.normal(size=4000) for name in names}
    recent = np.convolve(np.abs(rows["x"]) > 1, np.ones(5))[:4000]
    stopped = rng.uniform(size=4000) < 1 / (1 + np.exp(4 - recent))
    rows |= {"action": rng.integers(2, size=4000), "left": stopped}
    rows["user"] = np.cumsum(np.concatenate([[False], stopped[:-1]]))
    pa.parquet.write_table(pa.table(rows), "log.parquet")
    columns = ["--observations", *names, "--actions", "action", "--window", "5"]
    roles = ["--session", "user", "--stopped", "left"]
    main(["fit", "log.parquet", *roles, *columns, "--out", "f"])
    observer = ["--observer", "f/observer.safetensors"]
    sizes = ["--num-envs", "2", "--rollout-steps", "64", "--num-minibatches", "2"]
    command = ["train", "gym:CartPole-v1", "termpg", "--steps", "256", "--out", "run"]
    main([*command, *observer, *sizes])
    found = json.loads((folder / "run" / "summary.json").read_text())
    assert found["seeds"][0]["bias"] is not None
    main(["eval", "run", "--episodes", "4", "--json"])
    with pytest.raises(SystemExit) as refused:
        main(["train", "gym:Pendulum-v1", "termpg", "--steps", "256", *observer])
    assert refused.value.code == 2
