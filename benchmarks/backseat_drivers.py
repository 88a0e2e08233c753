"""How hard Backseat Driver is: scripted drivers, their survival, return and coins.

    python benchmarks/backseat_drivers.py [--steps 2000] [--cars 256]

`random` presses keys at random. The others look ahead over the road on the screen by
dynamic programming: `careless` avoids crashes and stays in its lane if it can,
`careful` avoids crashes first and coins second.
"""

import argparse
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from termdp.envs.backseat import LEFT, RIGHT, STAY, BackseatDriver

HORIZON = 7
CRASH = 1000.0
CHANGE = 0.01  # ties are broken in favour of staying
WINDOW = 30


def plan(env, state, coin_weight):
    """The first action of the cheapest sequence over the cars and coins in sight."""
    road = env.road
    lanes = jnp.arange(road.lanes)
    actions = jnp.array([STAY, LEFT, RIGHT])

    def move_cost(cars, coins, lane, action):
        moved = state.replace(cars=cars, coins=coins, agent=lane)
        target = env.target_lane(lane, action)
        sweep = env.sweep(moved, target)
        cost = CRASH * (sweep.crash_frame > 0) + CHANGE * (action != STAY)
        return cost + coin_weight * jnp.any(sweep.taken != 0), target

    value = jnp.zeros(road.lanes)
    per_action = jax.vmap(move_cost, (None, None, None, 0))
    per_lane = jax.vmap(per_action, (None, None, 0, None))
    for ahead in reversed(range(HORIZON)):
        cars = state.cars << (road.car_speed * ahead)
        coins = state.coins << (road.coin_speed * ahead)
        coins = jnp.where(road.coin_speed * ahead < 32, coins, 0)
        cost, target = per_lane(cars, coins, lanes, actions)
        total = cost + value[target]
        value = total.min(axis=1)
    return actions[total[state.agent].argmin()]


def random_driver(env, key, state):
    del state
    return jax.random.randint(key, (), 0, env.num_actions)


def careless_driver(env, key, state):
    del key
    return plan(env, state, coin_weight=0.0)


def careful_driver(env, key, state):
    del key
    return plan(env, state, coin_weight=1.0)


DRIVERS = {
    "random": random_driver,
    "careless": careless_driver,
    "careful": careful_driver,
}


def drive(env, params, driver, num_cars, num_steps, seed=0):
    """Rewards, crashes and costs of many cars, each `[steps, cars]`."""

    def one(key, state):
        key_act, key_step = jax.random.split(key)
        action = driver(env, key_act, state)
        _, state, reward, crashed, _, info = env.step(key_step, state, action, params)
        return state, (reward, crashed, info["coins_collected"] > 0)

    @jax.jit
    def run(key):
        key_reset, key_run = jax.random.split(key)
        keys = jax.random.split(key_reset, num_cars)
        _, states = jax.vmap(env.reset, (0, None))(keys, params)

        def body(states, key):
            return jax.vmap(one)(jax.random.split(key, num_cars), states)

        return jax.lax.scan(body, states, jax.random.split(key_run, num_steps))[1]

    return [np.asarray(x) for x in run(jax.random.key(seed))]


def summarise(rewards, crashes, costs):
    """Means over all steps; windows that cross a crash are counted too."""
    crash_count = int(crashes.sum())
    per_crash = f"{rewards.size / crash_count:.1f}" if crash_count else "no crash"
    sums = np.cumsum(np.pad(costs, ((1, 0), (0, 0))), axis=0)
    windows = sums[WINDOW:] - sums[:-WINDOW]
    return {
        "steps per crash": per_crash,
        "reward per step": f"{rewards.mean():.3f}",
        "coins per 30 steps": f"{WINDOW * costs.mean():.2f}",
        "windows with 6 coins or more": f"{(windows >= 6).mean():.1%}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--cars", type=int, default=256)
    arguments = parser.parse_args()
    env = BackseatDriver()
    run = partial(drive, env, env.default_params)
    for number, (name, driver) in enumerate(DRIVERS.items()):
        figures = summarise(*run(driver, arguments.cars, arguments.steps))
        if number == 0:
            print("| driver |", " | ".join(figures), "|")
            print("|---" * (len(figures) + 1) + "|")
        print(f"| {name} |", " | ".join(figures.values()), "|")


if __name__ == "__main__":
    main()
