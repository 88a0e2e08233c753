"""Choose window and delay by the likelihood of rides that a model has not seen.

Every ride is held out once, with all its showings. Supervisors differ in patience: one
who has put up with a lot without stopping is probably patient. A pooled model mistakes
that for forgetting and would choose too short a window. So each supervisor with enough
stops gets their own model. The chosen window is the one under which these models, taken
together, explain the held-out showings best.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from termdp.costs.buffer import NO_LABEL, STOPPED
from termdp.costs.config import CostConfig
from termdp.logs.held_out import HeldOut
from termdp.logs.window_fit import FIT, FitData, Fitted, Task, fit_many
from termdp.people.models.senses import Senses
from termdp.people.models.showing_data import (
    PADDING,
    Packed,
    ShowingData,
    folds,
    pack_showings,
)

WINDOWS = tuple(range(5, 71, 5))
DELAYS = (0, 1, 2, 3, 4)
# The window at which delays are compared: the paper's.
FIRST_WINDOW = 35
MIN_STOPS = 20


@dataclasses.dataclass(frozen=True)
class FitSettings:
    """How to fit.

    Attributes:
        windows: which to compare.
        delays: reaction delays to compare, in steps.
        num_folds: parts of the cross-validation.
        config: networks and rates.
        seed: of folds, draws and bootstraps.
    """

    windows: tuple[int, ...] = WINDOWS
    delays: tuple[int, ...] = DELAYS
    num_folds: int = 4
    config: CostConfig = FIT
    seed: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Showings that one model describes, packed, with their folds."""

    name: str
    showings: list[ShowingData]
    packed: Packed
    fold: np.ndarray
    senses: Senses


def personal_groups(
    senses: Senses, showings: Sequence[ShowingData], settings: FitSettings
) -> list[Group]:
    """One group for each supervisor with enough stops."""
    found = []
    for name in sorted({showing.supervisor for showing in showings}):
        mine = [showing for showing in showings if showing.supervisor == name]
        if sum(showing.end == "stopped" for showing in mine) >= MIN_STOPS:
            found.append(make_group(senses, name, mine, settings))
    return found


def make_group(
    senses: Senses, name: str, showings: list[ShowingData], settings: FitSettings
) -> Group:
    """Pack showings that belong together."""
    fold = folds(showings, settings.num_folds, settings.seed)
    packed = pack_showings(senses, showings)
    return Group(name, showings, packed, fold, senses)


def compare(
    groups: Sequence[Group],
    pairs: Sequence[tuple[int, int]],
    cases: tuple[int, ...],
    settings: FitSettings,
) -> HeldOut:
    """Cross-validate models with the (window, delay) pairs, on each group by itself.

    All groups, pairs and folds are one program.
    """
    count = settings.num_folds
    size = max(group.packed.owner.shape[1] for group in groups)
    num_showings = max(group.packed.num_showings for group in groups)
    data, tasks = [], []
    for group in groups:
        data.append(_data(group, size))
        tasks.append(_tasks(group, pairs, size, num_showings, count))
    fitted = _fit_groups(
        jax.random.key(settings.seed),
        _stacked(data),
        _stacked(tasks),
        settings.config,
        num_showings,
    )
    likelihoods, logits = [], []
    found_likelihoods, found_logits = map(
        np.asarray, (fitted.log_likelihoods, fitted.logits)
    )
    for index, group in enumerate(groups):
        found = found_likelihoods[index].astype(np.float64)
        each = found.reshape(len(pairs), count, -1)[..., : group.packed.num_showings]
        showings = np.arange(group.packed.num_showings)
        likelihoods.append(each[:, group.fold, showings])
        logits.append(_held_out_logits(group, found_logits[index], count))
    return HeldOut(cases, np.concatenate(likelihoods, axis=1), logits)


def fit_whole(
    groups: Sequence[Group], window: int, delay: int, settings: FitSettings
) -> Fitted:
    """One model per group on all its showings, `[groups, 1, ...]`; members bootstrap."""
    size = max(group.packed.owner.shape[1] for group in groups)
    num_showings = max(group.packed.num_showings for group in groups)
    rng = np.random.default_rng(settings.seed)
    shape = (1, num_showings, settings.config.members)
    tasks = []
    for group in groups:
        task = _tasks(group, [(window, delay)], size, num_showings, 1)
        drawn: Any = rng.poisson(1.0, size=shape).astype(np.float32)
        tasks.append(dataclasses.replace(task, weights=drawn))
    return _fit_groups(
        jax.random.key(settings.seed),
        _stacked([_data(group, size) for group in groups]),
        _stacked(tasks),
        settings.config,
        num_showings,
    )


def _held_out_logits(group: Group, logits: np.ndarray, count: int) -> np.ndarray:
    """At each step the logit of the model that had not seen its showing, `[W, T, N]`."""
    owner = group.packed.owner
    logits = logits.reshape(-1, count, *logits.shape[1:])[..., : owner.shape[1]]
    fold = group.fold[np.maximum(owner, 0)]
    picked = np.take_along_axis(logits, fold[None, None], axis=1)
    return picked[:, 0]


@jax.jit(static_argnames=("config", "num_showings"))
def _fit_groups(
    key: jax.Array, data: FitData, tasks: Task, config: CostConfig, num_showings: int
) -> Fitted:
    return jax.vmap(lambda d, t: fit_many(key, d, t, config, num_showings))(data, tasks)


def _stacked(trees: Sequence[Any]) -> Any:
    """Stack trees of arrays, in NumPy, because that compiles nothing."""
    return jax.tree.map(lambda *x: np.stack(x), *trees)


def _data(group: Group, size: int) -> FitData:
    """A group's showings in `size` rows."""
    packed = group.packed
    rest = size - packed.owner.shape[1]
    rows = [(0, 0), (0, rest)]
    arrays: dict[str, Any] = {
        "obs": np.pad(packed.noticed, [*rows, (0, 0)]),
        "actions": np.pad(packed.acted, rows),
        "starts": np.pad(packed.starts, rows),
        "owner": np.pad(packed.owner, rows, constant_values=PADDING),
    }
    return FitData(**arrays, spec=group.senses.spec)


def _tasks(
    group: Group,
    pairs: Sequence[tuple[int, int]],
    size: int,
    num_showings: int,
    count: int,
) -> Task:
    """For every pair one task per fold, which leaves that fold out."""
    rest = size - group.packed.owner.shape[1]
    labels = {
        delay: np.pad(
            group.packed.labels(delay), [(0, 0), (0, rest)], constant_values=NO_LABEL
        )
        for delay in {delay for _, delay in pairs}
    }
    kept = np.arange(count)[:, None] != group.fold
    kept = np.pad(kept, [(0, 0), (0, num_showings - len(group.showings))])
    arrays: dict[str, Any] = {
        "window": np.array([w for w, _ in pairs for _ in range(count)], np.int32),
        "labels": np.stack([labels[d] for _, d in pairs for _ in range(count)]),
        "weights": np.tile(kept, (len(pairs), 1))[..., None].astype(np.float32),
    }
    return Task(**arrays)


def constant_log_likelihood(labels: np.ndarray, num_showings: int) -> float:
    """Log-likelihood per showing of the best model with the same chance at every step."""
    stops, steps = (labels == STOPPED).sum(), (labels != NO_LABEL).sum()
    rate = stops / steps
    total = stops * np.log(rate) + (steps - stops) * np.log1p(-rate)
    return float(total / num_showings)
