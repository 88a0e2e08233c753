"""The observer alone: memory, delay, background, leak; JAX and NumPy side by side."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import termdp
from termdp.observer import checked_cost, watch

NEVER, ALWAYS = 1.0, 0.0  # uniform draws under which the observer never/always decides


def no_cost(observation, action):
    return 0.0


def watch_costs(observer, costs, uniforms, xp):
    """What the observer made of each step of one episode."""
    memory = observer.initial_memory(xp=xp)
    steps = []
    for cost, uniform in zip(costs, uniforms, strict=True):
        memory, step = watch(observer, memory, cost, xp.float32(uniform), xp)
        steps.append(step)
    return steps


def window_costs(observer, costs, xp=np):
    steps = watch_costs(observer, costs, [NEVER] * len(costs), xp)
    return [float(step.window_cost) for step in steps]


def stops(observer, uniforms, xp=np):
    steps = watch_costs(observer, [0.0] * len(uniforms), uniforms, xp)
    return [bool(step.stop) for step in steps]


def test_window_includes_the_present_cost():
    observer = termdp.Observer(no_cost, window=2)
    assert window_costs(observer, [1.0, 10.0, 100.0]) == [1.0, 11.0, 110.0]


def test_whole_episode():
    observer = termdp.Observer(no_cost, window=None)
    assert window_costs(observer, [1.0, 10.0, 100.0]) == [1.0, 11.0, 111.0]


def test_leak_replaces_the_window():
    observer = termdp.Observer(no_cost, leak=0.5)
    assert window_costs(observer, [4.0, 0.0, 1.0]) == [4.0, 2.0, 2.0]


def test_window_equals_window_sums(key):
    costs = np.asarray(jax.random.normal(key, (50,)))
    starts = jnp.zeros(50, bool)
    by_watching = window_costs(termdp.Observer(no_cost, window=7), costs)
    at_once = termdp.window_sums(costs, 7, starts)
    np.testing.assert_allclose(by_watching, at_once, atol=1e-5)


def test_background_by_hand():
    # ρ(0) = 1/2 and background 0.2: 1 − 0.8 · 0.5 = 0.6
    observer = termdp.Observer(no_cost, bias=0.0, background=0.2)
    step = watch_costs(observer, [0.0], [NEVER], np)[0]
    assert float(step.stop_probability) == pytest.approx(0.6)


def test_no_delay_stops_at_once():
    observer = termdp.Observer(no_cost)
    assert stops(observer, [NEVER, ALWAYS, NEVER]) == [False, True, False]


def test_delayed_stop_comes_d_steps_later_without_new_draws():
    observer = termdp.Observer(no_cost, delay=2)
    uniforms = [NEVER, ALWAYS, ALWAYS, ALWAYS, NEVER]
    assert stops(observer, uniforms) == [False, False, False, True, False]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    window=st.one_of(st.none(), st.integers(1, 12)),
    leak=st.one_of(st.none(), st.floats(0.05, 1.0)),
    delay=st.integers(0, 3),
    background=st.floats(0, 0.3),
    bias=st.floats(-1, 4),
)
def test_jax_and_numpy_observers_agree(seed, window, leak, delay, background, bias):
    observer = termdp.Observer(no_cost, window, bias, background, delay, leak)
    rng = np.random.default_rng(seed)
    costs = rng.normal(0.3, 1.0, 15).astype(np.float32)
    uniforms = rng.random(15, dtype=np.float32)
    in_numpy = watch_costs(observer, costs, uniforms, np)
    in_jax = watch_costs(observer, costs, uniforms, jnp)
    for ours, theirs in zip(in_numpy, in_jax, strict=True):
        np.testing.assert_allclose(ours.window_cost, theirs.window_cost, atol=1e-5)
        np.testing.assert_allclose(
            ours.stop_probability, theirs.stop_probability, atol=1e-6
        )
        assert bool(ours.stop) == bool(theirs.stop)


def test_numbers_change_without_recompiling():
    traces = 0

    @jax.jit
    def probability(observer):
        nonlocal traces
        traces += 1
        memory = observer.initial_memory()
        _, step = watch(observer, memory, 1.0, 0.5)
        return step.stop_probability

    observer = termdp.Observer(no_cost, window=30)
    low = probability(observer.replace(bias=9.0, window=3, delay=1))
    high = probability(observer.replace(bias=0.0, background=0.1))
    assert low < high
    assert traces == 1


def test_memory_grows_with_the_window():
    observer = termdp.Observer(no_cost, window=5)
    assert observer.replace(window=3).capacity == 5
    assert observer.replace(window=9).capacity == 9


def test_a_state_with_too_short_a_memory_is_refused():
    observer = termdp.Observer(no_cost, window=5)
    memory = observer.initial_memory()
    with pytest.raises(ValueError, match="remembers 9 steps, got one that remembers 5"):
        watch(observer.replace(window=9), memory, 0.0, 0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"window": 0},
            "window to be a whole number from 1 to 100000 .*, got 0",
        ),
        (
            {"window": 2.5},
            "window to be a whole number from 1 to 100000 .*, got 2.5",
        ),
        (
            {"window": "30"},
            "window to be a whole number from 1 to 100000 .*, got '30'",
        ),
        ({"bias": float("nan")}, "bias to be a finite number, got nan"),
        ({"bias": float("inf")}, "bias to be a finite number, got inf"),
        ({"background": 1.0}, r"background to be a number in \[0, 1\), got 1.0"),
        ({"delay": -1}, "delay to be a whole number from 0 to 1000000, got -1"),
        ({"leak": 0.0}, r"leak to be a number in \(0, 1\] or None, got 0.0"),
        ({"leak": 1.5}, r"leak to be a number in \(0, 1\] or None, got 1.5"),
        ({"cost": 3.0}, r"cost to be a function \(observation, action\)"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        termdp.Observer(**{"cost": no_cost, **arguments})


def test_unknown_attribute_is_named():
    with pytest.raises(ValueError, match="attribute of Observer .* got 'windows'"):
        termdp.Observer(no_cost).replace(windows=3)


def test_cost_must_be_one_finite_number():
    with pytest.raises(
        ValueError, match=r"one number for one pair, got float64\[2\]: "
    ):
        checked_cost(termdp.Observer(lambda o, a: np.zeros(2)), None, 0)
    with pytest.raises(ValueError, match="to be finite, got nan for action 1"):
        checked_cost(termdp.Observer(lambda o, a: float("nan")), None, 1)
