"""Costs that read the columns of a log: features, files, environments."""

import dataclasses
import json

import gymnasium
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import termdp
from log_maker import ROLES, make_log
from termdp.log_costs import Columns, LinearCost, NetworkCost
from termdp.logs.held_out import session_folds
from termdp.logs.memory import Memory
from termdp.logs.network import NETWORK, NetworkLearner
from termdp.logs.sessions import Roles, read_sessions
from termdp.logs.sources import open_source
from termdp.observer_file import MANIFEST, load_observer, read_manifest, save_observer

BINNED = Columns(
    ("x", "y"),
    ("a",),
    num_actions=3,
    usual=1,
    bins=((0.0, 1.0), ()),
    interactions=((0, 2), (1, 1)),
)
NUMBERS = Columns(("x", "y"), ("push", "grip"), interactions=((0, 3),))


def test_features_by_hand():
    assert BINNED.names() == [
        *("x 0 to 1", "x from 1", "y", "a=0", "a=2"),
        *("x 0 to 1 × a=0", "x 0 to 1 × a=2", "x from 1 × a=0", "x from 1 × a=2"),
        "y × y",
    ]
    seen = np.array([[-1.0, 3.0], [0.0, 2.0], [1.0, -1.0]])
    found = BINNED.features(seen, np.array([0, 2, 1]), np)
    assert found.tolist() == [
        [0, 0, 3, 1, 0, 0, 0, 0, 0, 9],
        [1, 0, 2, 0, 1, 0, 1, 0, 0, 4],
        [0, 1, -1, 0, 0, 0, 0, 0, 0, 1],
    ]
    assert NUMBERS.names() == ["x", "y", "push", "grip", "x × grip"]
    done = np.array([5.0, 7.0])
    assert NUMBERS.features(np.array([2.0, 3.0]), done, np).tolist() == [2, 3, 5, 7, 14]
    for columns in (BINNED, NUMBERS, Columns(("x",))):
        assert columns.num_features == len(columns.names())


def linear(columns, **changes):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(2, columns.num_features)).astype(np.float32)
    cost = LinearCost(numbers[0], numbers[1], np.float32(0.3), columns)
    return termdp.Observer(cost, **({"window": 7, "bias": 4.5} | changes))


@pytest.mark.parametrize("columns", [BINNED, NUMBERS], ids=["choice", "numbers"])
def test_numpy_and_jax_give_the_same_cost(columns):
    cost = linear(columns).cost
    action = 2 if columns.num_actions else np.array([0.5, -1.0])
    seen = np.array([0.25, -2.0])
    expected = float(cost(seen, action))
    by_hand = columns.features(seen, np.asarray(action), np) - cost.centre
    assert expected == pytest.approx(0.3 + float(by_hand @ cost.weights), abs=1e-5)
    assert isinstance(cost(seen, action), np.floating)
    traced = jax.jit(lambda c, o, a: c(o, a))(cost, jnp.asarray(seen), action)
    assert float(traced) == pytest.approx(expected, abs=1e-5)
    assert repr(cost).startswith("LinearCost(x, y, ")


@pytest.fixture(scope="module")
def network():
    """A small ensemble of networks, fitted for a moment."""
    found = read_sessions(open_source(make_log(0, sessions=40)), Roles(**ROLES))
    columns = Columns(("speed", "noise"), ("action",), num_actions=3)
    config = dataclasses.replace(NETWORK, num_steps=2, hidden=4)
    fold = session_folds(found.ends, 2, 0)
    learner = NetworkLearner(found, columns, fold, config=config)
    return learner.whole(Memory(window=5)).observer


OBSERVERS = {
    "window": linear(BINNED),
    "leak": linear(NUMBERS, window=None, leak=0.75),
    "delay": linear(Columns(("x",)), delay=3),
}


@pytest.mark.parametrize("name", sorted(OBSERVERS))
def test_saved_and_loaded_it_is_the_same(tmp_path, name):
    observer, path = OBSERVERS[name], tmp_path / "x.safetensors"
    save_observer(path, observer, {"stops": 12})
    again = termdp.load_observer(path)
    for number in ("window", "bias", "leak", "delay"):
        assert getattr(again, number) == getattr(observer, number)
    assert again.cost.columns == observer.cost.columns
    for number in ("weights", "centre", "base"):
        one, other = getattr(again.cost, number), getattr(observer.cost, number)
        assert np.array_equal(one, other)
    assert read_manifest(path)["stops"] == 12
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.slow
def test_networks_are_saved_too(tmp_path, network):
    path = tmp_path / "x.safetensors"
    save_observer(path, network, {})
    again = load_observer(path)
    seen = np.array([0.5, 1.0])
    assert isinstance(again.cost, NetworkCost)
    for action in range(3):
        assert float(again.cost(seen, action)) == float(network.cost(seen, action))
    # A prediction of the whole log, in one go, is the same.
    assert repr(again.cost) == "NetworkCost(speed, noise, action)"


