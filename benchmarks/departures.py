"""What the published code's departures from the paper do, one at a time.

    python benchmarks/departures.py costs  [--seeds 5] [--quick] [--only WORD ...]
    python benchmarks/departures.py agents [--seeds 5] [--quick] [--only WORD ...]

Each row puts one departure of github.com/guytenn/Terminator (ff28ba3) back into this
code, by replacing one function for the length of a run; nothing under src/ knows of it.
`costs` fits the block task (as cost_learning.py does) and scores with the correct model;
`agents` trains TermPG on the notifier (as `termdp demo` does) and plays fresh episodes.
Prints Markdown; docs/departures.md says what came out. `--only` takes parts of names.
"""

import argparse
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from departures_costs import (
    FORWARD,
    LIVE_RELU,
    NO_BIAS,
    RELU,
    SLOW_BIAS,
    ActionBlindCosts,
    Patch,
    costs_table,
    networks_of,
    number,
    replaced,
)
from termdp.training import cost_features, iteration
from termdp.training.config import TrainConfig
from termdp.training.evaluate import evaluate
from termdp.training.loop import Job, Trainer
from termdp.training.metrics import summarise
from termdp.training.presets import FAST, make_config
from termdp.training.session import chunks

from termdp.advantages import gae
from termdp.agents.methods import Method, find_method
from termdp.intervals import difference, mean_interval
from termdp.registry import make

PUBLISHED_BIAS = 3.0
DEAD_DISCOUNT = 0.9526  # 1 − ρ(0 − 3)


def mirrored_gae(rewards, values, next_values, discounts, ended, lam):
    """Advantages whose recursion meets the discounts in the wrong order.

    δ_t is right, but in a fragment of n steps A_{t+1} is multiplied by γ_{n−2−t}.
    """
    row = jax.lax.broadcasted_iota(jnp.int32, ended.shape, 0)
    last = ended | (row == len(ended) - 1)
    first = jnp.concatenate([jnp.ones_like(ended[:1]), ended[:-1]])
    begin = jax.lax.cummax(jnp.where(first, row, 0), axis=0)
    end = jax.lax.cummin(jnp.where(last, row, len(ended)), axis=0, reverse=True)
    place = jnp.clip(begin + end - 1 - row, 0, len(ended) - 1)
    mirrored = jnp.take_along_axis(discounts, place, axis=0)
    deltas = rewards + discounts * next_values - values
    zero = jnp.zeros_like(values)
    return gae(deltas, zero, zero, mirrored, ended, lam)


def fixed_bias(recompute_costs, bias=PUBLISHED_BIAS):
    """γ = 1 − ρ(C − 3), whatever bias was learned."""

    def changed(*args):
        fresh, rollout_state = recompute_costs(*args)
        sums = fresh.accumulated
        logit = sums.policy_input - bias
        return replace(fresh, accumulated=replace(sums, logit=logit)), rollout_state

    return changed


def lower_bias(recompute_costs, gap=3.0):
    """γ = 1 − ρ(C − (b − 3)): as far off as the published 3 is from the paper's 6."""

    def changed(*args):
        fresh, rollout_state = recompute_costs(*args)
        sums = fresh.accumulated
        return replace(
            fresh, accumulated=replace(sums, logit=sums.logit + gap)
        ), rollout_state

    return changed


def before_step(recompute_costs):
    """γ_t of the cost before step t, not after it."""

    def changed(program, method_params, costs, state, rollout_state, played):
        fresh, rollout_state = recompute_costs(
            program, method_params, costs, state, rollout_state, played
        )
        sums = fresh.accumulated
        earlier = cost_features.recent_sums(
            state.rollout_state.recent_costs, method_params.window
        )
        first = cost_features.accumulate(method_params, costs, earlier)
        none = cost_features.accumulate(method_params, costs, 0.0 * earlier)

        def shift(name):
            now, begin = getattr(sums, name), getattr(first, name)[None]
            shifted = jnp.concatenate([begin, now[:-1]])
            return jnp.where(played.starts, getattr(none, name), shifted)

        names = ("logit", "policy_input")
        shifted = replace(sums, **{name: shift(name) for name in names})
        return replace(fresh, accumulated=shifted), rollout_state

    return changed


def stale(recompute_costs):
    """Costs of the networks that were there while playing."""

    def changed(program, method_params, costs, state, rollout_state, played):
        return recompute_costs(
            program, method_params, state.costs, state, rollout_state, played
        )

    return changed


def only_longest(
    program, method_params, state, played, key, learn=iteration.learn_costs
):
    """`stops_of_longest`, for the episodes that ended in this rollout."""
    key, key_rivals = jax.random.split(key)
    lengths, ended = played.episode_lengths.ravel(), played.ended.ravel()
    chances = (ended + 1e-9) / (ended + 1e-9).sum()
    rivals = jax.random.choice(key_rivals, lengths, (2, lengths.size), p=chances)
    longest = (lengths >= rivals.max(axis=0)).reshape(played.stopped.shape)
    played = replace(played, stopped=played.stopped & longest)
    return learn(program, method_params, state, played, key)


def reconsidering(*changes) -> Patch:
    function = iteration.recompute_costs
    for change in changes:
        function = change(function)
    return (iteration, "recompute_costs", function)


