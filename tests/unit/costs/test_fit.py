"""One gradient step against a NumPy twin, and what an update promises."""

from dataclasses import replace
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offline_costs.episodes import Episode, from_episodes
from termdp.cost_network import ActionSpec
from termdp.costs import ensemble, fit
from termdp.costs.buffer import STOPPED
from termdp.costs.config import CostConfig
from termdp.costs.experience import stop_rate
from termdp.costs.sampling import Segments, sample

CONFIG = CostConfig(
    segment_length=16,
    segments_per_step=4,
    num_steps=3,
    network="vector",
    hidden=8,
    buffer_steps=256,
)
WINDOW = 3


class LinearCost(nn.Module):
    """c(s, a) = v·s, the smallest cost network."""

    @nn.compact
    def __call__(self, obs, actions):
        del actions
        weights = self.param("v", nn.initializers.zeros_init(), (obs.shape[-1],))
        return obs @ weights


def random_segments(rng, members=2, length=10, count=3, size=2):
    shape = (members, length, count)
    return Segments(
        obs=jnp.asarray(rng.normal(size=(*shape, size)), jnp.float32),
        actions=jnp.zeros(shape, int),
        starts=jnp.asarray(rng.random(shape) < 0.2),
        labels=jnp.asarray(rng.random(shape) < 0.3, jnp.float32),
        weights=jnp.asarray(rng.integers(3, size=shape), jnp.float32),
        expected_steps=jnp.asarray(17.0),
    )


def twin_gradient(v, bias, segments, member):
    """Window by window: dLoss/dv and dLoss/db of one member."""
    obs, starts, labels, weights = (
        np.asarray(x[member], np.float64)
        for x in (segments.obs, segments.starts, segments.labels, segments.weights)
    )
    dv, db = np.zeros_like(v), 0.0
    for s in range(obs.shape[1]):
        for t in range(obs.shape[0]):
            first = t
            while first > max(0, t - WINDOW + 1) and not starts[first, s]:
                first -= 1
            features = obs[first : t + 1, s].sum(axis=0)
            error = 1 / (1 + np.exp(bias - features @ v)) - labels[t, s]
            dv += weights[t, s] * error * features
            db -= weights[t, s] * error
    return dv / 17.0, db / 17.0


@pytest.mark.slow
def test_gradient_equals_the_twin_that_goes_window_by_window():
    rng = np.random.default_rng(0)
    segments = random_segments(rng)
    v, bias = rng.normal(size=(2, 2)), np.array([1.0, 2.0])
    params = ensemble.CostParams(
        network={"v": jnp.asarray(v, jnp.float32)}, bias=jnp.asarray(bias, jnp.float32)
    )
    gradient_of = jax.jit(jax.grad(fit.ensemble_loss, has_aux=True), static_argnums=1)
    gradient, _ = gradient_of(params, LinearCost(), segments, WINDOW)
    for member in range(2):
        dv, db = twin_gradient(v[member], bias[member], segments, member)
        np.testing.assert_allclose(gradient.network["v"][member], dv, rtol=1e-4)
        assert float(gradient.bias[member]) == pytest.approx(db, rel=1e-4)


def episodes(rng, count=40):
    return [
        Episode(
            obs=rng.normal(size=(n, 2)).astype(np.float32),
            actions=rng.integers(3, size=n),
            end=("stopped", "truncated", "game_over")[rng.integers(3)],
        )
        for n in rng.integers(3, 20, size=count)
    ]


@pytest.fixture(scope="module")
def buffer():
    rng = np.random.default_rng(0)
    return from_episodes(jax.random.key(0), episodes(rng), ActionSpec(3), CONFIG)


@pytest.fixture(scope="module")
def state():
    init = jax.jit(ensemble.init, static_argnums=(2, 3))
    return init(jax.random.key(1), jnp.zeros(2), ActionSpec(3), CONFIG)


update = jax.jit(fit.update, static_argnames="config")


@pytest.mark.slow
def test_initial_bias_on_hand_worked_numbers(state):
    # (9 + 1) / (98 + 2) = 0.1, −logit = log 9
    expected = np.log(9.0) + 1.5
    assert float(ensemble.initial_bias(9, 98, 1.5)) == pytest.approx(expected)
    config = replace(CONFIG, bias_offset=1.5)
    first = ensemble.with_initial_bias(state, 9, 98, config)
    np.testing.assert_allclose(first.params.bias, expected, rtol=1e-6)
    again = ensemble.with_initial_bias(first, 50, 98, config)
    np.testing.assert_array_equal(again.params.bias, first.params.bias)


def test_no_stop_at_all_gives_a_finite_bias():
    assert np.isfinite(float(ensemble.initial_bias(0, 4096, 2.0)))
    assert np.isfinite(float(ensemble.initial_bias(4096, 4096, 2.0)))


