"""One way to draw any of the games."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from termdp.render import backseat, minatar, notifier, recommender
from termdp.render.drawing import Drawing, to_pixels

Draw = Callable[[Any, Any], Drawing]

MINATAR = ("breakout", "space_invaders", "seaquest", "asterix")
PICTURE_HEIGHT = 320


def drawer(env_id: str, game: Any) -> Draw:
    """A function from a game's state and observation to a drawing.

    Args:
        env_id: which game.
        game: the bare game, for its sizes.
    """
    # Also those with another observer: asterix_middle.
    name = next((name for name in MINATAR if env_id.startswith(name)), None)
    if name is not None:
        return lambda state, observation: minatar.draw(np.asarray(observation), name)
    if env_id.startswith("backseat"):
        return lambda state, observation: backseat.draw(_host(state), game.road)
    if env_id == "recommender":
        return lambda state, observation: recommender.draw(_host(state), game)
    if env_id == "notifier":
        params = game.default_params
        return lambda state, observation: notifier.draw(_host(state), params)
    raise ValueError(f"expected a game that can be drawn, got {env_id!r}")


def picture(drawing: Drawing, height: int = PICTURE_HEIGHT) -> np.ndarray:
    """The drawing as pixels of a given height."""
    return to_pixels(drawing, height / drawing.height)


def _host(state: Any) -> Any:
    return jax.tree.map(np.asarray, state)
