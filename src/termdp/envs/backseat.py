"""Backseat Driver: overtake on an endless road; coins lie in the open lanes.

The agent drives faster than the traffic, so cars come down the screen and fall behind.
It sees `agent_row` rows of road ahead and some road behind. These are all the rules:

- **Actions**: 0 stay in lane, 1 one lane to the left, 2 one lane to the right; a change
  off the road is a stay. A step lasts 4 frames, a lane change all 4 of them.
- **Frames**: cars slide down `car_speed`/4 rows per frame. Coins lie still on the road
  and slide down `coin_speed`/4. The agent touches what shares a row with its car in a
  lane that it holds. During a change it holds the old lane in frames 1-2 and the new
  one in frames 2-4; otherwise it holds its own lane.
- **Coins** that are touched disappear; they are worth nothing in the game.
- **Crash**: touching a car ends the game in that frame. Nothing moves after that; coins
  touched up to and including that frame are taken.
- **Traffic**: each step, with probability `wave_rate`, a wave of cars is proposed: a
  car in each lane with probability `car_density`, in one of the rows just above the
  screen. It is dropped if it blocks all lanes, or if some driver could not get past it
  because it follows the last one too closely. So the road is always passable;
  `backseat_road` proves it. `wave_rate` grows to `wave_rate_late` over the first
  `ramp_steps` steps.
- **New coins**: in each lane with probability `coin_rate`, or `trail_rate` right behind
  another coin (coins come in trails), where no car is so near that they could meet.
- **Reward** `"behind"`: 0.1 per step for every car on screen and wholly behind the
  agent; `"overtake"`: 0.1 once for every car that falls behind. Never negative.
- **Observation**: bool `[rows, lanes, 12]`; channels 3·i + (0 agent, 1 cars, 2 coins),
  i steps ago, i = 0…3 (before the first step: as at the start). With
  `observation="image"` the same as a picture, `[42, 42, 12]`.

The road starts empty, the agent in the middle lane. `info` holds `coins_collected` and
`cars_overtaken` of the step.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs import spaces
from termdp.envs.backseat_road import FRAMES, NEW_LANE_FRAMES, OLD_LANE_FRAMES, Road
from termdp.envs.backseat_traffic import (
    BackseatDraws,
    BackseatParams,
    Wave,
    new_coins,
    next_wave,
    no_wave,
    sample_draws,
)
from termdp.envs.backseat_view import (
    CHANNELS,
    HISTORY,
    IMAGE_SIZE,
    NUM_MAPS,
    bodies,
    current_maps,
    grid,
    image,
)
from termdp.envs.base import EnvState, Game

STAY, LEFT, RIGHT = 0, 1, 2
CAR_REWARD = 0.1


@struct.dataclass
class BackseatState(EnvState):
    """The game at the start of a step, or (for pictures) `phase` frames after it.

    Attributes:
        time: steps made.
        agent: lane at the start of the step.
        heading: -1, 0 or 1, the direction of a lane change while `phase` > 0.
        phase: frames since the start of the step, 0 unless between steps.
        crashed: whether the game is over.
        cars: `[lanes] uint32`, one bit per car at its upper row.
        coins: `[lanes] uint32`, one bit per coin.
        wave: the newest wave of cars, to which the next one must keep its distance.
        maps: `[lanes, 12] uint32`, the observation's columns as words.
    """

    time: jax.Array
    agent: jax.Array
    heading: jax.Array
    phase: jax.Array
    crashed: jax.Array
    cars: jax.Array
    coins: jax.Array
    wave: Wave
    maps: jax.Array


@struct.dataclass
class Sweep:
    """What the agent touches in a step: coins per lane, crash frame or 0."""

    taken: jax.Array
    crash_frame: jax.Array


class BackseatDriver(Game):
    """The game. Sizes and speeds are those of `Road`; see the module for the rules.

    Args:
        lanes: number of lanes.
        rows: visible rows of road.
        agent_row: upper row of the agent's car.
        car_speed: rows by which the agent gains on cars per step.
        coin_speed: rows of road driven per step.
        reward: `"behind"` or `"overtake"`.
        observation: `"grid"` or `"image"`.
    """

    def __init__(
        self,
        lanes: int = 5,
        rows: int = 21,
        agent_row: int = 13,
        car_speed: int = 2,
        coin_speed: int = 4,
        reward: str = "behind",
        observation: str = "grid",
    ):
        super().__init__()
        self.road = Road(lanes, rows, agent_row, car_speed, coin_speed)
        if reward not in ("behind", "overtake"):
            raise ValueError(f"expected reward 'behind' or 'overtake', got {reward!r}")
        if observation not in ("grid", "image"):
            raise ValueError(
                f"expected observation 'grid' or 'image', got {observation!r}"
            )
        if observation == "image" and max(lanes * 4, rows) > IMAGE_SIZE:
            raise ValueError(
                f"expected at most {IMAGE_SIZE // 4} lanes and {IMAGE_SIZE} rows for "
                f"the image, got {lanes} and {rows}; use observation='grid'"
            )
        self.reward_kind = reward
        self.observation_kind = observation

    @property
    def fast_numbers(self) -> dict[str, Any]:
        """Lanes are alike; older frames made costs worse (`docs/values_networks.md`)."""
        if self.observation_kind == "image":
            return {}
        return {"cost_network": "columns", "cost_channels": NUM_MAPS}

    @property
    def default_params(self) -> BackseatParams:
        """The default traffic."""
        return BackseatParams()

    def sample_draws(self, key: jax.Array) -> BackseatDraws:
        """Draw everything that is random in one step."""
        return sample_draws(self.road, key)

    def target_lane(self, agent: jax.Array, action: Any) -> jax.Array:
        """The lane the agent will be in after the step."""
        heading = jnp.where(action == LEFT, -1, jnp.where(action == RIGHT, 1, 0))
        return jnp.clip(agent + heading, 0, self.road.lanes - 1)

    def sweep(
        self, state: BackseatState, target: jax.Array, last_frame: int = FRAMES
    ) -> Sweep:
        """What the move to lane `target` touches, frame by frame up to `last_frame`."""
        road = self.road
        lanes = jnp.arange(road.lanes)
        old, new = lanes == state.agent, lanes == target
        covered = bodies(state.cars)
        car_old, car_new = _pick(covered, old), _pick(covered, new)
        coin_old, coin_new = _pick(state.coins, old), _pick(state.coins, new)
        taken_old = taken_new = jnp.uint32(0)
        crash_frame = jnp.int32(0)
        for frame in range(1, last_frame + 1):
            car_rows = jnp.uint32(road.bits(road.reach(frame, road.car_speed)))
            coin_rows = jnp.uint32(road.bits(road.reach(frame, road.coin_speed)))
            coin_rows = jnp.where(crash_frame == 0, coin_rows, jnp.uint32(0))
            touched = jnp.uint32(0)
            if frame in OLD_LANE_FRAMES:
                touched |= car_old & car_rows
                taken_old |= coin_old & coin_rows
            if frame in NEW_LANE_FRAMES:
                touched |= car_new & car_rows
                taken_new |= coin_new & coin_rows
            is_crash = (crash_frame == 0) & (touched != 0)
            crash_frame = jnp.where(is_crash, frame, crash_frame)
        taken = jnp.where(old, taken_old, 0) | jnp.where(new, taken_new, 0)
        return Sweep(taken=taken, crash_frame=crash_frame)

    def advance(
        self,
        state: BackseatState,
        action: Any,
        draws: BackseatDraws,
        params: BackseatParams,
    ) -> tuple[BackseatState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """One step with given draws: state, reward, game_over, info."""
        road = self.road
        target = self.target_lane(state.agent, action)
        sweep = self.sweep(state, target)
        crashed = sweep.crash_frame > 0
        coins = state.coins & ~sweep.taken

        stored = jnp.uint32(road.bits(range(-road.margin, road.rows)))
        new_cars, wave = next_wave(road, state.time, state.wave, draws, params)
        cars_ahead = (state.cars << road.car_speed) & stored | new_cars
        coins_ahead = (coins << road.coin_speed) & stored
        coins_ahead |= new_coins(road, cars_ahead, coins_ahead, draws, params)

        cars_now = jnp.where(crashed, state.cars, cars_ahead)
        coins_now = jnp.where(crashed, coins, coins_ahead)
        agent_now = jnp.where(crashed, state.agent, target)
        now = current_maps(road, agent_now, cars_now, coins_now)
        next_state = BackseatState(
            time=state.time + 1,
            agent=agent_now,
            heading=jnp.where(crashed, target - state.agent, 0),
            phase=sweep.crash_frame,
            crashed=crashed,
            cars=cars_now,
            coins=coins_now,
            wave=wave,
            maps=jnp.concatenate([now, state.maps[:, :-NUM_MAPS]], axis=1),
        )
        passed_rows = range(road.behind_row, road.behind_row + road.car_speed)
        passed = jnp.where(crashed, 0, _count(cars_now, road.bits(passed_rows)))
        behind = _count(cars_now, road.bits(range(road.behind_row, road.rows)))
        rewarded = behind if self.reward_kind == "behind" else passed
        info = {"coins_collected": _count(sweep.taken), "cars_overtaken": passed}
        return next_state, CAR_REWARD * rewarded.astype(jnp.float32), crashed, info

    def frames(
        self,
        state: BackseatState,
        action: Any,
        draws: BackseatDraws,
        params: BackseatParams,
    ) -> BackseatState:
        """The states after each of the step's 4 frames, stacked along axis 0.

        The last one is the state that `advance` returns. After a crash all further
        frames show the crash.
        """
        target = self.target_lane(state.agent, action)
        last, *_ = self.advance(state, action, draws, params)
        states = []
        for frame in range(1, FRAMES):
            sweep = self.sweep(state, target, last_frame=frame)
            between = state.replace(
                heading=target - state.agent,
                phase=jnp.int32(frame),
                coins=state.coins & ~sweep.taken,
            )
            select = partial(jnp.where, sweep.crash_frame > 0)
            states.append(jax.tree.map(select, last, between))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states, last)

    def reset_env(
        self, key: jax.Array, params: BackseatParams
    ) -> tuple[jax.Array, BackseatState]:
        """An empty road; the same start every time."""
        del key, params
        road = self.road
        agent = jnp.int32(road.lanes // 2)
        words = jnp.zeros(road.lanes, jnp.uint32)
        state = BackseatState(
            time=jnp.int32(0),
            agent=agent,
            heading=jnp.int32(0),
            phase=jnp.int32(0),
            crashed=jnp.bool_(False),
            cars=words,
            coins=words,
            wave=no_wave(road),
            maps=jnp.tile(current_maps(road, agent, words, words), (1, HISTORY)),
        )
        return self.get_obs(state), state

    def split_key(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The reset is not random, so a step may use the whole key."""
        return key, key

    def step_env(
        self,
        key: jax.Array,
        state: BackseatState,
        action: Any,
        params: BackseatParams,
    ) -> tuple[jax.Array, BackseatState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """One step: observation, state, reward, game_over, info."""
        draws = self.sample_draws(key)
        next_state, reward, crashed, info = self.advance(state, action, draws, params)
        return self.get_obs(next_state), next_state, reward, crashed, info

    def get_obs(
        self, state: BackseatState, params: Any = None, key: Any = None
    ) -> jax.Array:
        """The last four steps' maps, as grid or as image."""
        del params, key
        view = grid if self.observation_kind == "grid" else image
        return view(self.road, state.maps)

    @property
    def name(self) -> str:
        """The game's name."""
        return "BackseatDriver"

    @property
    def num_actions(self) -> int:
        """Stay, left, right."""
        return 3

    def action_space(self, params: Any = None) -> spaces.Discrete:
        """Stay, left, right."""
        del params
        return spaces.Discrete(self.num_actions)

    def observation_space(self, params: Any = None) -> spaces.Box:
        """Binary maps, as grid or as image."""
        del params
        size = (self.road.rows, self.road.lanes)
        if self.observation_kind == "image":
            size = (IMAGE_SIZE, IMAGE_SIZE)
        return spaces.Box(0, 1, (*size, CHANNELS), jnp.bool_)


def _pick(words: jax.Array, lane: jax.Array) -> jax.Array:
    """The word of the one lane that is set in the mask `lane`."""
    return jnp.sum(jnp.where(lane, words, jnp.uint32(0)), dtype=jnp.uint32)


def _count(words: jax.Array, rows: int = 0xFFFFFFFF) -> jax.Array:
    """Number of objects in the given rows, all lanes together."""
    found = jax.lax.population_count(words & jnp.uint32(rows))
    return jnp.sum(found, dtype=jnp.uint32).astype(jnp.int32)
