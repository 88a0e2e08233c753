"""Numbers and paths that no run can have: one sentence, exit code 2, nothing written."""

import itertools
import os
import signal

import pytest

import termdp
from termdp.cli import main
from termdp.runs import program
from termdp.runs.config import NUMBERS

HUGE = str(10**30)
WIDE = str(2**70)
TRAIN = ("train", "recommender", "termpg")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """An empty folder, and a machine that compiles nothing: it never comes to that."""
    monkeypatch.chdir(tmp_path)

    def compile_all(*args):
        raise AssertionError("it was accepted")

    monkeypatch.setattr(program.TrainProgram, "compile_all", compile_all)
    names = (signal.SIGINT, signal.SIGTERM)
    handlers = {name: signal.getsignal(name) for name in names}
    yield tmp_path
    for name, handler in handlers.items():
        signal.signal(name, handler)


def rows():
    """Numbers of runs."""
    counts = ("--steps", "--seeds", "--snapshots", "--seed")
    for flag, value in itertools.product(counts, ("-1", HUGE, WIDE)):
        yield *TRAIN, f"{flag}={value}"
    for value in ("0", "-1", "100001", "10000000", "2147483648", HUGE):
        yield *TRAIN, f"--window={value}"
    for value in ("nan", "inf", "-inf", "1e400"):
        yield *TRAIN, f"--bias={value}"
    for value in ("nan", "inf", "-1", "0", "1e400"):
        yield *TRAIN, f"--checkpoint-minutes={value}"
    for name, value in itertools.product(NUMBERS, ("nan", "1e400", "-inf")):
        yield *TRAIN, f"--{name.replace('_', '-')}={value}"
    for pair in (
        *("bias=nan", "bias=", "=3", "bias=x", "window=0", "window=1e7", "window=nan"),
        *("window=2147483648", "delay=-1", "delay=1e30", "leak=2", "background=1"),
        *("num_items=1000000000000", "num_items=2.5", "num_items=x", "taste_size=0"),
        *("num_categories=1e9", "nothing=1", "relief=nan"),
    ):
        yield *TRAIN, "--set", pair


def paths():
    """Paths where nothing can be read or written."""
    for path in ("/dev/zero", "/dev/null", "/", "a" * 5000, "\0"):
        yield *TRAIN, "--config", path
        yield *TRAIN, "--observer", path
        yield *TRAIN, "--init-from", path
        yield "train", "--resume", path
        yield "eval", path
        yield "report", path
    for path in ("/dev/null", "/dev/full/x", "a" * 5000, "\0"):
        yield *TRAIN, "--out", path
        yield "bench", "smoke", "--out", path


def of_other_commands():
    """Numbers of suites, tables, pages and films."""
    for flag, value in itertools.product(
        ("--seeds", "--steps"), ("-1", "0", HUGE, WIDE)
    ):
        yield "bench", "smoke", f"{flag}={value}"
        yield "bench", "smoke", "--list", f"{flag}={value}"
    yield "bench", "smoke", "--list", "--seeds=10000000"
    for value in ("-1", WIDE, str(2**32)):
        yield "bench", "smoke", f"--seed={value}"
    for value in ("-1", "0"):
        yield "bench", "smoke", f"--runs-per-job={value}"
    for address in (":", "a:99999999", "127.0.0.1:0", "::::"):
        yield "bench", "smoke", "--engine", "ray", "--address", address
    for flag, value in (
        *(
            ("--seeds", "0"),
            ("--seeds", HUGE),
            ("--episodes", "9"),
            ("--episodes", HUGE),
        ),
        *(("--seed", "-1"), ("--seed", WIDE), ("--bonus-scale", "nan")),
        *(("--bonus-scale", "-1"), ("--cost-bonus-scale", "inf")),
    ):
        yield "tabular", "chain", f"{flag}={value}"
    for flag, value in itertools.product(("--seeds", "--steps"), ("-1", "0", HUGE)):
        yield "demo", f"{flag}={value}"
    yield "demo", "--out", "/dev/null"
    for flag, value in (
        *(
            ("--fps", "nan"),
            ("--fps", "inf"),
            ("--max-steps", "0"),
            ("--max-steps", HUGE),
        ),
        *(("--seed", WIDE), ("--seed", "-1")),
    ):
        yield "video", "nothing", "film.gif", f"{flag}={value}"


