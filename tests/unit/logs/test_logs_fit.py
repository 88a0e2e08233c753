"""`termdp.fit`: what was put into a log comes out of it."""

import numpy as np
import pytest

import termdp
from log_maker import BIAS, OF_ACTION, ROLES, WEIGHTS, make_log, true_costs
from termdp.logs.sessions import CENSORED

TRUE_COSTS = dict(zip(("speed", "noise"), WEIGHTS, strict=True)) | {
    "action=1": OF_ACTION[1],
    "action=2": OF_ACTION[2],
}


@pytest.fixture(scope="module")
def log():
    return make_log(0, sessions=300, longest=120)


@pytest.fixture(scope="module")
def fit(log):
    return termdp.fit(log, **ROLES)


@pytest.mark.slow
def test_window_costs_and_calibration_in_six_logs():
    """The window is searched for: ±25%; costs in their intervals; calibrated."""
    inside = []
    for seed in range(6):
        found = termdp.fit(make_log(seed, sessions=250, longest=100), **ROLES).summary()
        low, high = found["window_interval"]
        assert 15 <= found["window"] <= 25, seed
        assert low <= found["window"] <= high
        assert found["calibration_error"] <= 0.02, seed
        assert found["log_loss"] < 0.95 * found["last_step_log_loss"]
        assert found["log_loss"] < 0.95 * found["baseline_log_loss"]
        for name, truth in TRUE_COSTS.items():
            low, high = found["costs"][name]["interval"]
            inside.append(low <= truth <= high)
    # 24 intervals: tests/unit/logs/test_linear.py has 500, with the window known.
    assert np.mean(inside) >= 0.9


def test_the_fit_says_what_it_is(fit, log):
    assert fit.window == 20 and fit.bias == pytest.approx(BIAS, abs=1.0)
    assert repr(fit).startswith("Fit(window 20, bias ")
    found = fit.summary()
    assert found["columns"]["observations"] == ["speed", "noise"]
    assert (found["stops"], found["sessions"]) == (log["left"].sum(), 300)
    assert found["costs"]["every step"]["interval"] is not None
    assert 0.7 < found["auc"] < 1
    assert len(found["memories"]) > 10
    assert found["notes"] == []
    assert len(fit.plot().axes) == 3


def test_costs_of_a_table_are_those_of_the_observer(fit, log):
    del_stop = {name: column for name, column in log.items() if name != "left"}
    table = fit.costs(del_stop)
    assert table.column_names == ["session", "cost", "accumulated", "stop_probability"]
    assert table["session"].to_pylist() == log["session"].tolist()
    cost = table["cost"].to_numpy()
    truth = true_costs(np.stack([log["speed"], log["noise"]], axis=-1), log["action"])
    assert np.corrcoef(cost, truth)[0, 1] > 0.97
    for row in (0, 5, 100):
        seen = np.array([log["speed"][row], log["noise"][row]])
        own = fit.observer.cost(seen, log["action"][row])
        assert cost[row] == pytest.approx(float(own), abs=1e-4)
    mine = np.flatnonzero(log["session"] == 3)
    sums = [cost[mine[max(0, i - 19) : i + 1]].sum() for i in range(len(mine))]
    np.testing.assert_allclose(table["accumulated"].to_numpy()[mine], sums, atol=1e-9)
    chance = 1 / (1 + np.exp(fit.bias - np.array(sums)))
    found = table["stop_probability"].to_numpy()[mine]
    np.testing.assert_allclose(found, chance, atol=1e-12)


def test_every_stopped_session_has_its_reason(fit, log):
    found = fit.stops().to_pydict()
    assert len(found["session"]) == log["left"].sum()
    table = fit.costs(log)
    cost = table["cost"].to_numpy()
    names = fit.model.columns.names()
    for index in (0, len(found["session"]) // 2):
        mine = np.flatnonzero(log["session"] == found["session"][index])
        assert found["step"][index] == len(mine)
        window = cost[mine][-20:]
        worst = len(mine) - len(window) + int(np.argmax(window)) + 1
        assert found["costliest_step"][index] == worst
        assert found["cost"][index] == pytest.approx(window.max())
        assert found["accumulated"][index] == pytest.approx(window.sum())
        assert found["main_reason"][index] in names


def test_a_reaction_delay_is_found():
    log = make_log(1, sessions=300, longest=120, delay=3)
    found = termdp.fit(log, **ROLES, windows=[10, 20, 40], delays=[0, 1, 3, 5])
    assert (found.window, found.memory.delay) == (20, 3)
    assert found.observer.delay == 3
    assert found.summary()["delay"] == 3


@pytest.mark.slow
def test_a_leak_is_told_from_a_window():
    log = make_log(2, sessions=300, longest=120, leak=0.95)
    found = termdp.fit(log, **ROLES, memory="best")
    assert found.window is None
    assert found.memory.leak == pytest.approx(0.95, abs=0.015)
    summary = found.summary()
    low, high = summary["leak_interval"]
    assert low <= 0.95 <= high and summary["window_interval"] is None
    assert found.observer.leak == found.memory.leak
    assert {row["leak"] is None for row in summary["memories"]} == {True, False}


def test_where_there_is_no_memory_it_says_so():
    log = make_log(3, sessions=300, longest=60, window=1, bias=3.5)
    summary = termdp.fit(log, **ROLES).summary()
    assert summary["window_shortest_as_good"] == 1
    assert "no sign of a memory" in summary["notes"][0]
    assert termdp.fit(log, **ROLES, window=1).summary()["window_interval"] is None


def test_columns_without_meaning_are_no_better_than_a_constant(log):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, len(log["speed"])))
    other = log | {"speed": noise[0], "noise": noise[1]}
    roles = ROLES | {"actions": ()}
    summary = termdp.fit(other, **roles, windows=[1, 3]).summary()
    assert 0.4 < summary["auc"] < 0.65
    assert summary["log_loss"] == pytest.approx(summary["baseline_log_loss"], rel=0.02)


