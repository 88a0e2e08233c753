"""Decisions per second on an accelerator, and how far that is from its arithmetic.

    python benchmarks/gpu_training.py [--runs 60] [--steps 1000000] [--paper-steps 102400]

`pg` and TermPG on Breakout: many runs side by side with the preset `fast`, then one and
three with `paper`. The floor is the time of the matrix products alone at the card's fp32
peak. Compilation is timed apart, and a first call to the device is not timed. One line
of JSON per row, then TermPG's time over `pg`'s.
"""

import argparse
import json
import time

import jax
from termdp.runs.presets import make_config

from termdp.agents.methods import find_method
from termdp.runs.program import Job, Trainer
from termdp.runs.runner import chunk_length, chunks
from termdp.runs.train import make_watched

FP32_FLOPS = 67e12  # one H200, by its data sheet


def flops_per_decision(config, shape, num_actions, learns_costs):
    """Additions and multiplications of the matrix products, per decision (grids).

    A product of m weights is 2m operations forwards, twice that backwards. Per decision
    the policy plays once and is trained `num_epochs` times; costs are evaluated twice per
    member (old and fresh networks) and trained on `samples` rows. The first layer's input
    needs no gradient, and a convolution counts as one, however it is multiplied out.
    """
    height, width, channels = shape
    cells = (height - 2) * (width - 2)

    def weights(filters, hidden, outputs, extra):
        first = cells * 9 * channels * filters
        rest = (cells * filters + extra) * hidden + hidden * outputs
        return first, rest

    first, rest = weights(config.filters, config.hidden, num_actions + 1, 2)
    total = 2 * (first + rest)
    total += config.ppo.num_epochs * (4 * first + 6 * rest)
    if learns_costs:
        costs = config.costs
        first, rest = weights(costs.filters, costs.hidden, 1, num_actions)
        rows = costs.num_steps * costs.segments_per_step * costs.segment_length
        samples = costs.members * rows / config.rollout_size
        total += 2 * 2 * costs.members * (first + rest)
        total += samples * (4 * first + 6 * rest)
    return total


def measure(method, runs, steps, preset):
    """Train runs of a method that differ in their seed alone."""
    env, params = make_watched("breakout")
    config = make_config(preset, env, params, 30)
    total = config.num_iterations(steps)
    methods = (find_method(method),) * runs
    trainer = Trainer(Job(env, params, methods, tuple(range(runs)), config, total))
    began = time.perf_counter()
    trainer.compile(chunk_length(total))
    state = jax.block_until_ready(trainer.init())
    compiled = time.perf_counter()
    first, *others = chunks(total)
    state, _ = jax.block_until_ready(trainer.advance(state, first))
    started = time.perf_counter()
    for count in others:
        state, _ = trainer.advance(state, count)
    jax.block_until_ready(state)
    seconds = time.perf_counter() - started
    decisions = (total - first) * config.rollout_size * runs
    row = {
        "preset": preset,
        "method": method,
        "runs": runs,
        "decisions": decisions,
        "compile_s": round(compiled - began, 1),
        "run_s": round(seconds, 2),
        "decisions_per_s": round(decisions / seconds),
    }
    if config.network == "grid":
        shape = env.observation_space(params).shape
        learns = find_method(method).learns_costs
        flops = flops_per_decision(config, shape, env.num_actions, learns)
        row["mflop_per_decision"] = round(flops / 1e6, 2)
        row["times_the_floor"] = round(FP32_FLOPS / flops / row["decisions_per_s"], 2)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--paper-steps", type=int, default=102_400)
    args = parser.parse_args()
    for preset, runs, steps in (
        ("fast", args.runs, args.steps),
        ("paper", 1, args.paper_steps),
        ("paper", 3, args.paper_steps),
    ):
        seconds = {}
        for method in ("pg", "termpg"):
            row = measure(method, runs, steps, preset)
            seconds[method] = row["run_s"]
            print(json.dumps(row), flush=True)
        ratio = seconds["termpg"] / seconds["pg"]
        print(f"{preset}, {runs} runs: TermPG takes {ratio:.2f} times as long as pg")


if __name__ == "__main__":
    main()
