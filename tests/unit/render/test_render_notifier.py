"""Pictures of a user: messages are coloured by whether they were opened."""

import jax
import jax.numpy as jnp
import pytest

from termdp.envs.notifier import SHOWN_STEPS, Notifier
from termdp.render.drawing import to_pixels
from termdp.render.notifier import draw

OPENED, UNOPENED = "#2e9e5b", "#d64545"


@pytest.mark.parametrize(
    ("last", "colours"), [(0, set()), (1, {UNOPENED}), (2, {OPENED})]
)
def test_the_last_message_is_coloured(last, colours):
    game = Notifier()
    _, state = game.reset(jax.random.key(0))
    state = state.replace(history=jnp.zeros(SHOWN_STEPS, jnp.int8).at[-1].set(last))
    drawing = draw(state, game.default_params)
    painted = {s["fill"] for s in drawing.shapes if s["kind"] != "text"}
    assert painted & {OPENED, UNOPENED} == colours
    assert to_pixels(drawing, 50).shape == (200, 320, 3)
