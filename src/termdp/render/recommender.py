"""A recommender session as a drawing: the shop window, and what the user has seen.

Tiles are items, coloured by category. The bar at a tile's bottom says how often the item
was shown recently. The last recommended item is framed: green if taken, red if not. The
bars on the right are the exposures of the categories. The dial is the user's taste; dots
are the items' tastes (first two dimensions).
"""

from typing import Any

import numpy as np

from termdp.envs.recommender import Recommender
from termdp.render.drawing import Drawing

_BACKGROUND = "#f4f1ea"
_CARD = "#ffffff"
_SHADOW = "#00000022"
_INK = "#2e3440"
_PALE = "#dcd8cf"
_TAKEN = "#2e9e5b"
_LEFT_ALONE = "#d64545"
_CATEGORIES = (
    "#3c7dd9",
    "#e07b2c",
    "#8a5bd0",
    "#2fa58b",
    "#d1477a",
    "#8f9a2b",
    "#59616e",
    "#b8862f",
)
_COLUMNS = 4
_TILE = 1.0
_GAP = 0.15
_SIDE = 2.6


def draw(state: Any, game: Recommender | None = None) -> Drawing:
    """Draw one (unbatched) `RecommenderState` of `game` (default sizes if None)."""
    game = Recommender() if game is None else game
    rows = -(-game.num_items // _COLUMNS)
    width = _GAP + _COLUMNS * (_TILE + _GAP) + _SIDE
    height = max(_GAP + rows * (_TILE + _GAP), 2.1 + 0.34 * game.num_categories + _GAP)
    drawing = Drawing(width, height, background=_BACKGROUND)
    for item in range(game.num_items):
        x = _GAP + (item % _COLUMNS) * (_TILE + _GAP)
        y = _GAP + (item // _COLUMNS) * (_TILE + _GAP)
        if item == int(state.shown):
            frame = _TAKEN if bool(state.taken) else _LEFT_ALONE
            drawing.rect(x - 0.08, y - 0.08, _TILE + 0.16, _TILE + 0.16, frame, 0.2)
        _tile(drawing, game, item, x, y, float(state.item_exposure[item]))
    left = width - _SIDE
    drawing.text(left + 0.1, 0.08, "taste", 0.22, _INK)
    drawing.text(left + 0.2, 1.84, "shown of late", 0.22, _INK)
    _dial(drawing, game, left + _SIDE / 2, 1.0, np.asarray(state.taste))
    for category in range(game.num_categories):
        y = 2.12 + 0.34 * category
        share = _fill(float(state.category_exposure[category]))
        drawing.rect(left + 0.2, y, _SIDE - 0.4, 0.22, _PALE, 0.11)
        colour = _CATEGORIES[category % len(_CATEGORIES)]
        drawing.rect(left + 0.2, y, (_SIDE - 0.4) * share, 0.22, colour, 0.11)
    return drawing


def _tile(
    drawing: Drawing, game: Recommender, item: int, x: float, y: float, exposure: float
) -> None:
    category = int(np.argmax(game.items.categories[item]))
    colour = _CATEGORIES[category % len(_CATEGORIES)]
    drawing.rect(x + 0.03, y + 0.05, _TILE, _TILE, _SHADOW, 0.14)
    drawing.rect(x, y, _TILE, _TILE, _CARD, 0.14)
    # A larger parcel earns more, and one with a redder ribbon irritates more.
    size = 0.25 + 0.3 * float(game.items.value[item])
    px, py = x + (_TILE - size) / 2, y + 0.4 - size / 2
    drawing.rect(px, py, size, size, colour, 0.05)
    strength = float(np.clip(game.items.irritation[item] / 0.08, 0.0, 1.0))
    red = f"#ff{round(220 - 160 * strength):02x}{round(210 - 170 * strength):02x}"
    drawing.rect(px + size * 0.42, py, size * 0.16, size, red)
    drawing.rect(px, py + size * 0.42, size, size * 0.16, red)
    drawing.rect(x + 0.1, y + 0.82, _TILE - 0.2, 0.09, _PALE, 0.045)
    drawing.rect(x + 0.1, y + 0.82, (_TILE - 0.2) * _fill(exposure), 0.09, _INK, 0.045)


def _dial(
    drawing: Drawing, game: Recommender, x: float, y: float, taste: np.ndarray
) -> None:
    drawing.circle(x, y, 0.8, _PALE)
    drawing.circle(x, y, 0.74, _CARD)
    for item in range(game.num_items):
        across, along = _plane(game.items.tastes[item])
        category = int(np.argmax(game.items.categories[item]))
        colour = _CATEGORIES[category % len(_CATEGORIES)]
        drawing.circle(x + 0.68 * across, y - 0.68 * along, 0.06, colour)
    across, along = _plane(taste)
    tip = (x + 0.7 * across, y - 0.7 * along)
    side = (0.05 * along, 0.05 * across)
    feet = [(x + side[0], y + side[1]), (x - side[0], y - side[1])]
    drawing.polygon([tip, *feet], _INK)
    drawing.circle(x, y, 0.08, _INK)


def _plane(taste: np.ndarray) -> tuple[float, float]:
    """The first two dimensions of a taste."""
    return float(taste[0]), float(taste[1]) if len(taste) > 1 else 0.0


def _fill(exposure: float) -> float:
    """Exposure, which has no upper limit, as part of a bar."""
    return exposure / (2.0 + exposure)
