"""README's film: a scripted Breakout player under an observer who minds the edges.

Command: python docs/make_observed_pictures.py
"""

from pathlib import Path

import jax
import numpy as np

import termdp
from termdp.registry import find
from termdp.render.drawing import picture
from termdp.render.strip import Curve, Panel, film, save_gif

OUT = Path(__file__).parent / "images" / "observed_breakout.gif"
NOTHING, LEFT, RIGHT = 0, 1, 2
COST, TRUE = "#f6c453", "#ff6b6b"


def follow_the_ball(observation):
    """Move the paddle to where the ball will be next."""
    paddle, ball, trail = (
        int(np.argmax(observation[:, :, channel].any(axis=0))) for channel in range(3)
    )
    target = ball + np.sign(ball - trail)
    target = ball if not 0 <= target <= 9 else target
    return LEFT if target < paddle else RIGHT if target > paddle else NOTHING


def play(env, params, seed, limit=160):
    """One episode: pictures and what the observer felt."""
    draw = find("breakout").drawer(env.game_env)
    key = jax.random.key(seed)
    observation, state = env.reset(key, params)
    frames, rows = [], []
    for step in range(limit):
        frames.append(picture(draw(state.game, observation), 280))
        action = follow_the_ball(np.asarray(observation))
        observation, state, *_, info = env.step(
            jax.random.fold_in(key, step), state, action, params
        )
        rows.append({name: float(info[name]) for name in SHOWN})
        if bool(info["stopped"]) or bool(info["game_over"]):
            break
    return frames, {name: np.array([row[name] for row in rows]) for name in SHOWN}


SHOWN = ("cost", "window_cost", "stop_probability", "stopped")


def main():
    """Find an episode that ends by a stop, and film it."""
    env, params = termdp.make("breakout", sticky_prob=0.0)
    episodes = [play(env, params, seed) for seed in range(30)]
    frames, felt = max(episodes, key=lambda e: (e[1]["stopped"][-1], len(e[0])))
    panels = [
        Panel("cost", [Curve(felt["cost"], COST, bars=True)], height=34),
        Panel("accumulated cost (dashed: b)", [Curve(felt["window_cost"], TRUE)], 6.0),
        Panel("stop probability", [Curve(felt["stop_probability"], TRUE)], top=1.0),
    ]
    frames = film(frames, panels)
    save_gif(str(OUT), [*frames, *[frames[-1]] * 12], fps=10)
    print(f"{OUT}: {len(frames)} steps")


if __name__ == "__main__":
    main()
