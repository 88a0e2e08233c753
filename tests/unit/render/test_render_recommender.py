"""Pictures of a session: the shown item is framed, exposures fill their bars."""

import json

import jax
import jax.numpy as jnp
import pytest

from termdp.envs.recommender import Recommender
from termdp.render.drawing import to_pixels
from termdp.render.recommender import draw

TAKEN, LEFT_ALONE, INK = "#2e9e5b", "#d64545", "#2e3440"


@pytest.mark.parametrize(("taken", "colour"), [(True, TAKEN), (False, LEFT_ALONE)])
def test_the_shown_item_is_framed(taken, colour):
    env = Recommender()
    _, state = env.reset(jax.random.key(0))
    assert not [s for s in draw(state, env).shapes if s["fill"] in (TAKEN, LEFT_ALONE)]
    state = state.replace(shown=jnp.int32(5), taken=jnp.bool_(taken))
    frames = [s for s in draw(state, env).shapes if s["fill"] in (TAKEN, LEFT_ALONE)]
    assert [f["fill"] for f in frames] == [colour]
    assert frames[0]["x"] == pytest.approx(0.15 + 1.15 - 0.08)  # second column
    assert frames[0]["y"] == pytest.approx(0.15 + 1.15 - 0.08)  # second row


def test_exposures_fill_their_bars():
    env = Recommender(num_items=3, num_categories=2, taste_size=1)
    _, state = env.reset(jax.random.key(0))
    state = state.replace(item_exposure=jnp.array([0.0, 2.0, 6.0]))
    bars = [s["w"] for s in draw(state, env).shapes if s["fill"] == INK and "w" in s]
    assert bars == pytest.approx([0.0, 0.4, 0.6])


def test_drawings_are_json_and_become_pixels():
    env = Recommender()
    _, state = env.reset(jax.random.key(0))
    json.dumps(draw(state, env).as_json())
    pixels = to_pixels(draw(state, env), 20)
    assert pixels.shape[2] == 3 and pixels.std() > 10
