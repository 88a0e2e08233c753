"""Supervisors' requests: join, next ride, stop, finish, drive (docs/people_http.md)."""

import json
import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec.structs import asdict
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from termdp.people.driving.ride import ROADS, Ride, studied
from termdp.people.records import tokens
from termdp.people.records.database import Database
from termdp.people.records.fields import NAME_LENGTH
from termdp.people.records.showings import now_ms
from termdp.people.records.study_store import (
    ReviewInput,
    record_drive,
    record_join,
    record_live,
    record_mistake,
    record_next,
    record_reason,
    record_review,
    record_shown,
)
from termdp.people.records.tables import Drive, Showing, Study, Supervisor
from termdp.people.records.withdrawal import PARTICIPANT, person_data, record_forget
from termdp.people.server.bodies import (
    DRIVE_STEPS,
    DriveBody,
    FinishBody,
    GuestBody,
    InviteBody,
    JoinBody,
    MistakeBody,
    ReasonBody,
    RefusedError,
    StopBody,
    WithdrawBody,
    read_body,
)
from termdp.people.server.limits import bearer, recognise
from termdp.people.server.storage import read, write

MAX_ID = 2**31 - 1
# Time to say why, and to go on to the next ride.
BETWEEN_RIDES_S = 5
# Films to cache, about 100 kilobytes each: more than a group of rides.
FILMS = 128


async def who(request: Request) -> tuple[Study, Supervisor]:
    """The study and the supervisor that a request comes from."""
    token = bearer(request.headers)
    found = None
    if token is not None:
        state = request.app.state
        found = state.known.get(token)
        if found is None:
            found = await read(state.store.supervisor_of, token)
            if found is not None:
                state.known.put(token, found)
    if found is None:
        raise RefusedError(
            401, "expected the token of a supervisor: join by your invite link first"
        )
    days = request.app.state.settings.token_days
    if tokens.is_older(found[1].token_ms, days, now_ms()):
        raise RefusedError(
            401, f"this login is older than {days:g} days: ask for a new invite link"
        )
    return found


def showing_id(request: Request) -> int:
    """The id of the showing in the address."""
    number = int(request.path_params["showing"])
    if number > MAX_ID:
        raise RefusedError(404, "expected one of your rides, got another number")
    return number


# Joining


async def invite(request: Request) -> Response:
    """The study and name that an invite is for, and the consent text."""
    body = await read_body(request, InviteBody)
    state = request.app.state
    study, supervisor = await read(
        state.store.invited, body.invite, state.settings.token_days
    )
    return JSONResponse(
        {
            "study": study.name,
            "title": study.title,
            "name": supervisor.name,
            "used": supervisor.token_hash is not None,
            "consent": study.consent,
            "consent_hash": tokens.digest(study.consent),
        }
    )


async def guest(request: Request) -> Response:
    """Make an invite for anybody, if the server runs without tokens."""
    state = request.app.state
    if state.settings.tokens:
        raise RefusedError(403, "this server needs an invite link: ask for one")
    body = await read_body(request, GuestBody)
    study = state.settings.practice if body.study is None else body.study
    unique = f"{body.name[: NAME_LENGTH - 9]}-{secrets.token_hex(4)}"
    made = await run_in_threadpool(state.store.invite_all, study, [unique], who="guest")
    return JSONResponse({"invite": made[unique]})


async def join(request: Request) -> Response:
    """Record the consent and hand out the token for all further requests."""
    body = await read_body(request, JoinBody)
    days = request.app.state.settings.token_days
    granted = await write(
        request, lambda session: record_join(session, **asdict(body), days=days)
    )
    person = tokens.digest(granted)
    request.app.state.insiders.add(person)
    recognise(request.scope, person)
    return JSONResponse({"token": granted})


async def me(request: Request) -> Response:
    """The supervisor's name, study and progress."""
    study, supervisor = await who(request)
    store = request.app.state.store
    request.app.state.ride_pools.of(study.env)  # its players start loading
    done, total = await read(store.progress, supervisor.id)
    steps = await read(store.mean_steps, study.id)
    return JSONResponse(
        {
            "name": supervisor.name,
            "study": study.name,
            "title": study.title,
            "env": study.env,
            "game": game_of(study),
            "about": studied(study.env).description,
            "step_ms": study.step_ms,
            "reviewed": done,
            "total": total,
            "ride_seconds": round(steps * study.step_ms / 1000 + BETWEEN_RIDES_S, 1),
        }
    )


def game_of(study: Study) -> str | None:
    """The name of the study's environment; None for the road, where people drive."""
    return None if study.env in ROADS else studied(study.env).display_name


# Leaving


