"""A Brax environment plays by our contract, and trains on the device."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import termdp
from termdp.wrappers.brax import from_brax

pytestmark = [
    pytest.mark.slow,
    # Brax says of itself that it is no longer maintained, with several warnings.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def env():
    return from_brax("fast", max_steps=4)


def test_it_plays_by_our_contract(env):
    params = env.default_params
    seen, state = env.reset(jax.random.key(0), params)
    assert seen.shape == env.observation_space(params).shape
    action = jnp.zeros(env.action_space(params).shape)
    limits = []
    for step in range(8):
        _, state, reward, over, truncated, info = env.step(
            jax.random.key(step), state, action, params
        )
        limits.append(bool(truncated))
        assert np.isfinite(reward) and not over
        assert info["final_observation"].shape == seen.shape
    assert limits == [False, False, False, True] * 2


def test_it_trains_under_an_observer(env):
    observer = termdp.Observer(lambda o, a: 5.0 * jnp.abs(a[0]), window=2, bias=3.0)
    result = termdp.train(
        env,
        "pg",
        steps=32,
        observer=observer,
        num_envs=4,
        rollout_steps=8,
        hidden=4,
        num_epochs=1,
        num_minibatches=2,
    )
    assert 0 < result.summary["seeds"][0]["stop_rate"] <= 1


def test_what_is_missing_is_told(monkeypatch):
    with pytest.raises(ValueError, match="name of a Brax environment, got 'nothing'"):
        from_brax("nothing")
    monkeypatch.setitem(sys.modules, "brax", None)
    with pytest.raises(ValueError, match=r"pip install 'termdp\[brax\]'"):
        from_brax("ant")
