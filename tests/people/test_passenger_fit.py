"""The window classifier: labels, packing, calibration, and the window it finds."""

import base64
import dataclasses
import json
from importlib.resources import as_file, files

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from full_disk import small_files
from runs_long import optimised
from termdp.cli import main
from termdp.logs.window_fit import calibrate, session_log_likelihoods
from termdp.people.driving.rides import game, replay
from termdp.people.driving.track import ride_data
from termdp.people.models.fitting import check_enough, fit_study, showings_of
from termdp.people.models.senses import RoadSenses
from termdp.people.models.showing_data import (
    ShowingData,
    folds,
    noticed_in,
    pack_showings,
    showing_labels,
)
from termdp.people.models.window_choice import (
    FitSettings,
    HeldOut,
    compare,
    constant_log_likelihood,
    personal_groups,
)
from termdp.people.records import dataset
from termdp.people.records.study_store import StudyStore
from termdp.people.simulated.passengers import PASSENGERS, react
from termdp.people.simulated.sight import see

QUICK = FitSettings(windows=(15, 35, 55), delays=(1, 2), num_folds=3)
QUICK = dataclasses.replace(
    QUICK, config=dataclasses.replace(QUICK.config, num_steps=150)
)


@pytest.fixture(scope="module")
def parquet():
    folder = files("termdp.people") / "data"
    with as_file(folder / "simulated_passengers.parquet") as path:
        yield path


@pytest.fixture(scope="module")
def record(parquet):
    return dataset.read_record(parquet)


@pytest.fixture(scope="module")
def showings(record):
    return showings_of(record)


def test_labels():
    assert showing_labels(4, "stopped", 0).tolist() == [0, 0, 0, 1]
    assert showing_labels(4, "game_over", 0).tolist() == [0, 0, 0, -1]
    assert showing_labels(4, "truncated", 0).tolist() == [0, 0, 0, 0]
    assert showing_labels(4, "stopped", 2).tolist() == [0, 1, -1, -1]
    assert showing_labels(4, "game_over", 2).tolist() == [0, -1, -1, -1]
    assert showing_labels(4, "truncated", 2).tolist() == [0, 0, -1, -1]
    assert showing_labels(2, "stopped", 5).tolist() == [1, -1]
    assert showing_labels(2, "game_over", 5).tolist() == [-1, -1]
    assert showing_labels(2, "truncated", 5).tolist() == [-1, -1]


def test_packing_keeps_every_ride_whole(showings):
    road, rides = game().road, showings[:8]
    packed = pack_showings(RoadSenses(road), rides)
    labels = packed.labels(1)
    assert (packed.owner >= 0).sum() == sum(map(len, rides))
    for index, (row, first) in enumerate(packed.places()):
        ride = rides[index]
        part = slice(first, first + len(ride))
        assert (packed.owner[part, row] == index).all()
        assert packed.starts[first, row] and not packed.starts[part, row][1:].any()
        expected = noticed_in(road, ride.observations, ride.actions)
        assert np.array_equal(packed.noticed[part, row], expected)
        assert np.array_equal(labels[part, row], showing_labels(len(ride), ride.end, 1))


def test_showings_of_a_ride_stay_in_one_fold(showings):
    fold = folds(showings, 4, 0)
    by_ride = {}
    for ride, place in zip(showings, fold, strict=True):
        by_ride.setdefault(ride.ride, set()).add(int(place))
    assert all(len(places) == 1 for places in by_ride.values())
    assert np.bincount(fold).min() > len(showings) / 8


def test_likelihood_of_rides_by_hand():
    logits = jnp.array([[0.0, 2.0], [1.0, -1.0], [3.0, 5.0]])
    labels = jnp.array([[0, 0], [1, 0], [-1, -1]])
    owner = jnp.array([[0, 1], [0, 1], [0, -1]])
    found = session_log_likelihoods(logits, labels, owner, 2)
    first = np.log(0.5) + np.log(1 / (1 + np.exp(-1)))
    second = np.log(1 - 1 / (1 + np.exp(-2))) + np.log(1 - 1 / (1 + np.exp(1)))
    np.testing.assert_allclose(found, [first, second], rtol=1e-5)


