"""Runs one after the other (`lax.map`) against side by side (`vmap`) on the CPU.

python benchmarks/one_by_one.py recommender pg

Five seeds. Prints the processor's time per run and iteration, the best of four stretches
of five iterations. It is processor time, so other programs do not count.
"""

import argparse
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

from termdp.runs.program import TrainProgram
from termdp.runs.spec import make_job, make_spec

SEEDS, ITERATIONS, STRETCHES = 5, 5, 4


def measure(job, one_by_one):
    program = TrainProgram(job)
    program._one_by_one = one_by_one
    began = time.process_time()
    program.compile_all(ITERATIONS)
    compiling = time.process_time() - began
    state, _ = program.advance(program.init(), ITERATIONS)
    jax.block_until_ready(state)
    times = []
    for _ in range(STRETCHES):
        began = time.process_time()
        state, _ = program.advance(state, ITERATIONS)
        jax.block_until_ready(state)
        times.append((time.process_time() - began) / ITERATIONS / SEEDS)
    return compiling, min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env")
    parser.add_argument("method")
    args = parser.parse_args()
    job = make_job(make_spec(args.env, args.method, seeds=SEEDS, steps=10**7))
    for name, one_by_one in (("one by one", True), ("side by side", False)):
        compiling, seconds = measure(job, one_by_one)
        print(
            f"{args.env} {args.method} {name}: {seconds * 1e3:.1f} ms per run and "
            f"iteration, {compiling:.1f} s compiling",
            flush=True,
        )


if __name__ == "__main__":
    main()
