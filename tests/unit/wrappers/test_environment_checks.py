"""What cannot work is refused by `observe`, in one sentence that says how to fix it."""

import math
import types

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import termdp
from tiny_envs import Counter, GymCounter, action_is_cost

FIX = r".*jnp\.where.* instead of if.*termdp\.gym\.ObserverWrapper"
OBSERVER = termdp.Observer(action_is_cost)


def with_if(observation, action):
    if observation[0] > 2:
        return 1.0
    return 0.0


@pytest.mark.parametrize(
    ("cost", "got"),
    [
        (with_if, "an if, and, or"),
        (lambda observation, action: max(observation[0], 0.0), "an if, and, or"),
        (lambda observation, action: float(action == 2), r"float\(\), int\(\)"),
        (lambda observation, action: math.sqrt(observation[0]), r"float\(\), int\(\)"),
        (lambda observation, action: np.abs(observation[0]), "a NumPy function"),
        (lambda observation, action: [0.0, 1.0, 2.0][action], "as an index of a list"),
        (lambda obs, action: obs[obs > 0].sum(), "a selection by a traced condition"),
    ],
)
def test_plain_python_costs_are_told_how_to_become_jax(cost, got):
    with pytest.raises(ValueError, match=got + FIX) as refused:
        termdp.observe(Counter(), termdp.Observer(cost))
    assert refused.value.__suppress_context__, "no pages about tracers above it"
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda obs, action: obs, r"one number for one pair, got float32\[2\]: return"),
        (lambda obs, action: None, "one number for one pair, got None: return"),
        (lambda obs, action: (1.0, 2.0), "one number .* got a tuple of 2: return"),
        (lambda obs, action: {"cost": 1.0}, "one number .* got a dict of cost: return"),
        (
            lambda obs, action: "much",
            r"cost\(observation, action\) to work .* TypeError",
        ),
        (
            lambda obs, action: obs["speed"],
            r"to work with float32\[2\], int32\[\], got TypeError",
        ),
        (lambda obs, action: jnp.nan, "to be finite, got nan"),
    ],
)
def test_costs_that_are_no_number(cost, message):
    with pytest.raises(ValueError, match=message):
        termdp.observe(Counter(), termdp.Observer(cost))


def test_a_cost_of_one_argument_is_no_cost():
    with pytest.raises(
        ValueError, match=r"two arguments .* got one of \(observation\)"
    ):
        termdp.Observer(lambda observation: 1.0)
    with pytest.raises(ValueError, match="two arguments"):
        termdp.Observer(lambda observation, action, reward: 1.0)
    termdp.Observer(lambda *pair: 1.0)
    termdp.Observer(max)  # has no signature: given the benefit of the doubt


def test_the_documented_example_is_traced():
    observer = termdp.Observer(lambda observation, action: 1.0 * (action == 2))
    termdp.observe(Counter(), observer)


@pytest.mark.parametrize(
    ("env", "wrapper"),
    [
        (GymCounter(), r"ObserverWrapper\(env, observer\)"),
        (
            gymnasium.vector.SyncVectorEnv([GymCounter]),
            r"ObserverVectorWrapper\(env, observer\)",
        ),
        (
            termdp.gym.ObserverWrapper(GymCounter(), OBSERVER),
            r"ObserverWrapper\(env, observer\)",
        ),
    ],
)
def test_gymnasium_environments_have_their_own_wrapper(env, wrapper):
    message = rf"a JAX environment .* got the Gymnasium .*: use termdp\.gym\.{wrapper}"
    with pytest.raises(ValueError, match=message):
        termdp.observe(env, OBSERVER)


def test_what_has_not_the_api():
    with pytest.raises(
        ValueError, match="got SimpleNamespace without step, default_pa"
    ):
        termdp.observe(types.SimpleNamespace(reset=print), OBSERVER)


class Changed(Counter):
    """The counter with another step; `change` gets and returns the six values."""

    def __init__(self, change):
        self.change = change

    def step(self, key, state, action, params=None):
        return self.change(*super().step(key, state, action, params))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda o, s, r, te, tr, i: (o, s, r[None], te, tr, i),
            r"a reward that is one number, got float32\[1\]: .*reward\[0\]",
        ),
        (
            lambda o, s, r, te, tr, i: (o, s, {"speed": r}, te, tr, i),
            "a reward that is one number, got a dict of speed",
        ),
        (
            lambda o, s, r, te, tr, i: (o, s, r, te[None], tr, i),
            r"a terminated that is one number, got bool\[1\]",
        ),
        (
            lambda o, s, r, te, tr, i: (o, s, r, te, i),
            r"six values \(observation, state, .* got 5 values",
        ),
        (lambda o, s, r, te, tr, i: o, "six values .* got one value"),
        (
            lambda o, s, r, te, tr, i: (o, s, float(r), te, tr, i),
            r"expected env.step that JAX can trace, got float\(\)",
        ),
    ],
)
def test_steps_that_are_malformed(change, message):
    with pytest.raises(ValueError, match=message):
        termdp.observe(Changed(change), OBSERVER)


@pytest.mark.parametrize(
    ("make", "got"),
    [
        (lambda obs: {"time": obs[0], "total": obs[1]}, "a dict of time, total"),
        (lambda obs: (obs[0], obs[1]), "a tuple of 2"),
    ],
)
def test_observations_are_one_array(make, got):
    class Parts(Counter):
        def get_obs(self, state, params=None, key=None):
            return make(super().get_obs(state))

    with pytest.raises(ValueError, match=f"one array, got {got}: .*jnp.concatenate"):
        termdp.observe(Parts(), OBSERVER)


def test_a_reset_returns_two_values():
    class Resets(Counter):
        def reset(self, key, params=None):
            return super().reset(key, params)[0]

    with pytest.raises(ValueError, match=r"\(observation, state\), got float32\[2\]"):
        termdp.observe(Resets(), OBSERVER)
