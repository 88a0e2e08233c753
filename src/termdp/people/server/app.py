"""The web application: pages, their HTTP interface, limits and errors."""

import asyncio
import contextlib
import json
import mimetypes
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from termdp.people.driving.ride import BACKSEAT
from termdp.people.records import tokens
from termdp.people.records.study_store import (
    ConflictError,
    NotFoundError,
    StudyStore,
    UnreachableError,
)
from termdp.people.records.tokens import DAYS
from termdp.people.server import (
    admin_api,
    api,
    comparison,
    limits,
    rounds_api,
    warmup,
)
from termdp.people.server.bodies import RefusedError
from termdp.people.server.connections import Connections, Network, Shares
from termdp.people.server.insiders import Insiders
from termdp.people.server.learned_drivers import LearnedDrivers
from termdp.people.server.ride_pool import NotReadyError, RidePools, usual_drivers
from termdp.people.server.writer import Writer

if TYPE_CHECKING:
    from termdp.people.driving.drivers import Driver

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_KINDS = {".js": "text/javascript", ".webmanifest": "application/manifest+json"}


@dataclass(frozen=True)
class Settings:
    """How a server behaves.

    Attributes:
        tokens: whether supervisors need an invite; if not, anybody may join.
        steps: maximum length of a ride on the Ride page.
        practice: the study that visitors without an invite join.
        token_days: how many days an invite works, and the login made with it.
        allowed_hosts: host names that the server answers to.
        supervisor_rate: limit on requests of one supervisor.
        address_rate: limit on requests without a valid token from one address.
        strangers_rate: limit on all requests without a valid token together.
        shares: how many connections there may be.
        proxies: networks of trusted proxies; they report the visitor's address.
    """

    tokens: bool = True
    steps: int = 250
    practice: str = "practice"
    token_days: float = DAYS
    allowed_hosts: tuple[str, ...] = ("*",)
    supervisor_rate: limits.Rate = limits.SUPERVISOR_RATE
    address_rate: limits.Rate = limits.ADDRESS_RATE
    strangers_rate: limits.Rate = limits.STRANGERS_RATE
    shares: Shares = Shares()
    proxies: tuple[Network, ...] = ()


def make_app(
    store: StudyStore,
    admin_hash: str,
    settings: Settings,
    load_drivers: "Callable[[str], Sequence[Driver]]" = usual_drivers,
    owns_store: bool = False,
) -> Starlette:
    """The application on a store.

    Args:
        store: open.
        admin_hash: digest of the token that creates studies and exports them.
        settings: how it behaves.
        load_drivers: makes the agents that drive on the Ride page, in the background.
        owns_store: whether the application closes the store; if not, the caller does.
    """
    insiders = Insiders(store, admin_hash)
    app = Starlette(
        routes=[
            *_page_routes(),
            *api.ROUTES,
            *comparison.ROUTES,
            *warmup.ROUTES,
            *admin_api.ROUTES,
            *rounds_api.ROUTES,
        ],
        middleware=[
            Middleware(limits.SecurityHeaders),
            Middleware(
                TrustedHostMiddleware, allowed_hosts=list(settings.allowed_hosts)
            ),
            Middleware(
                limits.RateLimit,
                insiders=insiders,
                supervisors=settings.supervisor_rate,
                addresses=settings.address_rate,
                strangers=settings.strangers_rate,
            ),
            Middleware(limits.BodyLimit),
        ],
        exception_handlers={
            HTTPException: _http_error,
            RefusedError: _refused,
            UnreachableError: _unreachable,
            NotReadyError: _unreachable,
            NotFoundError: _answer(404),
            ConflictError: _answer(409),
            ValueError: _answer(422),
            Exception: _failed,
        },
        lifespan=_lifespan,
    )
    app.state.store = store
    app.state.owns_store = owns_store
    app.state.settings = settings
    app.state.admin_hash = admin_hash
    app.state.known = tokens.Known()
    app.state.insiders = insiders
    app.state.ride_pools = RidePools(load_drivers, settings.steps, api.encoded_ahead)
    app.state.learned = LearnedDrivers(store, settings.steps, api.encoded_ahead)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
    settings = app.state.settings
    app.state.connections = Connections(settings.shares, settings.proxies)
    sweeping = asyncio.create_task(app.state.connections.sweep())
    app.state.writer = Writer(app.state.store.database)
    app.state.ride_pools.start()
    try:
        yield {"connections": app.state.connections}
    finally:
        sweeping.cancel()
        app.state.ride_pools.close()
        app.state.learned.close()
        app.state.writer.close()
        if app.state.owns_store:
            app.state.store.close()


