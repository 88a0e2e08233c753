"""Players of the original games: by chance, or by a script that lives longer.

A player looks into the original's own variables and names an action of the full set
(0 nothing, 1 left, 2 up, 3 right, 4 down, 5 fire).
"""

from typing import Any

import numpy as np

NONE, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


def by_chance(env: Any, rng: np.random.Generator) -> int:
    del env
    return int(rng.integers(6))


def _towards(x: int, target: int) -> int:
    return LEFT if target < x else RIGHT if target > x else NONE


def breakout_script(env: Any, rng: np.random.Generator) -> int:
    """Stay under the ball, now and then meet it with the paddle's side."""
    if rng.random() < 0.03:
        return by_chance(env, rng)
    rightward = env.ball_dir in (1, 2)
    side = 1 if rightward else -1
    meets_side = env.ball_y == 8 and env.ball_dir in (2, 3) and rng.random() < 0.3
    return _towards(env.pos, int(np.clip(env.ball_x + side * meets_side, 0, 9)))


def space_invaders_script(env: Any, rng: np.random.Generator) -> int:
    """Leave the column of a bullet, else shoot from below the aliens."""
    if rng.random() < 0.05:
        return by_chance(env, rng)
    danger = env.e_bullet_map[5:, env.pos].any()
    if danger:
        return LEFT if env.pos > 5 else RIGHT
    columns = np.flatnonzero(env.alien_map.any(axis=0))
    target = int(columns[np.argmin(np.abs(columns - env.pos))])
    if target == env.pos and env.shot_timer == 0:
        return FIRE
    return _towards(env.pos, target)


def asterix_script(env: Any, rng: np.random.Generator) -> int:
    """Take the first action after which no enemy is near; gold is not feared."""
    if rng.random() < 0.05:
        return by_chance(env, rng)
    steps = {NONE: (0, 0), LEFT: (-1, 0), UP: (0, -1), RIGHT: (1, 0), DOWN: (0, 1)}
    enemies = [e for e in env.entities if e is not None and not e[3]]
    golds = [e for e in env.entities if e is not None and e[3]]

    def badness(action: int) -> float:
        x = int(np.clip(env.player_x + steps[action][0], 0, 9))
        y = int(np.clip(env.player_y + steps[action][1], 1, 8))
        near = sum(e[1] == y and abs(e[0] - x) <= 2 for e in enemies)
        far = min((abs(g[0] - x) + abs(g[1] - y) for g in golds), default=0)
        return 100 * near + far + rng.random()

    return min(steps, key=badness)


def seaquest_script(env: Any, rng: np.random.Generator) -> int:
    """Dodge, shoot ahead, fetch divers, surface with one when air runs short."""
    if rng.random() < 0.05:
        return by_chance(env, rng)
    steps = {NONE: (0, 0), LEFT: (-1, 0), UP: (0, -1), RIGHT: (1, 0), DOWN: (0, 1)}
    enemies = env.e_subs + env.e_fish
    ahead = [
        e
        for e in enemies
        if e[1] == env.sub_y and (e[0] > env.sub_x) == bool(env.sub_or)
    ]
    wants_air = env.diver_count != 0 and (env.oxygen < 60 or env.diver_count == 6)
    dangers = [(e[0], e[1]) for e in enemies + env.e_bullets]

    def badness(action: int) -> float:
        x = int(np.clip(env.sub_x + steps[action][0], 0, 9))
        y = int(np.clip(env.sub_y + steps[action][1], 0, 8))
        near = sum(d[1] == y and abs(d[0] - x) <= 2 for d in dangers)
        drowns = y == 0 and env.diver_count == 0
        far = min((abs(d[0] - x) + abs(d[1] - y) for d in env.divers), default=0)
        goal = y if wants_air else far
        return 100 * near + 1000 * drowns + goal + rng.random()

    if ahead and env.shot_timer == 0 and rng.random() < 0.7:
        return FIRE
    return min(steps, key=badness)


def seaquest_bobber(env: Any, rng: np.random.Generator) -> int:
    """Dive, fire and surface again and again: many levels in little time."""
    if rng.random() < 0.1:
        return by_chance(env, rng)
    if env.sub_y > 1:
        return UP
    if env.shot_timer == 0 and rng.random() < 0.3:
        return FIRE
    if env.sub_y == 0:
        return DOWN if rng.random() < 0.8 else rng.choice([LEFT, RIGHT])
    return UP if rng.random() < 0.6 else rng.choice([LEFT, RIGHT])