async def sign_out(request: Request) -> Response:
    """End this login everywhere; signing in again takes a new invite."""
    _, supervisor = await who(request)
    state = request.app.state
    await run_in_threadpool(state.store.sign_out, supervisor.id)
    state.known.clear()
    return JSONResponse({"signed_out": True})


async def own_data(request: Request) -> Response:
    """Everything stored about the person who asks."""
    _, supervisor = await who(request)
    database = request.app.state.store.database
    return JSONResponse(await run_in_threadpool(_own_data, database, supervisor.id))


def _own_data(database: Database, supervisor_id: int) -> dict[str, Any]:
    with database.reading() as session:
        return person_data(session, supervisor_id)


async def withdraw(request: Request) -> Response:
    """Remove the person who asks from the study, for good."""
    _, supervisor = await who(request)
    keep = (await read_body(request, WithdrawBody)).keep_stops
    gone = await write(
        request,
        lambda session: record_forget(session, supervisor.id, keep, PARTICIPANT),
    )
    state = request.app.state
    state.known.clear()
    await run_in_threadpool(state.store.database.scrub)
    return JSONResponse({"reviews": gone.reviews, "kept": keep})


# Watching


async def next_ride(request: Request) -> Response:
    """The next ride to review; `ride` is null when all have been reviewed."""
    study, supervisor = await who(request)
    found = await write(request, lambda session: record_next(session, supervisor.id))
    done, total = await read(request.app.state.store.progress, supervisor.id)
    if found is None:
        return JSONResponse({"reviewed": done, "total": total, "ride": None})
    ride = await run_in_threadpool(_encoded_showing, study, found)
    return _json(f'{{"reviewed":{done},"total":{total},"ride":{ride}}}')


async def showing(request: Request) -> Response:
    """Fetch one ride again."""
    study, supervisor = await who(request)
    number = showing_id(request)
    found = await write(
        request, lambda session: record_shown(session, supervisor.id, number)
    )
    return _json(await run_in_threadpool(_encoded_showing, study, found))


def _encoded_showing(study: Study, found: Showing) -> str:
    ride = study.env, found.ride.seed, found.ride.actions
    text = encoded(*ride)
    if study.env not in ROADS and found.supervisor.kind == "simulated":
        text = f'{{"costs":{_true_costs(*ride)},{text[1:]}'
    return ride_to_show(study, found.id, text)


@lru_cache(maxsize=4096)
def _true_costs(env: str, seed: int, actions: bytes) -> str:
    """The true cost of each step of a game as JSON, only for simulated spectators."""
    from termdp.people.driving.rides import game, replay
    from termdp.people.models.discomfort import discomfort

    again = replay(Ride(seed, "", np.frombuffer(actions, np.uint8), env))
    observer = studied(env).make_observer(game(env))
    felt = discomfort(observer, again.observations, again.ride.actions)
    return json.dumps(np.round(felt.costs.astype(float), 4).tolist())


async def live(request: Request) -> Response:
    """A live ride with an agent, for this supervisor alone."""
    study, supervisor = await who(request)
    state = request.app.state
    pool = state.ride_pools.of(study.env)
    taken = await state.learned.take(study) or await pool.take()
    ride, text = taken.ride, taken.text
    if not text:
        text = await run_in_threadpool(
            encoded, study.env, ride.seed, ride.actions.tobytes()
        )
    made = await write(
        request,
        lambda session: record_live(session, supervisor.id, ride, taken.crashed),
    )
    return _json(ride_to_show(study, made, text))


def ride_to_show(study: Study, showing: int, text: str) -> str:
    """A ride as the browser gets it, in JSON; nothing in it says who drove."""
    head = json.dumps({"showing": showing, "step_ms": study.step_ms})
    return f"{head[:-1]},{text[1:]}"


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


def encoded(env: str, seed: int, actions: bytes) -> str:
    """A ride as JSON for the browser."""
    return (_road if env in ROADS else _film)(env, seed, actions)


def _encoded(env: str, seed: int, actions: bytes) -> str:
    return encoded_many([Ride(seed, "", np.frombuffer(actions, np.uint8), env)])[0]


_road = lru_cache(maxsize=4096)(_encoded)
_film = lru_cache(maxsize=FILMS)(_encoded)


def encoded_many(rides: Sequence[Ride]) -> list[str]:
    """Several rides of one environment as JSON for the browser."""
    from termdp.people.driving.films import shown

    return [json.dumps(ride, separators=(",", ":")) for ride in shown(rides)]


def encoded_ahead(rides: Sequence[Ride]) -> list[str]:
    """The same ahead of time; films take long to draw, so their texts stay empty."""
    return encoded_many(rides) if rides[0].env in ROADS else [""] * len(rides)


# Reviewing


