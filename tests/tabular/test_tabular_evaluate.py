"""Exact values and simulation, against a list of all paths with a sink."""

import jax
import numpy as np
import pytest
from slow_reference import random_model, stop_chance, value_with_sink

from termdp import tabular
from termdp.tabular import HistoryPolicy, MarkovPolicy, evaluate, plan, simulate
from termdp.tabular.rows import RowIndex


@pytest.mark.parametrize("window", [None, 1, 2])
def test_discounting_by_survival_equals_an_absorbing_sink(window):
    model = random_model(4, window=window)
    table = np.random.default_rng(0).integers(0, 2, (4, 3))
    with_sink = value_with_sink(model, lambda h, states, _: table[h - 1, states[-1]])
    assert evaluate(model, table) == pytest.approx(with_sink, abs=1e-9)


def test_a_quantised_plan_is_played_on_its_own_bins():
    """The observer adds the true costs, the plan its rounded ones."""
    model = random_model(6)
    rough = plan(model, resolution=0.4)

    def choose(h, states, actions):
        bins = sum(
            int(rough.lattice.shift[t, s, a])
            for t, (s, a) in enumerate(zip(states[:-1], actions, strict=True))
        )
        return rough.act(h, states[-1], bins * 0.4)

    assert evaluate(model, rough) == pytest.approx(
        value_with_sink(model, choose), abs=1e-9
    )


def test_functions_of_the_accumulated_cost_are_policies():
    model = random_model(8)

    def by_cost(h, state, accumulated):
        return int(accumulated > 0.3)

    def by_history(h, states, actions):
        spent = sum(
            model.costs[t, s, a]
            for t, (s, a) in enumerate(zip(states[:-1], actions, strict=True))
        )
        return int(spent > 0.3)

    expected = value_with_sink(model, by_history)
    assert evaluate(model, by_cost) == pytest.approx(expected, abs=1e-9)


def test_policies_of_the_whole_history():
    model = random_model(9, horizon=3)
    random = np.random.default_rng(1)
    actions = [random.integers(0, 2, (6**h, 3)) for h in range(3)]

    def choose(h, states, taken):
        number = 0
        for s, a in zip(states[:-1], taken, strict=True):
            number = number * 6 + s * 2 + a
        return actions[h - 1][number, states[-1]]

    value = evaluate(model, HistoryPolicy(actions, 2))
    assert value == pytest.approx(value_with_sink(model, choose), abs=1e-9)


@pytest.mark.parametrize("name", list(tabular.NAMED_MODELS))
def test_simulation_agrees_with_the_exact_value(name):
    model = tabular.make_model(name)
    best = plan(model)
    seen = simulate(model, best, 40_000, jax.random.key(3))
    error = seen.returns.std() / np.sqrt(len(seen))
    assert abs(seen.returns.mean() - best.value) < 4 * error
    certain = simulate(model, best, 40_000, 3, random_rewards=False)
    assert abs(certain.returns.mean() - best.value) < 4 * error


def test_simulated_stops_follow_the_observers_law():
    """Frequency of a stop at step 2 of one path, against ρ(c_1 + c_2 − b)."""
    model = tabular.paper_example()
    seen = simulate(model, np.zeros((3, 3), int), 50_000, 0)
    alive = seen.lengths >= 2
    stopped = (seen.lengths == 2) & seen.stopped
    expected = stop_chance(model, (1.0, 1.0))
    error = np.sqrt(expected * (1 - expected) / alive.sum())
    assert abs(stopped.sum() / alive.sum() - expected) < 4 * error
    assert not seen.stopped[seen.lengths == 3].any()


