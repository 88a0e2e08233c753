"""The admin's requests: studies, rides, invites, results, export."""

import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import asdict
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from termdp.people.driving.ride import all_studied
from termdp.people.records import audit, live, tokens
from termdp.people.records.database import Database
from termdp.people.records.showings import now_ms
from termdp.people.records.study_store import StudyStore, new_study, to_ride
from termdp.people.records.tables import Showing
from termdp.people.server import results
from termdp.people.server.api import encoded, game_of, who
from termdp.people.server.bodies import (
    InvitesBody,
    RefusedError,
    RidesBody,
    StudyBody,
    read_body,
)
from termdp.people.server.limits import bearer

MAX_ENTRIES = 500


def must_be_admin(request: Request) -> None:
    """Refuse requests without the admin token."""
    token = bearer(request.headers)
    known = request.app.state.admin_hash
    if token is None or not tokens.same(tokens.digest(token), known):
        raise RefusedError(
            401,
            "expected the admin token, which `termdp serve` printed on its first start",
        )


async def studies(request: Request) -> Response:
    """All studies with their counts, and the environments that new ones may have."""
    must_be_admin(request)
    found = await run_in_threadpool(request.app.state.store.studies)
    envs = [{"id": entry.id, "about": entry.description} for entry in all_studied()]
    return JSONResponse({"studies": found, "envs": envs})


async def create_study(request: Request) -> Response:
    """Create a study, with rides by the server's drivers if wanted: all or nothing."""
    must_be_admin(request)
    body = asdict(await read_body(request, StudyBody))
    count, steps = body.pop("rides"), body.pop("steps")
    study = new_study(**body)
    driven: tuple[Any, Any] = ((), ())
    if count:
        driven = await _drive(request, study.env, count, steps, study.seed)
    store = request.app.state.store
    await run_in_threadpool(store.begin_study, study, *driven, who=audit.ADMIN)
    return JSONResponse({"study": study.name}, 201)


async def add_rides(request: Request) -> Response:
    """Let the server's drivers record rides for a study."""
    must_be_admin(request)
    body = await read_body(request, RidesBody)
    store, name = request.app.state.store, request.path_params["study"]
    env = (await run_in_threadpool(store.study, name)).env
    driven = await _drive(request, env, body.count, body.steps, body.seed)
    await run_in_threadpool(store.add_rides, name, *driven, who=audit.ADMIN)
    return JSONResponse({"study": name, "added": body.count}, 201)


async def _drive(request: Request, env: str, count: int, steps: int, seed: int) -> Any:
    """Rides by the server's drivers, and which of them crash."""
    from termdp.people.driving.rides import record_rides

    drivers = await request.app.state.ride_pools.of(env).drivers()
    return await run_in_threadpool(record_rides, drivers, count, steps, seed)


async def invite(request: Request) -> Response:
    """Make invite tokens, one per name, shown only once: for all names or for none."""
    must_be_admin(request)
    body = await read_body(request, InvitesBody)
    state, study = request.app.state, request.path_params["study"]
    made = await run_in_threadpool(
        state.store.invite_all, study, body.names, body.kind, who=audit.ADMIN
    )
    state.known.clear()
    return JSONResponse({"study": study, "invites": made}, 201)


async def audit_log(request: Request) -> Response:
    """The audit log, newest first."""
    must_be_admin(request)
    database = request.app.state.store.database
    return JSONResponse({"entries": await run_in_threadpool(_audit_log, database)})


def _audit_log(database: Database) -> list[dict[str, Any]]:
    with database.reading() as session:
        return audit.entries(session)[:MAX_ENTRIES]


async def live_view(request: Request) -> Response:
    """Who is riding now, and the last minutes of a study."""
    must_be_admin(request)
    store, name = request.app.state.store, request.path_params["study"]
    return JSONResponse(await run_in_threadpool(_live_view, store, name))


def _live_view(store: StudyStore, name: str) -> dict[str, Any]:
    study = store.study(name)
    with store.database.reading() as session:
        return live.activity(session, study, now_ms())


# Results


async def study_results(request: Request) -> Response:
    """All results of a study."""
    must_be_admin(request)
    store, name = request.app.state.store, request.path_params["study"]
    return JSONResponse(await run_in_threadpool(_all_results, store, name))


def _all_results(store: StudyStore, name: str) -> dict[str, Any]:
    study = store.study(name)
    showings = store.showings(name)
    (counts,) = [row for row in store.studies() if row["name"] == name]
    return {
        **counts,
        "game": game_of(study),
        "step_ms": study.step_ms,
        "per_supervisor": results.supervisors_table(showings, study),
        "agreement": results.agreement_table(showings),
        "per_ride": results.rides_table(showings),
        "has_observer": study.observer is not None and Path(study.observer).exists(),
    }


async def own_results(request: Request) -> Response:
    """A supervisor's own results; those of others could influence them."""
    study, supervisor = await who(request)
    store = request.app.state.store
    answer = await run_in_threadpool(_own_results, store, study.name, supervisor.id)
    named = {"study": study.name, "title": study.title, "game": game_of(study)}
    return JSONResponse(named | answer)


