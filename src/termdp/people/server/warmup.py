"""Three rides to warm up with. What people do there is neither sent nor stored."""

from functools import cache

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from termdp.people.driving.ride import BACKSEAT, Ride
from termdp.people.records.study_files import shipped_record
from termdp.people.server.api import (
    encoded_many,
    must_have_a_road,
    ride_to_show,
    who,
)

# Numbers of shipped rides that are not in the practice study, and how many steps of
# each are shown: a smooth ride, one that swerves, one that ends in a crash.
RIDES = {33: 50, 39: 79, 32: 157}
# No showing has this number, so nothing can be sent about these rides.
NO_SHOWING = 0


async def warmup(request: Request) -> Response:
    """The rides, in the order of the lessons, at the study's own speed."""
    study, _ = await who(request)
    must_have_a_road(study)
    texts = await run_in_threadpool(_rides)
    rides = ",".join(ride_to_show(study, NO_SHOWING, text) for text in texts)
    return Response(f'{{"rides":[{rides}]}}', media_type="application/json")


@cache
def _rides() -> list[str]:
    rides = {row.number: row.ride(BACKSEAT) for row in shipped_record().rides}
    cut = [
        Ride(rides[number].seed, "", rides[number].actions[:steps])
        for number, steps in RIDES.items()
    ]
    return encoded_many(cut)


ROUTES = [Route("/api/warmup", warmup)]
