"""Who drives (or plays): at random, by a small plan, or as a trained policy does.

A driver is a model (compiled) and its numbers (traced). Drivers that differ in numbers
only, such as styles or snapshots of one run, share one compiled program.
"""

import dataclasses
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from termdp.envs.backseat_road import FRAMES, NEW_LANE_FRAMES, OLD_LANE_FRAMES, Road
from termdp.people.driving.ride import BACKSEAT, studied

HORIZON = 7
_CRASH = 100.0


class DriverModel(Protocol):
    """How a driver chooses actions; hashable, with functions that can be compiled."""

    def start(self, params: Any) -> Any:
        """What the driver remembers before its first step."""

    def act(
        self, params: Any, key: jax.Array, observation: jax.Array, memory: Any
    ) -> tuple[jax.Array, Any]:
        """An action for one observation, and the new memory."""


@dataclasses.dataclass(frozen=True)
class Driver:
    """Somebody who drives.

    Attributes:
        name: recorded with every ride, never shown to those who review it.
        model: how it chooses actions.
        params: the model's numbers, a pytree of arrays.
        env: id of the environment that it drives in.
    """

    name: str
    model: DriverModel
    params: Any
    env: str = BACKSEAT


@dataclasses.dataclass(frozen=True)
class RandomDriverModel:
    """Actions with fixed probabilities (the params, `[actions]` log-probabilities)."""

    def start(self, params: Any) -> Any:
        """Nothing to remember."""
        return ()

    def act(
        self, params: Any, key: jax.Array, observation: jax.Array, memory: Any
    ) -> tuple[jax.Array, Any]:
        """Draw an action."""
        return jax.random.categorical(key, params), memory


def random_driver(env: str = BACKSEAT) -> Driver:
    """Any action, equally likely."""
    actions = jnp.zeros(studied(env).num_actions)
    return Driver("random", RandomDriverModel(), actions, env)


@dataclasses.dataclass(frozen=True)
class Style:
    """What a planner likes.

    Attributes:
        coin: worth of a coin; negative to avoid them.
        change: price of a lane change; negative for a driver that likes to weave.
        look_ahead: how many steps it looks ahead, up to 7; with few it turns late.
        slips: probability of a random action instead of the planned one.
    """

    coin: float = 0.0
    change: float = 0.1
    look_ahead: float = float(HORIZON)
    slips: float = 0.0


STYLES = {
    "calm": Style(coin=-0.02, change=0.3),
    "collector": Style(coin=1.0, change=0.1),
    "weaver": Style(coin=0.0, change=-0.2),
    "late": Style(coin=0.3, change=0.1, look_ahead=2.0),
    "clumsy": Style(coin=0.3, change=0.1, slips=0.15),
}


@dataclasses.dataclass(frozen=True)
class PlanningDriverModel:
    """Looks a few steps ahead over all lanes, knowing how cars and coins move.

    Dynamic programming over (step, lane). A crash costs more than anything else, and a
    later crash costs less than an early one. Coins and lane changes count as the style
    says.
    """

    road: Road = Road()

    def start(self, params: Any) -> Any:
        """Nothing to remember."""
        return ()

    def act(
        self, params: Any, key: jax.Array, observation: jax.Array, memory: Any
    ) -> tuple[jax.Array, Any]:
        """The best first step of the plan, or a slip."""
        values = self.plan(params, observation)
        lane = jnp.argmax(observation[self.road.agent_row, :, 0])
        key_tie, key_slip, key_any = jax.random.split(key, 3)
        # Ties are broken at random, so that weavers weave to both sides.
        best = values[lane] + 1e-3 * jax.random.uniform(key_tie, (3,))
        slip = jax.random.uniform(key_slip) < params.slips
        anything = jax.random.randint(key_any, (), 0, 3)
        return jnp.where(slip, anything, jnp.argmax(best)), memory

    def plan(self, params: Any, observation: jax.Array) -> jax.Array:
        """What each first action is worth from each lane, `[lanes, 3]`."""
        road = self.road
        lanes = jnp.arange(road.lanes)
        targets = jnp.stack([lanes, lanes - 1, lanes + 1], axis=1)
        targets = jnp.clip(targets, 0, road.lanes - 1)
        moves = targets != lanes[:, None]
        later = jnp.zeros(road.lanes)
        worth = jnp.zeros((road.lanes, 3))
        for ahead in reversed(range(HORIZON)):
            crash = self._touched(observation[..., 1], ahead, road.car_speed, targets)
            coins = self._touched(observation[..., 2], ahead, road.coin_speed, targets)
            worth = params.coin * coins - params.change * moves + later[targets]
            worth = jnp.where(crash > 0, ahead - _CRASH, worth)
            worth = jnp.where(ahead < params.look_ahead, worth, 0.0)
            later = jnp.max(worth, axis=1)
        return worth

    def _touched(
        self, things: jax.Array, ahead: int, speed: int, targets: jax.Array
    ) -> jax.Array:
        """How many rows of `things` each move touches, `[lanes, 3]`, some time ahead."""
        old = _count(things, self._rows(OLD_LANE_FRAMES, speed), ahead * speed)
        new = _count(things, self._rows(NEW_LANE_FRAMES, speed), ahead * speed)
        stay = _count(things, self._rows(range(1, FRAMES + 1), speed), ahead * speed)
        lanes = jnp.arange(things.shape[1])[:, None]
        return jnp.where(targets == lanes, stay[:, None], old[:, None] + new[targets])

    def _rows(self, frames: Any, speed: int) -> np.ndarray:
        """Rows whose contents touch the agent in one of these frames, `[rows] bool`."""
        rows = np.zeros(self.road.rows, bool)
        for frame in frames:
            rows[list(self.road.reach(frame, speed))] = True
        return rows


def _count(things: jax.Array, rows: np.ndarray, moved: int) -> jax.Array:
    """Things per lane that will be in `rows` after moving down by `moved` rows."""
    before = np.zeros_like(rows)
    kept = rows[moved:]
    before[: len(kept)] = kept
    return jnp.sum(things & before[:, None], axis=0)


def scripted_driver(style: str = "calm") -> Driver:
    """A planner of one of the `STYLES`."""
    if style not in STYLES:
        raise ValueError(f"expected a style ({', '.join(STYLES)}), got {style!r}")
    return planning_driver(f"scripted {style}", STYLES[style])


def planning_driver(name: str, style: Style) -> Driver:
    """A planner with a style of its own."""
    numbers = _Numbers(**dataclasses.asdict(style))
    return Driver(name, PlanningDriverModel(), jax.tree.map(jnp.float32, numbers))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _Numbers:
    """A style as traced numbers."""

    coin: Any
    change: Any
    look_ahead: Any
    slips: Any


def by_name(name: str) -> Driver:
    """The driver `random`, or `scripted STYLE`."""
    if name == "random":
        return random_driver()
    return scripted_driver(name.removeprefix("scripted").strip() or "calm")
