"""Departures of the published cost learner, put back one at a time, on the block task.

`departures.py costs` runs this; the agents' part takes some of the departures from here.
"""

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import cost_learning  # puts tests/ on the path
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from offline_costs import block
from offline_costs.episodes import from_episodes
from termdp.cost_network import CostNetwork
from termdp.costs import ensemble, fit, sampling
from termdp.termination import window_sums

WINDOW = cost_learning.WINDOW
FRAGMENT = 128
DEAD_BELOW = 0.01  # standard deviation of a member that learned nothing

Patch = tuple[Any, str, Any]


@contextmanager
def replaced(patches: tuple[Patch, ...]):
    with ExitStack() as stack:
        for module, name, replacement in patches:
            stack.enter_context(patch.object(module, name, replacement))
        yield


def future_sums(costs, window, starts):
    """Sums over the next `window` steps of the episode instead of the last."""
    ends = jnp.concatenate([starts[1:], jnp.ones_like(starts[:1])])
    return window_sums(costs[::-1], window, ends[::-1])[::-1]


def has_future(is_oldest, starts, window):
    """As `sampling.has_history`, for windows that reach forward."""
    row = jax.lax.broadcasted_iota(jnp.int32, starts.shape, 1)
    return row <= starts.shape[1] - window


def divided_by_length(key, buffer, window, config, *rest, longest=False):
    """Steps weigh 1 / the length of their trajectory, or of the longest one drawn."""
    segments = sampling.sample(key, buffer, window, config, *rest)
    length = (segments.weights > 0).sum(axis=1, keepdims=True)
    if longest:  # of the trajectories that the members drew beside each other
        length = length.max(axis=0, keepdims=True)
    weights = segments.weights / jnp.maximum(length, 1)
    drawn = jnp.float32(config.segments_per_step)
    return replace(segments, weights=weights, expected_steps=drawn)


def no_initial_bias(state, stops, steps, config):
    return replace(state, has_bias=jnp.ones((), bool))


class ClippedCosts(CostNetwork):
    """Costs behind a ReLU; `offset` is where they begin."""

    offset: float = 0.0

    def __call__(self, obs, actions):
        return nn.relu(super().__call__(obs, actions) + self.offset)


class ActionBlindCosts(CostNetwork):
    """Costs that depend on the observation alone."""

    def __call__(self, obs, actions):
        return super().__call__(obs, jnp.zeros_like(actions))


def networks_of(kind, **changes) -> Patch:
    def make_network(actions, config):
        sizes = {"filters": config.filters, "hidden": config.hidden}
        return kind(actions=actions, kind=config.network, **sizes, **changes)

    return (ensemble, "make_network", make_network)


FUTURE: Patch = (fit, "window_sums", future_sums)
RELU = networks_of(ClippedCosts)
LIVE_RELU = networks_of(ClippedCosts, offset=0.1)
NO_BIAS: Patch = (ensemble, "with_initial_bias", no_initial_bias)
SLOW_BIAS = {"bias_rate_factor": 1.0}
# Trajectories of up to 128 steps in one piece, with the window before them.
WHOLE = {"draw": "trajectories", "segment_length": FRAGMENT + WINDOW - 1}


def relabelled(episodes, keep):
    """Stops that are not kept become steps like any other."""
    return [
        episode if kept else replace(episode, end="truncated")
        for episode, kept in zip(episodes, keep, strict=True)
    ]


def stops_of_longest(rng, episodes):
    """A stop counts only if two other episodes, drawn at random, are not longer."""
    lengths = np.array([len(episode) for episode in episodes])
    rivals = lengths[rng.integers(len(lengths), size=(2, len(lengths)))]
    return relabelled(episodes, lengths >= rivals.max(axis=0))


def stops_at_random(rng, episodes):
    return relabelled(episodes, rng.random(len(episodes)) < 0.3)


def seen_too_late(rng, episodes):
    """Inputs come one step late: the observation that led to the stop is missing."""
    late = []
    for episode in episodes:
        first = episode.obs[:1].copy()
        first[..., 1] = False  # nothing is charged for what a reset shows
        obs = np.concatenate([first, episode.obs[:-1]])
        late.append(replace(episode, obs=obs))
    return late


def fragments(rng, episodes):
    """Cut where rollouts of 128 steps end; what came before is forgotten."""
    pieces = []
    for episode in episodes:
        cuts = [0, *range(int(rng.integers(1, FRAGMENT + 1)), len(episode), FRAGMENT)]
        for begin, end in zip(cuts, [*cuts[1:], len(episode)], strict=True):
            last = end == len(episode)
            part = replace(
                episode,
                obs=episode.obs[begin:end],
                actions=episode.actions[begin:end],
                end=episode.end if last else "truncated",
            )
            pieces.append(part)
    return pieces


def all_of_the_data(rng, episodes):
    return stops_of_longest(rng, fragments(rng, seen_too_late(rng, episodes)))


