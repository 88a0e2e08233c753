"""Slow, plain references: no merging of histories, no arrays where a loop will do."""

import itertools
import math

import numpy as np

from termdp.tabular import TerMDP


def logistic(x):
    return 1 / (1 + math.exp(-x))


def random_model(
    seed, num_states=3, num_actions=2, horizon=4, low=-0.6, window=None, per_step=True
):
    """Real-valued costs from `low` to 1, dense transitions, every array per step."""
    random = np.random.default_rng(seed)
    shape = (num_states, num_actions)
    steps = (horizon,) if per_step else ()
    return TerMDP(
        transition=random.dirichlet(np.ones(num_states), (*steps, *shape)),
        reward=random.random((*steps, *shape)),
        cost=random.uniform(low, 1.0, (*steps, *shape)),
        bias=float(random.uniform(0, 2)),
        horizon=horizon,
        initial=random.dirichlet(np.ones(num_states)),
        window=window,
    )


def stop_chance(model, costs):
    """ρ of the costs so far, the present one last."""
    return logistic(sum(costs[-(model.window or len(costs)) :]) - model.bias)


def best_value(model, h=1, state=None, costs=()):
    """Optimal value when the policy may look at the whole history."""
    if h > model.horizon:
        return 0.0
    if state is None:
        return sum(
            chance * best_value(model, h, s, costs)
            for s, chance in enumerate(model.initial)
        )
    return max(
        model.rewards[h - 1, state, action]
        + _go_on(model, h, state, action, costs, best_value)
        for action in range(model.num_actions)
    )


def _go_on(model, h, state, action, costs, value):
    costs = (*costs, model.costs[h - 1, state, action])
    following = sum(
        chance * value(model, h + 1, s, costs)
        for s, chance in enumerate(model.transitions[h - 1, state, action])
    )
    return (1 - stop_chance(model, costs)) * following


def value_with_sink(model, choose):
    """Value of a policy by listing every path; a stop leads to a sink that pays 0.

    `choose(h, states, actions) -> action` sees the whole history.
    """
    total = 0.0
    paths = [(chance, (s,), (), ()) for s, chance in enumerate(model.initial) if chance]
    for h in range(1, model.horizon + 1):
        following = []
        for chance, states, actions, costs in paths:
            if states[-1] == "sink":
                following.append((chance, (*states, "sink"), actions, costs))
                continue
            action = choose(h, states, actions)
            total += chance * model.rewards[h - 1, states[-1], action]
            seen = (*costs, model.costs[h - 1, states[-1], action])
            stop = stop_chance(model, seen)
            following.append(
                (chance * stop, (*states, "sink"), (*actions, action), seen)
            )
            for s, move in enumerate(model.transitions[h - 1, states[-1], action]):
                following.append(
                    (
                        chance * (1 - stop) * move,
                        (*states, s),
                        (*actions, action),
                        seen,
                    )
                )
        paths = [path for path in following if path[0] > 0]
        assert abs(sum(path[0] for path in paths) - 1) < 1e-12
    return total


def design_matrix(episodes, num_states, num_actions, horizon, window, stationary):
    """Rows of 0 and 1 (or counts) of the explicit logistic regression, and labels."""
    rows, labels = [], []
    groups = 1 if stationary else horizon
    for states, actions, stopped in episodes:
        for h in range(min(len(states), horizon - 1)):
            row = np.zeros((groups, num_states, num_actions))
            for t in range(max(0, h - (window or horizon) + 1), h + 1):
                row[0 if stationary else t, states[t], actions[t]] += 1
            rows.append(row.ravel())
            labels.append(stopped and h == len(states) - 1)
    return np.array(rows), np.array(labels, float)


def all_paths(shape, length):
    """Every sequence of (state, action) of a given length."""
    _, num_states, num_actions = shape
    pairs = list(itertools.product(range(num_states), range(num_actions)))
    return itertools.product(pairs, repeat=length)