@dataclass(frozen=True)
class AgentRow:
    """A method with something put back."""

    name: str
    patches: tuple[Patch, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    method: Method = find_method("termpg")


MIRRORED: Patch = (iteration, "gae", mirrored_gae)
LONGEST: Patch = (iteration, "learn_costs", only_longest)
DEAD = find_method("pg_naive", discount=DEAD_DISCOUNT)
AGENT_ROWS = (
    AgentRow("correct TermPG"),
    AgentRow("discount with b = 3", (reconsidering(fixed_bias),)),
    AgentRow("discount with b lowered by 3", (reconsidering(lower_bias),)),
    AgentRow("advantages meet γ in the wrong order", (MIRRORED,)),
    AgentRow("γ of the cost before the step", (reconsidering(before_step),)),
    AgentRow("stale costs", (reconsidering(stale),)),
    AgentRow("costs blind to the action", (networks_of(ActionBlindCosts),)),
    AgentRow("windows run into the future", FORWARD),
    AgentRow("stops of the longest of three only", (LONGEST,)),
    AgentRow("ReLU output", (RELU,)),
    AgentRow("ReLU output that begins at 0.1", (LIVE_RELU,)),
    AgentRow("bias from 0, ordinary rate", (NO_BIAS,), SLOW_BIAS),
    AgentRow(
        "all of these at once",
        (
            *FORWARD,
            *(LONGEST, RELU, NO_BIAS, MIRRORED),
            reconsidering(before_step, fixed_bias, stale),
        ),
        SLOW_BIAS,
    ),
    AgentRow("dead costs, b = 3: γ = 0.9526", method=DEAD),
    AgentRow("`pg`", method=find_method("pg")),
    AgentRow("`pg_naive`", method=find_method("pg_naive")),
    AgentRow("`pg_0.953`", method=find_method("pg_0.953")),
    AgentRow("`oracle`", method=find_method("oracle")),
)


def trained(row, seeds, steps):
    """The trainer, its final state and the sums of the last tenth of each run."""
    env, params = make("notifier")
    draft = Job(
        env, params, (row.method,) * seeds, tuple(range(seeds)), TrainConfig(), 1
    )
    config = make_config("fast", env, params, draft.max_window)
    config = replace(config, costs=replace(config.costs, **row.settings))
    total = config.num_iterations(steps)
    trainer = Trainer(replace(draft, config=config, num_iterations=total))
    state, reports = trainer.init(), []
    for count in chunks(total):
        state, report = trainer.advance(state, count)
        reports.append(jax.tree.map(np.asarray, report))
    joined = {k: np.concatenate([r[k] for r in reports], axis=1) for k in reports[0]}
    tenth = max(1, total // 10)
    last = [{k: v[run, -tenth:] for k, v in joined.items()} for run in range(seeds)]
    return trainer, state, last


def agent_scores(row, seeds, steps):
    """Numbers of each seed, by name; not a number where no costs are learned."""
    with replaced(row.patches):
        trainer, state, last = trained(row, seeds, steps)
        played = [
            evaluate(trainer, state, run, 128, jax.random.key(10_000 + run))
            for run in range(seeds)
        ]
    found = [summarise({k: v.sum(axis=0) for k, v in part.items()}) for part in last]
    nan = [np.nan]
    return {
        "return": np.array([p.returns.mean() for p in played]),
        "stopped": np.array([p.rate("stopped") for p in played]),
        "corr": np.array([f["cost_corr"] for f in found], float),
        "discount": np.array([f["discount_mean"] for f in found], float),
        "bias": np.array([part.get("bias", nan)[-1] for part in last]),
        "dead": np.array([part.get("dead_members", nan)[-1] for part in last]),
    }


def plain(values, digits):
    known = values[np.isfinite(values)]
    return number(known.mean(), digits) if len(known) else "–"


def agents_table(args):
    steps = 20_480 if args.quick else 150_000
    print(
        f"\nNotifier, {args.seeds} seeds, {steps} decisions, 128 fresh episodes each.\n"
    )
    print(
        "| | return [95%] | seeds | against correct | stopped | correlation | b | γ "
        "| dead |\n|---|" + "---:|" * 8
    )
    correct = None
    for row in chosen(AGENT_ROWS, args.only):
        found = agent_scores(row, args.seeds, steps)
        correct = found["return"] if correct is None else correct
        mean, gap = mean_interval(found["return"]), difference(found["return"], correct)
        dead = found["dead"].sum()
        cells = (
            f"{mean.value:.2f} [{mean.low:.2f}, {mean.high:.2f}]",
            f"{found['return'].min():.1f} … {found['return'].max():.1f}",
            f"{gap.value:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]".replace("-", "−"),
            f"{found['stopped'].mean():.0%}",
            plain(found["corr"], 2),
            plain(found["bias"], 1),
            plain(found["discount"], 3),
            "–"
            if np.isnan(dead)
            else f"{dead:.0f} of {FAST.costs.members * args.seeds}",
        )
        print(f"| {row.name} | {' | '.join(cells)} |", flush=True)


def chosen(rows, only):
    """The first row, which the others are held against, and those that are asked for."""
    wanted = [r for r in rows[1:] if not only or any(word in r.name for word in only)]
    return [rows[0], *wanted]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("costs", "agents"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="does it run? no results")
    parser.add_argument("--only", nargs="*", help="parts of the names of rows")
    args = parser.parse_args()
    {"costs": costs_table, "agents": agents_table}[args.part](args)


if __name__ == "__main__":
    main()
