"""The road: always passable, cars and coins apart, geometry as rectangles have it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backseat_twin as twin
from termdp.envs.backseat import BackseatDriver, Sweep
from termdp.envs.backseat_road import Road
from termdp.envs.backseat_traffic import needed_distance

ROADS = (
    Road(),
    Road(lanes=3, rows=16, agent_row=9, car_speed=1, coin_speed=3),
    Road(lanes=4, rows=24, agent_row=14, car_speed=4, coin_speed=4),
    Road(lanes=6, rows=24, agent_row=18, car_speed=3, coin_speed=7),
)
DENSE = {"wave_rate": 1.0, "wave_rate_late": 1.0, "car_density": 0.5, "coin_rate": 0.3}


class Ghost(BackseatDriver):
    """A driver whom nothing stops: traffic as it comes, for any agent."""

    def sweep(self, state, target, last_frame=4):
        del target, last_frame
        return Sweep(taken=jnp.zeros_like(state.coins), crash_frame=jnp.int32(0))


class TightRoad(Road):
    """Waves follow each other one row closer than they should."""

    def wave_distance(self, changes):
        return super().wave_distance(changes) - 1


def ghost_of(road):
    return Ghost(road.lanes, road.rows, road.agent_row, road.car_speed, road.coin_speed)


def traffic(env, num_seeds, num_steps, **params):
    """Cars and coins as words, `[steps, seeds, lanes]`."""
    params = env.default_params.replace(**params)

    def body(state, key):
        draws = env.sample_draws(key)
        state, *_ = env.advance(state, 0, draws, params)
        return state, (state.cars, state.coins)

    def run(key):
        _, state = env.reset_env(key, params)
        return jax.lax.scan(body, state, jax.random.split(key, num_steps))[1]

    keys = jax.random.split(jax.random.key(7), num_seeds)
    cars, coins = jax.jit(jax.vmap(run, out_axes=1))(keys)
    return np.asarray(cars), np.asarray(coins)


@functools.cache
def dense_traffic(road):
    """20,000 steps of crowded road, many coins included."""
    return traffic(ghost_of(road), 50, 400, **DENSE, trail_rate=0.9)


def trapped(road, cars):
    """Lanes that survive the cars on screen but not all that come, and the former.

    Both `[T, seeds, lanes]`. One search looks at each moment's screen alone, the other
    at the whole record.
    """
    horizon = -(-(road.agent_row + road.margin + twin.CAR_LENGTH) // road.car_speed)
    on_screen = np.ones(cars.shape, bool)
    for ahead in reversed(range(horizon)):
        later = (cars.astype(np.uint64) << (road.car_speed * ahead)) & 0xFFFFFFFF
        safe = twin.safe_moves(road, later.astype(np.uint32))
        on_screen = twin.survivors(road, safe, on_screen)
    safe = twin.safe_moves(road, cars)
    alive = np.ones(cars.shape, bool)
    for t in reversed(range(len(cars) - 1)):
        alive[t] = twin.survivors(road, safe[t], alive[t + 1])
    return on_screen & ~alive, on_screen


@pytest.mark.slow
@pytest.mark.parametrize("params", [{}, DENSE], ids=["default", "dense"])
def test_whoever_survives_the_screen_survives_for_ever(params):
    # 300 seeds x 1000 steps = 1.2 million frames of the default road.
    road = Road()
    cars, _ = traffic(ghost_of(road), 300, 1000, **params)
    is_trapped, on_screen = trapped(road, cars)
    assert on_screen[0].all(), "every lane is a good start"
    assert on_screen.any(axis=-1).all(), "there is always a lane to survive in"
    assert not is_trapped.any()
    assert not on_screen.all(), "some lanes are dead ends, or there is no traffic"


@pytest.mark.parametrize("road", ROADS[1:], ids=lambda road: f"{road.lanes} lanes")
def test_other_roads_are_passable_too(road):
    cars, _ = dense_traffic(road)
    is_trapped, on_screen = trapped(road, cars)
    assert on_screen[0].all() and on_screen.any(axis=-1).all()
    assert not is_trapped.any()


def test_the_search_finds_traps_where_waves_come_too_close():
    env = ghost_of(Road())
    env.road = TightRoad()
    cars, _ = traffic(env, 50, 400, **DENSE)
    is_trapped, _ = trapped(env.road, cars)
    assert is_trapped.any()


@pytest.mark.parametrize("road", ROADS, ids=lambda road: f"{road.lanes} lanes")
def test_cars_and_coins_never_overlap_in_any_frame(road):
    cars, coins = dense_traffic(road)
    assert np.bitwise_count(coins).sum() > 1000
    met = 0
    for frame in range(twin.FRAMES):
        gain = frame * (road.coin_speed - road.car_speed) / twin.FRAMES
        for ahead in range(-road.rows, road.rows):
            # A coin `ahead` rows below a car's upper row, `gain` later.
            if -1 < ahead + gain < twin.CAR_LENGTH:
                shifted = cars << ahead if ahead >= 0 else cars >> -ahead
                met += ((shifted & coins) != 0).sum()
    assert met == 0


@pytest.mark.parametrize("road", ROADS, ids=lambda road: f"{road.lanes} lanes")
def test_cars_in_a_lane_keep_apart(road):
    cars, _ = dense_traffic(road)
    for rows in range(1, twin.CAR_LENGTH + 1):
        assert not (cars & (cars << rows)).any()


def test_all_parts_of_the_road_see_traffic_and_coins():
    cars, coins = traffic(ghost_of(Road()), 100, 300)
    per_lane = np.bitwise_count(cars).mean(axis=(0, 1))
    assert per_lane.min() > 0.2 and per_lane.max() < 1.5 * per_lane.min()
    assert np.bitwise_count(coins).mean(axis=(0, 1)).min() > 0.3
    blocked = ((cars & 0b110) != 0).sum(axis=-1)  # the rows where waves begin
    assert set(np.unique(blocked)) == {0, 1, 2, 3, 4}


@pytest.mark.slow
@given(
    st.sampled_from(ROADS),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_a_sweep_is_what_moving_rectangles_touch(road, data):
    words = st.lists(
        st.integers(0, 2**32 - 1), min_size=road.lanes, max_size=road.lanes
    )
    stored = twin.word(range(-road.margin, road.rows), road.margin)
    cars = np.array(data.draw(words), np.uint32) & np.array(data.draw(words), np.uint32)
    cars = cars & np.uint32(stored)
    coins = np.array(data.draw(words), np.uint32) & np.uint32(stored)
    agent = data.draw(st.integers(0, road.lanes - 1))
    # As in the game, nothing touches the agent when the step begins.
    near = range(road.agent_row - 1, road.agent_row + twin.CAR_LENGTH)
    cars[agent] &= ~np.uint32(twin.word(near, road.margin))
    action = data.draw(st.integers(0, 2))

    env = ghost_of(road)
    _, state = env.reset_env(jax.random.key(0), env.default_params)
    state = state.replace(
        cars=jnp.asarray(cars), coins=jnp.asarray(coins), agent=jnp.int32(agent)
    )
    target = env.target_lane(state.agent, action)
    sweep = BackseatDriver.sweep(env, state, target)
    taken, crash_frame = twin.play(road, cars, coins, agent, action)
    assert int(target) == twin.target_lane(agent, action, road.lanes)
    assert int(sweep.crash_frame) == crash_frame
    assert set(twin.objects(sweep.taken, road.margin)) == taken


@given(st.integers(1, 31), st.integers(1, 31))
@settings(max_examples=40, deadline=None)
def test_needed_distance_counts_the_worst_drivers_lane_changes(before, after):
    road = Road()
    lanes_before = [lane for lane in range(5) if before >> lane & 1]
    lanes_after = [lane for lane in range(5) if after >> lane & 1]
    changes = max(min(abs(f - g) for g in lanes_after) for f in lanes_before)
    found = needed_distance(road, jnp.uint32(before), jnp.uint32(after))
    assert int(found) == 3 + 2 * changes


def test_wave_distance_of_the_default_road_by_hand():
    assert [Road().wave_distance(m) for m in range(5)] == [3, 5, 7, 9, 11]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"lanes": 1}, "2 lanes or more, got 1"),
        ({"car_speed": 0}, "car_speed from 1 to 4, got 0"),
        ({"coin_speed": 1}, "coin_speed from 2 .* got 1"),
        ({"rows": 40}, "at most 28 rows .* got 40"),
        ({"agent_row": 3}, "agent_row from 9 .* got 3"),
        ({"agent_row": 20}, "to 19 .* got 20"),
    ],
)
def test_impossible_roads_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        BackseatDriver(**sizes)
