"""How well and how fast costs are learned from stops alone.

python benchmarks/cost_learning.py            the block task, ten seeds
python benchmarks/cost_learning.py --rare     the same with stops three times rarer
python benchmarks/cost_learning.py --ablate   without each of the three additions
python benchmarks/cost_learning.py --speed    microseconds per cost sample
"""

import argparse
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from offline_costs import block
from offline_costs.episodes import from_episodes
from offline_costs.offline import fit_buffer
from termdp.costs import buffer as buffers
from termdp.costs import ensemble, fit
from termdp.costs.sampling import sample
from termdp.runs.config import make_config

WINDOW = 30
COSTS = make_config("fast", (10, 10, 4), WINDOW, numbers={"cost_members": 3}).costs
COMMON = block.BlockTask()
RARE = block.BlockTask(min_rate=0.0, max_rate=0.06)


def learned_blocks(seeds, config, task, num_train, num_steps):
    """Ensembles of all seeds at once, and the data they learned from."""
    data = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        data.append(
            (
                block.block_episodes(rng, num_train, task),
                block.block_episodes(rng, 400, task),
            )
        )
    rows = max(sum(len(e.costs) for e in train) for train, _ in data) // 64 + 420
    streams = [
        from_episodes(
            jax.random.key(seed),
            [known.episode for known in train],
            block.ACTIONS,
            config,
            num_rows=rows,
        )
        for seed, (train, _) in zip(seeds, data, strict=True)
    ]
    buffer = jax.tree.map(lambda *x: jnp.stack(x), *streams)
    keys = jnp.stack([jax.random.key(1000 + seed) for seed in seeds])
    fit_one = partial(
        fit_buffer,
        action_spec=block.ACTIONS,
        window=task.window,
        config=config,
        num_steps=num_steps,
    )
    states, _ = jax.jit(jax.vmap(fit_one))(keys, buffer)
    jax.block_until_ready(states)
    return states, data


def block_table(args, config, title):
    task = RARE if args.rare else COMMON
    start = time.perf_counter()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    states, data = learned_blocks(
        seeds, config, task, 400 if args.rare else 1000, args.steps
    )
    took = time.perf_counter() - start
    print(f"\n{title}: {args.seeds} seeds, {args.steps} steps, {took:.0f} s")
    print("seed  ΔAUC  (drawn)  Δloss %  (drawn)  corr  bias  on / off  least std")
    for index, (seed, (_, held_out)) in enumerate(zip(seeds, data, strict=True)):
        state = jax.tree.map(lambda x, i=index: x[i], states)
        mean = block.score(state, held_out, task, expected=True)
        drawn = block.score(state, held_out, task)
        print(
            f"{seed:4d} {mean.auc - mean.true_auc:+.4f} "
            f"{drawn.auc - drawn.true_auc:+.4f} "
            f"{100 * (mean.log_loss / mean.true_log_loss - 1):7.2f} "
            f"{100 * (drawn.log_loss / drawn.true_log_loss - 1):7.2f} "
            f"{mean.correlation:7.3f} {mean.bias:6.2f} "
            f"{mean.cost_on:5.2f} {mean.cost_off:+.3f} {mean.smallest_std:6.3f}",
            flush=True,
        )


def seconds(function, *args):
    """The shortest time of several calls, once compiled."""
    compiled = jax.jit(function)
    jax.block_until_ready(compiled(*args))
    times = []
    for _ in range(10):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        times.append(time.perf_counter() - start)
    return min(times)


def speed_table(config):
    key = jax.random.key(0)
    shape = (32, 128)
    obs = jax.random.bernoulli(key, 0.1, (*shape, 10, 10, 4))
    actions = jnp.zeros(shape, int)
    stopped = jax.random.bernoulli(key, 0.01, shape)
    labels = buffers.step_labels(stopped, jnp.zeros(shape, bool))
    buffer = buffers.init(obs[0, 0], block.ACTIONS, shape[1], shape[0], config)
    add = jax.jit(partial(buffers.add, config=config))
    for _ in range(buffer.num_rows // shape[0]):
        buffer = add(key, buffer, obs, actions, stopped, labels)
    state = ensemble.init(key, obs[0, 0], block.ACTIONS, config)
    segments = sample(key, buffer, WINDOW, config)
    obs_drawn = buffers.unpack(segments.obs, buffer.obs_shape, buffer.obs_dtype)
    segments = replace(segments, obs=obs_drawn)
    samples = segments.labels.size
    steps = stopped.size
    rows = (
        (
            "add a rollout",
            steps,
            partial(buffers.add, config=config),
            (key, buffer, obs, actions, stopped, labels),
        ),
        (
            "costs of all members",
            steps,
            ensemble.member_costs,
            (state, obs, actions),
        ),
        (
            "draw segments",
            samples,
            partial(sample, window=WINDOW, config=config),
            (key, buffer),
        ),
        (
            "gradient step",
            samples,
            partial(fit.gradient_step, window=WINDOW, sparsity=0.01, config=config),
            (state, segments),
        ),
        (
            "update in all",
            samples * config.num_steps,
            partial(fit.update, window=WINDOW, config=config),
            (key, state, buffer),
        ),
    )
    print(f"{jax.default_backend()}, {config.members} members; per step or sample")
    for name, count, function, args in rows:
        print(f"  {name:24s} {1e6 * seconds(function, *args) / count:8.2f} µs")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--segments", type=int, default=8)
    parser.add_argument("--filters", type=int, default=COSTS.filters)
    parser.add_argument("--decay", type=float, default=COSTS.weight_decay)
    parser.add_argument("--rare", action="store_true")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--speed", action="store_true")
    args = parser.parse_args()
    config = replace(
        COSTS,
        segments_per_step=args.segments,
        filters=args.filters,
        weight_decay=args.decay,
    )
    if args.speed:
        speed_table(config)
        return
    block_table(args, config, "as configured")
    if args.ablate:
        block_table(args, replace(config, weight_decay=0.0), "without weight decay")
        block_table(args, replace(config, sparsity=0.0), "without the sparse prior")
        block_table(args, replace(config, averaging=0.0), "without averaging")


if __name__ == "__main__":
    main()