@dataclass(frozen=True)
class CostRow:
    """A cost learner with some departures put back: functions, settings, data."""

    name: str
    patches: tuple[Patch, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    data: Callable[..., Any] = lambda rng, episodes: episodes


def sampled(longest):
    return (fit, "sample", partial(divided_by_length, longest=longest))


FORWARD = (FUTURE, (sampling, "has_history", has_future))
COST_ROWS = (
    CostRow("correct"),
    CostRow("windows run into the future", FORWARD),
    CostRow("stops of the longest of three only", data=stops_of_longest),
    CostRow("future windows, stops of the longest", FORWARD, data=stops_of_longest),
    CostRow("30% of the stops, at random", data=stops_at_random),
    CostRow("ReLU output", (RELU,)),
    CostRow("ReLU output, bias from the base rate", (RELU,), {"bias_offset": 0.0}),
    CostRow("ReLU output that begins at 0.1", (LIVE_RELU,)),
    CostRow("bias from 0, ordinary rate", (NO_BIAS,), SLOW_BIAS),
    CostRow("bias from 0, ordinary rate, ReLU at 0.1", (NO_BIAS, LIVE_RELU), SLOW_BIAS),
    CostRow("last observation missing", data=seen_too_late),
    CostRow("fragments of 128 steps", data=fragments),
    CostRow("correct, whole trajectories drawn", (), WHOLE),
    CostRow("loss over own length", (sampled(False),), WHOLE),
    CostRow("loss over the longest's length", (sampled(True),), WHOLE),
    CostRow(
        "all at once",
        (FUTURE, RELU, NO_BIAS, sampled(True)),
        WHOLE | SLOW_BIAS,
        all_of_the_data,
    ),
)


def fitted(row, seeds, num_steps):
    """Ensembles of all seeds, their episodes, and how many stops they were shown."""
    shown = []

    def altered(key, episodes, *args, **kwargs):
        rng = np.random.default_rng(len(shown) + 500)
        episodes = row.data(rng, episodes)
        shown.append(sum(episode.end == "stopped" for episode in episodes))
        return from_episodes(key, episodes, *args, **kwargs)

    config = replace(cost_learning.COSTS, **row.settings)
    with replaced((*row.patches, (cost_learning, "from_episodes", altered))):
        states, data = cost_learning.learned_blocks(
            seeds, config, cost_learning.COMMON, 1000, num_steps
        )
    return states, data, shown


def block_scores(row, seeds, num_steps):
    """The figures of each seed, by name."""
    states, data, shown = fitted(row, seeds, num_steps)
    scores = []
    for index, (_, held_out) in enumerate(data):
        state = jax.tree.map(lambda x, i=index: x[i], states)
        with np.errstate(invalid="ignore"):  # a constant cost correlates with nothing
            score = block.score(state, held_out, cost_learning.COMMON, expected=True)
        obs = np.concatenate([known.episode.obs for known in held_out[:50]])
        costs = ensemble.member_costs(state, obs, np.zeros(len(obs), np.int32))
        scores.append(
            {
                "auc": score.auc,
                "true_auc": score.true_auc,
                "loss": 100 * (score.log_loss / score.true_log_loss - 1),
                "corr": np.nan_to_num(score.correlation),
                "on": score.cost_on,
                "off": score.cost_off,
                "bias": score.bias,
                "dead": int((costs.std(axis=1) < DEAD_BELOW).sum()),
                "stops": shown[index],
            }
        )
    return {name: np.array([s[name] for s in scores]) for name in scores[0]}


def number(value, digits):
    """With a proper minus sign, and none before zero."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def ranged(values, digits):
    mean, low, high = (number(f(values), digits) for f in (np.mean, np.min, np.max))
    return f"{mean} ({low} … {high})"


def costs_table(args):
    steps = 40 if args.quick else 400
    print(f"\nBlock task, {args.seeds} seeds, {steps} gradient steps: mean (range).\n")
    print(
        "| | AUC | log-loss above the truth's, % | correlation | cost of a block "
        "| of none | b | dead | stops shown |\n|---|" + "---:|" * 8
    )
    for row in COST_ROWS:
        if args.only and not any(word in row.name for word in args.only):
            continue
        found = block_scores(row, range(args.seeds), steps)
        if row is COST_ROWS[0]:
            print(
                f"| truth | {found['true_auc'].mean():.3f} | 0 | 1 | 1 | 0 | 6 | – | – |"
            )
        cells = (
            ranged(found["auc"], 3),
            ranged(found["loss"], 1),
            ranged(found["corr"], 2),
            *(number(found[name].mean(), 2) for name in ("on", "off")),
            ranged(found["bias"], 1),
            f"{found['dead'].sum()} of {cost_learning.COSTS.members * args.seeds}",
            f"{found['stops'].mean():.0f}",
        )
        print(f"| {row.name} | {' | '.join(cells)} |", flush=True)