def rewritten(path, out, arrays=None, **changes):
    manifest = {**read_manifest(path), **changes}
    save_file(arrays or load_file(path), out, {MANIFEST: json.dumps(manifest)})
    return out


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "pickle"},
        {"kind": "network"},
        {"kind": "network", "hidden": 10_000, "members": 1000},
        {"observations": []},
        {"observations": ["x"] * 100_001},
        {"observations": ["x"] * 90_000},
        {"observations": [1, 2]},
        {"num_actions": 1},
        {"num_actions": 10**6},
        {"usual": 3},
        {"bins": [[0.0, 1.0]]},
        {"bins": [[1.0, 0.0], []]},
        {"bins": [[float("nan")], []]},
        {"interactions": [[0, 99]]},
        {"interactions": [[0]]},
        {"bias": float("inf")},
        {"window": 0},
        {"window": None},
        {"window": 10**9},
        {"leak": 0.5},
        {"delay": -1},
        {"command": "rm"},
        {"version": 9},
    ],
    ids=lambda change: str(change)[:40],
)
def test_files_that_cannot_be_are_refused(tmp_path, change):
    path, out = tmp_path / "good.safetensors", tmp_path / "x.safetensors"
    save_observer(path, OBSERVERS["window"], {})
    with pytest.raises(ValueError, match="expected an observer of .*x.safetensors"):
        load_observer(rewritten(path, out, **change))


def test_arrays_that_cannot_be_are_refused(tmp_path):
    path, out = tmp_path / "good.safetensors", tmp_path / "x.safetensors"
    save_observer(path, OBSERVERS["window"], {})
    arrays = load_file(path)
    name = "['weights']"
    good = arrays[name]
    assert load_observer(rewritten(path, out, arrays)).window == 7
    for wrong in (good * np.nan, good[:-1], good.astype(int), np.zeros(10**6)):
        with pytest.raises(ValueError, match="expected an observer of"):
            load_observer(rewritten(path, out, arrays | {name: wrong}))


def test_plain_functions_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="expected an observer with fitted costs"):
        save_observer(tmp_path / "x", termdp.Observer(lambda o, a: 0.0), {})
    assert not list(tmp_path.iterdir())


CART = ("position", "velocity", "angle", "spin")


def test_environments_with_the_same_columns_are_watched():
    observer = linear(Columns(CART, ("push",), num_actions=2), bias=2.0)
    wrapped = termdp.gym.ObserverWrapper(gymnasium.make("CartPole-v1"), observer)
    seen, _ = wrapped.reset(seed=0)
    *_, info = wrapped.step(1)
    assert info["cost"] == pytest.approx(float(observer.cost(seen, 1)), abs=1e-5)
    game, _ = gymnax.make("CartPole-v1")
    env = termdp.observe(game, observer)
    start, state = env.reset(jax.random.key(0), env.default_params)
    *_, info = env.step(jax.random.key(1), state, 1, env.default_params)
    expected = float(observer.cost(np.asarray(start), 1))
    assert float(info["cost"]) == pytest.approx(expected, abs=1e-5)
    vector = termdp.gym.ObserverVectorWrapper(
        gymnasium.make_vec("CartPole-v1", 2), observer
    )
    vector.reset(seed=0)
    *_, infos = vector.step(np.array([0, 1]))
    assert infos["cost"].shape == (2,)
    for one in (wrapped, vector):
        one.close()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (Columns(CART[:3], ("a",), 2), "observations of 3 entries .* got 4"),
        (Columns(CART, ("a",), 3), "expected 3 actions \\(a\\).* got 2 actions"),
        (Columns(CART, ("a",)), "actions of 1 numbers \\(a\\).* got 2 choices"),
    ],
    ids=["observations", "choices", "numbers"],
)
def test_environments_with_other_columns_are_refused(columns, sentence):
    observer = linear(columns)
    with pytest.raises(ValueError, match=sentence):
        termdp.gym.ObserverWrapper(gymnasium.make("CartPole-v1"), observer)
    with pytest.raises(ValueError, match=sentence):
        termdp.gym.ObserverVectorWrapper(gymnasium.make_vec("CartPole-v1", 2), observer)
    with pytest.raises(ValueError, match=sentence):
        termdp.observe(gymnax.make("CartPole-v1")[0], observer)


def test_a_listed_environment_refuses_a_file_with_other_columns(tmp_path):
    path = tmp_path / "x.safetensors"
    save_observer(path, OBSERVERS["window"], {})
    with pytest.raises(ValueError, match="observations of 2 entries"):
        termdp.make("recommender", observer=path)
    vector = linear(Columns(("a", "b", "c"), ("torque",)))
    pendulum = gymnasium.make("Pendulum-v1")
    assert termdp.gym.ObserverWrapper(pendulum, vector).reset(seed=0)
    with pytest.raises(ValueError, match="expected 2 actions .* got a vector"):
        choice = linear(Columns(("a", "b", "c"), ("torque",), 2))
        termdp.gym.ObserverWrapper(pendulum, choice)


@pytest.mark.slow
def test_an_agent_trains_under_a_fitted_observer(tmp_path):
    """From a file, without any code of the log."""
    items = termdp.make("recommender")[0].num_actions
    columns = Columns(tuple(f"o{i}" for i in range(22)), ("item",), items)
    path = tmp_path / "x.safetensors"
    save_observer(path, linear(columns), {})
    result = termdp.train("recommender", "pg", steps=2048, observer=path)
    assert np.isfinite(result.agent().predict(np.zeros(22), deterministic=True)[0])
