"""Who may hold a connection, and for how long.

uvicorn waits for a request as long as its sender likes, and for any number of them. Here
every part of a request has its time, and nobody holds more than a share of the
connections. Where there are too many, the stranger's goes that has been silent longest:
a crowd outside pushes out itself, not those inside, who have shown a good token.
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

# What a connection is doing, and how many seconds it may. A head or body that comes in
# drops gets no more; an answer that nobody reads gets it anew for each part.
SECONDS = {
    "head": 10.0,
    "body": 20.0,
    "answer": math.inf,
    "unread": 30.0,
    "idle": 30.0,
    "closing": 10.0,
}
# Files that the database, the drivers and connections being accepted may need.
OTHER_FILES = 512
_SWEEP_SECONDS = 0.5

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Shares:
    """How many connections there may be.

    Attributes:
        in_all: of this process.
        address: of strangers from one address; a proxy that is trusted has no limit.
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
        # Whoever spoke last comes last.
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
        """A whole request has come."""
        if connection in self._strangers:
            self._strangers.move_to_end(connection)
        if connection.holder is not None:
            self._held[connection.holder].move_to_end(connection)

    def recognise(self, connection: "GuardedProtocol", person: str) -> None:
        """Somebody who has joined uses it."""
        if connection.holder not in (None, person) and connection in self._all:
            self._release(connection)
            self._strangers.pop(connection, None)
            self._hold(connection, person, self.shares.person)

    def leave(self, connection: "GuardedProtocol") -> None:
        """It is closed."""
        self._all.discard(connection)
        self._strangers.pop(connection, None)
        self._release(connection)

    async def sweep(self) -> None:
        """Hang up on those whose time is over, for ever."""
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
        """The longest silent one; one that waits for its answer only if all do."""
        waiting = (c for c in held if c.phase != "answer")
        chosen = next(waiting, next(iter(held)))
        self.leave(chosen)
        chosen.transport.abort()


class GuardedProtocol(H11Protocol):
    """A connection that knows how long it may go on with what it is doing.

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
        """Count it."""
        super().connection_made(transport)
        self._begin("head")
        self.guard.enter(self, self.client[0] if self.client else "?")

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        self.guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See how far the request has come."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """The next request may come, or has come already."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """The answer is not being read."""
        super().pause_writing()
        self._begin("unread")

    def resume_writing(self) -> None:
        """It is being read again."""
        super().resume_writing()
        self._look()

    def hang_up(self) -> None:
        """Close it; if that does not help, at once."""
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
    """How many connections this process has files for; asks for as many as it may."""
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
    """Addresses and networks as such; IPv4 ones also as an IPv6 socket shows them."""
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
    """Who counts as one sender: an IPv4 address, or the network of an IPv6 one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "?"
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), 64), strict=False))