def test_simulation_is_decided_by_its_key():
    model = tabular.random()
    table = np.zeros((6, 6), int)
    one, same, other = (
        simulate(model, table, 50, jax.random.key(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.states, same.states)
    assert (one.states != other.states).any()
    raw = simulate(model, table, 50, jax.random.PRNGKey(1))
    np.testing.assert_array_equal(one.states, raw.states)


def test_episodes_end_with_their_last_step():
    model = tabular.random()
    seen = simulate(model, np.zeros((6, 6), int), 200, 0)
    for (states, actions, stopped), length in zip(seen, seen.lengths, strict=True):
        assert len(states) == len(actions) == length
        assert states.min() >= 0
        assert stopped == (length < 6)


def test_bad_policies_are_refused_with_a_reason():
    model = tabular.random()
    with pytest.raises(ValueError, match=r"actions \[H, S\] = \(6, 6\)"):
        evaluate(model, np.zeros((5, 6), int))
    with pytest.raises(ValueError, match="from 0 to 2, got 0 to 3"):
        evaluate(model, np.full((6, 6), 3) * np.eye(6, dtype=int))
    with pytest.raises(ValueError, match="sum to 1"):
        MarkovPolicy(np.full((6, 6, 3), 0.5), 3)
    with pytest.raises(ValueError, match=r"\[H, S, A\]"):
        MarkovPolicy(np.full((6, 6, 2), 0.5), 3)


def test_exact_evaluation_says_when_it_is_too_large():
    model = random_model(0)
    with pytest.raises(ValueError, match="simulate"):
        evaluate(model, plan(model), max_moves=5)
    with pytest.raises(ValueError, match="simulate"):
        evaluate(model, plan(model), max_moves=0)


def test_a_plan_of_another_model_does_not_pass_silently():
    with pytest.raises(ValueError, match="cannot reach"):
        tabular.ExactPlan(random_model(0)).probabilities(
            2, np.array([0]), np.array([[9.0]])
        )


def test_the_value_difference_lemma():
    """V(M) − V(M′) is the sum of one-step differences, with V of M′ (appendix K)."""
    one, other = random_model(10, horizon=3), random_model(11, horizon=3)
    table = np.random.default_rng(2).integers(0, 2, (3, 3))

    def value(model, h, state, path):
        if h > 3:
            return 0.0
        action = table[h - 1, state]
        longer = (*path, (h - 1, state, action))
        ahead = sum(
            chance * value(model, h + 1, s, longer)
            for s, chance in enumerate(model.transitions[h - 1, state, action])
        )
        stop = stop_chance(model, [model.costs[step] for step in longer])
        return model.rewards[h - 1, state, action] + (1 - stop) * ahead

    def move(model, h, state, path):
        """Total transition T of appendix F; what is missing to 1 goes to the sink."""
        action = table[h - 1, state]
        costs = [model.costs[step] for step in (*path, (h - 1, state, action))]
        return (1 - stop_chance(model, costs)) * model.transitions[h - 1, state, action]

    def differences(h, state, path):
        if h > 3:
            return 0.0
        action = table[h - 1, state]
        longer = (*path, (h - 1, state, action))
        ahead = np.array([value(other, h + 1, s, longer) for s in range(3)])
        gain = one.rewards[h - 1, state, action] - other.rewards[h - 1, state, action]
        shift = (move(one, h, state, path) - move(other, h, state, path)) @ ahead
        rest = sum(
            chance * differences(h + 1, s, longer)
            for s, chance in enumerate(move(one, h, state, path))
        )
        return gain + shift + rest

    for state in range(3):
        direct = value(one, 1, state, ()) - value(other, 1, state, ())
        assert direct == pytest.approx(differences(1, state, ()), abs=1e-12)


def test_rows_are_numbered_and_found_again():
    table = np.array([[1.0, 0.5], [0.0, 2.0], [1.0, 0.5], [1.0, 2.0]])
    index = RowIndex(table)
    assert len(index) == 3
    np.testing.assert_array_equal(index.rows[index.inverse], table)
    found = index.find(np.array([[1.0, 2.0], [0.0, 0.5], [3.0, 9.0]]))
    assert found[0] == index.inverse[3]
    assert (found[1:] == -1).all()
