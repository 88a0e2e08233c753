import json

import jax
import numpy as np
import pytest

from termdp.envs.asterix import Asterix
from termdp.envs.breakout import Breakout
from termdp.envs.seaquest import Seaquest
from termdp.envs.space_invaders import SpaceInvaders
from termdp.render import minatar
from termdp.render.drawing import to_pixels

GAMES = {
    "breakout": Breakout,
    "space_invaders": SpaceInvaders,
    "asterix": Asterix,
    "seaquest": Seaquest,
}


@pytest.mark.parametrize("name", GAMES)
def test_looks_match_the_channels(name: str) -> None:
    assert tuple(minatar.legend(name)) == GAMES[name].channels
    colours = list(minatar.legend(name).values())
    # The diver and the gauge of divers are one colour on purpose.
    assert len(set(colours)) >= len(colours) - 1


@pytest.mark.parametrize("name", GAMES)
def test_drawing_of_a_first_board(name: str, key: jax.Array) -> None:
    observation, _ = GAMES[name]().reset(key)
    drawing = minatar.draw(observation, name)
    json.dumps(drawing.as_json())
    pixels = to_pixels(drawing, 8)
    assert pixels.shape == (80, 80, 3)
    empty = to_pixels(minatar.draw(np.zeros_like(observation), name), 8)
    changed = (pixels != empty).any(axis=-1).reshape(10, 8, 10, 8).any(axis=(1, 3))
    np.testing.assert_array_equal(changed, np.asarray(observation).any(axis=-1))


def test_wrong_game_or_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected a game of"):
        minatar.draw(np.zeros((10, 10, 4)), "chess")
    with pytest.raises(ValueError, match=r"expected a breakout observation of shape"):
        minatar.draw(np.zeros((10, 10, 6)), "breakout")
