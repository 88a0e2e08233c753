"""A ride as a film for the browser: every picture as a list of shapes.

For a road the browser gets only cars and coins (`track`), because it knows the rules. For
any other environment it gets what the renderer draws. Pictures of a game have most of
their shapes in common, so each shape is sent once, and a picture is a list of numbers of
shapes.
"""

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from termdp.people.driving.ride import ROADS, Ride
from termdp.people.driving.rides import replay
from termdp.people.driving.track import ride_data, ride_data_many

# Numbers are rounded to this many places: nobody sees less of a drawing's unit.
_PLACES = 3


def shown(rides: Sequence[Ride]) -> list[dict[str, Any]]:
    """What the browser gets to show rides of one environment; not who drove."""
    if rides[0].env not in ROADS:
        return [film_data(ride) for ride in rides]
    return ride_data_many(rides) if len(rides) > 1 else [ride_data(rides[0])]


def film_data(ride: Ride) -> dict[str, Any]:
    """A ride as pictures.

    Returns:
        `width`, `height` and `background` of all pictures; `shapes`, each once;
        `backdrop`, numbers of the shapes that every picture begins with; `frames`, one
        for each step and one for how it ended, each with the numbers of its other
        shapes, back to front; `actions` and `game_over`.
    """
    again = replay(ride)
    drawings = [again.drawing(step) for step in range(len(ride) + 1)]
    numbers: dict[str, int] = {}
    frames = [
        [numbers.setdefault(_text(shape), len(numbers)) for shape in drawing.shapes]
        for drawing in drawings
    ]
    same = takewhile(lambda column: len(set(column)) == 1, zip(*frames, strict=False))
    backdrop = [column[0] for column in same]
    return {
        "actions": ride.digits,
        "game_over": bool(again.game_over[-1]),
        "width": drawings[0].width,
        "height": drawings[0].height,
        "background": drawings[0].background,
        "shapes": [json.loads(text) for text in numbers],
        "backdrop": backdrop,
        "frames": [frame[len(backdrop) :] for frame in frames],
    }


def _text(shape: dict[str, Any]) -> str:
    return json.dumps({name: _rounded(value) for name, value in shape.items()})


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return round(float(value), _PLACES) if isinstance(value, float) else value