async def stop(request: Request) -> Response:
    """Record a stop; the answer comes when it is on disk."""
    _, supervisor = await who(request)
    body = await read_body(request, StopBody)
    given = ReviewInput(stopped=True, **asdict(body))
    return await _review(request, supervisor, given)


async def finish(request: Request) -> Response:
    """Record that a ride was watched to the end without a stop."""
    _, supervisor = await who(request)
    body = await read_body(request, FinishBody)
    given = ReviewInput(stopped=False, **asdict(body))
    return await _review(request, supervisor, given)


async def _review(
    request: Request, supervisor: Supervisor, given: ReviewInput
) -> Response:
    number = showing_id(request)
    review = await write(
        request,
        lambda session: record_review(session, supervisor.id, number, given),
    )
    return JSONResponse(
        {"stopped": review.stopped, "step": review.step, "on_disk": True}
    )


async def mistake(request: Request) -> Response:
    """Take a stop back; it is kept as a mistake, and the ride is open again."""
    _, supervisor = await who(request)
    stop_id = (await read_body(request, MistakeBody)).stop
    number = showing_id(request)
    await write(
        request,
        lambda session: record_mistake(session, supervisor.id, number, stop_id),
    )
    return JSONResponse({"taken_back": True})


async def reason(request: Request) -> Response:
    """Add the reason for a stop, sent after it."""
    _, supervisor = await who(request)
    words = (await read_body(request, ReasonBody)).reason.strip()
    number = showing_id(request)
    await write(
        request, lambda session: record_reason(session, supervisor.id, number, words)
    )
    return JSONResponse({"reason": words})


# Driving


async def road(request: Request) -> Response:
    """A road to drive on."""
    from termdp.people.driving.track import track

    study, _ = await who(request)
    must_have_a_road(study)
    seed = secrets.randbelow(MAX_ID)
    found = await run_in_threadpool(track, seed, DRIVE_STEPS + 1)
    return JSONResponse(
        {
            "seed": seed,
            "steps": DRIVE_STEPS,
            "step_ms": study.step_ms,
            **found,
        }
    )


async def drive(request: Request) -> Response:
    """Replay a finished drive, then store it for the high scores."""
    study, supervisor = await who(request)
    must_have_a_road(study)
    body = await read_body(request, DriveBody)
    numbers = await run_in_threadpool(_play_again, body.seed, body.actions)
    kept = Drive(client_id=body.client_id, seed=body.seed, **numbers)
    kept = await write(
        request, lambda session: record_drive(session, supervisor.id, kept)
    )
    scores = await read(request.app.state.store.high_scores, study.id)
    result = {n: getattr(kept, n) for n in ("score", "coins", "overtaken", "crashed")}
    return JSONResponse({**result, "scores": scores})


def must_have_a_road(study: Study) -> None:
    """Refuse what only Backseat Driver has: driving yourself, and the warm-up."""
    if study.env not in ROADS:
        raise RefusedError(
            404, f"expected a study of Backseat Driver, got one of {study.env}"
        )


def _play_again(seed: int, actions: str) -> dict[str, Any]:
    """The results of a drive, computed by the game and not taken from the browser."""
    from termdp.people.driving.rides import replay

    ride = Ride(seed, "person", np.frombuffer(actions.encode(), np.uint8) - ord("0"))
    again = replay(ride)
    return {
        "actions": ride.actions.tobytes(),
        "score": round(again.total, 4),
        "coins": int(again.coins.sum()),
        "overtaken": int(again.overtaken.sum()),
        "crashed": bool(again.game_over[-1]),
    }


async def scores(request: Request) -> Response:
    """The best drives of the study."""
    study, _ = await who(request)
    found = await read(request.app.state.store.high_scores, study.id)
    return JSONResponse({"scores": found})


ROUTES = [
    Route("/api/invite", invite, methods=["POST"]),
    Route("/api/guest", guest, methods=["POST"]),
    Route("/api/join", join, methods=["POST"]),
    Route("/api/me", me),
    Route("/api/me/data", own_data),
    Route("/api/sign-out", sign_out, methods=["POST"]),
    Route("/api/withdraw", withdraw, methods=["POST"]),
    Route("/api/next", next_ride),
    Route("/api/showings/{showing:int}", showing),
    Route("/api/showings/{showing:int}/stop", stop, methods=["POST"]),
    Route("/api/showings/{showing:int}/finish", finish, methods=["POST"]),
    Route("/api/showings/{showing:int}/mistake", mistake, methods=["POST"]),
    Route("/api/showings/{showing:int}/reason", reason, methods=["POST"]),
    Route("/api/live", live, methods=["POST"]),
    Route("/api/road", road),
    Route("/api/drives", drive, methods=["POST"]),
    Route("/api/scores", scores),
]
