"""Accumulated learned costs over several rollouts, against a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termdp.agents.method_params import method_params
from termdp.agents.methods import find_method
from termdp.runs import cost_features

LENGTH, CHANNELS, ENVS, MEMORY, ROLLOUTS = 5, 2, 3, 4, 3


def one_rollout(memory, costs, starts, ended, window):
    """What the loop does with one rollout: sums after it, sums seen while playing."""

    def step(recent, row):
        cost, end = row
        before = cost_features.recent_sums(recent, window)
        recent = cost_features.remember(recent, cost)
        return jnp.where(end, 0.0, recent), before

    last, before = jax.lax.scan(step, memory, (costs, ended))
    sums = cost_features.sums_with_history(memory, costs, starts, window)
    after = cost_features.memory_after(memory, costs, starts, ended[-1])
    return sums, before, last, after


play = jax.jit(one_rollout)


def walk(costs, starts, window):
    """C_t of one stream, episode by episode, in plain Python; also C before acting."""
    after, before, episode = [], [], []
    for cost, start in zip(costs, starts, strict=True):
        if start:
            episode = []
        before.append(sum(episode[-window:], np.zeros(CHANNELS)))
        episode.append(cost)
        after.append(sum(episode[-window:], np.zeros(CHANNELS)))
    return np.array(after), np.array(before), episode


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    window=st.integers(1, MEMORY),
    end_rate=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_sums_over_rollouts_equal_the_twin(seed, window, end_rate):
    rng = np.random.default_rng(seed)
    total = ROLLOUTS * LENGTH
    costs = rng.integers(-9, 10, (total, CHANNELS, ENVS)).astype(np.float32)
    ended = rng.random((total, ENVS)) < end_rate
    starts = np.concatenate([np.ones((1, ENVS), bool), ended[:-1]])
    memory = jnp.zeros((MEMORY, CHANNELS, ENVS))
    sums, before = [], []
    for first in range(0, total, LENGTH):
        part = slice(first, first + LENGTH)
        now, seen, last, memory = play(
            memory, costs[part], starts[part], ended[part], window
        )
        sums.append(now)
        before.append(seen)
        # Both ways of keeping the memory agree.
        np.testing.assert_array_equal(last, memory)
    for env in range(ENVS):
        after, seen, episode = walk(costs[..., env], starts[:, env], window)
        np.testing.assert_array_equal(np.concatenate(sums)[..., env], after)
        np.testing.assert_array_equal(np.concatenate(before)[..., env], seen)
        kept = np.zeros((MEMORY, CHANNELS))
        recent = [] if ended[-1, env] else episode[-MEMORY:]
        if recent:
            kept[-len(recent) :] = recent
        np.testing.assert_array_equal(memory[..., env], kept)


def test_features_by_hand_and_zero_for_who_sees_no_costs():
    logit, cost = jnp.array([0.0, np.log(3.0)]), jnp.array([5.0, -10.0])
    seen = cost_features.features(method_params(find_method("termpg"), 30), logit, cost)
    # C over 5, and ρ(z).
    np.testing.assert_allclose(seen, [[1.0, 0.5], [-2.0, 0.75]], rtol=1e-6)
    seen = cost_features.features(method_params(find_method("oracle"), 30), logit, cost)
    np.testing.assert_allclose(seen, [[1.0, 0.5], [-2.0, 0.75]], rtol=1e-6)
    seen = cost_features.features(method_params(find_method("pg"), 30), logit, cost)
    assert seen.tolist() == [[0.0, 0.0], [0.0, 0.0]]


class Ensemble:
    """Three members with biases 1, 2, 6 as `ensemble` would store them."""

    class average:  # noqa: N801
        bias = jnp.array([1.0, 2.0, 6.0])


def accumulated(**changes):
    numbers = method_params(find_method("termpg", **changes), 30)
    # Members' window sums 4, 5, 12; then the optimistic channel's: 3.
    sums = jnp.array([4.0, 5.0, 12.0, 3.0])[:, None]
    found = cost_features.accumulate(numbers, Ensemble, sums)
    return jax.tree.map(lambda x: float(x[0]), found)


def test_accumulate_by_hand():
    found = accumulated(optimism="min")
    # z = C − b̄ = 3 − 3; the policy sees z + b̄; U = 12 − 4; the mean of 4, 5, 12.
    assert (found.logit, found.policy_input) == (0.0, 3.0)
    assert (found.uncertainty, found.mean) == (8.0, 7.0)
    spread = accumulated(uncertainty="std").uncertainty
    assert spread == pytest.approx(np.std([4.0, 5.0, 12.0]))


def test_what_the_policy_sees_of_c_has_bounds():
    # b̄ = 3: from 50 below 0 to 50 above b̄. The discount sees all of it.
    for optimistic, seen in (
        (-400.0, -50.0),
        (-49.0, -49.0),
        (52.0, 52.0),
        (80.0, 53.0),
    ):
        sums = jnp.array([0.0, 0.0, 0.0, optimistic])[:, None]
        numbers = method_params(find_method("termpg", optimism="min"), 30)
        found = cost_features.accumulate(numbers, Ensemble, sums)
        assert float(found.policy_input[0]) == seen
        assert float(found.logit[0]) == optimistic - 3.0


def test_accumulate_with_the_smallest_logit():
    # C_m − b_m = 3, 3, 6; the policy sees 3 + b̄ = 6.
    found = accumulated(optimism="logit")
    assert (found.logit, found.policy_input) == (3.0, 6.0)
