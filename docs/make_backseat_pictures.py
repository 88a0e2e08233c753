"""Make the pictures of docs/backseat.md and docs/recommender.md.

python docs/make_backseat_pictures.py
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from backseat_drivers import careful_driver  # noqa: E402
from recommender_policies import considerate  # noqa: E402

from termdp.envs.backseat import LEFT, RIGHT, STAY, BackseatDriver  # noqa: E402
from termdp.envs.backseat_road import (  # noqa: E402
    FRAMES,
    NEW_LANE_FRAMES,
    OLD_LANE_FRAMES,
)
from termdp.envs.recommender import Recommender  # noqa: E402
from termdp.envs.recommender_costs import RecommenderFatigueCost  # noqa: E402
from termdp.render import recommender  # noqa: E402
from termdp.render.backseat import ROW, VERGE, draw  # noqa: E402
from termdp.render.drawing import to_pixels  # noqa: E402

IMAGES = ROOT / "docs" / "images"


def film(env, num_steps, seed):
    """All frames of a careful driver's ride, as states."""
    params = env.default_params.replace(wave_rate=0.6)
    _, state = env.reset(jax.random.key(seed), params)

    @jax.jit
    def decide(key, state):
        action = careful_driver(env, key, state)
        return env.frames(state, action, env.sample_draws(key), params)

    states = []
    for number in range(num_steps):
        shown = decide(jax.random.fold_in(jax.random.key(seed), number), state)
        states += [jax.tree.map(lambda x, i=i: x[i], shown) for i in range(FRAMES)]
        state = states[-1]
    return states


def things_on(state, road):
    """How much there is to see: cars and coins, a coin in the agent's lane twice."""
    visible = np.uint32(road.bits(range(road.rows)))
    cars, coins = (np.asarray(words) & visible for words in (state.cars, state.coins))
    counts = np.bitwise_count(cars).sum() + np.bitwise_count(coins).sum()
    return counts + np.bitwise_count(coins[int(state.agent)])


def save_gif(path, pictures, milliseconds):
    """Pictures with one small palette, looping."""
    images = [Image.fromarray(picture) for picture in pictures]
    palette = Image.fromarray(np.concatenate(pictures[::10], axis=1)).quantize(64)
    images = [image.quantize(palette=palette, dither=0) for image in images]
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=milliseconds,
        loop=0,
        optimize=True,
    )


def swept(env, state, action):
    """The state's drawing with the cells marked from which coins would be taken."""
    road = env.road
    drawing = draw(state, env.road)
    old = int(state.agent)
    new = int(env.target_lane(state.agent, action))
    cells = set()
    for frame in range(1, FRAMES + 1):
        lanes = [old] * (frame in OLD_LANE_FRAMES) + [new] * (frame in NEW_LANE_FRAMES)
        rows = road.reach(frame, road.coin_speed)
        cells |= {(lane, row) for lane in lanes for row in rows}
    for lane, row in sorted(cells):
        drawing.rect(VERGE + lane + 0.03, row * ROW, 0.94, ROW, "#ffffff55")
    return drawing


def coin_cost_picture(env):
    """Stay, left and right from one road: two cost one, one costs nothing."""
    _, state = env.reset(jax.random.key(0))
    words = {"cars": [(0, 4), (4, 10), (1, 16)], "coins": [(2, 10), (1, 12), (2, 6)]}
    made = {}
    for name, places in words.items():
        word = np.zeros(env.road.lanes, np.uint32)
        for lane, row in places:
            word[lane] |= np.uint32(1 << (row + env.road.margin))
        made[name] = jnp.asarray(word)
    state = state.replace(**made)
    panels = [to_pixels(swept(env, state, a), 26) for a in (LEFT, STAY, RIGHT)]
    gap = np.full((panels[0].shape[0], 12, 3), 255, np.uint8)
    return np.concatenate([panels[0], gap, panels[1], gap, panels[2]], axis=1)


def session_picture():
    """A considerate shop after some recommendations."""
    env = Recommender()
    cost = RecommenderFatigueCost.for_game(env)
    _, state = env.reset(jax.random.key(2))
    for number in range(25):
        key = jax.random.key(number)
        action = considerate(env, cost, key, state)
        _, state, *_ = env.step(key, state, action)
    return to_pixels(recommender.draw(state, env), 60)


def main():
    """Write all pictures."""
    env = BackseatDriver()
    states = film(env, num_steps=45, seed=8)
    fullest = max(states, key=lambda state: things_on(state, env.road))
    Image.fromarray(to_pixels(draw(fullest, env.road), 40)).save(
        IMAGES / "backseat.png"
    )
    pictures = [to_pixels(draw(state, env.road), 22) for state in states[80:]]
    save_gif(IMAGES / "backseat.gif", pictures, milliseconds=70)
    picture = Image.fromarray(coin_cost_picture(env))
    picture.save(IMAGES / "backseat_coin_cost.png")
    Image.fromarray(session_picture()).save(IMAGES / "recommender.png")


if __name__ == "__main__":
    main()
