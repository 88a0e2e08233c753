"""Strangers who hold connections, ask too much or lie: those inside do not notice."""

import contextlib
import fcntl
import socket
import time

import pytest

from people_server import application, fill, join, listening, serving
from termdp.people.server import connections
from termdp.people.server.client import Client
from termdp.people.server.connections import Shares, sender_of, to_networks
from termdp.people.server.limits import Rate

HALF_HEAD = b"POST /api/join HTTP/1.1\r\nhost: 127.0.0.1\r\n"
HALF_BODY = (
    HALF_HEAD + b"content-type: application/json\r\ncontent-length: 900\r\n\r\n{"
)
WHOLE = b"GET /api/health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
FEW = Rate(per_second=0.001, burst=5)


@pytest.fixture
def hasty(monkeypatch):
    """Set how long a phase may take; who is late is noticed at once."""
    monkeypatch.setattr(connections, "_SWEEP_SECONDS", 0.02)

    def allow(seconds, *phases):
        for phase in phases:
            monkeypatch.setitem(connections.SECONDS, phase, seconds)

    return allow


@contextlib.contextmanager
def connected(server):
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        yield connection


def is_closed_within(connection, seconds, drip=b""):
    """Whether the server hangs up, though a little more comes now and then."""
    connection.settimeout(min(0.1, seconds))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(TimeoutError):
            try:
                if not connection.recv(65536):
                    return True
                continue
            except ConnectionError:
                return True
        try:
            connection.sendall(drip)
        except ConnectionError:
            return True
    return False


