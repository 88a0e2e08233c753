"""Scores of whole episodes: steps, rollouts and a slow twin say the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.agents.method_params import method_params
from termdp.agents.methods import find_method
from termdp.cost_network import ActionSpec
from termdp.costs import ensemble, fit
from termdp.costs.config import CostConfig
from termdp.costs.episode_scorer import UNITS, unrolled
from termdp.costs.sampling import Segments
from termdp.runs import cost_features

pytestmark = pytest.mark.slow

LENGTH, ENVS, ROLLOUTS, FEATURES = 6, 3, 3, 2
KINDS = {"sum": "ct", "gru": "traces"}


init = jax.jit(ensemble.init, static_argnums=(2, 3))


def scorer(memory, shift=0.1, **changes):
    config = CostConfig(
        network="vector", hidden=4, members=1, sparsity=0.0, memory=memory, **changes
    )
    state = init(jax.random.key(1), jnp.zeros(FEATURES), ActionSpec(3), config)
    # Larger than at the start, where all scores are nearly 0.
    params = jax.tree.map(lambda x: x + shift, state.params)
    return config, state.replace(params=params, average=params)


def stream(seed, steps, end_rate):
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(steps, ENVS, FEATURES)).astype(np.float32)
    actions = rng.integers(0, 3, (steps, ENVS))
    ended = rng.random((steps, ENVS)) < end_rate
    starts = np.concatenate([np.ones((1, ENVS), bool), ended[:-1]])
    return obs, actions, starts, ended


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def walk(state, obs, actions, starts):
    """Scores of one environment, step by step in NumPy."""
    weights = jax.tree.map(lambda x: np.asarray(x[0], float), state.average.network)
    network = state.network
    encode = jax.jit(network.encoder.apply)
    encoded = np.asarray(encode({"params": weights["encoder"]}, obs, actions))
    found, total, h = [], 0.0, np.zeros(UNITS)
    for x, start in zip(encoded, starts, strict=True):
        if start:
            total, h = 0.0, np.zeros(UNITS)
        if network.memory == "sum":
            total += x
        else:
            gates = x @ weights["inputs"]["kernel"] + weights["inputs"]["bias"]
            back = h @ weights["recurrent"]
            a, b, c = slice(0, UNITS), slice(UNITS, 2 * UNITS), slice(2 * UNITS, None)
            r, z = sigmoid(gates[a] + back[a]), sigmoid(gates[b] + back[b])
            h = (1 - z) * np.tanh(gates[c] + r * back[c]) + z * h
            total = h @ weights["head"]["kernel"][:, 0]
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize("memory", KINDS)
def test_steps_rollouts_and_the_twin_agree(memory):
    config, state = scorer(memory)
    numbers = method_params(find_method(KINDS[memory]), 30)
    bias = float(ensemble.biases(state)[0])

    @jax.jit
    def both(before, obs, actions, starts, ended):
        """What collecting sees step by step, and what is made of the rollout after."""
        costs = cost_features.prepared(state, obs[0], actions[0])

        def step(recent, row):
            obs, actions, ended = row
            seen = cost_features.so_far(numbers, costs, recent).policy_input
            recent = cost_features.after_step(numbers, costs, recent, obs, actions)
            after = cost_features.so_far(numbers, costs, recent).logit
            return jnp.where(ended, 0.0, recent), (seen, after)

        last, (seen, after) = jax.lax.scan(step, before, (obs, actions, ended))
        fresh, memory = cost_features.of_rollout(
            numbers, state, before, obs, actions, starts, ended[-1]
        )
        return last, seen, after, fresh, memory

    for seed, end_rate in enumerate([0.0, 0.2, 0.6, 1.0]):
        obs, actions, starts, ended = stream(seed, ROLLOUTS * LENGTH, end_rate)
        twin = np.stack(
            [walk(state, obs[:, e], actions[:, e], starts[:, e]) for e in range(ENVS)],
            axis=1,
        )
        before = cost_features.empty_memory(config, 30, ENVS)
        assert before.shape == (UNITS if memory == "gru" else 1, ENVS)
        for first in range(0, ROLLOUTS * LENGTH, LENGTH):
            part = slice(first, first + LENGTH)
            rows = obs[part], actions[part], starts[part], ended[part]
            last, seen, after, fresh, before = both(before, *rows)
            np.testing.assert_allclose(after, twin[part] - bias, rtol=1e-4, atol=1e-4)
            learned = fresh.accumulated
            np.testing.assert_allclose(learned.logit, after, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(
                learned.mean - fresh.bias, learned.logit, rtol=1e-4, atol=1e-4
            )
            np.testing.assert_allclose(before, last, rtol=1e-4, atol=1e-4)
            earlier = np.concatenate([np.zeros((1, ENVS)), twin])[part]
            expected = np.where(starts[part], 0.0, earlier)
            np.testing.assert_allclose(seen, expected, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(
                fresh.members[:, 0], twin[part] - expected, rtol=1e-3, atol=1e-4
            )


@pytest.mark.parametrize("memory", KINDS)
def test_the_loss_is_that_of_survival(memory):
    """−Σ_{t<T} log c_t − log(1 − c_T) over an episode that was stopped at T."""
    _, state = scorer(memory)
    obs, actions, _, _ = stream(5, 7, 0.0)
    obs, actions = obs[:, :1], actions[:, :1]
    starts = np.zeros((7, 1), bool)
    scores, _, _ = jax.jit(unrolled, static_argnums=0)(
        state.network,
        {"params": jax.tree.map(lambda x: x[0], state.params.network)},
        state.network.initial_memory((1,)),
        *(obs, actions, starts),
    )
    bias = float(state.params.bias[0])
    survival = 1 - sigmoid(np.asarray(scores, float)[:, 0] - bias)
    expected = -np.log(survival[:-1]).sum() - np.log(1 - survival[-1])
    labels = np.zeros((7, 1), np.float32)
    labels[-1] = 1.0
    segments = Segments(
        *(obs[None], actions[None], starts[None], labels[None]),
        weights=np.ones((1, 7, 1), np.float32),
        expected_steps=jnp.float32(1.0),
        offset=jnp.zeros(()),
    )
    loss_of = jax.jit(fit.ensemble_loss, static_argnums=1)
    loss, _ = loss_of(state.params, state.network, segments, jnp.int32(3))
    assert float(loss) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("memory", KINDS)
def test_it_learns_what_no_single_step_tells(memory):
    """Stops by how often action 2 was taken in the episode: known after some steps."""
    rates = {"learning_rate": 1e-2, "averaging": 0.0, "weight_decay": 0.0}
    config, state = scorer(memory, shift=0.0, **rates)
    rng = np.random.default_rng(0)
    shape = (1, 12, 64)
    actions = rng.integers(0, 3, shape)
    starts = np.zeros(shape, bool)
    starts[:, ::6] = True
    counts = np.zeros(shape)
    for t in range(12):
        before = 0 if t % 6 == 0 else counts[:, t - 1]
        counts[:, t] = before + (actions[:, t] == 2)
    labels = (counts >= 2).astype(np.float32)
    segments = Segments(
        obs=jnp.zeros((*shape, FEATURES)),
        actions=jnp.asarray(actions),
        starts=jnp.asarray(starts),
        labels=jnp.asarray(labels),
        weights=jnp.ones(shape),
        expected_steps=jnp.float32(labels.size),
        offset=jnp.zeros(()),
    )

    @jax.jit
    def steps(state):
        def one(state, _):
            return fit.gradient_step(
                state, segments, jnp.int32(3), jnp.float32(0.0), config
            )

        return jax.lax.scan(one, state, None, 300)

    _, metrics = steps(state)
    rate = labels.mean()
    guessing = -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)
    assert float(metrics.loss[-1]) < 0.2 * guessing