def _own_results(store: StudyStore, name: str, supervisor_id: int) -> dict[str, Any]:
    everything = store.showings(name)
    shown = [s for s in everything if s.supervisor.id == supervisor_id]
    # The figures count recorded rides only. Live rides are listed apart.
    mine = [s for s in shown if not s.ride.live]
    live = [s.review for s in shown if s.ride.live and s.review is not None]
    done, total = store.progress(supervisor_id)
    rows = results.supervisors_table(mine, store.study(name))
    rides = [
        {key: row[key] for key in ("ride", "steps", "crashed", "reviews")}
        for row in results.rides_table(mine)
    ]
    if done < total:
        rides = [_as_seen(ride) for ride in rides]
    return {
        "reviewed": done,
        "total": total,
        "step_ms": store.study(name).step_ms,
        "mine": rows[0] if rows else None,
        "live": {"rides": len(live), "stops": sum(r.stopped for r in live)},
        # A supervisor who has reviewed everything cannot be influenced any more.
        "agreement": _own_agreement(everything, mine) if done == total else [],
        "rides": rides,
    }


def _as_seen(ride: dict[str, Any]) -> dict[str, Any]:
    """A ride up to the last stop: it may be shown again, so its end stays hidden."""
    stops = [review["stop"] for review in ride["reviews"]]
    if None in stops:
        return ride
    return {**ride, "steps": max(stops) + 1, "crashed": False}


def _own_agreement(
    everything: list[Showing], mine: list[Showing]
) -> list[dict[str, Any]]:
    """Agreement with each of the others, without their names."""
    if not mine:
        return []
    name = mine[0].supervisor.name
    rows = [r for r in results.agreement_table(everything) if name in (r["a"], r["b"])]
    return [{**row, "a": "you", "b": f"other {i}"} for i, row in enumerate(rows, 1)]


async def ride_curve(request: Request) -> Response:
    """A ride, and the fitted observer's discomfort along it.

    `?only=curve` leaves out the ride, because pictures of a game take a while to draw.
    """
    must_be_admin(request)
    name, number = request.path_params["study"], int(request.path_params["number"])
    store, only = request.app.state.store, request.query_params.get("only")
    found = await run_in_threadpool(_ride_curve, store, name, number, only != "curve")
    return JSONResponse(found)


def _ride_curve(
    store: StudyStore, name: str, number: int, is_shown: bool
) -> dict[str, Any]:
    study = store.study(name)
    found = [ride for ride in store.rides(name, live=None) if ride.number == number]
    if not found:
        raise RefusedError(404, f"expected the number of a ride of {name}")
    ride = to_ride(found[0], study.env)
    answer: dict[str, Any] = {
        "ride": number,
        "driver": ride.driver,
        "step_ms": study.step_ms,
        "discomfort": None,
    }
    if is_shown:
        text = encoded(study.env, ride.seed, ride.actions.tobytes())
        answer |= json.loads(text)
    if study.observer is not None and Path(study.observer).exists():
        stamp = Path(study.observer).stat().st_mtime_ns
        answer["discomfort"] = _discomfort(
            study.observer, stamp, study.env, ride.seed, ride.actions.tobytes()
        )
    return answer


@lru_cache(maxsize=1024)
def _discomfort(
    path: str, stamp: int, env: str, seed: int, actions: bytes
) -> dict[str, Any]:
    """Accumulated cost and stop probability by the observer in a file.

    `stamp` is the file's modification time, so that the cache never serves an old file.
    """
    import termdp
    from termdp.people.driving.rides import Ride, replay
    from termdp.people.models.discomfort import discomfort

    observer = termdp.load_observer(path)
    ride = Ride(seed, "", np.frombuffer(actions, np.uint8), env)
    felt = discomfort(observer, replay(ride).observations, ride.actions)
    return {
        "bias": float(observer.bias),
        "accumulated": np.round(felt.accumulated, 4).tolist(),
        "stop_probability": np.round(felt.stop_probabilities, 5).tolist(),
    }


async def export(request: Request) -> Response:
    """The study as a Parquet file."""
    from termdp.people.records.study_files import export_study

    must_be_admin(request)
    store, name = request.app.state.store, request.path_params["study"]
    await run_in_threadpool(store.study, name)
    folder = tempfile.TemporaryDirectory(prefix="termdp-export-")
    path = Path(folder.name) / "study.parquet"
    try:
        await run_in_threadpool(export_study, store, name, path, audit.ADMIN)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path,
        media_type="application/vnd.apache.parquet",
        filename=f"{name}.parquet",
        background=BackgroundTask(folder.cleanup),
    )


STUDY = "/api/admin/studies/{study:str}"
ROUTES = [
    Route("/api/results", own_results),
    Route("/api/admin/audit", audit_log),
    Route("/api/admin/studies", studies),
    Route("/api/admin/studies", create_study, methods=["POST"]),
    Route(f"{STUDY}/rides", add_rides, methods=["POST"]),
    Route(f"{STUDY}/rides/{{number:int}}", ride_curve),
    Route(f"{STUDY}/invites", invite, methods=["POST"]),
    Route(f"{STUDY}/live", live_view),
    Route(f"{STUDY}/results", study_results),
    Route(f"{STUDY}/export", export),
]
