"""Boards of the MinAtar games as drawings: 10 × 10 units, one look per channel.

A board is drawn from its observation alone, so recorded games and other copies of
MinAtar are drawn the same way. `LOOKS` names the colour of every channel, in drawing
order (later channels cover earlier ones), for legends too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from termdp.render.drawing import Drawing

SIZE = 10
BACKGROUND = "#10131c"
GRID = "#171b27"

Painter = Callable[[Drawing, float, float, str], None]


def _tile(drawing: Drawing, x: float, y: float, fill: str) -> None:
    drawing.rect(x + 0.05, y + 0.05, 0.9, 0.9, fill, radius=0.12)


def _full(drawing: Drawing, x: float, y: float, fill: str) -> None:
    drawing.rect(x + 0.05, y + 0.15, 0.9, 0.7, fill, radius=0.05)


def _ball(drawing: Drawing, x: float, y: float, fill: str) -> None:
    drawing.circle(x + 0.5, y + 0.5, 0.38, fill)


def _dot(drawing: Drawing, x: float, y: float, fill: str) -> None:
    drawing.circle(x + 0.5, y + 0.5, 0.17, fill)


def _bullet(drawing: Drawing, x: float, y: float, fill: str) -> None:
    drawing.rect(x + 0.38, y + 0.2, 0.24, 0.6, fill, radius=0.12)


def _torpedo(drawing: Drawing, x: float, y: float, fill: str) -> None:
    drawing.rect(x + 0.2, y + 0.38, 0.6, 0.24, fill, radius=0.12)


def _turret(drawing: Drawing, x: float, y: float, fill: str) -> None:
    drawing.rect(x + 0.06, y + 0.5, 0.88, 0.45, fill, radius=0.1)
    drawing.rect(x + 0.38, y + 0.15, 0.24, 0.5, fill, radius=0.08)


def _diamond(drawing: Drawing, x: float, y: float, fill: str) -> None:
    points = [(0.5, 0.08), (0.92, 0.5), (0.5, 0.92), (0.08, 0.5)]
    drawing.polygon([(x + px, y + py) for px, py in points], fill)


def _arrow_left(drawing: Drawing, x: float, y: float, fill: str) -> None:
    points = [(0.28, 0.5), (0.62, 0.25), (0.62, 0.75)]
    drawing.polygon([(x + px, y + py) for px, py in points], fill)


def _arrow_right(drawing: Drawing, x: float, y: float, fill: str) -> None:
    points = [(0.72, 0.5), (0.38, 0.25), (0.38, 0.75)]
    drawing.polygon([(x + px, y + py) for px, py in points], fill)


@dataclass(frozen=True)
class Look:
    """How the cells of a channel are drawn."""

    channel: int
    colour: str
    painter: Painter = _tile


LOOKS: dict[str, dict[str, Look]] = {
    "breakout": {
        "brick": Look(3, "#e8684a", _full),
        "trail": Look(2, "#6b7a99", _dot),
        "paddle": Look(0, "#5ad1c5", _full),
        "ball": Look(1, "#f6f3e8", _ball),
    },
    "space_invaders": {
        "alien": Look(1, "#8fd14f"),
        "alien_left": Look(2, "#2f6b2a", _arrow_left),
        "alien_right": Look(3, "#2b4f7d", _arrow_right),
        "friendly_bullet": Look(4, "#5ad1c5", _bullet),
        "enemy_bullet": Look(5, "#ff5d73", _bullet),
        "cannon": Look(0, "#f6f3e8", _turret),
    },
    "asterix": {
        "trail": Look(2, "#4a5673", _dot),
        "gold": Look(3, "#f5c542", _diamond),
        "enemy": Look(1, "#ff5d73"),
        "player": Look(0, "#5ad1c5", _ball),
    },
    "seaquest": {
        "oxygen_guage": Look(7, "#4aa8ff", _full),
        "diver_guage": Look(8, "#f5c542", _dot),
        "trail": Look(3, "#4a5673", _dot),
        "diver": Look(9, "#f5c542", _ball),
        "enemy_fish": Look(5, "#c77dff", _diamond),
        "enemy_sub": Look(6, "#ff5d73"),
        "enemy_bullet": Look(4, "#ff9f6b", _torpedo),
        "friendly_bullet": Look(2, "#f6f3e8", _torpedo),
        "sub_back": Look(1, "#2f8f86", _full),
        "sub_front": Look(0, "#5ad1c5"),
    },
}


def draw(observation: np.ndarray, game: str) -> Drawing:
    """The board of a game, `breakout`, `space_invaders`, `asterix` or `seaquest`.

    Args:
        observation: `[10, 10, channels]`; what is not 0 is drawn.
        game: the game whose channels these are.
    """
    if game not in LOOKS:
        raise ValueError(f"expected a game of {sorted(LOOKS)}, got {game!r}")
    board = np.asarray(observation) != 0
    expected = (SIZE, SIZE, len(LOOKS[game]))
    if board.shape != expected:
        raise ValueError(
            f"expected a {game} observation of shape {expected}, got {board.shape}"
        )
    drawing = Drawing(SIZE, SIZE, BACKGROUND)
    for x in range(SIZE):
        for y in range(SIZE):
            drawing.rect(x + 0.03, y + 0.03, 0.94, 0.94, GRID, radius=0.1)
    for look in LOOKS[game].values():
        for y, x in np.argwhere(board[:, :, look.channel]):
            look.painter(drawing, float(x), float(y), look.colour)
    return drawing


def legend(game: str) -> dict[str, str]:
    """The colour of each channel, by name, in the order of the channels."""
    looks = sorted(LOOKS[game].items(), key=lambda item: item[1].channel)
    return {name: look.colour for name, look in looks}