# Pages


def web_files() -> dict[str, bytes]:
    """The files of the web pages by name; no other files are served."""
    folder = files("termdp.people") / "web"
    return {
        entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()
    }


def _page_routes() -> list[Route]:
    content = web_files()
    frame = Template(content.pop("frame.html").decode())
    pages = [name for name in content if name.endswith(".html")]
    for name in pages:
        content[name] = _framed(frame, name.removesuffix(".html"), content[name])

    def page(name: str) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return _file(name, content[name])

        return answer

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in content or name.endswith(".html"):
            raise RefusedError(404, "no such file")
        return _file(name, content[name])

    routes = [
        Route(
            "/" if name == "index.html" else f"/{name.removesuffix('.html')}",
            page(name),
        )
        for name in pages
    ]
    # A service worker controls the folder it is served from; here that is all pages.
    routes.append(Route("/worker.js", page("worker.js")))
    routes.append(Route("/api/health", _health))
    routes.append(Route("/api/game", _game))
    routes.append(Route("/static/{name:str}", static))
    return routes


def _framed(frame: Template, name: str, main: bytes) -> bytes:
    """A complete page: the common frame around the page's own part."""
    title = "Backseat Driver"
    if name != "index":
        title = f"{name.capitalize()} · {title}"
    return frame.substitute(title=title, name=name, main=main.decode()).encode()


def _file(name: str, content: bytes) -> Response:
    suffix = name[name.rindex(".") :]
    kind = _KINDS.get(suffix) or mimetypes.guess_type(name)[0]
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})


async def _health(request: Request) -> Response:
    """Whether the server is up and its drivers are ready."""
    state = request.app.state
    ready = state.ride_pools.of(BACKSEAT).is_ready
    return JSONResponse(
        {"status": "ok", "drivers_ready": ready, "tokens": state.settings.tokens}
    )


async def _game(request: Request) -> Response:
    """The road's sizes and what everything on it looks like."""
    return Response(_looks(), media_type="application/json")


@cache
def _looks() -> bytes:
    from termdp.people.driving.track import road_data
    from termdp.render.backseat import sprites

    return json.dumps({"road": road_data(), **sprites()}).encode()


# Errors: a JSON object with one sentence; a page for browsers that ask for a page


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return JSONResponse({"error": error.sentence}, error.status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
        return Response(_lost(), 404, media_type="text/html")
    sentence = {404: "no such page", 405: "this address does not take this method"}.get(
        error.status_code, error.detail
    )
    return JSONResponse({"error": sentence}, error.status_code, headers=error.headers)


@cache
def _lost() -> str:
    folder = files("termdp.people") / "web"
    frame = Template((folder / "frame.html").read_text())
    words = (
        '<main class="stack"><h1>Page not found</h1>'
        '<p>The address may be mistyped. <a href="/">To the first page</a></p></main>'
    )
    return frame.substitute(title="Not found", name="page", main=words)


async def _unreachable(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 503, headers={"retry-after": "1"})


async def _failed(request: Request, error: Exception) -> Response:
    """A bug in the server: the details are in the log, not in the answer."""
    headers = limits.SECURITY_HEADERS
    return JSONResponse({"error": "the server failed"}, 500, headers=headers)


def _answer(status: int) -> Any:
    async def handler(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status)

    return handler