def test_bins_and_products_find_what_is_not_linear():
    """A cost where speed is middling, and only for one action."""
    rng = np.random.default_rng(0)
    count, length = 400, 60
    speed = rng.uniform(size=(count, length))
    action = rng.integers(2, size=(count, length))
    cost = 2.0 * ((speed > 1 / 3) & (speed < 2 / 3) & (action == 1))
    sums = np.cumsum(np.pad(cost, ((0, 0), (5, 0))), axis=1)
    stop = rng.random(cost.shape) < 1 / (1 + np.exp(5 - (sums[:, 5:] - sums[:, :-5])))
    length = np.where(stop.any(axis=1), stop.argmax(axis=1) + 1, length)
    kept = np.arange(60) < length[:, None]
    log = {"s": np.broadcast_to(np.arange(count)[:, None], kept.shape)[kept]}
    log |= {"speed": speed[kept], "a": action[kept], "left": stop[kept]}
    roles = {"session": "s", "stopped": "left", "observations": ["speed"]}
    plain = termdp.fit(log, **roles, actions="a", window=5)
    found = termdp.fit(
        log, **roles, actions="a", window=5, bins=3, interactions=["speed*a"]
    )
    assert found.scores.auc > plain.scores.auc + 0.05
    costs = found.summary()["costs"]
    usual = found.model.columns.usual
    sign = 1 if usual == 0 else -1
    middle, last = (costs[name] for name in costs if " × " in name)
    assert sign * middle["cost"] == pytest.approx(2.0, abs=0.6)
    assert last["cost"] == pytest.approx(0.0, abs=0.6)
    assert float(found.observer.cost(np.array([0.5]), 1)) > 1.0
    assert abs(float(found.observer.cost(np.array([0.9]), 1))) < 0.6


@pytest.mark.slow
def test_stops_may_be_very_rare():
    """One stop in 30,000 steps; benchmarks/fit_logs.py has one in 100,000."""
    rng = np.random.default_rng(0)
    rows, sessions = 1_000_000, 1000
    speed = rng.normal(size=rows)
    stop = rng.random(rows) < 1 / (1 + np.exp(12.5 - 2 * speed))
    session = np.repeat(np.arange(sessions), rows // sessions)
    kept = np.ones(rows, bool)
    for index in np.flatnonzero(stop):
        kept[index + 1 : (session[index] + 1) * (rows // sessions)] = False
    log = {"s": session[kept], "x": speed[kept], "left": stop[kept]}
    assert log["left"].mean() < 1e-4
    found = termdp.fit(log, session="s", stopped="left", observations=["x"], window=1)
    low, high = found.summary()["costs"]["x"]["interval"]
    assert low < 2 < high and found.bias == pytest.approx(12.5, abs=2)
    assert found.scores.auc > 0.8
    assert found.scores.log_loss < found.scores.baseline_log_loss


@pytest.mark.slow
@pytest.mark.usefixtures("runs_long")
def test_networks_find_window_and_costs(log):
    found = termdp.fit(log, **ROLES, model="network", windows=[1, 20, 60])
    linear = termdp.fit(log, **ROLES, window=20)
    assert found.window == 20
    assert found.scores.log_loss < 1.1 * linear.scores.log_loss
    truth = true_costs(np.stack([log["speed"], log["noise"]], axis=-1), log["action"])
    cost = found.costs(log)["cost"].to_numpy()
    assert np.corrcoef(cost, truth)[0, 1] > 0.9
    summary = found.summary()
    assert summary["costs"] is None
    effects = summary["effects"]
    assert effects["action=2"]["extra_cost"] > effects["action=1"]["extra_cost"]
    assert "main_reason" not in found.stops().column_names
    assert (found.sessions.ends == CENSORED).any()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"windows": [5, 0]}, "windows from 1 to 100000 steps, got 0"),
        ({"window": 2.5}, "got 2.5"),
        ({"window": 5, "windows": [5]}, "either window or windows, got both"),
        ({"delays": [-1]}, "delays from 0 to 1000"),
        ({"delays": []}, "at least one delay"),
        ({"model": "forest"}, "model to be one of linear, network, got 'forest'"),
        ({"memory": "short"}, "memory to be one of window, leak, best"),
        ({"model": "network", "bins": 3}, "expected --model linear"),
        ({"memory": "leak", "windows": [1]}, "windows of 2 steps or more for a leak"),
        ({"bins": 1}, "bins from 2 to 50"),
        ({"binned": ["speed"]}, "bins together with binned"),
        ({"bins": 3, "binned": ["sped"]}, "got 'sped': did you mean speed"),
        ({"interactions": ["speed"]}, "as 'column\\*column', got 'speed'"),
        ({"interactions": ["speed*acton"]}, "did you mean action"),
        ({"num_actions": 2}, "actions from 0 to 1, as num_actions says, got 2"),
        ({"num_actions": 1}, "num_actions from 2 to 1000"),
        ({"session": None}, "the name of the session column"),
        ({"stopped": None}, "the name of the stopped column"),
        ({"observations": []}, "at least one observation column"),
    ],
)
def test_bad_arguments_are_one_sentence(log, change, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        termdp.fit(log, **(ROLES | change))
    assert "\n" not in str(caught.value)
