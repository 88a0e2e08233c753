"""Backseat Driver as a drawing: one unit is a lane's width, rows are half a unit long.

A state between steps (`phase` > 0, see `BackseatDriver.frames`) is drawn where its
cars are in that frame, so a step can be shown in four pictures, or in more with
`ahead`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from termdp.envs.backseat import BackseatDriver
from termdp.envs.backseat_road import CAR_LENGTH, FRAMES, Road
from termdp.render.drawing import Drawing, Shape

ROW = 0.5
VERGE = 0.9
_CAR_WIDTH, _CAR_HEIGHT = 0.56, CAR_LENGTH * ROW - 0.04

_ASPHALT = "#3b3f4a"
_ASPHALT_DARK = "#353944"
_EDGE = "#e9e6dc"
_DASH = "#c9ccd4"
_DASH_PERIOD, _DASH_LENGTH = 2.0, 0.9
_GRASS = ("#5d9c45", "#559140")
_TREES = (("#2f6b34", "#3f8443"), ("#36713a", "#4a9150"), ("#6b8e3a", "#86a94c"))
_SHADOW = "#00000050"
_TYRE = "#15171c"
_GLASS = "#1d2a38"
_GLASS_LIGHT = "#3d5a75"
_LAMP = "#fff3c4"
_TAIL = "#ff4040"
_GOLD = ("#a86f00", "#f5b921", "#ffd95a", "#fff6cf")
_FIRE = ("#b3261e", "#ff7a1a", "#ffd23f", "#fff7d6")


@dataclass(frozen=True)
class _Paint:
    """A car's colours, and its kind: `sedan`, `taxi`, `van` or `stripes`."""

    body: str
    roof: str
    kind: str = "sedan"


_AGENT = _Paint("#e5322d", "#f4574f", "stripes")
_TRAFFIC = (
    _Paint("#3c7dd9", "#5a97ea"),
    _Paint("#f2c230", "#f8d766", "taxi"),
    _Paint("#e8eaee", "#ffffff", "van"),
    _Paint("#2fa58b", "#4dbfa5"),
    _Paint("#8a5bd0", "#a57ce2"),
    _Paint("#59616e", "#737c8a"),
    _Paint("#e07b2c", "#ee9750", "van"),
    _Paint("#2b3f73", "#415994"),
)


def draw(state: Any, road: Road | None = None, ahead: float = 0.0) -> Drawing:
    """Draw a state.

    Args:
        state: a single (unbatched) `BackseatState`.
        road: sizes and speeds of its game (`env.road`); the default road unless given.
        ahead: how much later to draw everything, in frames, for smooth films.
    """
    road = Road() if road is None else road
    crashed = bool(state.crashed)
    frame = float(state.phase) + (0.0 if crashed else ahead)
    # A crash ends its step, although the step's later frames never came.
    steps = int(state.time) - int(crashed)
    driven = (steps + frame / FRAMES) * road.coin_speed

    height = road.rows * ROW
    drawing = Drawing(road.lanes + 2 * VERGE, height, background=_GRASS[0])
    _verges(drawing, road, driven)
    _asphalt(drawing, road)
    _dashes(drawing, road, driven)
    coin_shift = frame * road.coin_speed / FRAMES
    for lane, row in _objects(state.coins, road):
        x = VERGE + lane + 0.5
        glint = 0.5 + 0.5 * np.sin(driven * 0.8 + x * 2.0)
        _coin(drawing, x, (row + coin_shift + 0.5) * ROW, float(glint))
    car_shift = frame * road.car_speed / FRAMES
    for lane, row in _objects(state.cars, road):
        paint = _paint_of(lane, steps * road.car_speed - row)
        _car(drawing, VERGE + lane + 0.5, (row + car_shift) * ROW, paint)
    side = float(state.agent) + float(state.heading) * min(frame, FRAMES) / FRAMES
    _car(drawing, VERGE + side + 0.5, road.agent_row * ROW, _AGENT)
    if crashed:
        _fire(drawing, VERGE + side + 0.5, road.agent_row * ROW + 0.2)
    return drawing


def moves(game: BackseatDriver, state: Any, action: Any) -> list[Drawing]:
    """A step in four pictures, the last one at its end."""
    frames = jax.device_get(_frames(game, state, action))
    return [
        draw(jax.tree.map(lambda leaf, at=at: leaf[at], frames), game.road)
        for at in range(FRAMES)
    ]


