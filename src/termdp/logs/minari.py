"""Minari data sets as logs: one row per step, the observation that was acted on."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from termdp.logs.sources import BATCH_ROWS, Source


def minari_source(dataset: Any) -> Source:
    """A data set (or its id) as a source.

    Columns: `episode`, `observation.*`, `action` or `action.*`, `reward`,
    `termination`, `truncation`, and `infos.*` for numbers and truths of each step.
    By default the stop is `infos.stopped` (set by `termdp.gym.ObserverWrapper`), and an
    end without a stop is `infos.game_over`.
    """
    if isinstance(dataset, str):
        dataset = _loaded(dataset)
    episodes = dataset.iterate_episodes()
    first = next(iter(episodes), None)
    if first is None:
        raise ValueError(f"expected episodes in the Minari data set {dataset.id}: none")
    schema = pa.RecordBatch.from_pydict(_columns(first)).schema
    names = schema.names
    defaults: dict[str, Any] = {
        "session": "episode",
        "observations": tuple(n for n in names if n.startswith("observation")),
        "actions": tuple(n for n in names if n == "action" or n.startswith("action.")),
    }
    for role, name in (("stopped", "infos.stopped"), ("ended", "infos.game_over")):
        if name in names:
            defaults[role] = name

    def read(wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        waiting: list[dict[str, np.ndarray]] = []
        rows = 0
        for episode in dataset.iterate_episodes():
            found = _columns(episode)
            missing = [name for name in wanted if name not in found]
            if missing:
                raise ValueError(
                    f"expected {missing[0]!r} in every episode, got none in episode "
                    f"{episode.id} of {dataset.id}"
                )
            waiting.append({name: found[name] for name in wanted})
            rows += len(episode)
            if rows >= BATCH_ROWS:
                yield _joined(waiting)
                waiting, rows = [], 0
        if waiting:
            yield _joined(waiting)

    return Source(f"minari:{dataset.id}", schema, read, defaults)


def _loaded(name: str) -> Any:
    try:
        import minari
    except ImportError as error:
        raise ValueError(
            f"expected the package minari to read minari:{name}: "
            "pip install 'minari[hdf5]'"
        ) from error
    try:
        return minari.load_dataset(name)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"expected a Minari data set on this machine, got {name!r}: "
            f"{' '.join(str(error).split())[:200]}"
        ) from error


def _columns(episode: Any) -> dict[str, np.ndarray]:
    """An episode's columns; observations without the last one, infos of the step."""
    steps = len(episode)
    found = {"episode": np.full(steps, episode.id)}
    found |= _spread("observation", episode.observations, steps)
    found |= _spread("action", episode.actions, steps)
    found["reward"] = np.asarray(episode.rewards)
    found["termination"] = np.asarray(episode.terminations, bool)
    found["truncation"] = np.asarray(episode.truncations, bool)
    for name, values in (episode.infos or {}).items():
        array = np.asarray(values) if not isinstance(values, dict) else np.zeros(0)
        # With the reset's info there is one more entry than steps: drop the first.
        if array.ndim == 1 and len(array) >= steps and array.dtype.kind in "biuf":
            found[f"infos.{name}"] = array[len(array) - steps :]
    return found


def _spread(name: str, values: Any, steps: int) -> dict[str, np.ndarray]:
    """A column for each number of an array, a dict or a tuple of arrays."""
    if isinstance(values, dict | tuple):
        pairs = values.items() if isinstance(values, dict) else enumerate(values)
        parts = [_spread(f"{name}.{key}", part, steps) for key, part in pairs]
        return {key: column for part in parts for key, column in part.items()}
    array = np.asarray(values)[:steps]
    if array.ndim == 1:
        return {name: array}
    flat = array.reshape(steps, -1)
    return {f"{name}.{index}": flat[:, index] for index in range(flat.shape[1])}


def _joined(parts: list[dict[str, np.ndarray]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    )