@pytest.mark.slow
def test_first_bias_steps_are_ten_times_the_learning_rate(state, buffer):
    config = replace(CONFIG, num_steps=1)
    after, _ = update(jax.random.key(0), state, buffer, WINDOW, config=config)
    moved = np.abs(np.asarray(after.params.bias - state.params.bias))
    np.testing.assert_allclose(moved, 10 * CONFIG.learning_rate, rtol=1e-3)


def test_the_step_size_falls_like_one_over_the_root_of_steps():
    falling = replace(CONFIG, learning_rate=0.3, rate_decay_steps=100)
    rates = [float(fit.learning_rate(falling, count)) for count in (0, 100, 300, 800)]
    assert rates == pytest.approx([0.3, 0.3 / 2**0.5, 0.15, 0.1])
    assert fit.learning_rate(CONFIG, jnp.asarray(10**6)) == CONFIG.learning_rate


@pytest.mark.slow
def test_predictions_use_a_running_mean_unless_told_not_to(state, buffer):
    config = replace(CONFIG, num_steps=2)
    for averaging, same in ((0.0, True), (0.9, False)):
        chosen = replace(config, averaging=averaging)
        after, _ = update(jax.random.key(0), state, buffer, WINDOW, config=chosen)
        assert np.array_equal(after.average.bias, after.params.bias) == same


@pytest.mark.slow
def test_members_learn_apart(state, buffer):
    """Changing one member changes nothing in what the others learn."""
    run = jax.jit(partial(fit.update, config=CONFIG))
    key = jax.random.key(3)
    first = np.array([2.0, 1.0, 1.0], np.float32)
    scaled = jax.tree.map(lambda x: (np.asarray(x).T * first).T, state.params)
    plain, _ = run(key, state, buffer, WINDOW)
    other, _ = run(key, replace(state, params=scaled), buffer, WINDOW)
    for a, b in zip(
        jax.tree.leaves(plain.params), jax.tree.leaves(other.params), strict=True
    ):
        np.testing.assert_allclose(a[1:], b[1:], rtol=1e-6)
    kernel = state.params.network["Dense_0"]["kernel"]
    assert not np.array_equal(kernel[0], kernel[1])


@pytest.mark.slow
def test_update_compiles_once_for_all_windows_and_under_vmap(state, buffer):
    run = jax.jit(partial(fit.update, config=CONFIG))
    for window in (1, 5, 16):
        _, metrics = run(jax.random.key(0), state, buffer, jnp.asarray(window))
        assert np.isfinite(float(metrics.loss))
    assert run._cache_size() == 1
    windows = jnp.array([1, 5, 16])
    keys = jax.random.split(jax.random.key(0), 3)
    one = partial(fit.update, config=CONFIG)
    runs = jax.jit(jax.vmap(one, in_axes=(0, None, None, 0)))
    together, _ = runs(keys, state, buffer, windows)
    alone, _ = run(keys[1], state, buffer, windows[1])
    np.testing.assert_allclose(together.params.bias[1], alone.params.bias, rtol=1e-5)


def without_stops(buffer, members):
    """The buffer in which stops have no weight for these members."""
    stopped = (buffer.labels == STOPPED)[..., None]
    mine = jnp.isin(jnp.arange(buffer.weights.shape[-1]), jnp.asarray(members))
    weights = jnp.where(stopped & mine, 0, buffer.weights)
    return replace(buffer, weights=weights)


@pytest.mark.slow
def test_a_member_without_a_stop_in_its_data_stays_as_it_is(state, buffer):
    """Else its costs would fall for ever."""
    run = jax.jit(partial(fit.update, config=CONFIG))

    def changed(experience, member):
        after, _ = run(jax.random.key(2), state, experience, WINDOW)
        moments = (after.optimiser.mu, after.optimiser.nu)
        before = (state.params, state.average, state.optimiser.mu, state.optimiser.nu)
        pairs = zip(
            jax.tree.leaves((after.params, after.average, *moments)),
            jax.tree.leaves(before),
            strict=True,
        )
        return any(not np.array_equal(a[member], b[member]) for a, b in pairs)

    one = without_stops(buffer, [1])
    assert [changed(one, m) for m in range(3)] == [True, False, True]
    none = without_stops(buffer, [0, 1, 2])
    assert not any(changed(none, m) for m in range(3))
    after, _ = run(jax.random.key(2), state, none, WINDOW)
    assert int(after.optimiser.count) == 0


def test_member_costs_take_any_leading_shape(state):
    obs = jax.random.normal(jax.random.key(0), (4, 5, 2))
    actions = jnp.ones((4, 5), int)
    costs = ensemble.member_costs(state, obs, actions)
    assert costs.shape == (3, 4, 5)
    single = ensemble.member_costs(state, obs[1, 2], actions[1, 2])
    np.testing.assert_allclose(costs[:, 1, 2], single, atol=1e-6)


