"""Files: whole or not at all, also on a disk that is full."""

import json
import os
import subprocess
import sys

import pytest

from full_disk import small_files
from termdp.files import draft_of, room_for, write_json


def test_a_full_disk_leaves_the_old_content_and_no_draft(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, [1])
    words = (
        r"expected to write .*x\.json, but it cannot .*\(File too large\): make room"
    )
    with small_files(100), pytest.raises(OSError, match=words):
        write_json(path, ["x" * 1000])
    assert json.loads(path.read_text()) == [1]
    assert os.listdir(tmp_path) == ["x.json"]


def test_other_errors_pass_as_they_are(tmp_path):
    with pytest.raises(ZeroDivisionError), draft_of(tmp_path / "x"):
        1 / 0  # noqa: B018


def test_room_is_held_before_the_work_and_given_back(tmp_path):
    out = tmp_path / "results" / "fit"
    with room_for(out, 3 * 2**20):
        (held,) = out.parent.iterdir()
        assert held.stat().st_size == 3 * 2**20
    assert os.listdir(out.parent) == []
    worked = []
    with (
        small_files(2**20),
        pytest.raises(OSError, match="make room"),
        room_for(out, 3 * 2**20),
    ):
        worked.append(True)
    assert worked == []
    assert os.listdir(out.parent) == []


FULL = """
import resource, sys
from termdp.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
main(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "words"),
    [
        # Room for the config, none for a checkpoint; room for neither results.
        (30_000, ("train", "notifier", "pg", "--steps", "2048", "--out", "out")),
        (1_000, ("bench", "smoke", "--steps", "2048", "--out", "out")),
    ],
    ids=["train", "bench"],
)
def test_commands_say_that_the_disk_is_full(tmp_path, size, words):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(size), *words],
        cwd=tmp_path,
        env=os.environ | {"HOME": str(tmp_path), "JAX_ENABLE_COMPILATION_CACHE": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("termdp:")]
    assert len(lines) == 1 and "make room" in lines[0], done.stderr
    assert not list(tmp_path.glob("out/checkpoints/0*"))
    assert not list(tmp_path.rglob("*.draft"))
