"""The values' share of the gradient, on their own scale and on that of the rewards.

python benchmarks/value_scale.py [--column space_invaders_hard] [--steps 300000]

Trains `pg`, and PPO that knows the costs (`oracle`, discount 1), with and without scaled
values. Every tenth iteration measures the norm of each loss's gradient in the shared
trunk. Writes docs/images/value_gradients.png and prints the figures of docs/values.md.

python benchmarks/value_scale.py --returns without.jsonl with.jsonl

draws what `benchmarks/tuning.py --out` wrote without and with scaled values:
docs/images/value_scale.png.
"""

import argparse
import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from termdp.agents import ppo
from termdp.agents.method_params import method_params
from termdp.agents.update import on_own_scale, standardise
from termdp.bench.suites import HARD_COLUMNS, PAPER_COLUMNS, RECOMMENDER
from termdp.report.names import column_name, method_name
from termdp.runs.collect import Mind, collect
from termdp.runs.config import remembered_steps
from termdp.runs.improve import as_examples, in_units_of_rewards
from termdp.runs.program import initial_state, make_recipe, train_iteration
from termdp.runs.spec import RunSpec, make_job

COLUMNS = {c.label: c for c in (*PAPER_COLUMNS, RECOMMENDER, *HARD_COLUMNS)}
EVERY = 10


def norms(column, method, numbers, steps, seed):
    """Gradient norms over training: `[measurements, (policy, value)]`, and returns."""
    spec = RunSpec(
        column.env,
        method,
        steps=steps,
        seed=seed,
        numbers=numbers,
        env_numbers=column.overrides,
    )
    job = make_job(spec)
    recipe = make_recipe(job)
    config, learner = job.config.algorithm, recipe.learner
    params = method_params(job.methods[0], remembered_steps(job.params.observer))

    @jax.jit
    def train(state):
        def one(state, _):
            state, report = train_iteration(recipe, job.env, job.params, params, state)
            return state, (report["return_sum"], report["episodes"])

        return jax.lax.scan(one, state, None, EVERY)

    @jax.jit
    def measure(state):
        mind = Mind(state.policy.params, None, params)
        _, rollout = collect(
            learner,
            mind,
            job.env,
            job.params,
            state.rollout_state,
            state.key,
            job.config.rollout_steps,
        )
        rollout = in_units_of_rewards(state.policy.value_scale, rollout)
        examples = as_examples(recipe, params, rollout, None, rollout.rewards)
        policy, examples = on_own_scale(state.policy, examples, config)
        examples = dataclasses.replace(
            examples, advantages=standardise(examples.advantages)
        )
        flat = dataclasses.replace(examples, carry=())
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), flat)

        def part(weights, name, factor):
            parts = ppo.loss(weights, learner, flat, policy.extra, config)[1]
            return factor * parts[name]

        found = []
        for name, factor in (("policy_loss", 1.0), ("value_loss", config.value_coef)):
            gradient = jax.grad(part)(policy.params, name, factor)
            found.append(optax.global_norm(gradient["params"]["trunk"]))
        return jnp.stack(found)

    key = jax.random.key(seed)
    state = initial_state(recipe, job.env, job.params, key, job.max_window)
    rows, returns = [], []
    for _ in range(job.num_iterations // EVERY):
        state, (total, episodes) = train(state)
        rows.append(np.asarray(measure(state)))
        returns.append(float(total.sum() / max(float(episodes.sum()), 1.0)))
    return np.asarray(rows), returns, job.config.rollout_size


def draw_returns(files, out):
    """Returns of each method, without and with values on their own scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    labels = ("values as they are", "values on their own scale")
    for place, (path, label) in enumerate(zip(files, labels, strict=True)):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        means = [np.mean(row["returns"]) for row in rows]
        errors = [
            np.std(row["returns"], ddof=1) / len(row["returns"]) ** 0.5 for row in rows
        ]
        axes.bar(
            np.arange(len(rows)) + 0.4 * (place - 0.5),
            means,
            width=0.36,
            yerr=errors,
            capsize=3,
            color=("#b5482a", "#1f6f8b")[place],
            label=label,
        )
    axes.set_xticks(range(len(rows)), [method_name(row["method"]) for row in rows])
    axes.set_ylabel("return ± standard error")
    axes.set_title(f"{column_name(rows[0]['column'])}, {rows[0]['steps']:,} steps")
    axes.legend(frameon=False)
    figure.savefig(out / "value_scale.png", dpi=150)


def arguments():
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--column", default="space_invaders_hard", choices=COLUMNS)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--returns", type=Path, nargs=2, help="files of tuning.py")
    return parser.parse_args()


def main():
    """Measure, print, draw."""
    from matplotlib.figure import Figure

    args = arguments()
    if args.returns:
        draw_returns(args.returns, args.out)
        return
    column = COLUMNS[args.column]
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (title, method, numbers) in zip(
        panels,
        (
            ("pg, discount 0.99", "pg", {}),
            ("oracle, discount 1", "oracle", {"discount": 1.0}),
        ),
        strict=True,
    ):
        for label, scaled, colour in (
            ("values as they are", {"value_scale_rate": None}, "#b5482a"),
            ("values on their own scale", {}, "#1f6f8b"),
        ):
            rows, returns, size = norms(
                column, method, numbers | scaled, args.steps, args.seed
            )
            steps = (np.arange(len(rows)) + 1) * EVERY * size
            axes.semilogy(steps, rows[:, 1], color=colour, label=f"value loss, {label}")
            axes.semilogy(
                steps, rows[:, 0], "--", color=colour, label=f"policy loss, {label}"
            )
            half = rows[len(rows) // 2 :]
            summary = {
                "column": args.column,
                "what": title,
                "values": label,
                "policy_norm": float(np.median(half[:, 0])),
                "value_norm": float(np.median(half[:, 1])),
                "ratio": float(np.median(half[:, 1] / half[:, 0])),
                "return_last": float(np.mean(returns[-max(1, len(returns) // 10) :])),
            }
            print(json.dumps(summary), flush=True)
        axes.set_title(title)
        axes.set_xlabel("steps")
    panels[0].set_ylabel("norm of the trunk's gradient")
    for axes in panels:
        axes.axhline(0.5, color="0.6", linewidth=0.8)
        axes.annotate(
            "bound of the gradient",
            (0.02, 0.53),
            xycoords=("axes fraction", "data"),
            color="0.4",
            fontsize=8,
        )
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2
    )
    figure.savefig(args.out / "value_gradients.png", dpi=150)


if __name__ == "__main__":
    main()