@partial(jax.jit, static_argnums=0)
def _frames(game: BackseatDriver, state: Any, action: Any) -> Any:
    # New cars and coins are still above the screen, so any key gives the same pictures.
    draws = game.sample_draws(jax.random.key(0))
    return game.frames(state, action, draws, game.default_params)


def sprites(road: Road | None = None) -> dict[str, Any]:
    """The parts of a drawing, for a browser that combines them frame by frame.

    Shapes are relative to the point where `draw` would place them: cars and fire below
    their top middle, coins around their centre, `asphalt` on the whole canvas. Traffic is
    in the order that `_paint_of` chooses from, coins by increasing glint, 0 to 1.
    """
    road = Road() if road is None else road
    canvas = Drawing(road.lanes + 2 * VERGE, road.rows * ROW)
    _asphalt(canvas, road)

    def shapes(paint: Callable[..., None], *args: Any) -> list[Shape]:
        drawing = Drawing(0, 0)
        paint(drawing, 0.0, 0.0, *args)
        return drawing.shapes

    return {
        "width": canvas.width,
        "height": canvas.height,
        "row": ROW,
        "verge": VERGE,
        "grass": _GRASS,
        "trees": _TREES,
        "shadow": _SHADOW,
        "dash": {"fill": _DASH, "period": _DASH_PERIOD, "length": _DASH_LENGTH},
        "asphalt": canvas.shapes,
        "agent": shapes(_car, _AGENT),
        "traffic": [shapes(_car, paint) for paint in _TRAFFIC],
        "coins": [shapes(_coin, step / 7) for step in range(8)],
        "fire": shapes(_fire),
    }


def _objects(words: Any, road: Road) -> list[tuple[int, int]]:
    """Lane and upper row of everything in these words, from the top down."""
    bits = np.asarray(words, np.uint32)[:, None] >> np.arange(road.margin + road.rows)
    lanes, positions = np.nonzero(bits & 1)
    found = zip(lanes.tolist(), (positions - road.margin).tolist(), strict=True)
    return sorted(found, key=lambda place: place[1])


def _scatter(number: int) -> int:
    """A fixed hash of whole numbers: the same car always has the same colour."""
    number = (number * 2654435761) & 0xFFFFFFFF
    return ((number ^ (number >> 15)) * 2246822519) & 0xFFFFFFFF


def _paint_of(lane: int, identity: int) -> _Paint:
    return _TRAFFIC[(_scatter(identity * 31 + lane) >> 8) % len(_TRAFFIC)]


def _verges(drawing: Drawing, road: Road, driven: float) -> None:
    """Mown stripes and trees on both sides, moving with the road."""
    shift = driven * ROW
    stripe = 1.5
    first = int(np.floor(-shift / stripe))
    last = int(np.ceil((drawing.height - shift) / stripe))
    for number in range(first, last + 1):
        y = number * stripe + shift
        if number % 2:
            drawing.rect(0, y, drawing.width, stripe, _GRASS[1])
    for number in range(first - 1, last + 1):
        for is_right in (0, 1):
            jumble = _scatter(number * 2 + is_right)
            if jumble % 5 < 3:
                x = 0.18 + (jumble >> 8) % 32 / 100
                x = drawing.width - x if is_right else x
                y = number * stripe + shift + (jumble >> 16) % 64 / 64
                _tree(drawing, x, y, 0.2 + (jumble >> 24) % 12 / 100, jumble % 3)


def _tree(drawing: Drawing, x: float, y: float, size: float, kind: int) -> None:
    dark, light = _TREES[kind]
    drawing.circle(x + 0.05, y + 0.07, size, _SHADOW)
    drawing.circle(x, y, size, dark)
    drawing.circle(x - size * 0.2, y - size * 0.2, size * 0.65, light)


def _asphalt(drawing: Drawing, road: Road) -> None:
    """The parts of the road that look the same everywhere."""
    drawing.rect(VERGE - 0.12, 0, road.lanes + 0.24, drawing.height, "#8d8a80")
    drawing.rect(VERGE - 0.06, 0, road.lanes + 0.12, drawing.height, _ASPHALT)
    for lane in range(1, road.lanes, 2):
        drawing.rect(VERGE + lane, 0, 1, drawing.height, _ASPHALT_DARK)
    for x in (VERGE + 0.01, VERGE + road.lanes - 0.05):
        drawing.rect(x, 0, 0.04, drawing.height, _EDGE)


