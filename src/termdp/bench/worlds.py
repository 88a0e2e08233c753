"""Which columns one compiled program can serve: an observer is data, as a method is."""

from collections.abc import Sequence
from typing import Any

import jax

from termdp.bench.suites import Column
from termdp.runs.train import make_watched

_ANY_WINDOW = 2**30  # a room that makes observers alike, whatever they remember


def kind_of_world(column: Column) -> Any:
    """Equal for columns that one program can serve: they differ in numbers only."""
    try:
        _, params = make_watched(column.env, **column.overrides)
    except ValueError:
        return column.label  # it fails by itself, when it is compiled
    make_up = tuple(
        (k, str(v)) for k, v in column.overrides.items() if k not in params.names
    )
    return column.env, make_up, jax.tree.structure(_remembering(params, _ANY_WINDOW))


def shared_world(columns: Sequence[Column]) -> tuple[Any, dict[str, Any]]:
    """One environment for several columns, and each column's parameters by label."""
    made = {c.label: make_watched(c.env, **c.overrides) for c in columns}
    env = next(iter(made.values()))[0]
    if len(made) == 1:
        return env, {label: params for label, (_, params) in made.items()}
    most = max(params.observer.capacity for _, params in made.values())
    return env, {
        label: _remembering(params, most) for label, (_, params) in made.items()
    }


def _remembering(params: Any, steps: int) -> Any:
    """The same observer with room for so many steps: its window may differ."""
    return params.replace(observer=params.observer.replace(capacity=steps))
