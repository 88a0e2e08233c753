"""The coin cost reads from (observation, action) exactly what the game then does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.envs.backseat import LEFT, RIGHT, STAY, BackseatDriver
from termdp.envs.backseat_costs import BackseatCoinCost, BackseatSteeringCost

ROW = 13


def board(cars=(), coins=(), agent=2):
    """A lane grid with the newest maps filled in; cars by their upper row."""
    obs = np.zeros((21, 5, 12), bool)
    obs[ROW : ROW + 2, agent, 0] = True
    for lane, row in cars:
        obs[row : row + 2, lane, 1] = True
    for lane, row in coins:
        obs[row, lane, 2] = True
    return obs


@pytest.mark.parametrize(
    ("obs", "action", "expected"),
    [
        (board(), STAY, 0),
        (board(coins=[(2, ROW - 1)]), STAY, 1),
        (board(coins=[(2, ROW - 4)]), STAY, 1),
        (board(coins=[(2, ROW - 5)]), STAY, 0),
        (board(coins=[(2, ROW - 4)]), LEFT, 0),
        (board(coins=[(1, ROW - 4)]), LEFT, 1),
        (board(coins=[(1, ROW - 4)]), RIGHT, 0),
        (board(coins=[(3, ROW - 1)]), RIGHT, 1),
        (board(coins=[(3, ROW)]), RIGHT, 0),
        (board(coins=[(2, ROW - 1), (2, ROW - 4)]), STAY, 1),  # two coins cost one
        (board(coins=[(0, ROW - 4)], agent=0), LEFT, 1),  # off the road: a stay
        (board(coins=[(4, ROW - 4)], agent=4), RIGHT, 1),
        (board(coins=[(2, ROW - 4)], cars=[(2, ROW - 3)]), STAY, 0),  # crash before it
        (board(coins=[(2, ROW - 3)], cars=[(2, ROW - 3)]), STAY, 1),
    ],
)
@pytest.mark.parametrize("kind", [bool, np.uint8, np.float32, jnp.float32, jnp.bool_])
def test_hand_made_boards(obs, action, expected, kind):
    module = np if kind in (bool, np.uint8, np.float32) else jnp
    cost = BackseatCoinCost()(module.asarray(obs, kind), action)
    assert cost.dtype == np.float32 and cost.shape == ()
    assert float(cost) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "num_steps"),
    [
        ({}, 1500),
        ({"observation": "image"}, 100),
        (
            {"lanes": 3, "rows": 16, "agent_row": 9, "car_speed": 1, "coin_speed": 3},
            300,
        ),
        (
            {"lanes": 6, "rows": 24, "agent_row": 18, "car_speed": 3, "coin_speed": 7},
            300,
        ),
        ({"lanes": 4, "rows": 20, "observation": "image"}, 100),
    ],
    ids=["default", "image", "three lanes", "six lanes", "other image"],
)
def test_cost_is_whether_the_game_counts_a_coin(arguments, num_steps):
    env = BackseatDriver(**arguments)
    params = env.default_params.replace(coin_rate=0.3, trail_rate=0.8, wave_rate=0.6)
    cost = BackseatCoinCost.for_game(env)

    def one(key, obs, state):
        key_act, key_step = jax.random.split(key)
        # Lanes are changed now and then only, else games end early.
        action = jnp.maximum(jax.random.randint(key_act, (), -4, 3), 0)
        charged = cost(obs, action)
        obs, state, _, crashed, _, info = env.step(key_step, state, action, params)
        return obs, state, (charged, info["coins_collected"], crashed)

    def body(carry, key):
        *carry, kept = jax.vmap(one)(jax.random.split(key, 64), *carry)
        return tuple(carry), kept

    first = jax.vmap(env.reset, (0, None))(
        jax.random.split(jax.random.key(0), 64), params
    )
    keys = jax.random.split(jax.random.key(1), num_steps)
    _, (charged, collected, crashed) = jax.jit(
        lambda first: jax.lax.scan(body, first, keys)
    )(first)
    np.testing.assert_array_equal(charged, collected > 0)
    # The check has seen everything that could go wrong.
    assert charged.mean() > 0.1 and (collected >= 2).any()
    assert (collected[crashed] > 0).any() and (collected[crashed] == 0).any()


def test_numpy_and_jax_agree_on_a_game():
    env = BackseatDriver()
    params = env.default_params.replace(coin_rate=0.5)
    cost = BackseatCoinCost.for_game(env)
    jitted = jax.jit(cost)
    obs, state = env.reset(jax.random.key(0), params)
    charged = 0.0
    for number in range(200):
        action = number * 7 % 11 % 3
        plain = cost(np.asarray(obs), action)
        assert isinstance(plain, np.float32)
        assert float(plain) == float(jitted(obs, action))
        charged += float(plain)
        obs, state, *_ = env.step(jax.random.key(number), state, action, params)
    assert 5 < charged < 150


def test_an_observation_of_another_road_is_refused():
    with pytest.raises(ValueError, match=r"21 rows and 5 lanes .* got shape \(10, 10"):
        BackseatCoinCost()(np.zeros((10, 10, 4)), STAY)


@pytest.mark.parametrize("xp", [np, jnp])
def test_steering_costs_on_every_lane(xp):
    cost = BackseatSteeringCost(scale=0.5)
    seen = xp.asarray(board(agent=0))
    assert [float(cost(seen, action)) for action in (STAY, LEFT, RIGHT)] == [
        0,
        0.5,
        0.5,
    ]
