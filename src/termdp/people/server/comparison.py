"""For people who have judged every ride: the others, the model, what bothers them.

Until then none of it leaves the server, because it could influence them.
"""

from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from termdp.people.driving.ride import BACKSEAT, ROADS, Ride
from termdp.people.records.study_store import StudyStore
from termdp.people.records.tables import Showing, StoredRide, Supervisor
from termdp.people.server.api import game_of, who
from termdp.people.server.bodies import RefusedError

if TYPE_CHECKING:
    from termdp.people.models.bothers import JudgedRide

# More would make a long page and a long wait.
MOST_RIDES = 200


async def comparison(request: Request) -> Response:
    """Own stops beside the others' and the model's; refused before the end."""
    study, supervisor = await who(request)
    store = request.app.state.store
    found = await run_in_threadpool(_comparison, store, study.name, supervisor)
    return JSONResponse(found)


def _comparison(store: StudyStore, name: str, me: Supervisor) -> dict[str, Any]:
    from termdp.people.models.bothers import bothers

    done, total = store.progress(me.id)
    if not total or done < total:
        raise RefusedError(
            409,
            f"expected every ride to be judged first, got {done} of {total}: what the "
            "others did is shown at the end",
        )
    study = store.study(name)
    rides = _by_ride(store.showings(name), me.id)
    model = _file(study.observer)
    own = None if model is None else _file(model.parent / _own_observer(me.name))
    others = {s.supervisor.id: s for _, theirs in rides for s in theirs}.values()
    simulated = sum(s.supervisor.kind == "simulated" for s in others)
    # Only the road has percepts that name what may cause discomfort.
    on_road = rides if study.env in ROADS else []
    judged = [_judged(mine, theirs, own or model) for mine, theirs in on_road]
    return {
        "game": game_of(study),
        "step_ms": study.step_ms,
        "people": len(others) - simulated,
        "simulated": simulated,
        "model": None if model is None else "you" if own else "all",
        "rides": [_row(mine, theirs, model, study.env) for mine, theirs in rides],
        "stops": sum(len(_stops(mine)) for mine, _ in rides),
        "bothers": bothers(judged, study.step_ms) if judged else None,
    }


def _by_ride(
    showings: list[Showing], supervisor_id: int
) -> list[tuple[list[Showing], list[Showing]]]:
    """For each ride that the person judged: their own showings and the others'."""
    mine: dict[int, list[Showing]] = defaultdict(list)
    theirs: dict[int, list[Showing]] = defaultdict(list)
    for showing in showings:
        if showing.review is None or showing.ride.live:
            continue
        is_mine = showing.supervisor.id == supervisor_id
        (mine if is_mine else theirs)[showing.ride.number].append(showing)
    return [(mine[number], theirs[number]) for number in sorted(mine)[:MOST_RIDES]]


def _stops(showings: list[Showing]) -> list[int]:
    """Steps of the stops, sorted, so that their order gives nobody away."""
    return sorted(s.review.step for s in showings if s.review and s.review.stopped)


def _row(
    mine: list[Showing], theirs: list[Showing], model: Path | None, env: str
) -> dict[str, Any]:
    ride = mine[0].ride
    simulated = [s for s in theirs if s.supervisor.kind == "simulated"]
    people = [s for s in theirs if s.supervisor.kind != "simulated"]
    chances = None
    if model is not None:
        chances = np.round(_modelled(model, ride, env)[1], 5).tolist()
    return {
        "ride": ride.number,
        "steps": len(ride.actions),
        "crashed": ride.crashed,
        "mine": _stops([s for s in mine if not s.is_repeat]),
        "mine_again": _stops([s for s in mine if s.is_repeat]),
        "people": _stops(people),
        "simulated": _stops(simulated),
        "watched_by": len({s.supervisor.id for s in theirs}),
        "stopped_by": len({s.supervisor.id for s in theirs if _stops([s])}),
        "stop_probability": chances,
    }


def _judged(
    mine: list[Showing], theirs: list[Showing], model: Path | None
) -> "JudgedRide":
    from termdp.people.models.bothers import JudgedRide

    ride = mine[0].ride
    return JudgedRide(
        felt=_felt(ride.seed, ride.actions),
        watched=max(s.review.step + 1 for s in mine if s.review),
        stops=tuple(_stops(mine)),
        others=tuple(_stops(theirs)),
        costs=None if model is None else _modelled(model, ride, BACKSEAT)[0],
    )


# The model, if there is a readable one


def _own_observer(name: str) -> str:
    from termdp.people.models.fit_folder import observer_name

    return observer_name(name)


def _file(path: str | Path | None) -> Path | None:
    """The path of an observer's file; None if it is missing or cannot be read."""
    if path is None or not Path(path).is_file():
        return None
    try:
        _observer(str(path), Path(path).stat().st_mtime_ns)
    except ValueError:
        return None
    return Path(path)


@lru_cache(maxsize=16)
def _observer(path: str, stamp: int) -> Any:
    """`stamp` is the file's modification time: the cache never serves an old file."""
    import termdp

    return termdp.load_observer(path)


def _modelled(path: Path, ride: StoredRide, env: str) -> tuple[np.ndarray, np.ndarray]:
    stamp = path.stat().st_mtime_ns
    return _along(str(path), stamp, env, ride.seed, ride.actions)


@lru_cache(maxsize=2048)
def _along(
    path: str, stamp: int, env: str, seed: int, actions: bytes
) -> tuple[np.ndarray, np.ndarray]:
    """Costs and stop probabilities of a model along a ride."""
    from termdp.people.driving.rides import replay
    from termdp.people.models.discomfort import discomfort

    again = replay(_ride(seed, actions, env))
    observer = _observer(path, stamp)
    felt = discomfort(observer, again.observations, again.ride.actions)
    return felt.costs, felt.stop_probabilities


@lru_cache(maxsize=2048)
def _felt(seed: int, actions: bytes) -> np.ndarray:
    from termdp.people.driving.rides import game, replay
    from termdp.people.models.bothers import felt_in

    again = replay(_ride(seed, actions, BACKSEAT))
    return felt_in(game().road, again.observations, again.ride.actions)


def _ride(seed: int, actions: bytes, env: str) -> Ride:
    return Ride(seed, "", np.frombuffer(actions, np.uint8), env)


ROUTES = [Route("/api/comparison", comparison)]
