"""A server process: its socket, its admin token, its first study."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette

from termdp.people.driving.ride import BACKSEAT
from termdp.people.records import tokens
from termdp.people.records.study_files import add_study, practice_record
from termdp.people.records.study_store import StudyStore
from termdp.people.server.app import LOOPBACK, Settings, make_app
from termdp.people.server.connections import SECONDS, GuardedProtocol, room
from termdp.people.server.ride_pool import usual_drivers
from termdp.people.server.storage import BUSY_SECONDS

if TYPE_CHECKING:
    import uvicorn

    from termdp.people.driving.drivers import Driver

ADMIN_SETTING = "admin_token_sha256"
FIRST_VISITOR = "first-visitor"
# About ten minutes for a person.
PRACTICE_RIDES = 24
MAX_WORKERS = 64
# How many connections may wait to be accepted; all may be accepted at once.
BACKLOG = 256


@dataclass(frozen=True)
class Opening:
    """What the person who starts a server needs to know.

    Attributes:
        url: where it is.
        admin_token: the token, if it was made just now; it is not shown again.
        invite: an invite to the practice study, likewise.
    """

    url: str
    admin_token: str | None
    invite: str | None


def check_host(host: str, with_tokens: bool) -> None:
    """Allow visitors without a token only on this machine."""
    if not with_tokens and host not in LOOPBACK:
        raise ValueError(
            f"expected tokens with --host {host}: a server that others can reach must "
            "not run with --no-tokens (drop one of the two)"
        )


def plain_http_warning(host: str) -> str | None:
    """A warning if others can reach the server, which has no TLS of its own."""
    if host in LOOPBACK:
        return None
    return (
        f"warning: {host} can be reached from other machines, and this server speaks "
        "plain HTTP: others on the network can read tokens and answers. Put a reverse "
        "proxy with TLS in front of it (docs/people_server.md), or use it only in a "
        "network you trust."
    )


def bind(host: str, port: int) -> socket.socket:
    """Bind the port before anything else happens; 0 binds any free port."""
    if not 0 <= port <= 65535:
        raise ValueError(f"expected a port from 0 to 65535, got {port}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f"expected a host's name or address, got {host!r}") from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ValueError(
            f"expected a free port, but {host}:{port} cannot be used "
            f"({error.strerror}): stop the program that uses it or give another --port"
        ) from error
    return listener


def admin_token(store: StudyStore) -> tuple[str | None, str]:
    """A token made just now (or None), and the digest of the valid one.

    The environment variable comes first, then the store; a new store gets a new token.
    """
    given = os.environ.get(tokens.ADMIN_VARIABLE)
    if given is not None:
        if not tokens.is_well_formed(given):
            raise ValueError(
                f"expected {tokens.ADMIN_VARIABLE} to have 16 to 128 letters, digits, "
                "'-' or '_', got another text"
            )
        return None, tokens.digest(given)
    known = store.setting(ADMIN_SETTING)
    if known is not None:
        return None, known
    made = tokens.make()
    store.set_setting(ADMIN_SETTING, tokens.digest(made))
    return made, tokens.digest(made)


def prepare(store: StudyStore, settings: Settings, url: str) -> tuple[str, Opening]:
    """The admin token's digest, and what to print; a new store gets a practice study."""
    made, admin_hash = admin_token(store)
    invite = None
    if not any(row["name"] == settings.practice for row in store.studies()):
        rides = practice_record(PRACTICE_RIDES)
        add_study(store, rides, settings.practice)
        if settings.tokens:
            invite = store.invite(settings.practice, FIRST_VISITOR)
    return admin_hash, Opening(url, made, invite)


def serve(
    db: str,
    host: str,
    port: int,
    agents: Path | None,
    settings: Settings,
    workers: int,
    on_start: Callable[[Opening], None],
    beside: AbstractContextManager[None],
) -> None:
    """Serve until interrupted; the context `beside` is open meanwhile."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    check_host(host, settings.tokens)
    _loader(agents)
    if not 1 <= workers <= MAX_WORKERS:
        raise ValueError(f"expected 1 to {MAX_WORKERS} workers, got {workers}")
    with bind(host, port) as listener:
        actual = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        if host in LOOPBACK:
            # Other sites must not reach this server under their own name.
            hosts = ("127.0.0.1", "localhost", "[::1]")
            settings = replace(settings, allowed_hosts=hosts)
        with StudyStore.open(db) as store:
            admin_hash, opening = prepare(store, settings, f"http://{shown}:{actual}")
        parent = os.getpid() if workers > 1 else None
        worker = partial(make_worker, db, admin_hash, settings, agents, parent)
        config = make_config(worker, settings, workers)
        on_start(opening)
        with beside:
            if workers == 1:
                uvicorn.Server(config).run(sockets=[listener])
            else:
                Multiprocess(config, sockets=[listener]).run()


def make_config(
    make: Callable[[], Starlette], settings: Settings, workers: int = 1
) -> "uvicorn.Config":
    """How uvicorn serves an application."""
    import uvicorn

    return uvicorn.Config(
        make,
        factory=True,
        workers=workers,
        http=GuardedProtocol,
        ws="none",
        # Malformed requests from strangers would only fill the log.
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=[str(network) for network in settings.proxies],
        backlog=BACKLOG,
        timeout_keep_alive=int(SECONDS["idle"]),
        timeout_graceful_shutdown=5,
    )


def make_worker(
    db: str,
    admin_hash: str,
    settings: Settings,
    agents: Path | None,
    parent: int | None,
) -> Starlette:
    """The application of one process, with its own store, drivers and limits."""
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()
    # Rides are simulated in a thread beside the requests. Switch threads every 0.5 ms
    # instead of Python's default of 5 ms, so that requests do not wait.
    sys.setswitchinterval(0.0005)
    in_all = min(settings.shares.in_all, room())
    shares = replace(settings.shares, in_all=in_all)
    shares = replace(shares, address=min(shares.address, in_all // 2))
    settings = replace(settings, shares=shares)
    store = StudyStore.open(db, BUSY_SECONDS)
    return make_app(store, admin_hash, settings, _loader(agents), owns_store=True)


def _end_after(parent: int) -> None:
    """End a worker whose parent was killed; otherwise it would hold the port forever."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def _loader(agents: Path | None) -> "Callable[[str], Sequence[Driver]]":
    """How ride pools get their drivers; a wrong folder is refused at once."""
    if agents is None:
        return usual_drivers
    if not agents.is_dir():
        raise ValueError(f"expected a folder of runs, got {agents}: no such folder")
    if not any(agents.glob("**/config.json")):
        raise ValueError(
            f"expected runs in {agents}, found none: train one with `termdp train "
            f"backseat termpg --out {agents}/NAME`, or leave out --agents"
        )

    def load(env: str) -> "Sequence[Driver]":
        from termdp.people.driving.trained import OtherGameError, drivers_in

        try:
            return drivers_in(agents, env)
        except OtherGameError:
            if env == BACKSEAT:
                raise
            return usual_drivers(env)

    return load
