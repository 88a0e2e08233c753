"""Fitted observers: on disk, as environments, in training."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import termdp
from termdp.cli import main
from termdp.observer_file import (
    MANIFEST,
    load_observer,
    read_manifest,
    save_observer,
    shipped_observer,
    shipped_path,
)
from termdp.people.models.discomfort import discomfort
from termdp.registry import REGISTRY
from termdp.runs import checkpoint
from termdp.runs.evaluate import place_of
from termdp.runs.train import load_agents


@pytest.fixture(scope="module")
def played():
    """A random drive: observations and actions, `[64, ...]`."""
    env, params = termdp.make("backseat", observer=False)

    def step(carry, key):
        obs, state = carry
        action = jax.random.randint(key, (), 0, 3)
        new, state, *_ = env.step(key, state, action, params)
        return (new, state), (obs, action)

    carry = env.reset(jax.random.key(0), params)
    keys = jax.jit(jax.random.split, static_argnums=1)(jax.random.key(1), 64)
    return jax.lax.scan(step, carry, keys)[1]


@jax.jit
def costs_of(cost, observations, actions):
    """The cost of each step."""
    return jax.vmap(cost)(observations, actions)


def test_the_registry_says_what_the_file_says():
    spec, observer = REGISTRY["backseat_passenger"], shipped_observer()
    assert (spec.window, observer.window) == (35, 35)
    assert spec.bias == pytest.approx(float(observer.bias), abs=0.005)
    with shipped_path() as path:
        manifest = read_manifest(path)
    assert manifest["stops"] == 512 and manifest["game"] == "BackseatDriver"


def test_saved_and_loaded_it_is_the_same(tmp_path, played):
    observer = shipped_observer().replace(bias=5.25, window=12)
    path = tmp_path / "observer.safetensors"
    save_observer(path, observer, {"study": "test"})
    again = termdp.load_observer(path)
    assert (again.window, again.bias) == (12, 5.25)
    costs = costs_of(observer.cost, *played)
    assert np.array_equal(costs, costs_of(again.cost, *played))
    assert costs.std() > 0.01
    assert read_manifest(path)["study"] == "test"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_costs_read_grids_images_and_numpy_alike(played):
    cost = shipped_observer().cost
    env, params = termdp.make("backseat", observer=False, observation="image")
    image, _ = env.reset(jax.random.key(0), params)
    grid = termdp.make("backseat", observer=False)[0].reset(jax.random.key(0))[0]
    assert float(cost(image, 1)) == pytest.approx(float(cost(grid, 1)), abs=1e-6)
    assert float(cost(np.asarray(grid), 1)) == pytest.approx(float(cost(grid, 1)))
    mirrored = jnp.flip(played[0], axis=2)
    swapped = jnp.array([0, 2, 1])[played[1]]
    np.testing.assert_allclose(
        costs_of(cost, *played), costs_of(cost, mirrored, swapped), atol=1e-5
    )


def test_discomfort_is_what_the_observer_feels(played):
    observer = shipped_observer()
    felt = discomfort(observer, *map(np.asarray, played))
    costs = np.array([float(observer.cost(o, a)) for o, a in zip(*played, strict=True)])
    sums = [costs[max(0, t - 34) : t + 1].sum() for t in range(64)]
    np.testing.assert_allclose(felt.costs, costs, atol=1e-5)
    np.testing.assert_allclose(felt.accumulated, sums, atol=1e-4)
    chance = 1 / (1 + np.exp(observer.bias - np.array(sums)))
    np.testing.assert_allclose(felt.stop_probabilities, chance, rtol=1e-3)
    leaky = termdp.Observer(lambda obs, action: 1.0, leak=0.5, background=0.5, bias=1e9)
    felt = discomfort(leaky, np.zeros((3, 2)), np.zeros(3, int))
    assert felt.accumulated.tolist() == [1.0, 1.5, 1.75]
    assert felt.stop_probabilities.tolist() == [0.5] * 3
    assert len(discomfort(leaky, np.zeros((0, 2)), np.zeros(0, int)).costs) == 0
    with pytest.raises(ValueError, match="as many observations as actions"):
        discomfort(leaky, np.zeros((3, 2)), np.zeros(2, int))


def rewritten(path, out, arrays=None, **changes):
    """A copy of an observer's file with a changed manifest or other arrays."""
    manifest = {**read_manifest(path), **changes}
    save_file(arrays or load_file(path), out, {MANIFEST: json.dumps(manifest)})
    return out


