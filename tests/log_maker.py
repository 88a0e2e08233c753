"""Logs made with a known observer: two observations, one of three actions."""

import numpy as np
import pyarrow as pa

WEIGHTS = np.array([0.25, 0.15])  # of speed and noise
OF_ACTION = np.array([0.0, 0.1, 0.5])
BIAS = 9.0
ROLES = {
    "session": "session",
    "stopped": "left",
    "observations": ("speed", "noise"),
    "actions": ("action",),
}


def true_costs(observations, actions):
    return observations @ WEIGHTS + OF_ACTION[actions]


def make_log(seed, sessions=600, longest=150, window=20, bias=BIAS, delay=0, leak=None):
    """Columns of a log; sessions end by a stop or after `longest` steps."""
    rng = np.random.default_rng(seed)
    shape = (sessions, longest)
    speed = rng.exponential(0.5, shape)
    noise = rng.normal(size=shape)
    actions = rng.choice(3, shape, p=[0.5, 0.3, 0.2])
    costs = true_costs(np.stack([speed, noise], axis=-1), actions)
    if leak is None:
        sums = np.cumsum(np.pad(costs, ((0, 0), (1, 0))), axis=1)
        first = np.maximum(np.arange(longest) - window + 1, 0)
        summed = sums[:, 1:] - sums[:, first]
    else:
        summed = costs.copy()
        for step in range(1, longest):
            summed[:, step] += leak * summed[:, step - 1]
    decided = rng.random(shape) < 1 / (1 + np.exp(bias - summed))
    when = np.where(decided.any(axis=1), decided.argmax(axis=1) + delay, longest)
    length = np.minimum(when + 1, longest)
    kept = np.arange(longest) < length[:, None]
    left = np.zeros(shape, bool)
    stopped = np.flatnonzero(when < longest)
    left[stopped, when[stopped]] = True
    session = np.broadcast_to(np.arange(sessions)[:, None], shape)
    return {
        "session": session[kept],
        "speed": speed[kept],
        "noise": noise[kept],
        "action": actions[kept],
        "left": left[kept],
    }


def make_table(seed, **numbers):
    return pa.table(make_log(seed, **numbers))
