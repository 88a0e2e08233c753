"""What the published code's departures from the paper do, one at a time.

    python benchmarks/departures.py costs  [--seeds 5] [--quick] [--only WORD ...]
    python benchmarks/departures.py agents [--seeds 5] [--quick] [--only WORD ...]

Each row puts one departure of github.com/guytenn/Terminator (ff28ba3) back into this
code. It replaces one function for the length of a run; nothing under src/ knows of it.
`costs` fits the block task (as cost_learning.py does) and scores with the correct model.
`agents` trains TermPG on the notifier and plays fresh episodes. Prints Markdown;
docs/departures.md has the results. `--only` takes parts of names.
"""

import argparse
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from cost_learning import COSTS
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

import termdp
from termdp.advantages import gae
from termdp.agents.methods import Method, find_method
from termdp.intervals import difference, mean_interval
from termdp.runs import cost_features, improve, program

PUBLISHED_BIAS = 3.0
DEAD_DISCOUNT = 0.9526  # 1 − ρ(0 − 3)
# The paper's discount: 1 − ρ(C − b) and nothing else.
TERMPG = find_method("termpg", discount=1.0)


def mirrored_gae(rewards, values, next_values, discounts, ended, lam):
    """Advantages whose recursion takes the discounts in the wrong order.

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
        fresh, memory = recompute_costs(*args)
        sums = fresh.accumulated
        logit = sums.policy_input - bias
        return replace(fresh, accumulated=replace(sums, logit=logit)), memory

    return changed


def lower_bias(recompute_costs, gap=3.0):
    """γ = 1 − ρ(C − (b − 3)): as far off as the published 3 is from the paper's 6."""

    def changed(*args):
        fresh, memory = recompute_costs(*args)
        sums = fresh.accumulated
        sums = replace(sums, logit=sums.logit + gap)
        return replace(fresh, accumulated=sums), memory

    return changed


def before_step(recompute_costs):
    """γ_t from the cost before step t, not after it."""

    def changed(recipe, method_params, costs, recent, rollout):
        fresh, memory = recompute_costs(recipe, method_params, costs, recent, rollout)
        sums = fresh.accumulated
        earlier = cost_features.recent_sums(recent, method_params.window)
        first = cost_features.accumulate(method_params, costs, earlier)
        none = cost_features.accumulate(method_params, costs, 0.0 * earlier)

        def shift(name):
            now, begin = getattr(sums, name), getattr(first, name)[None]
            shifted = jnp.concatenate([begin, now[:-1]])
            return jnp.where(rollout.starts, getattr(none, name), shifted)

        names = ("logit", "policy_input")
        shifted = replace(sums, **{name: shift(name) for name in names})
        return replace(fresh, accumulated=shifted), memory

    return changed


def stale(recipe, method_params, state, *rest, improved=improve.improve):
    """Costs from the networks as they were during play."""
    recompute_costs = improve.recompute_costs

    def changed(recipe, method_params, costs, recent, rollout):
        return recompute_costs(recipe, method_params, state.costs, recent, rollout)

    with replaced(((improve, "recompute_costs", changed),)):
        return improved(recipe, method_params, state, *rest)


def only_longest(recipe, method_params, state, rollout, key, learn=improve.learn_costs):
    """`stops_of_longest`, for the episodes that ended in this rollout."""
    key, key_rivals = jax.random.split(key)
    lengths, ended = rollout.episode_lengths.ravel(), rollout.ended.ravel()
    chances = (ended + 1e-9) / (ended + 1e-9).sum()
    rivals = jax.random.choice(key_rivals, lengths, (2, lengths.size), p=chances)
    longest = (lengths >= rivals.max(axis=0)).reshape(rollout.stopped.shape)
    rollout = replace(rollout, stopped=rollout.stopped & longest)
    return learn(recipe, method_params, state, rollout, key)


def reconsidering(*changes) -> Patch:
    function = improve.recompute_costs
    for change in changes:
        function = change(function)
    return (improve, "recompute_costs", function)


@dataclass(frozen=True)
class AgentRow:
    """A method with some departures put back."""

    name: str
    patches: tuple[Patch, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    method: Method = TERMPG


MIRRORED: Patch = (improve, "gae", mirrored_gae)
LONGEST: Patch = (improve, "learn_costs", only_longest)
STALE: Patch = (program, "improve", stale)
DEAD = find_method("pg_naive", discount=DEAD_DISCOUNT)
AGENT_ROWS = (
    AgentRow("correct TermPG"),
    AgentRow("discount with b = 3", (reconsidering(fixed_bias),)),
    AgentRow("discount with b lowered by 3", (reconsidering(lower_bias),)),
    AgentRow("advantages meet γ in the wrong order", (MIRRORED,)),
    AgentRow("γ of the cost before the step", (reconsidering(before_step),)),
    AgentRow("stale costs", (STALE,)),
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
            *(LONGEST, RELU, NO_BIAS, MIRRORED, STALE),
            reconsidering(before_step, fixed_bias),
        ),
        SLOW_BIAS,
    ),
    AgentRow("dead costs, b = 3: γ = 0.9526", method=DEAD),
    AgentRow("`pg`", method=find_method("pg")),
    AgentRow("`pg_naive`", method=find_method("pg_naive")),
    AgentRow("`pg`, γ = 0.953", method=find_method("pg", discount=0.953)),
    AgentRow("`oracle`", method=find_method("oracle", discount=1.0)),
)


def agent_scores(row, seeds, steps):
    """The figures of each seed, by name; NaN where no costs are learned."""
    settings = {f"cost_{name}": value for name, value in row.settings.items()}
    # Programs that were compiled with other functions must not be used again.
    jax.clear_caches()
    with replaced(row.patches):
        result = termdp.train(
            "notifier",
            row.method,
            steps=steps,
            seeds=seeds,
            on_progress=False,
            **settings,
        )
        played = [
            termdp.evaluate(result.agent(seed), seed=10_000) for seed in range(seeds)
        ]
    last = result.summary["seeds"]
    learned = {"corr": "cost_corr", "bias": "bias", "dead": "dead_members"}
    return {
        "return": np.array([found.return_mean for found in played]),
        "stopped": np.array([found.stop_rate for found in played]),
        "discount": np.array([entry["discount_mean"] for entry in last], float),
    } | {
        name: np.array([entry[source] for entry in last], float)
        for name, source in learned.items()
    }


def plain(values, digits):
    known = values[np.isfinite(values)]
    return number(known.mean(), digits) if len(known) else "–"


def agents_table(args):
    steps = 20_480 if args.quick else 150_000
    print(f"\nNotifier, {args.seeds} seeds, {steps} steps, 128 fresh episodes each.\n")
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
            "–" if np.isnan(dead) else f"{dead:.0f} of {COSTS.members * args.seeds}",
        )
        print(f"| {row.name} | {' | '.join(cells)} |", flush=True)


def chosen(rows, only):
    """The first row, with which others are compared, and those that are asked for."""
    wanted = [r for r in rows[1:] if not only or any(word in r.name for word in only)]
    return [rows[0], *wanted]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("costs", "agents"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="only see whether it runs")
    parser.add_argument("--only", nargs="*", help="parts of the names of rows")
    args = parser.parse_args()
    {"costs": costs_table, "agents": agents_table}[args.part](args)


if __name__ == "__main__":
    main()