ROWS = [*rows(), *paths(), *of_other_commands()]


def test_there_are_many():
    assert len(ROWS) > 250


@pytest.mark.parametrize(
    "words", ROWS, ids=[" ".join(row)[:80].replace("\0", "NUL") for row in ROWS]
)
def test_no_command_takes_it(words, capsys, empty_folder):
    with pytest.raises(SystemExit) as left:
        main(list(words))
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.out == ""
    assert captured.err.startswith("termdp: ")
    assert captured.err.count("\n") == 1, captured.err
    assert list(empty_folder.iterdir()) == [], "something was written"


CALLS = {
    "steps": [0, -1, 10**30, 2.5, "many", True, float("nan")],
    "seeds": [0, -1, 10**9, 1.5, "two"],
    "seed": [-1, 2**70, 0.5, "first"],
    "snapshots": [-1, 51, 10**9],
    "window": [0, -1, 2.5, 10**7, 2**31, "long", float("inf")],
    "bias": [float("nan"), float("inf"), "high", [1.0]],
    "config": [7, [1], {"steps": {}}, {"nothing": 1}, {3: 4}, b"x"],
    "observer": [7, [1], "nowhere", object()],
    "algorithm": ["dqn"],
    "preset": ["slow", 7],
    "learning_rate": [0, -1, "fast", float("nan"), 10**400],
    "num_envs": [0, 10**30, 2.5, None],
    "out": [7],
    "init_from": [7, "nowhere"],
    "checkpoint_seconds": [-1, float("nan"), float("inf"), "often", None],
}
CASES = [(name, value) for name, values in CALLS.items() for value in values]


def _id(value):
    """The same in every process: an object's own text may hold its address."""
    return type(value).__name__ if " at 0x" in str(value) else str(value)


@pytest.mark.parametrize(("name", "value"), CASES, ids=_id)
def test_no_call_takes_it(name, value, empty_folder):
    options = {"snapshots": {"out": "run"}}.get(name, {})
    with pytest.raises((ValueError, TypeError), match="expected") as found:
        termdp.train("recommender", "termpg", **{name: value}, **options)
    assert "\n" not in str(found.value)
    assert os.listdir(empty_folder) == []


@pytest.mark.parametrize("env", [None, 7, "", "nowhere", [], object()])
def test_no_call_takes_such_an_environment(env):
    with pytest.raises((ValueError, TypeError), match="expected"):
        termdp.train(env, "pg", steps=2048)


@pytest.mark.parametrize("method", [None, 7, "", "nowhere", [], object()])
def test_no_call_takes_such_a_method(method):
    with pytest.raises((ValueError, TypeError), match="expected"):
        termdp.train("recommender", method, steps=2048)


@pytest.mark.parametrize("path", [None, 7, "", "nowhere", "/dev/zero", "\0"])
def test_no_call_reads_such_a_path(path):
    for read in (termdp.load, termdp.load_observer, termdp.resume):
        with pytest.raises((ValueError, TypeError), match="expected"):
            read(path)


@pytest.mark.parametrize(
    "options",
    [
        *({"episodes": 0}, {"episodes": 10**9}, {"episodes": "x"}, {"episodes": None}),
        *({"seed": -1}, {"seed": 2**70}, {"seed": "x"}),
    ],
    ids=str,
)
def test_no_evaluation_takes_it(options):
    with pytest.raises((ValueError, TypeError), match="expected"):
        termdp.evaluate("nowhere", **options)