def health(server, **headers):
    """The status of a stranger's request."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with connected(server) as connection:
        head = WHOLE[:-2].decode() + "".join(f"{line}\r\n" for line in lines)
        connection.sendall(f"{head}\r\n".encode())
        return int(connection.recv(4096).split(b" ")[1])


@pytest.mark.parametrize(
    "sent, drip",
    [
        (b"", b""),
        (HALF_HEAD, b""),
        (HALF_HEAD, b"x: y\r\n"),
        (HALF_BODY, b""),
        (HALF_BODY, b" "),
        (WHOLE, b""),
        (WHOLE + HALF_HEAD, b"x: y\r\n"),
    ],
    ids=["silent", "head", "slow head", "body", "slow body", "idle", "second head"],
)
def test_who_does_not_finish_a_request_is_hung_up_on(store, hasty, sent, drip):
    hasty(0.4, "head", "body", "idle")
    with listening(store) as server, connected(server) as connection:
        connection.sendall(sent)
        assert is_closed_within(connection, 10, drip)


def test_an_answer_that_nobody_reads_is_given_up(store, hasty):
    hasty(0.3, "unread", "idle", "closing")
    with listening(store) as server:
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        reader.connect(("127.0.0.1", server.port))
        asking = WHOLE.replace(b"/api/health", b"/static/icon-512.png") * 400
        reader.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            reader.send(asking)
        held = server.app.state.connections
        until = time.monotonic() + 20
        while len(held) == 0 and time.monotonic() < until:
            time.sleep(0.01)
        assert len(held) == 1
        while len(held) > 0 and time.monotonic() < until:
            time.sleep(0.05)
        assert len(held) == 0
        reader.close()


def test_strangers_push_out_each_other_and_not_those_inside(store):
    shares = Shares(in_all=30, address=10, person=4)
    with listening(store, shares=shares) as server:
        client = Client(server.url)
        client.join(store.invite("comfort", "ann"))
        inside = client._connection.sock
        crowd = []
        for _ in range(50):
            stranger = socket.create_connection(("127.0.0.1", server.port))
            stranger.sendall(HALF_HEAD)
            crowd.append(stranger)
        assert health(server) == 200  # a newcomer from the same address
        assert client.me()["name"] == "ann"
        assert client._connection.sock is inside
        # Forty of the fifty, and the newcomer's, are gone.
        held = [s for s in crowd if not is_closed_within(s, 0.02)]
        assert 5 <= len(held) <= 10
        for stranger in crowd:
            stranger.close()
        client.close()


def test_a_person_has_a_share_too(store):
    shares = Shares(in_all=30, address=10, person=4)
    with listening(store, shares=shares) as server:
        first = Client(server.url)
        token = first.join(store.invite("comfort", "ann"))
        more = [Client(server.url, token) for _ in range(6)]
        for client in more:
            assert client.me()["name"] == "ann"
        held = [
            c for c in [first, *more] if not is_closed_within(c._connection.sock, 0.05)
        ]
        assert held == more[2:]
        for client in [first, *more]:
            client.close()


def test_a_crowd_at_the_same_address_leaves_the_rate_of_those_inside(store):
    """Also after a restart, when the server has not seen their tokens yet."""
    with application(store) as client:
        ann = join(client, store)
    with application(store, address_rate=FEW) as client:
        codes = [client.get("/api/health").status_code for _ in range(7)]
        assert codes == [200] * 5 + [429] * 2
        assert client.get("/api/me", headers=ann).status_code == 200
        made_up = {"authorization": "Bearer " + "z" * 43}
        assert client.get("/api/me", headers=made_up).status_code == 429


def test_many_addresses_are_no_way_around(store):
    networks = tuple(to_networks(["127.0.0.1"]))
    rates = {"strangers_rate": FEW, "proxies": networks}
    with listening(store, **rates) as server:
        codes = [health(server, x_forwarded_for=f"9.9.9.{i}") for i in range(7)]
    assert codes == [200] * 5 + [429] * 2


def test_a_trusted_proxy_says_for_whom_it_asks(store):
    networks = tuple(to_networks(["127.0.0.0/8", "10.0.0.7"]))
    with listening(store, address_rate=FEW, proxies=networks) as server:
        crowd = [health(server, x_forwarded_for="9.9.9.9") for _ in range(7)]
        assert crowd == [200] * 5 + [429] * 2
        # Others at the same proxy, also through a second one, are not concerned.
        assert health(server, x_forwarded_for="8.8.8.8") == 200
        assert health(server, x_forwarded_for="9.9.9.9, 7.7.7.7, 10.0.0.7") == 200
        # What the sender wrote in front of it is not believed.
        assert health(server, x_forwarded_for="6.6.6.6, 9.9.9.9") == 429


def test_others_are_not_believed(store):
    with listening(store, address_rate=FEW) as server:
        codes = [health(server, x_forwarded_for=f"9.9.9.{i}") for i in range(7)]
    assert codes == [200] * 5 + [429] * 2


def test_a_proxy_may_hold_many_connections(store):
    networks = tuple(to_networks(["127.0.0.1"]))
    shares = Shares(in_all=30, address=3, person=2)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(listening(store, shares=shares, proxies=networks))
        held = [stack.enter_context(connected(server)) for _ in range(20)]
        for connection in held:
            connection.sendall(WHOLE)
        for connection in held:
            assert b" 200 " in connection.recv(4096)


def test_one_sender_is_an_address_or_a_network_of_ipv6():
    assert sender_of("9.9.9.9") == "9.9.9.9"
    assert sender_of("::ffff:9.9.9.9") == "9.9.9.9"
    assert sender_of("2001:db8::1") == sender_of("2001:db8::ffff") == "2001:db8::/64"
    assert sender_of("2001:db8:0:1::1") != sender_of("2001:db8::1")
    assert sender_of("nonsense") == "?"


def test_two_lengths_of_a_body_are_refused(store):
    body = b"0\r\n\r\n"
    head = HALF_HEAD + b"content-type: application/json\r\ncontent-length: 5\r\n"
    with listening(store) as server, connected(server) as connection:
        connection.sendall(head + b"transfer-encoding: chunked\r\n\r\n" + body)
        answer = connection.recv(4096)
        assert b" 400 " in answer and b"got two" in answer
        assert is_closed_within(connection, 5)


@pytest.mark.slow
def test_nonsense_does_not_fill_the_log(tmp_path):
    """Nobody reads this server's log: a full pipe would stop it for ever."""
    fill(tmp_path / "people.db")
    with serving(tmp_path / "people.db") as server:
        # It would be full long before the end if every attempt were logged.
        fcntl.fcntl(server.process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        for _ in range(400):
            with connected(server) as connection:
                connection.sendall(b"NONSENSE\r\n\r\n")
                connection.recv(100)
        assert health(server) == 200
        server.process.terminate()
        _, said = server.process.communicate(timeout=30)
    assert "Invalid HTTP" not in said
    assert "plain HTTP" not in said  # nobody else can reach this one
