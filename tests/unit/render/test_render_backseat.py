"""Pictures of Backseat Driver: things are where the state says, frame by frame."""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.envs.backseat import RIGHT, BackseatDriver
from termdp.render.backseat import ROW, VERGE, draw, moves
from termdp.render.drawing import to_pixels

ENV = BackseatDriver()
MARGIN = ENV.road.margin
RED, TYRE, RIM = "#e5322d", "#15171c", "#a86f00"


def road_with(cars=(), coins=(), **fields):
    _, state = ENV.reset(jax.random.key(0))
    words = []
    for places in (cars, coins):
        made = np.zeros(5, np.uint32)
        for lane, row in places:
            made[lane] |= np.uint32(1 << (row + MARGIN))
        words.append(jnp.asarray(made))
    return state.replace(cars=words[0], coins=words[1], **fields)


def bodies(drawing):
    """(fill, x, y) of all car bodies: rectangles of a car's size, shadows left out."""
    return [
        (shape["fill"], shape["x"], shape["y"])
        for shape in drawing.shapes
        if shape["kind"] == "rect" and (shape["w"], shape["r"]) == (0.56, 0.15)
    ]


def coins_of(drawing):
    return [(s["x"], s["y"]) for s in drawing.shapes if s["fill"] == RIM]


def test_cars_coins_and_agent_are_in_their_places():
    drawing = draw(road_with(cars=[(0, 4)], coins=[(3, 7)]))
    (_, car_x, car_y), (agent, agent_x, agent_y) = bodies(drawing)
    assert agent == RED
    assert agent_x - car_x == pytest.approx(2)  # lane 2 and lane 0
    assert agent_y - car_y == pytest.approx((13 - 4) * ROW)
    assert coins_of(drawing) == [(VERGE + 3.5, 7.5 * ROW)]


def test_frames_move_cars_coins_agent_and_road():
    state = road_with(cars=[(0, 4)], coins=[(3, 7)])
    later = state.replace(phase=jnp.int32(2), heading=jnp.int32(-1))
    first, second = draw(state), draw(later)
    (_, _, y0), (_, x0, _) = bodies(first)
    (_, _, y1), (_, x1, _) = bodies(second)
    assert y1 - y0 == pytest.approx(1 * ROW)  # half of two rows
    assert x1 - x0 == pytest.approx(-0.5)  # half a lane
    assert coins_of(second)[0][1] - coins_of(first)[0][1] == pytest.approx(2 * ROW)
    tweened = draw(state.replace(heading=jnp.int32(-1)), ahead=2.0)
    assert tweened.shapes == second.shapes


def test_films_are_smooth_from_decision_to_decision():
    params = ENV.default_params.replace(wave_rate=1.0, coin_rate=0.4)
    _, state = ENV.reset(jax.random.key(0), params)
    play = jax.jit(ENV.frames)
    seen, jumps = 0, 0
    for number in range(25):
        key = jax.random.key(number)
        shown = play(state, 0, ENV.sample_draws(key), params)
        pictures = [
            state,
            *(jax.tree.map(lambda x, i=i: x[i], shown) for i in range(4)),
        ]
        for before, after in itertools.pairwise(pictures):
            old, new = bodies(draw(before))[:-1], bodies(draw(after))[:-1]
            for fill, x, y in old:
                seen += 1
                followed = [
                    f == fill and abs(x - a) < 1e-6 and abs(y + ROW / 2 - b) < 1e-6
                    for f, a, b in new
                ]
                is_leaving = y + ROW / 2 >= ENV.road.rows * ROW
                jumps += not (any(followed) or is_leaving or bool(after.crashed))
        state = pictures[-1]
        if bool(state.crashed):
            break
    assert seen > 100 and jumps == 0


def test_a_crash_is_seen():
    state = road_with(cars=[(2, 11)])
    after, *_ = ENV.advance(
        state, 0, ENV.sample_draws(jax.random.key(0)), ENV.default_params
    )
    assert bool(after.crashed)
    bursts = [s for s in draw(after).shapes if len(s.get("points", ())) == 24]
    assert len(bursts) == 4
    # Nothing jumps: the road is drawn as far as the crash came.
    between = state.replace(phase=after.phase)
    assert draw(after).shapes[: len(draw(between).shapes)] == draw(between).shapes


def test_drawings_are_json_and_become_pixels():
    env = BackseatDriver(lanes=3, rows=18)
    _, state = env.reset(jax.random.key(0))
    drawing = draw(state, env.road)
    json.dumps(drawing.as_json())
    assert (drawing.width, drawing.height) == (3 + 2 * VERGE, 9)
    assert to_pixels(drawing, 20).shape == (180, 96, 3)


def test_moves_are_the_four_pictures_of_a_step():
    state = road_with(cars=[(0, 5)], coins=[(2, 8)])
    pictures = moves(ENV, state, RIGHT)
    assert len(pictures) == 4
    assert len({json.dumps(drawing.as_json()) for drawing in pictures}) == 4
    draws = ENV.sample_draws(jax.random.key(5))
    after, *_ = ENV.advance(state, RIGHT, draws, ENV.default_params)
    expected, found = (to_pixels(d, 8) for d in (draw(after), pictures[-1]))
    assert (expected == found).all()
