"""Backseat Driver's rules, on roads made by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.envs.backseat import LEFT, RIGHT, STAY, BackseatDriver
from termdp.envs.backseat_traffic import BackseatDraws

ROWS, LANES, AGENT_ROW, MARGIN = 21, 5, 13, 4
ENV = BackseatDriver()
PARAMS = ENV.default_params
# Nothing new comes.
QUIET = BackseatDraws(
    wave=jnp.float32(1),
    wave_offset=jnp.int32(0),
    cars=jnp.ones(LANES),
    coins=jnp.ones(LANES),
    coin_offset=jnp.zeros(LANES, jnp.int32),
)
advance = jax.jit(ENV.advance)
frames = jax.jit(ENV.frames)


def words(places):
    """Words from (lane, row) pairs."""
    made = np.zeros(LANES, np.uint32)
    for lane, row in places:
        made[lane] |= np.uint32(1 << (row + MARGIN))
    return jnp.asarray(made)


def places(made):
    """(lane, row) pairs from words."""
    return {
        (lane, bit - MARGIN)
        for lane, word in enumerate(np.asarray(made).tolist())
        for bit in range(32)
        if word >> bit & 1
    }


def road_with(cars=(), coins=(), agent=2):
    _, state = ENV.reset(jax.random.key(0), PARAMS)
    return state.replace(cars=words(cars), coins=words(coins), agent=jnp.int32(agent))


def play(state, action, draws=QUIET):
    return advance(state, action, draws, PARAMS)


def test_the_game_starts_on_an_empty_road_in_the_middle():
    obs, state = ENV.reset(jax.random.key(3), PARAMS)
    assert obs.shape == (ROWS, LANES, 12) and obs.dtype == bool
    agent = np.zeros((ROWS, LANES), bool)
    agent[AGENT_ROW : AGENT_ROW + 2, 2] = True
    for age in range(4):  # before the first step: as at the start
        np.testing.assert_array_equal(obs[:, :, 3 * age], agent)
        assert not obs[:, :, 3 * age + 1 : 3 * age + 3].any()
    assert int(state.time) == 0


@pytest.mark.parametrize(
    ("agent", "action", "lane"),
    [(2, STAY, 2), (2, LEFT, 1), (2, RIGHT, 3), (0, LEFT, 0), (4, RIGHT, 4)],
)
def test_actions_change_lanes_within_the_road(agent, action, lane):
    state, _, crashed, _ = play(road_with(agent=agent), action)
    assert int(state.agent) == lane and not crashed


def test_cars_come_two_rows_and_coins_four_rows_nearer():
    state, *_ = play(road_with(cars=[(0, 5), (4, -2)], coins=[(1, 3)]), STAY)
    assert places(state.cars) == {(0, 7), (4, 0)}
    assert places(state.coins) == {(1, 7)}


def test_what_leaves_the_screen_is_gone():
    state, *_ = play(road_with(cars=[(0, 19), (1, 18)], coins=[(3, 17), (4, 16)]), STAY)
    assert places(state.cars) == {(1, 20)}
    assert places(state.coins) == {(4, 20)}


@pytest.mark.parametrize(
    ("car", "action", "crash_frame"),
    [
        # Its own lane: a car 4 rows ahead is just reached, one 3 rows ahead is hit.
        ((2, AGENT_ROW - 4), STAY, 0),
        ((2, AGENT_ROW - 3), STAY, 3),
        ((2, AGENT_ROW - 2), STAY, 1),
        # Leaving its lane: held for two frames, in which one row is lost.
        ((2, AGENT_ROW - 3), LEFT, 0),
        ((2, AGENT_ROW - 2), LEFT, 1),
        # Entering a lane: held from the second frame on.
        ((1, AGENT_ROW + 2), LEFT, 0),
        ((1, AGENT_ROW + 1), LEFT, 0),
        ((1, AGENT_ROW), LEFT, 2),
        ((3, AGENT_ROW - 2), RIGHT, 2),
        ((3, AGENT_ROW - 3), RIGHT, 3),
        ((3, AGENT_ROW - 4), RIGHT, 0),
        # Two lanes away nothing happens.
        ((4, AGENT_ROW), RIGHT, 0),
    ],
)
def test_crashes_and_near_misses(car, action, crash_frame):
    state, reward, crashed, _ = play(road_with(cars=[car]), action)
    assert bool(crashed) == (crash_frame > 0)
    assert int(state.phase) == crash_frame
    assert float(reward) >= 0


def test_nothing_moves_after_a_crash():
    before = road_with(cars=[(2, AGENT_ROW - 2), (0, 16)], coins=[(4, 3)])
    state, reward, crashed, info = play(before, STAY)
    assert crashed and state.crashed
    np.testing.assert_array_equal(state.cars, before.cars)
    np.testing.assert_array_equal(state.coins, before.coins)
    assert float(reward) == pytest.approx(0.1)  # the car in lane 0 is still behind
    assert int(info["cars_overtaken"]) == 0


@pytest.mark.parametrize(
    ("coins", "action", "collected"),
    [
        ([(2, AGENT_ROW - 4)], STAY, 1),
        ([(2, AGENT_ROW - 5)], STAY, 0),
        ([(2, AGENT_ROW - 2)], LEFT, 1),  # frame 2, still in the old lane
        ([(2, AGENT_ROW - 3)], LEFT, 0),  # gone before it comes
        ([(1, AGENT_ROW - 1)], LEFT, 1),  # frame 2, already in the new lane
        ([(1, AGENT_ROW)], LEFT, 0),  # passes by in frame 1
        ([(1, AGENT_ROW - 4)], LEFT, 1),
        ([(2, AGENT_ROW - 1), (2, AGENT_ROW - 4)], STAY, 2),
        ([(2, AGENT_ROW - 1), (3, AGENT_ROW - 4)], RIGHT, 2),
        ([(1, AGENT_ROW - 2), (3, AGENT_ROW - 2)], STAY, 0),
    ],
)
def test_coins_that_are_touched_are_collected(coins, action, collected):
    state, reward, _, info = play(road_with(coins=coins), action)
    assert int(info["coins_collected"]) == collected
    assert len(places(state.coins)) == len(coins) - collected
    assert float(reward) == 0


def test_coins_count_up_to_the_frame_of_the_crash():
    # The car is hit in frame 3, so the coin of frame 4 stays on the road.
    cars = [(2, AGENT_ROW - 3)]
    for coin_row, collected in ((AGENT_ROW - 3, 1), (AGENT_ROW - 4, 0)):
        _, _, crashed, info = play(road_with(cars=cars, coins=[(2, coin_row)]), STAY)
        assert crashed and int(info["coins_collected"]) == collected


def test_reward_behind_counts_cars_that_end_up_behind_and_on_screen():
    # After the step: rows 14 (beside), 15 and 20 (behind), 21 (gone).
    cars = [(0, 12), (1, 13), (3, 18), (4, 19)]
    _, reward, crashed, info = play(road_with(cars=cars), STAY)
    assert not crashed
    assert float(reward) == pytest.approx(0.2)
    assert int(info["cars_overtaken"]) == 1


def test_reward_overtake_counts_every_car_once():
    env = BackseatDriver(reward="overtake")
    state = road_with(cars=[(0, 10), (4, 11)])
    rewards = []
    for _ in range(6):
        state, reward, _, info = env.advance(state, STAY, QUIET, PARAMS)
        rewards.append(round(float(reward), 3))
        assert float(reward) == pytest.approx(0.1 * int(info["cars_overtaken"]))
    # Row 11 is at 15 after two steps, row 10 at 16 after three.
    assert rewards == [0, 0.1, 0.1, 0, 0, 0]


def wave(lanes, offset=0):
    cars = jnp.where(jnp.isin(jnp.arange(LANES), jnp.array(lanes)), 0.0, 1.0)
    return QUIET.replace(wave=jnp.float32(0), wave_offset=jnp.int32(offset), cars=cars)


def test_waves_begin_just_above_the_screen():
    state, *_ = play(road_with(), STAY, wave([0, 3], offset=1))
    assert places(state.cars) == {(0, -3), (3, -3)}
    assert int(state.wave.row) == -3 and int(state.wave.open_lanes) == 0b10110


def test_a_wave_that_blocks_all_lanes_does_not_come():
    state, *_ = play(road_with(), STAY, wave([0, 1, 2, 3, 4]))
    assert not places(state.cars)


def test_a_wave_waits_until_every_driver_can_reach_its_open_lane():
    # Lane 0 alone is open, then lane 4 alone: four changes need 11 rows.
    state, *_ = play(road_with(), STAY, wave([1, 2, 3, 4]))
    came_after = 0
    while len(places(state.cars)) == 4:
        state, *_ = play(state.replace(agent=jnp.int32(0)), STAY, wave([0, 1, 2, 3]))
        came_after += 1
    assert came_after == 6  # 2 rows a step: the first even distance of 11 or more


def test_coins_begin_in_clear_lanes_and_go_on_as_trails():
    # Cars will be at rows 10 and 11; a coin would meet the first before it leaves.
    cars = [(0, 8), (1, 9)]
    draws = QUIET.replace(
        coins=jnp.full(LANES, PARAMS.coin_rate - 1e-3),
        coin_offset=jnp.array([0, 1, 2, 3, 0]),
    )
    state, *_ = play(road_with(cars=cars, agent=4), STAY, draws)
    assert places(state.coins) == {(1, -2), (2, -3), (3, -4), (4, -1)}
    between = QUIET.replace(coins=jnp.full(LANES, 0.5))  # enough for a trail only
    state, *_ = play(state.replace(coins=words([(2, -3), (3, 5)])), STAY, between)
    assert places(state.coins) == {(2, 1), (2, -3), (3, 9)}


def test_traffic_thickens_with_time():
    params = PARAMS.replace(wave_rate=0.2, wave_rate_late=0.6, ramp_steps=100)
    draws = wave([0]).replace(wave=jnp.float32(0.5))
    for time, comes in ((0, False), (70, False), (80, True), (1000, True)):
        state = road_with().replace(time=jnp.int32(time))
        state, *_ = advance(state, STAY, draws, params)
        assert bool(places(state.cars)) == comes


def test_observation_remembers_four_steps():
    state = road_with(cars=[(0, 3)], coins=[(4, 0)], agent=1)
    for action in (RIGHT, RIGHT, LEFT, STAY, RIGHT):
        state, *_ = play(state, action)
    obs = np.asarray(ENV.get_obs(state))
    lanes = [int(np.argmax(obs[AGENT_ROW, :, 3 * age])) for age in range(4)]
    assert lanes == [3, 2, 2, 3]
    car_tops = [int(np.argmax(obs[:, 0, 3 * age + 1])) for age in range(4)]
    assert car_tops == [13, 11, 9, 7]
    assert (obs[:, :, 1::3].sum(axis=(0, 1)) == 2).all()
    coin_rows = [int(np.argmax(obs[:, 4, 3 * age + 2])) for age in range(4)]
    assert coin_rows == [20, 16, 12, 8]


def test_the_image_is_the_grid_enlarged():
    env = BackseatDriver(observation="image")
    state = road_with(cars=[(0, 3), (4, 6)], coins=[(3, 0)])
    state, *_ = env.advance(state, LEFT, QUIET, PARAMS)
    grid, image = np.asarray(ENV.get_obs(state)), np.asarray(env.get_obs(state))
    assert image.shape == env.observation_space().shape == (42, 42, 12)
    blocks = image[:, 1:41].reshape(ROWS, 2, LANES, 8, 12)
    np.testing.assert_array_equal(blocks.any(axis=(1, 3)), grid)
    # 6 of 8 columns for cars, 4 for coins; two pixel rows each.
    np.testing.assert_array_equal(
        blocks.sum(axis=(1, 3)), 2 * grid * np.tile([6, 6, 4], 4)
    )


def states_of_a_game(num_steps=300):
    """State, action, draws and the result of random play with resets."""
    key = jax.random.key(5)
    _, state = ENV.reset(key, PARAMS)
    for number in range(num_steps):
        key_act, key_step = jax.random.split(jax.random.fold_in(key, number))
        action = jax.random.randint(key_act, (), 0, 3)
        draws = ENV.sample_draws(key_step)
        result = play(state, action, draws)
        yield state, action, draws, result
        state = ENV.reset(key, PARAMS)[1] if result[2] else result[0]


def test_the_last_frame_is_the_step_and_frames_lead_there():
    crashes = coins = 0
    for state, action, draws, (after, _, crashed, info) in states_of_a_game():
        shown = frames(state, action, draws, PARAMS)
        last = jax.tree.map(lambda leaf: leaf[-1], shown)
        jax.tree.map(np.testing.assert_array_equal, last, after)
        phases = shown.phase.tolist()
        if crashed:
            frame = int(after.phase)
            assert phases == [min(f, frame) for f in (1, 2, 3, 4)]
            assert shown.crashed.tolist() == [f >= frame for f in (1, 2, 3, 4)]
        else:
            assert phases == [1, 2, 3, 0] and not shown.crashed.any()
            left = [len(places(c)) for c in shown.coins[:3]]
            taken = int(info["coins_collected"])
            assert sorted(left, reverse=True) == left
            assert left[0] >= len(places(state.coins)) - taken
            coins += taken
        crashes += bool(crashed)
    assert crashes > 5 and coins > 5


def test_steps_are_determined_by_key_and_action():
    _, state = ENV.reset(jax.random.key(0), PARAMS)
    first = ENV.step(jax.random.key(1), state, STAY, PARAMS)
    second = ENV.step(jax.random.key(1), state, STAY, PARAMS)
    jax.tree.map(np.testing.assert_array_equal, first, second)


def test_draws_are_uniform_and_independent():
    keys = jax.random.split(jax.random.key(0), 4000)
    draws = jax.vmap(ENV.sample_draws)(keys)
    for uniform in (draws.wave, draws.cars, draws.coins):
        assert uniform.min() >= 0 and uniform.max() < 1
        np.testing.assert_allclose(uniform.mean(axis=0), 0.5, atol=0.02)
        np.testing.assert_allclose(uniform.var(axis=0), 1 / 12, atol=0.01)
    for offsets, count in ((draws.wave_offset, 2), (draws.coin_offset, 4)):
        shares = np.bincount(np.asarray(offsets).ravel()) / offsets.size
        np.testing.assert_allclose(shares, 1 / count, atol=0.03)
    columns = np.concatenate([draws.cars, draws.coins, draws.coin_offset], axis=1)
    correlations = np.corrcoef(columns, rowvar=False) - np.eye(3 * LANES)
    assert np.abs(correlations).max() < 0.08


def test_parameters_change_without_recompiling():
    traces = []

    @jax.jit
    def step(key, state, params):
        traces.append(1)
        return ENV.step(key, state, STAY, params)

    _, state = ENV.reset(jax.random.key(0), PARAMS)
    for rate in (0.1, 0.5):
        changed = PARAMS.replace(wave_rate=rate, car_density=rate, ramp_steps=7)
        _, state, *_ = step(jax.random.key(1), state, changed)
    assert len(traces) == 1


@pytest.mark.slow
def test_many_games_at_once_reset_by_themselves():
    step = jax.jit(jax.vmap(ENV.step, (0, 0, 0, None)))
    keys = jax.random.split(jax.random.key(0), 64)
    obs, states = jax.vmap(ENV.reset, (0, None))(keys, PARAMS)
    ended = 0
    for number in range(60):
        keys = jax.random.split(jax.random.key(number), 64)
        actions = jax.random.randint(jax.random.key(number), (64,), 0, 3)
        obs, states, rewards, terminated, truncated, _ = step(
            keys, states, actions, PARAMS
        )
        assert obs.shape == (64, ROWS, LANES, 12) and (rewards >= 0).all()
        assert (states.time[terminated] == 0).all() and not truncated.any()
        ended += int(terminated.sum())
    assert ended > 64


def test_the_time_limit_truncates():
    params = PARAMS.replace(max_steps_in_episode=3)
    _, state = ENV.reset(jax.random.key(0), params)
    for expected in (False, False, True):
        *_, terminated, truncated, _ = result = ENV.step(
            jax.random.key(0), state, STAY, params
        )
        state = result[1]
        assert bool(truncated) == expected and not terminated


def test_spaces():
    obs, _ = ENV.reset(jax.random.key(0), PARAMS)
    assert ENV.num_actions == ENV.action_space(PARAMS).n == 3
    space = ENV.observation_space(PARAMS)
    assert space.shape == obs.shape and space.dtype == obs.dtype
    assert ENV.name == "BackseatDriver"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reward": "speed"}, "'behind' or 'overtake', got 'speed'"),
        ({"observation": "pixels"}, "'grid' or 'image', got 'pixels'"),
        (
            {"lanes": 11, "rows": 28, "agent_row": 22, "observation": "image"},
            "at most 10 lanes",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        BackseatDriver(**arguments)
