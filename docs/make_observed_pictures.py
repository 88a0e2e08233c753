"""README's film: a scripted Breakout player under an observer who minds the edges.

Command: python docs/make_observed_pictures.py
"""

from pathlib import Path

import jax
import numpy as np

import termdp
from termdp.registry import find
from termdp.render.film import Film, Scene, save_gif
from termdp.render.strip import Curve, Panel

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
        frames.append(draw(state.game, observation))
        action = follow_the_ball(np.asarray(observation))
        observation, state, reward, *_, info = env.step(
            jax.random.fold_in(key, step), state, action, params
        )
        row = {name: float(info[name]) for name in SHOWN}
        rows.append(row | {"reward": float(reward)})
        if bool(info["stopped"]) or bool(info["game_over"]):
            break
    return frames, {name: np.array([row[name] for row in rows]) for name in rows[0]}


SHOWN = ("cost", "window_cost", "stop_probability", "stopped")


def main():
    """Find an episode that ends by a stop, and film it."""
    env, params = termdp.make("breakout", sticky_prob=0.0)
    episodes = [play(env, params, seed) for seed in range(30)]
    frames, felt = max(episodes, key=lambda e: (e[1]["stopped"][-1], len(e[0])))
    costs = [Curve(felt["cost"], COST, bars=True), Curve(felt["window_cost"], TRUE)]
    chance = [Curve(felt["stop_probability"], TRUE)]
    panels = [
        Panel("accumulated cost (bars: each step)", costs, level=6.0),
        Panel("stop probability", chance, percent=True),
    ]
    returns = np.cumsum(felt["reward"])
    scene = Scene("Breakout, watched", frames, 1, returns, panels, "stopped")
    save_gif(OUT, Film([scene]), fps=10)
    print(f"{OUT}: {len(frames)} steps")


if __name__ == "__main__":
    main()