def test_calibration_is_logistic_regression():
    rng = np.random.default_rng(0)
    sums = rng.gamma(2.0, 1.0, size=(400, 20)).astype(np.float32)
    chance = 1 / (1 + np.exp(11 - 2.5 * sums))
    labels = (rng.random(sums.shape) < chance).astype(np.int8)
    labels[rng.random(sums.shape) < 0.1] = -1
    weights = rng.integers(0, 3, sums.shape).astype(np.float32)
    scale, bias = calibrate(
        jnp.asarray(sums), jnp.asarray(labels), jnp.asarray(weights), jnp.float32(6)
    )
    used, sign = labels >= 0, np.where(labels == 1, 1, -1)

    def loss(numbers):
        logits = sign * (numbers[0] * sums - numbers[1])
        return (weights * np.logaddexp(0, -logits))[used].sum()

    expected = minimize(loss, [1.0, 6.0]).x
    np.testing.assert_allclose([scale, bias], expected, rtol=2e-3)


def test_constant_model_and_bootstrap():
    labels = np.array([[0, 0, 0, 1, -1]])
    expected = (3 * np.log(0.75) + np.log(0.25)) / 2
    assert constant_log_likelihood(labels, 2) == pytest.approx(expected)
    better = np.random.default_rng(0).normal(size=(2, 50))
    better[1] += 10
    intervals, best = HeldOut((5, 35), better, []).bootstrap(0)
    assert (best == 35).all() and (intervals[1] > intervals[0]).all()


def test_the_shipped_stops_are_those_of_the_data_card(record, showings):
    assert sum(ride.end == "stopped" for ride in showings) == 512
    assert {row.kind for row in record.supervisors} == {"simulated"}
    assert [row.name for row in record.supervisors] == [
        passenger.name for passenger in PASSENGERS
    ]


def react_anew(watched, seed, memory):
    """Other passengers, all with the same memory, on the shipped rides."""
    rng = np.random.default_rng(seed)
    people = [dataclasses.replace(p, memory=memory) for p in PASSENGERS]
    found = []
    for number, (played, seen) in enumerate(watched):
        ride = played.ride
        own_end = "game_over" if played.game_over[-1] else "truncated"
        for passenger in (people[number % 5], people[(number + 1) % 5]):
            step = react(passenger, seen, rng, 200.0).step
            length = len(ride) if step is None else step + 1
            found.append(
                ShowingData(
                    str(number),
                    passenger.name,
                    played.observations[:length],
                    ride.actions[:length],
                    own_end if step is None else "stopped",
                )
            )
    stops = np.cumsum([ride.end == "stopped" for ride in found])
    return found[: int(np.searchsorted(stops, 512)) + 1]


SEEDS = (1, 2)


