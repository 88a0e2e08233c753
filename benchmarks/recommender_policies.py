"""How the recommender's user reacts: scripted policies under the benchmark's observer.

    python benchmarks/recommender_policies.py [--sessions 2000]

`top seller` always shows the item of greatest value, `random` any item, `greedy` the
one that earns most at once, `considerate` weighs earnings against the user's fatigue.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

from termdp import Observer, observe
from termdp.envs.recommender import Recommender
from termdp.envs.recommender_costs import RecommenderFatigueCost

CONSIDERATION = 2.0


def earnings(env, state):
    return env.take_probabilities(state, env.default_params) * env.items.value


def top_seller(env, cost, key, state):
    del cost, key, state
    return jnp.argmax(env.items.value)


def random_item(env, cost, key, state):
    del cost, state
    return jax.random.randint(key, (), 0, env.num_actions)


def greedy(env, cost, key, state):
    del cost, key
    return jnp.argmax(earnings(env, state))


def considerate(env, cost, key, state):
    del key
    actions = jnp.arange(env.num_actions)
    costs = jax.vmap(cost, (None, 0))(env.get_obs(state), actions)
    return jnp.argmax(earnings(env, state) - CONSIDERATION * costs)


POLICIES = {
    "top seller": top_seller,
    "random": random_item,
    "greedy": greedy,
    "considerate": considerate,
}


def sessions(env, cost, policy, num_sessions, seed=0):
    """Length, return, whether it was stopped, and mean cost of many first sessions."""
    watched = observe(env, Observer(cost, window=30, bias=6.0))
    params = watched.default_params
    limit = env.default_params.max_steps_in_episode

    def step(carry, key):
        state, alive = carry
        key_act, key_step = jax.random.split(key)
        action = policy(env, cost, key_act, state.game)
        _, state, reward, terminated, truncated, info = watched.step(
            key_step, state, action, params
        )
        kept = (alive, alive * reward, alive & info["stopped"], alive * info["cost"])
        return (state, alive & ~terminated & ~truncated), kept

    def session(key):
        key_reset, key_run = jax.random.split(key)
        _, state = watched.reset(key_reset, params)
        keys = jax.random.split(key_run, limit)
        _, kept = jax.lax.scan(step, (state, jnp.bool_(True)), keys)
        length, total, stopped, costs = (jnp.sum(x) for x in kept)
        return length, total, stopped, costs / length

    keys = jax.random.split(jax.random.key(seed), num_sessions)
    return [np.asarray(x) for x in jax.jit(jax.vmap(session))(keys)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=2000)
    arguments = parser.parse_args()
    env = Recommender()
    cost = RecommenderFatigueCost.for_game(env)
    print("| policy | steps | left before the end | return | return per step | cost |")
    print("|---|---|---|---|---|---|")
    for name, policy in POLICIES.items():
        length, total, stopped, costs = sessions(env, cost, policy, arguments.sessions)
        print(
            f"| {name} | {length.mean():.0f} | {stopped.mean():.0%} "
            f"| {total.mean():.1f} | {total.sum() / length.sum():.2f} "
            f"| {costs.mean():+.2f} |"
        )


if __name__ == "__main__":
    main()
