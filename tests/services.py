"""Real servers for tests: PostgreSQL in a folder of its own, and where Chromium is.

On a machine without them, tests that need them are skipped with the reason. If CI is set
they fail instead. `tools/install_test_services` installs what is missing.
"""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

_NUMBERS = itertools.count()
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


class Postgres:
    """A PostgreSQL server in a folder of its own; it can be crashed and started again."""

    def __init__(self, durable):
        self.durable = durable
        self.binaries = _postgres_binaries()
        # PostgreSQL refuses to run as root.
        self.as_user = {"user": "postgres"} if os.geteuid() == 0 else {}
        self.folder = Path(tempfile.mkdtemp(prefix="termdp-postgres-"))
        if self.as_user:
            shutil.chown(self.folder, "postgres")
        self.port = free_port()
        self.process = None
        options = ["-U", "termdp", "-A", "trust", "--no-sync"]
        subprocess.run(
            [self.binaries / "initdb", "-D", self.data, *options],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self.as_user,
        )

    @property
    def data(self):
        return self.folder / "data"

    @property
    def url(self):
        return f"postgresql+psycopg://termdp@127.0.0.1:{self.port}"

    def start(self):
        options = [f"port={self.port}", f"unix_socket_directories={self.folder}"]
        options.append("listen_addresses=127.0.0.1")
        if not self.durable:
            options.append("fsync=off")
        flags = [word for option in options for word in ("-c", option)]
        log = self.folder / "log"
        with log.open("a") as file:
            self.process = subprocess.Popen(
                [self.binaries / "postgres", "-D", self.data, *flags],
                stdout=file,
                stderr=file,
                cwd=self.folder,
                **self.as_user,
            )
        ready = [self.binaries / "pg_isready", "-q", "-h", "127.0.0.1"]
        for _ in range(300):
            answer = subprocess.run([*ready, "-p", str(self.port)], check=False)
            if answer.returncode == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}")

    def crash(self):
        """Stop at once, as if the machine failed: only what was on disk is kept."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=30)
            self.process = None

    def new_database(self):
        """The URL of an empty database."""
        name = f"store_{next(_NUMBERS)}"
        engine = create_engine(f"{self.url}/postgres", isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return f"{self.url}/{name}"


@contextlib.contextmanager
def postgres(durable=True):
    """A PostgreSQL server that lives as long as the block."""
    server = Postgres(durable)
    try:
        server.start()
        yield server
    finally:
        server.crash()
        shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server():
    # Thirty databases are made and deleted: no need to wait for the disk.
    with postgres(durable=False) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """The URL of an empty database, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "people.db")
    return request.getfixturevalue("postgres_server").new_database()
