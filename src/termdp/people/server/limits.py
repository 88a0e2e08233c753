"""Limits of size and rate for every request, and headers for every answer."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from termdp.people.records import tokens
from termdp.people.server.connections import sender_of
from termdp.people.server.insiders import Insiders

MAX_BODY = 64 * 1024
MAX_SENDERS = 10_000

SECURITY_HEADERS = {
    # Nothing from other sites, nothing inline: only the package's own files run.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_RAW_HEADERS = [(n.encode(), v.encode()) for n, v in SECURITY_HEADERS.items()]


@dataclass(frozen=True)
class Rate:
    """A bucket that fills with `per_second` requests up to `burst`."""

    per_second: float
    burst: float


# A supervisor's page needs a few requests per ride, and a whole lab behind one address
# may join at once. Both stay far below these limits.
SUPERVISOR_RATE = Rate(per_second=20, burst=100)
ADDRESS_RATE = Rate(per_second=50, burst=600)
# All strangers together, so that many addresses do not get around the limit of one.
STRANGERS_RATE = Rate(per_second=200, burst=2000)


class Buckets:
    """How many requests each sender has left; forgets those silent for longest."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic):
        self.rate = rate
        self.clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, sender: str) -> float:
        """Count a request: 0 if it may pass, otherwise how long to wait."""
        now = self.clock()
        left, then = self._left.pop(sender, (self.rate.burst, now))
        left = min(self.rate.burst, left + (now - then) * self.rate.per_second)
        passes = left >= 1
        self._left[sender] = (left - 1 if passes else left, now)
        if len(self._left) > MAX_SENDERS:
            self._left.popitem(last=False)
        return 0.0 if passes else (1 - left) / self.rate.per_second


class RateLimit:
    """Refuse too many requests, per person for those who joined, else per address.

    This way strangers cannot use up the requests of people who joined.
    """

    def __init__(
        self,
        app: ASGIApp,
        insiders: Insiders,
        supervisors: Rate = SUPERVISOR_RATE,
        addresses: Rate = ADDRESS_RATE,
        strangers: Rate = STRANGERS_RATE,
    ):
        self.app = app
        self.insiders = insiders
        self.supervisors = Buckets(supervisors)
        self.addresses = Buckets(addresses)
        self.strangers = Buckets(strangers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer 429."""
        if scope["type"] != "http" or not scope["path"].startswith("/api/"):
            await self.app(scope, receive, send)
            return
        token = bearer(Headers(scope=scope))
        person = None if token is None else tokens.digest(token)
        if person is not None and await self.insiders.has(person):
            recognise(scope, person)
            wait = self.supervisors.seconds_to_wait(person)
        else:
            address = (scope.get("client") or ("?",))[0]
            wait = self.addresses.seconds_to_wait(sender_of(address))
            if wait == 0:
                wait = self.strangers.seconds_to_wait("all")
        if wait > 0:
            seconds = str(int(wait) + 1)
            sentence = f"too many requests: wait {seconds} s"
            headers = {"retry-after": seconds}
            answer = JSONResponse({"error": sentence}, 429, headers=headers)
            await answer(scope, receive, send)
            return
        await self.app(scope, receive, send)


class BodyLimit:
    """Refuse bodies that are larger than anything the pages send."""

    def __init__(self, app: ASGIApp, limit: int = MAX_BODY):
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, up to the limit, before the application sees the request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # A proxy on the way may use the other length.
            sentence = (
                "expected one length of the body, got two (transfer-encoding too)"
            )
            await _close_with(400, sentence, scope, receive, send)
            return
        declared = headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > self.limit:
            await self._refuse(scope, receive, send)
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return  # the sender went away
            body += message.get("body", b"")
            if len(body) > self.limit:
                await self._refuse(scope, receive, send)
                return
            if not message.get("more_body", False):
                break
        await self.app(scope, _Replayed(bytes(body), receive), send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        sentence = f"expected a body of at most {self.limit} bytes, got a larger one"
        await _close_with(413, sentence, scope, receive, send)


async def _close_with(
    status: int, sentence: str, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer, and accept nothing more from this connection."""
    headers = {"connection": "close"}
    await JSONResponse({"error": sentence}, status, headers=headers)(
        scope, receive, send
    )


class _Replayed:
    """Replay the body that was read already, then pass on what follows."""

    def __init__(self, body: bytes, receive: Receive):
        self.message: Message | None = {"type": "http.request", "body": body}
        self.receive = receive

    async def __call__(self) -> Message:
        message, self.message = self.message, None
        return message if message is not None else await self.receive()


class SecurityHeaders:
    """Add `SECURITY_HEADERS` to every answer, errors included."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, adding the headers to the answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_RAW_HEADERS]
                if scope["path"].startswith("/api/"):
                    MutableHeaders(scope=message).setdefault(
                        "cache-control", "no-store"
                    )
            await send(message)

        await self.app(scope, receive, send_with_headers)


def bearer(headers: Headers) -> str | None:
    """The token in `Authorization: Bearer …`; None if it is missing or malformed."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not tokens.is_well_formed(token.strip()):
        return None
    return token.strip()


def recognise(scope: Scope, person: str) -> None:
    """Mark a request's connection as belonging to somebody who has joined."""
    connection = scope.get("state", {}).get("connection")
    if connection is not None:
        connection.guard.recognise(connection, person)
