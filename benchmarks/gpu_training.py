"""Steps per second on an accelerator, and how far that is from the card's limit.

    python benchmarks/gpu_training.py [--runs 60] [--steps 1000000] [--paper-steps 102400]
    python benchmarks/gpu_training.py --env backseat --set cost_num_steps=8

`pg` and TermPG on Breakout, or on another grid: many runs side by side with the preset
`fast`, then one and three with `paper` (`--paper-steps 0` leaves these out). The floor is
the time of the matrix products alone at the card's fp32 peak. Compilation is timed apart,
and the first two chunks are not timed. Prints one line of JSON per row, then TermPG's
time divided by `pg`'s. Needs no more than JAX, Flax, Optax, SciPy, Gymnasium,
safetensors, msgspec and Rich.
"""

import argparse
import json

from termdp.runs.program import TrainProgram
from termdp.runs.runner import Runner
from termdp.runs.spec import RunSpec, make_job

FP32_FLOPS = 67e12  # one H200, by its data sheet


def flops_per_step(config, shape, num_actions, learns_costs):
    """Additions and multiplications of the matrix products, per step (grids).

    A product of m weights is 2m operations forwards, twice that backwards. Per step
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
    total += config.algorithm.num_epochs * (4 * first + 6 * rest)
    if learns_costs:
        costs = config.costs
        first, rest = weights(costs.filters, costs.hidden, 1, num_actions)
        rows = costs.num_steps * costs.segments_per_step * costs.segment_length
        samples = costs.members * rows / config.rollout_size
        total += 2 * 2 * costs.members * (first + rest)
        total += samples * (4 * first + 6 * rest)
    return total


def measure(env, method, runs, steps, preset, numbers):
    """Train runs of a method that differ only in their seed."""
    numbers = {} if method == "pg" else numbers
    spec = RunSpec(env, method, steps=steps, seeds=runs, preset=preset, numbers=numbers)
    job = make_job(spec)
    chunks = []
    runner = Runner(TrainProgram(job), on_progress=chunks.append, advise=False)
    runner.run()
    if len(chunks) < 3:
        raise ValueError(f"expected steps for three iterations or more, got {steps}")
    # The first chunk is a single iteration; the queue fills with the second.
    first, last = chunks[1], chunks[-1]
    done, seconds = (last.step - first.step) * runs, last.seconds - first.seconds
    row = {
        "preset": preset,
        "env": env,
        "method": method,
        "runs": runs,
        "steps": done,
        "compile_s": round(runner.compile_seconds, 1),
        "run_s": round(seconds, 2),
        "steps_per_s": round(done / seconds),
    }
    if job.config.network == "grid":
        shape = job.env.observation_space(job.params).shape
        learns = job.methods[0].learns_costs
        flops = flops_per_step(job.config, shape, job.env.num_actions, learns)
        row["mflop_per_step"] = round(flops / 1e6, 2)
        row["times_the_floor"] = round(FP32_FLOPS / flops / row["steps_per_s"], 2)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="breakout")
    parser.add_argument("--set", nargs="*", default=[], help="TermPG's name=number")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--paper-steps", type=int, default=102_400)
    args = parser.parse_args()
    numbers = {k: json.loads(v) for k, v in (given.split("=") for given in args.set)}
    for preset, runs, steps in (
        ("fast", args.runs, args.steps),
        ("paper", 1, args.paper_steps),
        ("paper", 3, args.paper_steps),
    ):
        if not steps:
            continue
        seconds = {}
        for method in ("pg", "termpg"):
            row = measure(args.env, method, runs, steps, preset, numbers)
            seconds[method] = row["run_s"]
            print(json.dumps(row), flush=True)
        ratio = seconds["termpg"] / seconds["pg"]
        print(f"{preset}, {runs} runs: TermPG takes {ratio:.2f} times as long as pg")


if __name__ == "__main__":
    main()
