"""Checkpoints: what is written can be read, and nothing else is believed."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from termdp.arrays import restore
from termdp.runs import checkpoint


@struct.dataclass
class State:
    key: jax.Array
    weights: dict
    nothing: None = None


def make_state(size=3):
    return State(
        key=jax.random.split(jax.random.key(7), 2),
        weights={
            "kernel": jnp.arange(size, dtype=jnp.float32) / 7,
            "count": jnp.int32(5),
            "flags": jnp.array([True, False]),
            "bits": jnp.array([1, 255], jnp.uint8),
            "sliced": jnp.arange(6.0).reshape(2, 3).T,
        },
    )


REPORTS = {"episodes": np.arange(4).reshape(1, 4)}


def save(folder, iteration=1, size=3):
    return checkpoint.save(
        folder, iteration, make_state(size), REPORTS, {"seconds": 1.5}
    )


def test_round_trip_keeps_every_bit_and_random_keys(tmp_path):
    save(tmp_path)
    arrays, reports, manifest = checkpoint.load_latest(tmp_path)
    state = restore(jax.eval_shape(make_state), arrays)
    expected = make_state()
    assert jax.tree.structure(state) == jax.tree.structure(expected)
    for name, value in expected.weights.items():
        assert state.weights[name].dtype == value.dtype
        np.testing.assert_array_equal(state.weights[name], value)
    assert state.key.dtype == expected.key.dtype
    np.testing.assert_array_equal(
        jax.vmap(jax.random.bits)(state.key), jax.vmap(jax.random.bits)(expected.key)
    )
    np.testing.assert_array_equal(reports["episodes"], REPORTS["episodes"])
    assert (manifest["iteration"], manifest["seconds"]) == (1, 1.5)


def test_nothing_that_is_written_can_hold_code(tmp_path):
    path = save(tmp_path)
    assert sorted(p.name for p in path.iterdir()) == [
        "manifest.json",
        "reports.safetensors",
        "state.safetensors",
    ]


def test_the_last_two_are_kept(tmp_path):
    for iteration in (1, 5, 20, 100):
        save(tmp_path, iteration)
    assert [p.name for p in checkpoint.complete(tmp_path)] == ["00000020", "00000100"]
    assert checkpoint.load_latest(tmp_path)[2]["iteration"] == 100


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def no_text(path):
    path.write_bytes(b"\xff\xfe\x00")


def other_json(path):
    path.write_text("[]")


def no_files(path):
    path.write_text(json.dumps({"iteration": 1}))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("state.safetensors", cut_in_half),
        ("state.safetensors", flip_a_bit),
        ("state.safetensors", lambda path: path.unlink()),
        ("reports.safetensors", flip_a_bit),
        ("manifest.json", cut_in_half),
        ("manifest.json", no_text),
        ("manifest.json", other_json),
        ("manifest.json", no_files),
        ("manifest.json", lambda path: path.unlink()),
    ],
)
def test_damage_is_one_sentence_that_says_what_to_do(tmp_path, name, damage):
    path = save(tmp_path)
    damage(path / name)
    with pytest.raises(
        ValueError, match=r"damaged.*remove .*00000001 to go on"
    ) as found:
        checkpoint.load_latest(tmp_path)
    assert "\n" not in str(found.value)


def test_no_checkpoint_is_said(tmp_path):
    with pytest.raises(ValueError, match="expected a run with a checkpoint, got none"):
        checkpoint.load_latest(tmp_path / "checkpoints")


def test_another_configuration_is_refused(tmp_path):
    save(tmp_path)
    arrays, _, _ = checkpoint.load_latest(tmp_path)
    with pytest.raises(ValueError, match=r"kernel.*\(4,\).*the configuration differs"):
        restore(jax.eval_shape(lambda: make_state(4)), arrays)
    with pytest.raises(ValueError, match="same configuration, but it differs in"):
        restore({"other": jnp.zeros(3)}, arrays)
    fewer_keys = make_state().replace(key=jax.random.split(jax.random.key(0), 3))
    with pytest.raises(ValueError, match="the configuration differs"):
        restore(jax.eval_shape(lambda: fewer_keys), arrays)


def test_leftovers_of_a_killed_save_are_ignored_and_removed(tmp_path):
    path = save(tmp_path, 1)
    leftover = tmp_path / ".00000002.12345.draft"
    shutil.copytree(path, leftover)
    (leftover / "manifest.json").unlink()
    assert checkpoint.complete(tmp_path) == [path]
    assert checkpoint.load_latest(tmp_path)[2]["iteration"] == 1
    save(tmp_path, 3)
    assert not leftover.exists()


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("iteration", [2, 3], ids=["same again", "a newer one"])
def test_a_kill_while_an_old_one_is_removed_leaves_a_readable_one(
    tmp_path, monkeypatch, iteration
):
    save(tmp_path, 1)
    save(tmp_path, 2)

    def remove_half(path, *args, **kwargs):
        (path / "manifest.json").unlink()
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint.shutil, "rmtree", remove_half)
        with pytest.raises(KilledError):
            save(tmp_path, iteration)
    for path in checkpoint.complete(tmp_path):
        checkpoint.load(path)
    assert checkpoint.load_latest(tmp_path)[2]["iteration"] >= 1
    save(tmp_path, 4)
    assert checkpoint.load_latest(tmp_path)[2]["iteration"] == 4
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
