"""Real servers for tests: PostgreSQL in a folder of its own, and where Chromium is.

On a machine without them, tests that need them are skipped with the reason; where CI is
set they fail: `tools/install_test_services` installs what is missing.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")


def missing(what: str) -> None:
    """Skip, or fail in CI, because something is not installed."""
    sentence = (
        f"expected {what} on this machine, found none: run tools/install_test_services "
        "as root (it needs apt-get)"
    )
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)


def chromium() -> str:
    """Path of the browser."""
    for name in CHROMIUM_NAMES:
        if found := shutil.which(name):
            return found
    missing("the Debian package chromium")
    raise AssertionError


def free_port() -> int:
    """A port on the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _postgres_binaries() -> Path:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if folders:
        return folders[-1].parent
    if found := shutil.which("initdb"):
        return Path(found).parent
    missing("the Debian package postgresql")
    raise AssertionError


@contextlib.contextmanager
def postgres():
    """A PostgreSQL server that lives as long as the block; gives its URL's beginning."""
    binaries = _postgres_binaries()
    # PostgreSQL refuses to run as root.
    as_user = {"user": "postgres"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="termdp-postgres-"))
    port = free_port()
    server = None
    try:
        if as_user:
            shutil.chown(folder, "postgres")
        data = folder / "data"
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "termdp", "--auth=trust"],
            check=True,
            capture_output=True,
            cwd=folder,
            **as_user,
        )
        options = ["-c", f"port={port}", "-c", f"unix_socket_directories={folder}"]
        options += ["-c", "listen_addresses=127.0.0.1"]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(
                [binaries / "postgres", "-D", data, *options],
                stdout=log,
                stderr=log,
                cwd=folder,
                **as_user,
            )
        _wait_for_postgres(binaries, port, server, folder / "log")
        yield f"postgresql+psycopg://termdp@127.0.0.1:{port}"
    finally:
        if server is not None:
            server.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
            server.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_postgres(binaries, port, server, log) -> None:
    for _ in range(300):
        ready = subprocess.run(
            [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)],
            check=False,
        )
        if ready.returncode == 0:
            return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}")
