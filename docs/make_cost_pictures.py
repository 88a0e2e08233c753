"""Draw the pictures of `docs/costs.md`: a board that costs beside one that does not.

Run from anywhere: `python docs/make_cost_pictures.py`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from termdp.envs.asterix import Asterix
from termdp.envs.breakout import Breakout
from termdp.envs.cost_functions import (
    AsterixEnemyCost,
    BreakoutEdgeCost,
    SeaquestDepthCost,
    SpaceInvadersBulletCost,
)
from termdp.envs.seaquest import Seaquest
from termdp.envs.space_invaders import SpaceInvaders
from termdp.render.drawing import to_pixels
from termdp.render.minatar import draw

IMAGES = Path(__file__).parent / "images"
SCALE = 24
GAP = 12
COST_FRAME, FREE_FRAME = (255, 93, 115), (90, 209, 197)
FRAME_WIDTH = 4

Cells = dict[str, list[tuple[int, int]]]


def block(rows: range, columns: range) -> list[tuple[int, int]]:
    """All cells of some rows and columns."""
    return [(row, column) for row in rows for column in columns]


def board(game: Any, cells: Cells) -> np.ndarray:
    """A board with things at (row, column), by the name of their channel."""
    observation = np.zeros((10, 10, len(game.channels)), bool)
    for name, places in cells.items():
        for row, column in places:
            observation[row, column, game.channels.index(name)] = True
    return observation


def framed(observation: np.ndarray, game_id: str, cost: Callable) -> np.ndarray:
    """The board in a frame: red if it costs, green if not."""
    pixels = to_pixels(draw(observation, game_id), SCALE)
    colour = COST_FRAME if cost(observation, 0) else FREE_FRAME
    height, width, _ = pixels.shape
    frame = np.empty((height + 2 * FRAME_WIDTH, width + 2 * FRAME_WIDTH, 3), np.uint8)
    frame[:] = colour
    frame[FRAME_WIDTH:-FRAME_WIDTH, FRAME_WIDTH:-FRAME_WIDTH] = pixels
    return frame


def make_picture(game: Any, game_id: str, cost: Callable, boards: list[Cells]) -> None:
    """Write `images/cost_<game>.png` with these boards side by side."""
    frames = [framed(board(game, cells), game_id, cost) for cells in boards]
    gap = np.full((frames[0].shape[0], GAP, 3), 255, np.uint8)
    row = [part for frame in frames for part in (frame, gap)][:-1]
    image = Image.fromarray(np.concatenate(row, axis=1))
    image.quantize(64).save(IMAGES / f"cost_{game_id}.png", optimize=True)


def main() -> None:
    """Draw all pictures."""
    IMAGES.mkdir(exist_ok=True)
    bricks = {"brick": block(range(1, 4), range(10)), "ball": [(6, 3)]}
    bricks["trail"] = [(5, 2)]
    make_picture(
        Breakout,
        "breakout",
        BreakoutEdgeCost(),
        [{**bricks, "paddle": [(9, 0)]}, {**bricks, "paddle": [(9, 1)]}],
    )
    aliens = block(range(1, 5), range(1, 7))
    invaders = {"alien": aliens, "alien_left": aliens, "cannon": [(9, 5)]}
    make_picture(
        SpaceInvaders,
        "space_invaders",
        SpaceInvadersBulletCost(),
        [
            {**invaders, "enemy_bullet": [(8, 4)]},
            {**invaders, "enemy_bullet": [(8, 3)]},
        ],
    )
    sea: Cells = {
        "oxygen_guage": block(range(9, 10), range(7)),
        "diver_guage": [(9, 8)],
        "enemy_fish": [(2, 3)],
        "enemy_sub": [(6, 7)],
        "enemy_bullet": [(6, 5)],
        "diver": [(7, 2)],
        "trail": [(2, 2), (6, 8), (7, 1)],
    }
    make_picture(
        Seaquest,
        "seaquest",
        SeaquestDepthCost(),
        [
            {**sea, "sub_front": [(4, 4)], "sub_back": [(4, 5)]},
            {**sea, "sub_front": [(5, 4)], "sub_back": [(5, 5)]},
        ],
    )
    village: Cells = {"gold": [(3, 7)], "trail": [(3, 8), (7, 1)], "player": [(5, 5)]}
    make_picture(
        Asterix,
        "asterix",
        AsterixEnemyCost(),
        [
            {**village, "enemy": [(6, 4), (7, 2)], "trail": [(3, 8), (7, 1), (6, 3)]},
            {**village, "enemy": [(6, 3), (7, 2)], "trail": [(3, 8), (7, 1), (6, 2)]},
        ],
    )


if __name__ == "__main__":
    main()
