"""Linear costs: the same as the tabular engine's, right on average, sampled or not."""

import numpy as np
import pytest

from log_maker import OF_ACTION, ROLES, WEIGHTS, make_log
from termdp import tabular
from termdp.log_costs import Columns
from termdp.logs import linear
from termdp.logs.held_out import session_folds
from termdp.logs.linear import LinearLearner
from termdp.logs.memory import Memory
from termdp.logs.sessions import Roles, read_sessions
from termdp.logs.sources import open_source

COLUMNS = Columns(("speed", "noise"), ("action",), num_actions=3)


def learner(log, columns=COLUMNS, **roles):
    found = read_sessions(open_source(log), Roles(**(ROLES | roles)))
    return LinearLearner(found, columns, session_folds(found.ends, 4, 0))


def test_indicators_give_what_fit_costs_gives():
    """Costs per (state, action) of a tabular log, by both ways of writing them."""
    rng = np.random.default_rng(0)
    episodes, log = [], {name: [] for name in ("session", "state", "action", "left")}
    cost = np.array([[0.0, 0.4], [0.8, 1.5]])
    for session in range(400):
        states, actions, costs = [], [], []
        for _ in range(30):
            states.append(rng.integers(2))
            actions.append(rng.integers(2))
            costs.append(cost[states[-1], actions[-1]])
            stopped = rng.random() < 1 / (1 + np.exp(5 - sum(costs[-4:])))
            if stopped:
                break
        episodes.append((np.array(states), np.array(actions), stopped))
        log["session"] += [session] * len(states)
        log["state"] += states
        log["action"] += actions
        log["left"] += [False] * (len(states) - 1) + [stopped]
    known = tabular.fit_costs(episodes, 2, 2, 31, ridge=1e-9, window=4, stationary=True)
    columns = Columns(("state",), ("action",), 2, interactions=((0, 1),))
    model = learner(log, columns, observations=("state",)).whole(Memory(window=4))
    zero = model.base - model.weights @ model.centre
    state, action, both = model.weights
    found = [zero, zero + action, zero + state, zero + state + action + both]
    np.testing.assert_allclose(found, known.costs[0].ravel(), atol=2e-4)
    assert model.bias == pytest.approx(known.bias, abs=2e-3)
    assert model.bias_error == pytest.approx(known.bias_standard_error, rel=1e-3)


def test_intervals_hold_what_they_promise():
    """92% to 98% of 500 intervals, in 100 logs."""
    inside = []
    for seed in range(100):
        model = learner(make_log(seed, sessions=60, longest=80, bias=6.0)).whole(
            Memory(window=20)
        )
        truth = [*WEIGHTS, OF_ACTION[1], OF_ACTION[2]]
        inside += list(np.abs(model.weights - truth) < 1.96 * model.errors)
        mean_cost = model.centre @ truth
        inside.append(abs(model.base - mean_cost) < 1.96 * model.base_error)
    assert 0.92 <= np.mean(inside) <= 0.98


def test_held_out_likelihoods_hardly_change_when_steps_are_sampled(monkeypatch):
    log = make_log(0, sessions=400, longest=100, bias=9.5)
    memories = [Memory(window=5), Memory(window=20)]
    whole = learner(log).held_out(memories)
    monkeypatch.setattr(linear, "MOST_ROWS", 6000)
    monkeypatch.setattr(linear, "MOST_KEPT", 0)
    some = learner(log)
    sampled = some.held_out(memories)
    assert some._share(0) < 0.3
    np.testing.assert_allclose(sampled.mean(axis=1), whole.mean(axis=1), rtol=0.01)
    # The final fit sees every step, and makes its rows anew in every pass.
    one, other = learner(log).whole(memories[1]), some.whole(memories[1])
    monkeypatch.undo()
    kept = learner(log).whole(memories[1])
    for model in (other, kept):
        np.testing.assert_allclose(model.weights, one.weights, rtol=1e-6)
        np.testing.assert_allclose(model.errors, one.errors, rtol=1e-6)


def test_large_numbers_do_not_cancel():
    log = make_log(0, sessions=150, longest=60, bias=6.0)
    plain = learner(log).whole(Memory(window=20))
    log["speed"] = log["speed"] * 1e4 + 1e5
    shifted = learner(log).whole(Memory(window=20))
    np.testing.assert_allclose(shifted.weights[0] * 1e4, plain.weights[0], rtol=1e-3)
    np.testing.assert_allclose(shifted.weights[1:], plain.weights[1:], rtol=1e-3)


def test_an_action_that_was_never_taken_has_no_interval():
    log = make_log(0, sessions=100, longest=60, bias=6.0)
    columns = Columns(("speed", "noise"), ("action",), num_actions=4)
    model = learner(log, columns, num_actions=4).whole(Memory(window=20))
    assert np.isnan(model.errors[-1]) and model.weights[-1] == 0.0
    assert np.isfinite(model.errors[:-1]).all()


def test_columns_that_say_the_same_still_have_costs():
    log = make_log(0, sessions=150, longest=60, bias=6.0)
    log["again"] = log["speed"]
    names = ("speed", "noise", "again")
    columns = Columns(names, ("action",), num_actions=3)
    model = learner(log, columns, observations=names).whole(Memory(window=20))
    one = learner(log).whole(Memory(window=20))
    assert model.weights[0] == pytest.approx(model.weights[2], rel=0.1)
    assert model.weights[0] + model.weights[2] == pytest.approx(
        one.weights[0], rel=0.01
    )
