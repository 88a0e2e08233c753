"""Who may hold a connection, and for how long.

uvicorn waits for requests without limits on time or number. Here every part of a
request has a time limit, and nobody may hold more than a share of the connections. If
there are too many, the stranger's connection that has been silent longest is closed. So
a crowd of strangers pushes out itself, not the people who have shown a valid token.
"""

import asyncio
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# What a connection is doing, and how many seconds that may take. A head or body that
# trickles in gets no extra time; an unread answer gets new time with each part read.
SECONDS = {
    "head": 10.0,
    "body": 20.0,
    "answer": math.inf,
    "unread": 30.0,
    "idle": 30.0,
    "closing": 10.0,
}
# Files reserved for the database, the drivers and connections being accepted.
OTHER_FILES = 512
_SWEEP_SECONDS = 0.5

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Shares:
    """How many connections there may be.

    Attributes:
        in_all: in this process.
        address: of strangers from one address; trusted proxies have no limit.
        person: of one person who has joined.
    """

    in_all: int = 4000
    address: int = 2000
    person: int = 32


class Connections:
    """All connections of a process.

    Args:
        shares: how many there may be.
        proxies: networks of proxies, whose connections belong to many people.
    """

    def __init__(
        self,
        shares: Shares | None = None,
        proxies: Collection[Network] = (),
        clock: Callable[[], float] = time.monotonic,
    ):
        self.shares = shares or Shares()
        self.proxies = tuple(proxies)
        self.clock = clock
        self._all: set[GuardedProtocol] = set()
        # Ordered by their last request, the oldest first.
        self._strangers: OrderedDict[GuardedProtocol, None] = OrderedDict()
        self._held: dict[str, OrderedDict[GuardedProtocol, None]] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)

    def enter(self, connection: "GuardedProtocol", address: str) -> None:
        """A stranger, or a proxy, has connected."""
        self._all.add(connection)
        if not self._is_proxy(address):
            self._strangers[connection] = None
            self._hold(connection, sender_of(address), self.shares.address)
        if len(self._all) > self.shares.in_all:
            self._drop_oldest(self._strangers or OrderedDict({connection: None}))

    def spoke(self, connection: "GuardedProtocol") -> None:
        """A complete request has arrived."""
        if connection in self._strangers:
            self._strangers.move_to_end(connection)
        if connection.holder is not None:
            self._held[connection.holder].move_to_end(connection)

    def recognise(self, connection: "GuardedProtocol", person: str) -> None:
        """Somebody who has joined uses this connection."""
        if connection.holder not in (None, person) and connection in self._all:
            self._release(connection)
            self._strangers.pop(connection, None)
            self._hold(connection, person, self.shares.person)

    def leave(self, connection: "GuardedProtocol") -> None:
        """The connection is closed."""
        self._all.discard(connection)
        self._strangers.pop(connection, None)
        self._release(connection)

    async def sweep(self) -> None:
        """Keep closing connections whose time is up, forever."""
        while True:
            now = self.clock()
            for connection in [c for c in self._all if c.deadline <= now]:
                connection.hang_up()
            await asyncio.sleep(_SWEEP_SECONDS)

    def _is_proxy(self, address: str) -> bool:
        return is_within(address, self.proxies)

    def _hold(self, connection: "GuardedProtocol", holder: str, share: int) -> None:
        held = self._held.setdefault(holder, OrderedDict())
        held[connection] = None
        connection.holder = holder
        if len(held) > share:
            self._drop_oldest(held)

    def _release(self, connection: "GuardedProtocol") -> None:
        holder, connection.holder = connection.holder, None
        if holder is not None:
            held = self._held[holder]
            del held[connection]
            if not held:
                del self._held[holder]

    def _drop_oldest(self, held: "OrderedDict[GuardedProtocol, None]") -> None:
        """Drop the one silent for longest; one that awaits an answer only if all do."""
        waiting = (c for c in held if c.phase != "answer")
        chosen = next(waiting, next(iter(held)))
        self.leave(chosen)
        chosen.transport.abort()


class GuardedProtocol(H11Protocol):
    """A connection with a time limit for whatever it is doing.

    `app_state` is what the application's lifespan yields; it holds `connections`. Every
    request finds its own connection in its state.
    """

    def __init__(
        self,
        config: Any,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ):
        super().__init__(config, server_state, {**app_state, "connection": self}, _loop)
        self.guard: Connections = app_state["connections"]
        self.holder: str | None = None
        self.phase = ""
        self.deadline = math.inf

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection."""
        super().connection_made(transport)
        self._begin("head")
        self.guard.enter(self, self.client[0] if self.client else "?")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in data, and note how far the request has come."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """The next request may come, or has come already."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """The peer is not reading the answer."""
        super().pause_writing()
        self._begin("unread")

    def resume_writing(self) -> None:
        """The peer reads again."""
        super().resume_writing()
        self._look()

    def hang_up(self) -> None:
        """Close the connection, by force if it does not close normally."""
        if self.phase == "closing":
            self.transport.abort()
        else:
            self.transport.close()
            self._begin("closing")

    def _look(self) -> None:
        state = self.conn.their_state
        if self.transport.is_closing() or state is h11.ERROR:
            phase = "closing"
        elif state is h11.IDLE:
            phase = "head" if self.conn.trailing_data[0] else "idle"
        elif state is h11.SEND_BODY:
            phase = "body"
        else:
            phase = "unread" if self.flow.write_paused else "answer"
        if phase != self.phase:
            self._begin(phase)
            if phase == "answer":
                self.guard.spoke(self)

    def _begin(self, phase: str) -> None:
        self.phase = phase
        self.deadline = self.guard.clock() + SECONDS[phase]


def room() -> int:
    """How many connections this process has files for; raises the limit if it can."""
    wanted = Shares().in_all
    try:
        import resource
    except ModuleNotFoundError:  # Windows: no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, wanted + OTHER_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted + OTHER_FILES:
        soft = min(hard, wanted + OTHER_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(64, min(wanted, soft - OTHER_FILES))


def to_networks(addresses: Collection[str]) -> list[Network]:
    """Parse addresses and networks; IPv4 also in the form an IPv6 socket reports."""
    found: list[Network] = []
    for address in addresses:
        try:
            network = ipaddress.ip_network(address)
        except ValueError as error:
            raise ValueError(
                "expected a proxy's address or network such as 127.0.0.1 or "
                f"10.0.0.0/8, got {address!r}"
            ) from error
        found.append(network)
        if network.version == 4:
            mapped = f"::ffff:{network.network_address}/{96 + network.prefixlen}"
            found.append(ipaddress.ip_network(mapped))
    return found


@lru_cache(maxsize=4096)
def is_within(address: str, networks: tuple[Network, ...]) -> bool:
    """Whether an address is in one of the networks."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in networks)


@lru_cache(maxsize=4096)
def sender_of(address: str) -> str:
    """What counts as one sender: an IPv4 address, or an IPv6 address's /64 network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "?"
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), 64), strict=False))
