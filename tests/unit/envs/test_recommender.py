"""The recommender: rules by hand, cost by hand, policies as calibrated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termdp import Observer, observe
from termdp.envs.recommender import Recommender, RecommenderDraws
from termdp.envs.recommender_costs import RecommenderFatigueCost
from termdp.envs.recommender_items import Items, make_items

ENV = Recommender()
PARAMS = ENV.default_params
advance = jax.jit(ENV.advance)


def draws(choice):
    return RecommenderDraws(choice=jnp.float32(choice), drift=jnp.zeros(2))


def small_shop():
    """Two items, one category each."""
    return Items(
        value=np.array([1.0, 0.5], np.float32),
        appeal=np.array([0.0, 0.0], np.float32),
        irritation=np.array([0.1, 0.0], np.float32),
        tastes=np.array([[1.0, 0.0], [0.0, -1.0]], np.float32),
        categories=np.eye(2, dtype=np.float32),
    )


def small_game():
    env = Recommender(num_items=2, num_categories=2)
    env.items = small_shop()
    return env


def state_with(env, taste, item_exposure, category_exposure):
    _, state = env.reset(jax.random.key(0))
    return state.replace(
        taste=jnp.array(taste),
        item_exposure=jnp.array(item_exposure),
        category_exposure=jnp.array(category_exposure),
    )


def test_an_item_is_taken_with_its_probability():
    env = small_game()
    params = PARAMS.replace(match_gain=1.5, wear=0.1)
    state = state_with(env, [1.0, 0.0], [2.0, 0.0], [2.0, 0.0])
    # rho(0 + 1.5*1 - 0.1*2) and rho(0).
    expected = [1 / (1 + np.exp(-1.3)), 0.5]
    np.testing.assert_allclose(env.take_probabilities(state, params), expected, 1e-6)
    for item, value in ((0, 1.0), (1, 0.5)):
        for choice, taken in ((expected[item] - 1e-3, 1), (expected[item] + 1e-3, 0)):
            after, reward, game_over, info = env.advance(
                state, item, draws(choice), params
            )
            assert float(reward) == value * taken
            assert bool(info["taken"]) == bool(after.taken) == bool(taken)
            assert int(after.shown) == item and not game_over


def test_exposure_fades_and_grows_by_one():
    env = small_game()
    params = PARAMS.replace(memory=0.5)
    state = state_with(env, [1.0, 0.0], [2.0, 1.0], [2.0, 1.0])
    state, *_ = env.advance(state, 1, draws(0.0), params)
    np.testing.assert_allclose(state.item_exposure, [1.0, 1.5])
    np.testing.assert_allclose(state.category_exposure, [1.0, 1.5])


def test_taste_drifts_and_keeps_its_length():
    env = small_game()
    state = state_with(env, [1.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    push = RecommenderDraws(choice=jnp.float32(0), drift=jnp.array([0.0, 1.0]))
    after, *_ = env.advance(state, 0, push, PARAMS.replace(taste_drift=0.75))
    np.testing.assert_allclose(after.taste, [0.8, 0.6], 1e-6)
    still, *_ = env.advance(state, 0, push, PARAMS.replace(taste_drift=0.0))
    np.testing.assert_allclose(still.taste, [1.0, 0.0])


@pytest.mark.parametrize(
    ("item", "taste", "exposure", "crowd", "expected"),
    [
        # irritation + 0.5*exposure + 0.25*crowd + 2*max(0,-match) - max(0,match)/(1+e)
        (0, [1.0, 0.0], [0.0, 0.0], [0.0, 0.0], 0.1 - 1.0),
        (0, [1.0, 0.0], [1.0, 0.0], [2.0, 7.0], 0.1 + 0.5 + 0.5 - 0.5),
        (0, [-0.6, 0.8], [0.0, 3.0], [0.0, 0.0], 0.1 + 1.2),
        (1, [0.0, -1.0], [9.0, 3.0], [0.0, 4.0], 1.5 + 1.0 - 0.25),
    ],
)
@pytest.mark.parametrize("module", [np, jnp])
def test_cost_by_hand(item, taste, exposure, crowd, expected, module):
    cost = RecommenderFatigueCost(
        small_shop(), repetition=0.5, crowding=0.25, mismatch=2.0, relief=1.0
    )
    obs = module.asarray([*taste, *exposure, *crowd], np.float32)
    found = cost(obs, item)
    assert found.shape == () and found.dtype == np.float32
    assert float(found) == pytest.approx(expected, abs=1e-6)


def test_cost_knows_the_games_items_and_reads_its_observation():
    env = Recommender(num_items=7, num_categories=3, taste_size=4, seed=5)
    cost = jax.jit(RecommenderFatigueCost.for_game(env))
    obs, state = env.reset(jax.random.key(1))
    assert obs.shape == (14,) and obs.dtype == jnp.float32
    for number, item in enumerate([3, 3, 5, 0, 6, 3]):
        items = env.items
        match = float(np.dot(items.tastes[item], state.taste))
        exposure = float(state.item_exposure[item])
        crowd = float(state.category_exposure[item % 3])
        expected = items.irritation[item] + 0.015 * exposure + 0.01 * crowd
        expected += 0.5 * max(0, -match) - 0.6 * max(0, match) / (1 + exposure)
        assert float(cost(obs, item)) == pytest.approx(expected, abs=1e-6)
        obs, state, *_ = env.step(jax.random.key(number), state, item)


def test_repetition_tires():
    cost = RecommenderFatigueCost.for_game(ENV)
    obs, state = ENV.reset(jax.random.key(0))
    costs = []
    for number in range(8):
        costs.append(float(cost(obs, 0)))
        params = PARAMS.replace(taste_drift=0.0)
        obs, state, *_ = ENV.step(jax.random.key(number), state, 0, params)
    assert (np.diff(costs) > 0).all()


@given(st.integers(2, 30), st.integers(1, 6), st.integers(1, 5), st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_every_shop_is_well_formed(num_items, num_categories, taste_size, seed):
    items = make_items(num_items, num_categories, taste_size, seed)
    assert items.value.argmax() == 0 and (items.value > 0).all()
    assert items.irritation.argmax() == 0 and (items.irritation > 0).all()
    assert items.tastes.shape == (num_items, taste_size)
    assert (np.linalg.norm(items.tastes, axis=1) <= 1 + 1e-6).all()
    assert (items.categories.sum(axis=1) == 1).all()
    again = make_items(num_items, num_categories, taste_size, seed)
    jax.tree.map(np.testing.assert_array_equal, items, again)


def test_sessions_end_by_the_time_limit_only_and_stay_in_the_space():
    params = PARAMS.replace(max_steps_in_episode=50)
    space = ENV.observation_space(params)

    def body(carry, key):
        key_act, key_step = jax.random.split(key)
        action = jax.random.randint(key_act, (), 0, ENV.num_actions)
        obs, state, _, terminated, truncated, info = ENV.step(
            key_step, carry, action, params
        )
        inside = space.contains(obs) & space.contains(info["final_observation"])
        return state, (terminated, truncated, inside)

    _, state = ENV.reset(jax.random.key(0), params)
    keys = jax.random.split(jax.random.key(1), 150)
    _, (terminated, truncated, inside) = jax.lax.scan(body, state, keys)
    assert not terminated.any() and inside.all()
    assert np.flatnonzero(truncated).tolist() == [49, 99, 149]


def test_users_differ_and_steps_are_determined():
    tastes = jax.vmap(lambda key: ENV.reset(key)[1].taste)(
        jax.random.split(jax.random.key(0), 500)
    )
    np.testing.assert_allclose(np.linalg.norm(tastes, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(tastes.mean(axis=0), 0, atol=0.1)
    _, state = ENV.reset(jax.random.key(0))
    first, second = (ENV.step(jax.random.key(1), state, 2) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, first, second)


def test_parameters_change_without_recompiling():
    traces = []

    @jax.jit
    def step(key, state, params):
        traces.append(1)
        return ENV.step(key, state, 1, params)

    _, state = ENV.reset(jax.random.key(0), PARAMS)
    for memory in (0.5, 0.9):
        _, state, *_ = step(jax.random.key(1), state, PARAMS.replace(memory=memory))
    assert len(traces) == 1


def sessions(choose, num_sessions=200):
    """Mean length and return of first sessions under the benchmark's observer."""
    cost = RecommenderFatigueCost.for_game(ENV)
    watched = observe(ENV, Observer(cost, window=30, bias=6.0))
    params = watched.default_params

    def step(carry, key):
        state, alive = carry
        key_act, key_step = jax.random.split(key)
        action = choose(key_act, state.game, cost)
        result = watched.step(key_step, state, action, params)
        _, state, reward, terminated, truncated, _ = result
        return (state, alive & ~terminated & ~truncated), (alive, alive * reward)

    def session(key):
        key_reset, key_run = jax.random.split(key)
        _, state = watched.reset(key_reset, params)
        keys = jax.random.split(key_run, PARAMS.max_steps_in_episode)
        _, (alive, rewards) = jax.lax.scan(step, (state, jnp.bool_(True)), keys)
        return alive.sum(), rewards.sum()

    keys = jax.random.split(jax.random.key(0), num_sessions)
    lengths, returns = jax.jit(jax.vmap(session))(keys)
    return float(lengths.mean()), float(returns.mean())


@pytest.mark.slow
def test_users_leave_pushy_shops_and_stay_with_considerate_ones():
    def considerate(key, state, cost):
        del key
        actions = jnp.arange(ENV.num_actions)
        costs = jax.vmap(cost, (None, 0))(ENV.get_obs(state), actions)
        earnings = ENV.take_probabilities(state, PARAMS) * ENV.items.value
        return jnp.argmax(earnings - 2.0 * costs)

    top_length, top_return = sessions(lambda key, state, cost: 0)
    random_length, random_return = sessions(
        lambda key, state, cost: jax.random.randint(key, (), 0, ENV.num_actions)
    )
    long_length, long_return = sessions(considerate)
    assert 15 < top_length < 40
    assert 50 < random_length < 120
    assert long_length > 180
    assert top_return < random_return < 0.5 * long_return


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"num_items": 1}, "num_items to be a whole number from 2 to 4096, got 1"),
        (
            {"num_categories": 0},
            "num_categories to be a whole number from 1 to 4096, got 0",
        ),
        ({"taste_size": 0}, "taste_size to be a whole number from 1 to 4096, got 0"),
    ],
)
def test_empty_shops_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        Recommender(**sizes)
