"""Checkpoints: what is written can be read, and nothing else is believed."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from full_disk import small_files
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
    manifest = checkpoint.Manifest(iteration, seconds=1.5)
    return checkpoint.save(folder, make_state(size), REPORTS, manifest)


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
    assert (manifest.iteration, manifest.seconds) == (1, 1.5)


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
    assert checkpoint.load_latest(tmp_path)[2].iteration == 100


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


def change_a_number(path):
    content = json.loads(path.read_text())
    content["seconds"] += 1
    path.write_text(json.dumps(content))


def add_a_field(path):
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"command": "rm"}))


DAMAGES = [
    ("state.safetensors", cut_in_half),
    ("state.safetensors", flip_a_bit),
    ("state.safetensors", lambda path: path.unlink()),
    ("reports.safetensors", flip_a_bit),
    ("manifest.json", cut_in_half),
    ("manifest.json", no_text),
    ("manifest.json", other_json),
    ("manifest.json", no_files),
    ("manifest.json", change_a_number),
    ("manifest.json", add_a_field),
    ("manifest.json", lambda path: path.unlink()),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_damage_is_one_sentence(tmp_path, name, damage):
    path = save(tmp_path)
    damage(path / name)
    with pytest.raises(ValueError, match=r"00000001 is damaged.*no other") as found:
        checkpoint.load_latest(tmp_path)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_the_newest_whole_one_serves_instead_of_a_damaged_one(tmp_path, name, damage):
    save(tmp_path, 1)
    damage(save(tmp_path, 5) / name)
    with pytest.warns(UserWarning, match=r"00000005 is damaged.*00000001 is used"):
        assert checkpoint.load_latest(tmp_path)[2].iteration == 1
    # Whoever goes on from there puts the damaged one aside; nothing is removed.
    checkpoint.set_damaged_aside(tmp_path, 1)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["00000001", "00000005.damaged"]
    save(tmp_path, 5)
    assert checkpoint.load_latest(tmp_path)[2].iteration == 5


def test_a_checkpoint_under_another_number_is_damaged(tmp_path):
    save(tmp_path, 1).rename(tmp_path / "00000009")
    with pytest.raises(ValueError, match="its manifest is that of iteration 1"):
        checkpoint.load_latest(tmp_path)


@pytest.fixture
def nobody():
    """Without root's right to read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


@pytest.mark.parametrize("name", ["manifest.json", "state.safetensors"])
def test_what_may_not_be_read_is_not_called_damaged(name, request, tmp_path_factory):
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    save(folder, 1)
    path = save(folder, 2)
    (path / name).chmod(0o000)
    request.getfixturevalue("nobody")
    with pytest.raises(
        ValueError, match=r"00000002.*unreadable: you have no perm"
    ) as e:
        checkpoint.load_latest(folder)
    assert "damaged" not in str(e.value)


def test_a_larger_state_than_expected_is_not_read(tmp_path):
    path = save(tmp_path, size=1000)
    with pytest.raises(ValueError, match="more than the expected"):
        checkpoint.load(path, lambda manifest: jax.eval_shape(make_state))


def test_a_full_disk_is_one_sentence_and_keeps_what_was_there(tmp_path):
    large = make_state(10_000)
    checkpoint.save(tmp_path, large, REPORTS, checkpoint.Manifest(1))
    with (
        small_files(1000),
        pytest.raises(OSError, match=r"cannot be written.*make room"),
    ):
        checkpoint.save(tmp_path, large, REPORTS, checkpoint.Manifest(2))
    assert [p.name for p in tmp_path.iterdir()] == ["00000001"]
    assert checkpoint.load_latest(tmp_path)[2].iteration == 1


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
    assert checkpoint.load_latest(tmp_path)[2].iteration == 1
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
    assert checkpoint.load_latest(tmp_path)[2].iteration >= 1
    save(tmp_path, 4)
    assert checkpoint.load_latest(tmp_path)[2].iteration == 4
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
