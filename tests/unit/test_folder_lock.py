"""One writer per folder, and no lock that outlives its process."""

import contextlib
import multiprocessing
import os
import subprocess
import sys

import pytest

from termdp import folder_lock
from termdp.folder_lock import only_writer

HOLD = """
import sys
from pathlib import Path
from termdp.folder_lock import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def held_elsewhere(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_writer_is_refused_with_the_first_ones_process(tmp_path):
    with held_elsewhere(tmp_path) as process:
        words = rf"nobody else to write to .*, but process {process.pid} on \S+ does"
        with pytest.raises(ValueError, match=words), only_writer(tmp_path):
            pass
        process.kill()
        process.wait()
        assert (tmp_path / ".lock").exists(), "the kill left the file"
        with only_writer(tmp_path):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_stayed_empty_goes_again(tmp_path):
    with pytest.raises(ZeroDivisionError), only_writer(tmp_path / "a" / "b"):
        1 / 0  # noqa: B018
    assert not (tmp_path / "a" / "b").exists()
    with only_writer(tmp_path / "c"):
        (tmp_path / "c" / "mine").touch()
    assert [p.name for p in (tmp_path / "c").iterdir()] == ["mine"]


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "x").touch()
    with (
        pytest.raises(ValueError, match="expected a folder"),
        only_writer(tmp_path / "x"),
    ):
        pass


def test_a_disk_without_locks_is_said(tmp_path, monkeypatch):
    """As some network disks answer; none is at hand here."""

    def no_locks(handle, kind):
        raise OSError(38, os.strerror(38))

    monkeypatch.setattr(folder_lock.fcntl, "flock", no_locks)
    with pytest.warns(UserWarning, match="has no locks"), only_writer(tmp_path):
        pass


def add_one(path, times):
    """Count in a file, with nothing but the lock against losing a count."""
    for _ in range(times):
        while True:
            try:
                with only_writer(path):
                    count = int((path / "count").read_text())
                    (path / "count").write_text(str(count + 1))
                break
            except ValueError:
                continue


@pytest.mark.slow
def test_many_at_once_never_write_together(tmp_path):
    """Also while the lock's file is removed and made anew all the time."""
    (tmp_path / "count").write_text("0")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=add_one, args=(tmp_path, 50)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert (tmp_path / "count").read_text() == "150"
