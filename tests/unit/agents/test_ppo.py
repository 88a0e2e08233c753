"""The pieces of PPO by hand, and its minibatches."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from termdp.agents import a2c, ppo
from termdp.agents.actor_critic import (
    ActorCritic,
    PolicyInput,
    RecurrentActorCritic,
    make_torso,
)
from termdp.agents.distributions import Discrete
from termdp.agents.update import (
    Examples,
    Learner,
    PolicyState,
    cast_kernels,
    forward,
    split,
    standardise,
)
from termdp.agents.value_scale import to_values

T, B = 6, 4


def test_clipped_surrogate_takes_the_smaller():
    ratio = jnp.array([1.5, 0.5, 1.5, 0.5, 1.1])
    advantage = jnp.array([2.0, 2.0, -2.0, -2.0, 2.0])
    # clip 0.3: gains stop at 1.3, losses are not softened.
    expected = [2.6, 1.0, -3.0, -1.4, 2.2]
    np.testing.assert_allclose(ppo.clipped_surrogate(ratio, advantage, 0.3), expected)


def test_clipped_value_loss_takes_the_larger():
    # old 0, clip 10, target 20. V = 15: near 10 -> max(25, 100).
    # V = −3: inside, (−23)². V = 30, target 20: near 10 -> max(100, 100).
    value, old = jnp.array([15.0, -3.0, 30.0]), jnp.zeros(3)
    loss = ppo.clipped_value_loss(value, old, jnp.full(3, 20.0), 10.0)
    assert loss.tolist() == [100.0, 529.0, 100.0]


@pytest.mark.parametrize(
    ("kl", "factor"), [(0.021, 1.5), (0.019, 1.0), (0.0051, 1.0), (0.0049, 0.5)]
)
def test_kl_coefficient_follows_its_target(kl, factor):
    coef = ppo.adapt_kl_coef(jnp.float32(0.2), jnp.float32(kl), 0.01)
    assert float(coef) == pytest.approx(0.2 * factor)


def test_standardise_by_hand():
    # mean 2, deviation √(((−1)² + 0 + 1²) / 3)
    np.testing.assert_allclose(
        standardise(jnp.array([1.0, 2.0, 3.0])), np.array([-1, 0, 1]) * np.sqrt(1.5)
    )
    assert standardise(jnp.full(4, 7.0)).tolist() == [0.0] * 4


def make_learner(recurrent):
    torso = make_torso("vector", 0, 8)
    network = (
        RecurrentActorCritic(torso, 3, cell_size=5)
        if recurrent
        else ActorCritic(torso, 3)
    )
    return Learner(network, Discrete(3), recurrent, optax.adam(1e-3))


def unroll(learner, *args):
    return jax.jit(partial(learner.network.apply, method="unroll"))(*args)


def make_examples(learner, carry=None):
    """A rollout whose entries are all different, so that each can be recognised."""
    number = jnp.arange(T * B, dtype=jnp.float32).reshape(T, B)
    inputs = PolicyInput(
        jnp.stack([number, -number], axis=-1), jnp.stack([number, 0 * number], -1)
    )
    return Examples(
        inputs=inputs,
        starts=(number % 5) == 0,
        carry=learner.network.initial_carry((B,)) if carry is None else carry,
        actions=(number % 3).astype(jnp.int32),
        dist_params=jnp.stack([number, number + 1, number + 2], axis=-1),
        values=100 + number,
        advantages=200 + number,
        targets=300 + number,
    )


def test_split_gives_each_step_exactly_once(key):
    learner = make_learner(recurrent=False)
    batches = split(learner, make_examples(learner), key, 3)
    number = np.asarray(batches.inputs.observation[..., 0])
    assert number.shape == (3, 8)
    assert sorted(number.ravel()) == list(range(T * B))
    assert number.ravel().tolist() != sorted(number.ravel()), "not shuffled"
    # What belongs together stays together.
    np.testing.assert_array_equal(batches.values, 100 + number)
    np.testing.assert_array_equal(batches.advantages, 200 + number)
    np.testing.assert_array_equal(batches.targets, 300 + number)
    np.testing.assert_array_equal(batches.actions, number % 3)
    np.testing.assert_array_equal(batches.dist_params[..., 2], number + 2)
    np.testing.assert_array_equal(batches.starts, number % 5 == 0)


def test_split_keeps_sequences_whole_and_with_their_memory(key):
    learner = make_learner(recurrent=True)
    of_env = jnp.broadcast_to(jnp.arange(B, dtype=jnp.float32)[:, None], (B, 5))
    batches = split(learner, make_examples(learner, (of_env, 10 * of_env)), key, 2)
    number = np.asarray(batches.inputs.observation[..., 0])
    assert number.shape == (2, 2, T)
    env = number[..., 0]
    assert sorted(env.ravel()) == list(range(B))
    np.testing.assert_array_equal(number, env[..., None] + B * np.arange(T))
    np.testing.assert_array_equal(batches.carry[0][..., 0], env)
    np.testing.assert_array_equal(batches.carry[1][..., 0], 10 * env)
    np.testing.assert_array_equal(batches.values, 100 + number)


def test_a_recurrent_rollout_of_few_environments_has_fewer_minibatches(key):
    # The paper preset: 8 environments, 32 minibatches. A sequence cannot be cut.
    learner = make_learner(recurrent=True)
    batches = split(learner, make_examples(learner), key, 32)
    assert batches.values.shape == (B, 1, T)


def updated(precision, key):
    """Parameters before and after an update of a policy that sees grids."""
    network = ActorCritic(make_torso("grid", 4, 64, precision), 3)
    learner = Learner(network, Discrete(3), False, optax.sgd(1e-3))
    rng = np.random.default_rng(0)
    grids = jnp.asarray(rng.random((T, B, 6, 6, 2)) < 0.3)
    inputs = PolicyInput(grids, jnp.asarray(rng.random((T, B, 2)), jnp.float32))
    examples = make_examples(learner)
    examples = dataclasses.replace(
        examples,
        inputs=inputs,
        dist_params=jnp.zeros((T, B, 3)),
        values=jnp.zeros((T, B)),
        targets=jnp.asarray(rng.normal(size=(T, B)), jnp.float32),
    )
    params = network.init(jax.random.key(1), (), jax.tree.map(lambda x: x[0], inputs))
    state = PolicyState(params, learner.optimiser.init(params), jnp.float32(0.2))
    config = ppo.PPOConfig(num_epochs=3, num_minibatches=8, kl_target=0.01)
    update = jax.jit(partial(ppo.update, learner, config=config))
    after = update(state, examples, key)[0].params
    change = jax.tree.map(lambda a, b: a - b, after, params)
    return len(cast_kernels(learner, params)), ravel_pytree(change)[0]


@pytest.mark.slow
def test_an_update_in_low_precision_is_nearly_the_update(key):
    num_exact, exact = updated("float32", key)
    num_rounded, rough = updated("bfloat16", key)
    assert (num_exact, num_rounded) == (0, 1)  # the dense layer's kernel
    assert rough.dtype == jnp.float32
    error = np.linalg.norm(rough - exact) / np.linalg.norm(exact)
    assert 0 < error < 0.03


def test_parts_that_do_not_divide_are_named(key):
    learner = make_learner(recurrent=False)
    with pytest.raises(ValueError, match="24 steps .* 5 minibatches"):
        split(learner, make_examples(learner), key, 5)


@pytest.mark.slow
def test_unrolling_is_stepping_with_resets_at_starts(key):
    learner = make_learner(recurrent=True)
    k1, k2, k3, k4 = jax.random.split(key, 4)
    carry = (jax.random.normal(k1, (B, 5)), jax.random.normal(k2, (B, 5)))
    inputs = PolicyInput(jax.random.normal(k3, (T, B, 2)), jnp.zeros((T, B, 2)))
    starts = np.zeros((T, B), bool)
    starts[0, 0] = starts[2, 1] = starts[5, 3] = True
    first = jax.tree.map(lambda x: x[0], inputs)
    params = jax.jit(learner.network.init)(k4, carry, first)
    step = jax.jit(learner.network.apply)
    policies, values = unroll(learner, params, carry, inputs, jnp.asarray(starts))
    memory = [np.array(c) for c in carry]
    for t in range(T):
        for part in memory:
            part[starts[t]] = 0.0
        row = jax.tree.map(lambda x, t=t: x[t], inputs)
        after, (policy, value) = step(params, tuple(memory), row)
        np.testing.assert_allclose(policies[t], policy, atol=1e-5)
        np.testing.assert_allclose(values[t], value, atol=1e-5)
        memory = [np.array(c) for c in after]


@pytest.mark.slow
def test_forward_of_minibatches_is_the_unrolled_rollout(key):
    learner = make_learner(recurrent=True)
    k1, k2, k3 = jax.random.split(key, 3)
    carry = (jax.random.normal(k1, (B, 5)), jax.random.normal(k2, (B, 5)))
    examples = make_examples(learner, carry)
    first = jax.tree.map(lambda x: x[0], examples.inputs)
    params = jax.jit(learner.network.init)(k3, carry, first)
    _, values = unroll(learner, params, carry, examples.inputs, examples.starts)
    batches = split(learner, examples, key, 2)
    of_batch = jax.jit(lambda batch: forward(learner, params, batch))
    for index in range(2):
        batch = jax.tree.map(lambda x, index=index: x[index], batches)
        env = np.asarray(batch.inputs.observation[:, 0, 0]).astype(int)
        found = of_batch(batch)[1]
        np.testing.assert_allclose(found, np.asarray(values)[:, env].T, atol=1e-5)


def acted_examples(learner, params, key):
    """A rollout as the network itself would have acted, advantage for action 0."""
    observations = jax.random.normal(key, (T, B, 2))
    inputs = PolicyInput(observations, jnp.zeros((T, B, 2)))
    policy, values = unroll(learner, params, (), inputs, jnp.zeros((T, B), bool))
    actions = learner.distribution.sample(key, policy)
    advantages = jnp.where(actions == 0, 1.0, -1.0)
    return Examples(
        inputs=inputs,
        starts=jnp.zeros((T, B), bool),
        carry=(),
        actions=actions,
        dist_params=policy,
        values=values,
        advantages=advantages,
        targets=values + 1.0,
    )


def start_learning(key):
    learner = make_learner(recurrent=False)
    inputs = PolicyInput(jnp.zeros((B, 2)), jnp.zeros((B, 2)))
    params = jax.jit(learner.network.init)(key, (), inputs)
    return learner, PolicyState(
        params, learner.optimiser.init(params), jnp.float32(0.2)
    )


def test_ppo_loss_by_hand_where_nothing_has_changed_yet(key):
    learner, state = start_learning(key)
    examples = acted_examples(learner, state.params, key)
    batch = jax.tree.map(lambda x: x[0], split(learner, examples, key, 1))
    config = ppo.PPOConfig(value_coef=3.0, entropy_coef=0.5)
    loss = jax.jit(lambda params: ppo.loss(params, learner, batch, 0.2, config))
    total, parts = loss(state.params)
    # Ratio 1, KL 0; each value is 1 from its target.
    assert float(parts["kl"]) == pytest.approx(0.0, abs=1e-6)
    assert float(parts["value_loss"]) == pytest.approx(1.0, rel=1e-5)
    mean_advantage = float(jnp.mean(examples.advantages))
    assert float(parts["policy_loss"]) == pytest.approx(-mean_advantage, abs=1e-6)
    expected = -mean_advantage + 3.0 - 0.5 * float(parts["entropy"])
    assert float(total) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "update",
    [
        lambda *args: ppo.update(*args, ppo.PPOConfig(num_epochs=2, num_minibatches=3)),
        lambda *args: a2c.update(*args, a2c.A2CConfig()),
    ],
    ids=["ppo", "a2c"],
)
def test_an_update_makes_the_better_action_likelier(update, key):
    learner, state = start_learning(key)
    examples = acted_examples(learner, state.params, key)
    new, report = jax.jit(lambda *args: update(learner, *args))(state, examples, key)
    policy, outputs = unroll(learner, new.params, (), examples.inputs, examples.starts)
    values = to_values(new.value_scale, outputs)
    gain = jax.nn.log_softmax(policy) - jax.nn.log_softmax(examples.dist_params)
    assert float(gain[..., 0].mean()) > 0
    assert float(jnp.mean(values - examples.values)) > 0
    assert all(np.isfinite(float(value)) for value in report.values())


@pytest.mark.parametrize(
    ("algorithm", "updates"),
    [
        (ppo.PPOConfig(learning_rate=0.5, num_epochs=2, num_minibatches=3), 6),
        (a2c.A2CConfig(learning_rate=0.5), 1),
    ],
    ids=["ppo", "a2c"],
)
def test_the_rate_of_every_algorithm_falls_to_zero_with_its_last_update(
    algorithm, updates
):
    assert algorithm.updates() == updates
    iterations = 4
    optimiser = algorithm.make_optimiser(iterations)
    state = optimiser.init(jnp.zeros(()))
    sizes = []
    for _ in range(iterations * updates + 1):
        # A constant gradient: Adam's steps are as long as its rate.
        change, state = optimiser.update(jnp.full((), 0.1), state)
        sizes.append(-float(change))
    expected = 0.5 * (1 - np.arange(len(sizes)) / (iterations * updates))
    np.testing.assert_allclose(sizes, expected, rtol=1e-3, atol=1e-6)
    assert sizes[-1] == 0.0


def test_a_constant_rate_stays():
    optimiser = a2c.A2CConfig(anneal=False, learning_rate=0.5).make_optimiser(1)
    state = optimiser.init(jnp.zeros(()))
    for _ in range(5):
        change, state = optimiser.update(jnp.full((), 0.1), state)
    assert float(change) == pytest.approx(-0.5, rel=1e-3)