@pytest.mark.parametrize(
    ("network", "shape"),
    [("grid", (10, 10, 4)), ("image", (10, 10, 2)), ("vector", (3,))],
)
@pytest.mark.parametrize("discrete", [True, False])
def test_every_network_takes_every_action(network, shape, discrete):
    config = replace(CONFIG, network=network)
    spec = ActionSpec(2, discrete)
    actions = jnp.zeros(5, int) if discrete else jnp.zeros((5, 2))
    obs = jnp.ones((5, *shape), bool)

    def costs(key):
        state = ensemble.init(key, obs[0], spec, config)
        return ensemble.member_costs(state, obs, actions)

    assert jax.eval_shape(costs, jax.random.key(0)).shape == (3, 5)


def test_costs_are_positive_on_request_only(state):
    obs, actions = jax.random.normal(jax.random.key(0), (50, 2)), jnp.ones(50, int)
    assert float(ensemble.member_costs(state, obs, actions).min()) < 0
    network = replace(state.network, nonnegative=True)
    positive = ensemble.member_costs(replace(state, network=network), obs, actions)
    assert float(positive.min()) > 0


@pytest.mark.parametrize("window", [0, 17])
def test_windows_that_do_not_fit_are_refused(state, buffer, window):
    with pytest.raises(ValueError, match="expected a window"):
        fit.update(jax.random.key(0), state, buffer, window, CONFIG)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("members", 0, "cost_members to be a whole number of at least 1, got 0"),
        ("learning_rate", 0.0, "cost_learning_rate to be a number above 0"),
        (
            "rate_decay_steps",
            0,
            "cost_rate_decay_steps to be a whole number of at least 1 or none",
        ),
        ("network", "cnn", "cost_network to be one of"),
        ("draw", "windows", "cost_draw to be one of"),
        ("segment_length", 1000, "at most buffer_steps"),
    ],
)
def test_settings_that_cannot_work_are_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **{field: value})


@pytest.mark.slow
@pytest.mark.parametrize("num_steps", [3, 34, 37])
def test_an_update_is_its_steps_one_after_the_other(state, buffer, num_steps):
    # 34 steps are drawn 17 at a time, 37 one by one.
    config = replace(CONFIG, num_steps=num_steps)
    key = jax.random.key(5)
    updated, _ = update(key, state, buffer, WINDOW, config=config)
    window = jnp.asarray(WINDOW)
    sparsity = config.sparsity * stop_rate(buffer)
    by_hand = state
    draw = jax.jit(partial(sample, config=config))
    one = jax.jit(partial(fit.gradient_step, config=config))
    for step_key in jax.random.split(key, num_steps):
        segments = draw(step_key, buffer, window)
        by_hand, _ = one(by_hand, segments, window, sparsity)
    assert int(updated.optimiser.count) == num_steps
    for ours, theirs in zip(
        jax.tree.leaves(updated.params), jax.tree.leaves(by_hand.params), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)


@pytest.mark.slow
def test_bfloat16_changes_costs_and_gradients_by_rounding_alone():
    rng = np.random.default_rng(3)
    obs = jnp.asarray(rng.random((6, 10, 10, 4)) < 0.3)
    actions = jnp.asarray(rng.integers(3, size=6))
    config = CostConfig(network="grid")
    coarse = replace(config, precision="bfloat16")
    init = jax.jit(ensemble.init, static_argnums=(2, 3))
    state = init(jax.random.key(0), obs[0], ActionSpec(3), config)
    network = ensemble.make_network(ActionSpec(3), coarse)

    @partial(jax.jit, static_argnums=1)
    def total(weights, which):
        return jnp.sum(ensemble.apply_member(which, weights, obs, actions) ** 2)

    weights = jax.tree.map(lambda x: x[0], state.params.network)
    exact, cast_kernels = total(weights, state.network), total(weights, network)
    assert cast_kernels.dtype == jnp.float32
    assert float(exact) != float(cast_kernels)
    assert float(cast_kernels) == pytest.approx(float(exact), rel=0.05)
    for g, h in zip(
        jax.tree.leaves(jax.grad(total)(weights, state.network)),
        jax.tree.leaves(jax.grad(total)(weights, network)),
        strict=True,
    ):
        assert h.dtype == jnp.float32
        assert float(jnp.linalg.norm(g - h)) <= 0.05 * float(jnp.linalg.norm(g))


def test_precision_follows_the_machine_and_bad_ones_are_refused():
    network = ensemble.make_network(ActionSpec(3), CostConfig(precision="auto"))
    expected = "float32" if jax.default_backend() == "cpu" else "bfloat16"
    assert network.precision == expected
    with pytest.raises(ValueError, match="cost_precision to be one of"):
        CostConfig(precision="float16")
