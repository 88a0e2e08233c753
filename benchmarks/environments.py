"""Steps per second of every game, random policy, against gymnax and MinAtar.

    python benchmarks/environments.py [--json out.json]

All figures of a game come from one run of this script, interleaved over several rounds.
The best round counts, because other programs can only slow it down. What matters is the
ratios.
"""

import argparse
import json
import time

import gymnax
import jax
import jax.numpy as jnp
import numpy as np

import termdp
from termdp.registry import REGISTRY

GYMNAX = {
    "breakout": "Breakout-MinAtar",
    "space_invaders": "SpaceInvaders-MinAtar",
    "asterix": "Asterix-MinAtar",
    "seaquest": "Seaquest-MinAtar",
}
NUM_ENVS = 128


def compiled(env, params, num_steps):
    """A random policy on many copies, as one program; returns a function of a seed."""
    num_actions = env.action_space(params).n

    @jax.jit
    def play(key):
        key_reset, key_play = jax.random.split(key)
        keys = jax.random.split(key_reset, NUM_ENVS)
        obs, states = jax.vmap(env.reset, (0, None))(keys, params)

        def one(carry, key):
            states, total = carry
            key_act, key_step = jax.random.split(key)
            actions = jax.random.randint(key_act, (NUM_ENVS,), 0, num_actions)
            keys = jax.random.split(key_step, NUM_ENVS)
            obs, states, rewards, terminated, _, _ = jax.vmap(
                env.step, (0, 0, 0, None)
            )(keys, states, actions, params)
            # Everything a learner would read is used, so nothing is optimised away.
            seen = jnp.sum(rewards) + jnp.sum(terminated) + jnp.sum(obs)
            return (states, total + seen), None

        start = (states, jnp.sum(obs).astype(jnp.float32))
        return jax.lax.scan(one, start, jax.random.split(key_play, num_steps))[0][1]

    jax.block_until_ready(play(jax.random.key(0)))
    return lambda seed: jax.block_until_ready(play(jax.random.key(seed)))


def seconds(function, seed):
    began = time.perf_counter()
    function(seed)
    return time.perf_counter() - began


def rate_of_minatar(game, num_steps=20_000):
    """The original, one copy in Python."""
    from minatar import Environment

    env = Environment(game)
    actions = np.random.default_rng(0).integers(0, 6, num_steps)
    env.reset()
    began = time.perf_counter()
    for action in actions:
        _, ended = env.act(action)
        env.state()
        if ended:
            env.reset()
    return num_steps / (time.perf_counter() - began)


def measure(env_id, rounds):
    """Steps per second of one game in each variant."""
    variants = {
        "bare": (*termdp.make(env_id, observer=False), 512),
        "observed": (*termdp.make(env_id), 512),
    }
    if env_id in GYMNAX:
        # gymnax's Seaquest is a hundred times slower: fewer steps say as much.
        steps = 32 if env_id == "seaquest" else 512
        variants["gymnax"] = (*gymnax.make(GYMNAX[env_id]), steps)
    if env_id != "breakout":
        variants["our breakout"] = (*termdp.make("breakout", observer=False), 512)
    programs = {name: compiled(*variant) for name, variant in variants.items()}
    best = dict.fromkeys(programs, float("inf"))
    for seed in range(rounds):
        for name, program in programs.items():
            best[name] = min(best[name], seconds(program, seed))
    rates = {name: NUM_ENVS * variants[name][2] / best[name] for name in programs}
    if env_id in GYMNAX:
        rates["minatar"] = rate_of_minatar(env_id)
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--games", nargs="*", default=list(REGISTRY))
    args = parser.parse_args()
    print(
        "| game | bare /s | observed /s | observer adds | observed ÷ gymnax | "
        "observed ÷ MinAtar | bare ÷ our Breakout |\n|---|---|---|---|---|---|---|"
    )
    table = {}
    for env_id in args.games:
        rates = table[env_id] = measure(env_id, args.rounds)
        added = 1e6 / rates["observed"] - 1e6 / rates["bare"]
        share = rates["bare"] / rates["observed"] - 1
        cells = [
            f"{rates['bare']:,.0f}",
            f"{rates['observed']:,.0f}",
            f"{added:.2f} µs ({share:.0%})",
            *(
                f"{rates['observed'] / rates[other]:.2f}×" if other in rates else "–"
                for other in ("gymnax", "minatar")
            ),
            f"{rates['bare'] / rates['our breakout']:.2f}×"
            if "our breakout" in rates
            else "–",
        ]
        print(f"| {env_id} | {' | '.join(cells)} |", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"num_envs": NUM_ENVS, "rates": table}, file, indent=2)


if __name__ == "__main__":
    main()
