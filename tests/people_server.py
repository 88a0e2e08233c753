"""A real `termdp serve` process for tests, and a store with a few rides."""

import contextlib
import os
import subprocess
import sys
import threading
import time
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import uvicorn

from services import free_port
from termdp.people.driving.drivers import random_driver
from termdp.people.driving.rides import Ride
from termdp.people.records import tokens
from termdp.people.records.study_store import StudyStore
from termdp.people.server.app import Settings, make_app
from termdp.people.server.client import Client
from termdp.people.server.limits import Rate
from termdp.people.server.serving import bind, make_config

with warnings.catch_warnings():
    # Starlette would rather see a newer httpx than ours.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

ADMIN = "admin-token-for-tests"


def straight(num, steps=6, driver="straight"):
    """Rides straight on: for so few steps nothing can be hit."""
    return [Ride(seed, driver, np.zeros(steps, np.uint8)) for seed in range(num)]


def fill(db, study="comfort", rides=None, **settings):
    """A store with one study of given rides."""
    rides = straight(4) if rides is None else rides
    with StudyStore.open(str(db)) as store:
        store.create_study(study, **settings)
        store.add_rides(study, rides, [False] * len(rides))


def recorded(store, record, *values):
    """Run a `record_…` function in a transaction, as the server's writer does."""
    with store.database.writing() as session:
        return record(session, *values)


class Server:
    """A server process that can be killed and started again on the same port."""

    def __init__(self, db, *options):
        self.db = str(db)
        self.options = options
        self.port = free_port()
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [sys.executable, "-m", "termdp", "serve", "--db", self.db]
        command += ["--port", str(self.port), *self.options]
        environment = os.environ | {"TERMDP_ADMIN_TOKEN": ADMIN}
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        client = Client(self.url)
        for _ in range(600):
            try:
                client._send("GET", "/api/health", None)
                break
            except OSError:
                client.close()
                if self.process.poll() is not None:
                    raise RuntimeError(self.process.stderr.read()) from None
                time.sleep(0.05)
        client.close()

    def kill(self):
        """As a power cut would: no chance to tidy up."""
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)
            self.process.stderr.close()

    def admin(self):
        return Client(self.url, ADMIN)


@contextlib.contextmanager
def serving(db, *options):
    server = Server(db, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def application(store, **settings):
    """A client of an application in this process; no limits of rate unless given."""
    anything = Rate(1e9, 1e9)
    rates = ("supervisor_rate", "address_rate", "strangers_rate")
    chosen = dict.fromkeys(rates, anything) | {"steps": 20}
    app = make_app(
        store,
        tokens.digest(ADMIN),
        Settings(**(chosen | settings)),
        lambda env: [random_driver(env)],
    )
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@contextlib.contextmanager
def listening(store, **settings):
    """The application in this process, on a real socket: `url`, `port`, `app`."""
    chosen = Settings(**({"steps": 20} | settings))
    app = make_app(
        store, tokens.digest(ADMIN), chosen, lambda env: [random_driver(env)]
    )
    with bind("127.0.0.1", 0) as listener:
        server = uvicorn.Server(make_config(lambda: app, chosen))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = listener.getsockname()[1]
        try:
            url = f"http://127.0.0.1:{port}"
            admin = partial(Client, url, ADMIN)
            yield SimpleNamespace(port=port, url=url, app=app, admin=admin)
        finally:
            server.should_exit = True
            thread.join()


def join(client, store, name="ann"):
    """A supervisor's headers."""
    invite = store.invite("comfort", name)
    text = client.post("/api/invite", json={"invite": invite}).json()
    body = {"invite": invite, "nonce": "n" * 24, "consent_hash": text["consent_hash"]}
    token = client.post("/api/join", json=body).json()["token"]
    return {"authorization": f"Bearer {token}"}