def test_files_that_are_no_observers_are_refused(tmp_path):
    out = tmp_path / "x.safetensors"
    with pytest.raises(ValueError, match="no such file"):
        load_observer(out)
    out.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="it is not a safetensors file"):
        load_observer(out)
    save_file({"x": np.zeros(3)}, out)
    with pytest.raises(ValueError, match="a safetensors file of another kind"):
        load_observer(out)
    with shipped_path() as path:
        with pytest.raises(ValueError, match="format version 1, got version 9"):
            load_observer(rewritten(path, out, version=9))
        for change in (
            *({"window": 0}, {"window": 10**7}, {"window": 2**31}),
            *(
                {"bias": float("nan")},
                {"percepts": []},
                {"hidden": 7},
                {"hidden": 10**9},
            ),
            *({"road": {"lanes": 1}}, {"members": "many"}, {"members": 10**9}),
            *({"command": "rm"}, {"road": {"lanes": 3, "wheels": 4}}, {"study": 7}),
        ):
            with pytest.raises(
                ValueError, match="expected an observer of .*x.safetens"
            ):
                load_observer(rewritten(path, out, **change))
        save_file(load_file(path), out, {MANIFEST: "[" * 100_000})
        with pytest.raises(ValueError, match="of another kind"):
            load_observer(out)
        arrays = load_file(path)
        name = next(iter(arrays))
        arrays[name] = np.full_like(arrays[name], np.nan)
        with pytest.raises(ValueError, match="are not finite"):
            load_observer(rewritten(path, out, arrays))


def test_a_passenger_watches_no_other_game():
    with shipped_path() as path:
        with pytest.raises(ValueError, match="expected an observer of .*Breakout"):
            termdp.make("breakout", observer=path)
        with pytest.raises(ValueError, match="expected a road of"):
            termdp.make("backseat", observer=path, lanes=4)
        env, params = termdp.make("backseat", observer=path, bias=3.0)
    assert float(params.observer.bias) == 3.0
    assert env.name == "BackseatDriver"


def test_training_against_the_shipped_passenger(tmp_path):
    out = tmp_path / "run"
    words = ["train", "backseat_passenger", "termpg", "--steps", "512"]
    words += ["--num-envs", "8", "--hidden", "16", "--num-minibatches", "4"]
    main([*words, "--window-factor", "0.5", "--out", str(out), "--snapshots", "2"])
    summary = json.loads((out / "summary.json").read_text())
    assert summary["env"] == "backseat_passenger"
    assert summary["seeds"][0]["cost_mae"] > 0
    (agent,) = load_agents(out)
    assert int(agent.mind.method_params.window) == 17
    assert checkpoint.snapshot_steps(out) == [0, 512]
    weights = jax.tree.map(lambda x: x[None], agent.mind.weights)
    first = checkpoint.load_snapshot(out, 0, weights)
    last = checkpoint.load_snapshot(out, 512, weights)
    same = jax.tree.map(np.array_equal, last, weights)
    assert all(jax.tree.leaves(same))
    assert not all(jax.tree.leaves(jax.tree.map(np.array_equal, first, last)))


def test_any_other_observer_travels_with_its_run(tmp_path, capsys):
    file, out = tmp_path / "mine.safetensors", tmp_path / "run"
    save_observer(file, shipped_observer().replace(bias=4.5), {})
    words = ["--steps", "256", "--num-envs", "8", "--hidden", "16"]
    words += ["--out", str(out), "--observer", str(file)]
    main(["train", "backseat", "pg", *words])
    file.unlink()
    moved = out.rename(tmp_path / "moved")
    _, params = place_of(termdp.load(moved))
    assert float(params.observer.bias) == 4.5
    capsys.readouterr()
    for words, sentence in {
        ("backseat", "pg", "--observer", str(file)): "no such file",
        ("breakout", "pg", "--observer", str(moved / "observer.safetensors")): (
            "got a passenger of Backseat"
        ),
        ("backseat", "pg", "--no-observer", "--observer", str(file)): "got both",
        (
            "backseat",
            "pg",
            "--snapshots",
            "51",
        ): "expected snapshots to be a whole number",
    }.items():
        with pytest.raises(SystemExit) as exit_info:
            main(["train", *words, "--out", str(tmp_path / "no")])
        said = capsys.readouterr().err
        assert exit_info.value.code == 2 and sentence in said, said
        assert not (tmp_path / "no").exists()


def test_planned_snapshots():
    assert checkpoint.planned_snapshots(100, 0) == ()
    assert checkpoint.planned_snapshots(100, 1) == (0,)
    assert checkpoint.planned_snapshots(100, 3) == (0, 25, 100)
    assert checkpoint.planned_snapshots(2, 12) == (0, 1, 2)


def test_gymnasium_and_other_biases_share_a_program():
    env, params = termdp.make("backseat_passenger")
    _, state = env.reset(jax.random.key(0), params)
    env.step(jax.random.key(1), state, 0, params)
    before = env.step._cache_size()
    cost = dataclasses.replace(params.observer.cost, scale=jnp.float32(2.0))
    other = params.replace(observer=params.observer.replace(cost=cost, bias=3.0))
    env.step(jax.random.key(1), state, 0, other)
    assert env.step._cache_size() == before
