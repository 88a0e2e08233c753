"""Rounds over HTTP: for the admin all of them, for a person what the driver learned."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from termdp.people.records.rounds import newest_round, rounds_of, stops_learned
from termdp.people.records.study_store import StudyStore
from termdp.people.server.admin_api import must_be_admin
from termdp.people.server.api import who
from termdp.people.server.round_results import rounds_table
from termdp.people.server.storage import read


async def all_rounds(request: Request) -> Response:
    """The rounds of every study that has some."""
    must_be_admin(request)
    store = request.app.state.store
    return JSONResponse({"studies": await run_in_threadpool(_all_rounds, store)})


def _all_rounds(store: StudyStore) -> list[dict[str, Any]]:
    found = []
    for study in store.studies():
        name = study["name"]
        rounds = rounds_of(store, name)
        if rounds:
            rows = rounds_table(rounds, store.showings(name), study["env"])
            found.append({"name": name, "title": study["title"], "rounds": rows})
    return found


async def learned(request: Request) -> Response:
    """How many stops the Ride page's driver has learned from, and how many are yours."""
    study, supervisor = await who(request)
    store = request.app.state.store
    newest = await read(newest_round, store, study.id)
    if newest is None:
        return JSONResponse({"round": None})
    yours = await read(stops_learned, store, newest, supervisor.id)
    return JSONResponse({"round": newest.number, "stops": newest.stops, "yours": yours})


ROUTES = [
    Route("/api/learned", learned),
    Route("/api/admin/rounds", all_rounds),
]
