"""What PPO earns when nobody watches, beside what others have published.

    python benchmarks/ppo_alone.py breakout [--rules original] [--steps 20000000]
    python benchmarks/ppo_alone.py breakout --rules gymnax --steps 5000000 --seeds 5

`original`: MinAtar's rules (sticky actions, difficulty ramps, games of any length), for
which pgx publishes curves; `gymnax`: no sticky actions, games of at most 1,000 steps, as
in gymnax's published PPO. Prints the return of the episodes that end in each tenth of
training, then the last as mean ± 95% interval over seeds, as JSON.
"""

import argparse
import json
import time

import numpy as np
from hard_observers import NEVER, make_trainer
from termdp.training.metrics import summarise
from termdp.training.session import chunk_length, chunks

from termdp.intervals import mean_interval

RULES = {"original": {}, "gymnax": {"sticky_prob": 0.0, "max_steps_in_episode": 1000}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game")
    parser.add_argument("--rules", choices=sorted(RULES), default="original")
    parser.add_argument("--steps", type=int, default=20_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    # Watched by somebody who never stops: the same game as without an observer.
    alone = RULES[args.rules] | {"bias": NEVER}
    trainer = make_trainer(args.game, alone, range(args.seeds), args.steps)
    total = trainer.job.num_iterations
    began = time.perf_counter()
    trainer.compile(chunk_length(total))
    state, compiled = trainer.init(), time.perf_counter()
    tenth, reported, returns = [], 0, np.full(args.seeds, np.nan)
    done = 0
    for count in chunks(total):
        state, metrics = trainer.advance(state, count)
        done += count
        tenth.append({name: np.asarray(value) for name, value in metrics.items()})
        if done * 10 // total > reported:
            reported = done * 10 // total
            sums = [
                {name: sum(m[name][seed].sum() for m in tenth) for name in tenth[0]}
                for seed in range(args.seeds)
            ]
            returns = np.array([summarise(s)["return_mean"] or np.nan for s in sums])
            seconds = time.perf_counter() - compiled
            print(f"{reported}/10 {returns.round(1)} after {seconds:.0f} s", flush=True)
            tenth = []
    mean = mean_interval(returns)
    row = {
        "game": args.game,
        "rules": args.rules,
        "steps": total * trainer.job.config.rollout_size,
        "seeds": args.seeds,
        "return": round(mean.value, 2),
        "interval_95": round(mean.high - mean.value, 2),
        "returns": returns.round(2).tolist(),
        "compile_s": round(compiled - began, 1),
        "run_s": round(time.perf_counter() - compiled, 1),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