def _dashes(drawing: Drawing, road: Road, driven: float) -> None:
    """Lines between lanes, moving with the road."""
    for lane in range(1, road.lanes):
        y = (driven * ROW) % _DASH_PERIOD - _DASH_PERIOD
        while y < drawing.height:
            drawing.rect(VERGE + lane - 0.02, y, 0.04, _DASH_LENGTH, _DASH, radius=0.02)
            y += _DASH_PERIOD


def _coin(drawing: Drawing, x: float, y: float, glint: float) -> None:
    rim, face, inner, shine = _GOLD
    drawing.circle(x + 0.03, y + 0.05, 0.21, _SHADOW)
    drawing.circle(x, y, 0.21, rim)
    drawing.circle(x, y, 0.185, face)
    drawing.circle(x, y, 0.13, "#d9940f")
    drawing.circle(x, y, 0.11, inner)
    drawing.rect(x - 0.025, y - 0.07, 0.05, 0.14, "#c98a0c", radius=0.02)
    size = 0.035 + 0.045 * glint
    sx, sy = x - 0.09, y - 0.09
    points = [(0, -1), (0.25, -0.25), (1, 0), (0.25, 0.25)]
    points += [(0, 1), (-0.25, 0.25), (-1, 0), (-0.25, -0.25)]
    drawing.polygon([(sx + a * size, sy + b * size) for a, b in points], shine)


def _car(drawing: Drawing, x: float, top: float, paint: _Paint) -> None:
    """A car seen from above, driving upwards, around x and below `top`."""
    w, h = _CAR_WIDTH, _CAR_HEIGHT
    left, y = x - w / 2, top + 0.02
    drawing.rect(left + 0.04, y + 0.06, w, h, _SHADOW, radius=0.16)
    for wheel_y in (y + 0.16, y + h - 0.32):
        drawing.rect(left - 0.025, wheel_y, w + 0.05, 0.17, _TYRE, radius=0.03)
    drawing.rect(left, y, w, h, paint.body, radius=0.15)
    drawing.rect(left + 0.05, y + 0.03, w - 0.1, 0.2, paint.roof, radius=0.09)
    if paint.kind == "stripes":
        for offset in (-0.09, 0.04):
            drawing.rect(x + offset, y + 0.01, 0.05, h - 0.03, "#fff4ee")
    for lamp in (left + 0.045, left + w - 0.155):
        drawing.rect(lamp, y + 0.015, 0.11, 0.05, _LAMP, radius=0.02)
        drawing.rect(lamp, y + h - 0.055, 0.11, 0.04, _TAIL, radius=0.015)
    roof = 0.44 if paint.kind == "van" else 0.26
    drawing.rect(left + 0.07, y + 0.26, w - 0.14, roof + 0.25, _GLASS, radius=0.09)
    shine = [(left + 0.12, y + 0.3), (left + 0.25, y + 0.3), (left + 0.19, y + 0.36)]
    drawing.polygon([*shine, (left + 0.12, y + 0.36)], _GLASS_LIGHT)
    drawing.rect(left + 0.1, y + 0.38, w - 0.2, roof, paint.roof, radius=0.06)
    if paint.kind == "taxi":
        drawing.rect(x - 0.1, y + 0.47, 0.2, 0.08, "#22252c", radius=0.02)
        drawing.rect(x - 0.08, y + 0.485, 0.16, 0.05, "#fff8d8", radius=0.01)
    if paint.kind == "stripes":
        for offset in (-0.09, 0.04):
            drawing.rect(x + offset, y + 0.38, 0.05, roof, "#fff4ee")


def _fire(drawing: Drawing, x: float, y: float) -> None:
    """A burst over a crashed car."""
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    for size, fill in zip((0.72, 0.55, 0.38, 0.2), _FIRE, strict=True):
        reach = np.where(np.arange(24) % 2, 0.55, 1.0) * size
        xs, ys = x + reach * np.sin(angles), y - reach * np.cos(angles)
        drawing.polygon(list(zip(xs.tolist(), ys.tolist(), strict=True)), fill)
