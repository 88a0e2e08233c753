"""How often steps reach the time limit."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from termdp.runs import time_limit


def flags(*places, size=8):
    found = np.zeros((size, 1), bool)
    found[list(places)] = True
    return jnp.asarray(found)


def test_by_hand():
    none = flags()
    # 2 of 8 steps; then 1 of the 4 that nothing else had ended; then none.
    limit = time_limit.updated(time_limit.unknown(), flags(1, 5), none, 0.25)
    assert float(limit.share) == pytest.approx(2 / 8)
    limit = time_limit.updated(limit, flags(7), flags(0, 2, 4, 6), 0.25)
    assert float(limit.share) == pytest.approx((1 / 4 + 1 / 4) / 2)
    limit = time_limit.updated(limit, none, none, 0.25)
    assert float(limit.share) == pytest.approx(1 / 4 * 2 / 3)
    # From now on the newest rollout weighs a quarter.
    for _ in range(2):
        limit = time_limit.updated(limit, none, none, 0.25)
    assert float(limit.share) == pytest.approx(1 / 4 * 2 / 3 * 3 / 4 * 3 / 4)
    assert float(limit.count) == 5


def test_before_any_rollout_there_is_no_limit():
    assert float(time_limit.unknown().share) == 0


def test_a_rollout_in_which_every_step_is_an_end():
    every = jnp.ones((3, 2), bool)
    limit = time_limit.updated(time_limit.unknown(), ~every, every, 0.5)
    assert float(limit.share) == 0


@given(st.integers(1, 12), st.integers(1, 6), st.floats(0.01, 1.0))
def test_episodes_of_one_length_give_one_over_it(length, rollouts, rate):
    limit = time_limit.unknown()
    steps = np.arange(length * 5) % length == length - 1
    for _ in range(rollouts):
        truncated = jnp.asarray(steps[:, None])
        limit = time_limit.updated(limit, truncated, jnp.zeros_like(truncated), rate)
    assert float(limit.share) == pytest.approx(1 / length, rel=1e-5)