@pytest.fixture(scope="module")
def compared(record):
    """Windows compared, for passengers of each seed; all fits are one program."""
    road = game().road
    rides = [row.ride("backseat") for row in record.rides]
    watched = [(replay(ride), see(road, ride_data(ride))) for ride in rides]
    groups, ends = [], []
    for seed in SEEDS:
        reactions = react_anew(watched, seed, memory=35)
        own = personal_groups(RoadSenses(road), reactions, QUICK)
        assert len(own) == 5
        groups += own
        ends.append(sum(group.packed.num_showings for group in groups))
    pairs = [(window, 2) for window in QUICK.windows]
    with optimised():
        found = compare(groups, pairs, QUICK.windows, QUICK)
    parts = np.split(found.log_likelihoods, ends[:-1], axis=1)
    return {
        seed: HeldOut(found.cases, part, [])
        for seed, part in zip(SEEDS, parts, strict=True)
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_a_memory_of_35_steps_is_found(compared, seed):
    found = compared[seed]
    assert found.best == 35
    means = dict(zip(found.cases, found.means, strict=True))
    assert means[35] > means[15] + 0.1 and means[35] > means[55] + 0.1


@pytest.fixture(scope="module")
def fitted(parquet, tmp_path_factory):
    """The whole command on the shipped dataset, with few steps."""
    out = tmp_path_factory.mktemp("fit") / "results"
    words = [
        "studies",
        "fit",
        str(parquet),
        "--out",
        str(out),
        "--gradient-steps",
        "4",
    ]
    main([*words, "--max-window", "10", "--window", "35"])
    return out


def test_the_folder_of_results(fitted):
    summary = json.loads((fitted / "summary.json").read_text())
    assert (summary["stops"], summary["window"]) == (512, 35)
    assert [row["value"] for row in summary["windows"]] == [5, 10]
    for row in summary["windows"]:
        assert row["interval"][0] < row["log_likelihood"] < row["interval"][1]
    assert set(summary["supervisors"]) == {"pooled", *(p.name for p in PASSENGERS)}
    page = (fitted / "index.html").read_text()
    assert "<h1>What made them stop</h1>" in page and "they mind these most" in page
    assert "prefers-color-scheme: dark" in page and "gave are not used" in page
    for name in ("windows.svg", "calibration.svg", "moments.svg", "delays.svg"):
        drawing = (fitted / name).read_bytes()
        assert len(drawing) > 5000
        assert base64.b64encode(drawing).decode() in page
    assert (fitted / "observer-simulated-ada.safetensors").exists()
    assert not list(fitted.parent.glob(".*draft"))


def test_models_without_a_supervisor_of_their_own(showings):
    """Too few stops per supervisor: the pooled model decides."""
    few = []
    for name in sorted({ride.supervisor for ride in showings}):
        few += [ride for ride in showings if ride.supervisor == name][:24]
    config = dataclasses.replace(QUICK.config, num_steps=5)
    settings = FitSettings(windows=(30, 35), delays=(2,), num_folds=2, config=config)
    fit = fit_study(few, settings)
    assert fit.groups == [] and set(fit.observers) == {"pooled"}


def exit_code_and_words(capsys, *words):
    with pytest.raises(SystemExit) as exit_info:
        main(list(words))
    return exit_info.value.code, capsys.readouterr().err


def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path, capsys, showings):
    db, out = str(tmp_path / "people.db"), tmp_path / "out"
    store = StudyStore.open(db)
    store.create_study("empty")
    store.close()
    cases = {
        ("empty",): "expected at least 20 reviewed rides in study empty, got 0",
        ("nobody",): r"expected the name of a study (empty), got 'nobody'",
        (str(tmp_path / "no.parquet"),): "no such file",
        ("empty", "--gradient-steps", "0"): "expected at least 1 gradient step",
        ("empty", "--max-window", "5"): "expected --max-window from 10",
        ("empty", "--window", "0"): "expected --window from 1",
    }
    for words, sentence in cases.items():
        code, said = exit_code_and_words(
            capsys, "studies", "fit", *words, "--db", db, "--out", str(out)
        )
        assert code == 2 and sentence in said and said.count("\n") == 1, said
        assert not out.exists()
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    code, said = exit_code_and_words(
        capsys, "studies", "fit", "empty", "--db", db, "--out", str(out)
    )
    assert code == 2 and "exists: choose another --out" in said
    gentle = [ride for ride in showings if ride.end != "stopped"][:30]
    with pytest.raises(ValueError, match="expected at least 20 stops in study x"):
        check_enough(gentle, "x")
    for words, sentence in {
        ("--agents", str(tmp_path / "no")): "no such file",
        ("--agents", str(tmp_path)): "expected runs in",
        ("--count", "0"): "expected at least 1 ride",
    }.items():
        code, said = exit_code_and_words(
            capsys, "studies", "rides", "s", *words, "--db", str(tmp_path / "new.db")
        )
        assert code == 2 and sentence in said
        assert not (tmp_path / "new.db").exists()
    assert jax.devices()


def test_a_full_disk_is_found_before_the_work(parquet, tmp_path, capsys, monkeypatch):
    def work(*args):
        raise AssertionError("minutes of work, for nothing")

    monkeypatch.setattr("termdp.people.models.fitting.fit_study", work)
    out = tmp_path / "results"
    with small_files(2**20):
        code, said = exit_code_and_words(
            capsys, "studies", "fit", str(parquet), "--out", str(out)
        )
    assert code == 2 and "make room" in said, said
    assert list(tmp_path.iterdir()) == []
