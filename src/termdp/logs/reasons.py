"""Which steps led to the stops: one row for each stopped session."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.special import expit

from termdp.costs.buffer import STOPPED
from termdp.logs.linear import LinearModel
from termdp.logs.memory import block_labels, remembered
from termdp.logs.sessions import Block

if TYPE_CHECKING:
    from termdp.logs.fit import Fit

# Steps that a leak has faded below this share are ignored.
_FADED = 1e-3


def reasons(fit: "Fit") -> pa.Table:
    """For each stopped session, the costs that had added up.

    Returns:
        A table with `session`; `step` (from 1) at which the stop was decided; the
        `accumulated` cost and `stop_probability` there; `costliest_step` within the
        memory and its `cost`. For linear costs also the `main_reason`: the feature that
        added most compared with a mean step, and the cost that it `added`.
    """
    parts = [_of_block(fit, mine, block) for _, mine, block in fit.sessions.numbered()]
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    sessions = pa.array(fit.sessions.ids).take(pa.array(table.pop("session")))
    if "main_reason" in table:
        assert isinstance(fit.model, LinearModel)
        names = np.array(fit.model.columns.names())
        table["main_reason"] = names[table["main_reason"]]
    return pa.table({"session": sessions, **table})


def _of_block(fit: "Fit", mine: slice, block: Block) -> dict[str, np.ndarray]:
    memory = fit.memory
    stops = np.flatnonzero(block_labels(block, memory.delay) == STOPPED)
    owner = block.owner[stops]
    begin = block.first[owner]
    costs, sums = fit.accumulated(block)
    reach = memory.window or int(np.log(_FADED) / np.log(min(memory.leak or 0, 0.9999)))
    low = np.maximum(begin, stops - reach + 1)
    worst = np.array(
        [
            first + int(np.argmax(_weighted(costs[first : last + 1], memory.leak)))
            for first, last in zip(low.tolist(), stops.tolist(), strict=True)
        ],
        np.int64,
    )
    found: dict[str, Any] = {
        "session": owner + mine.start,
        "step": stops - begin + 1,
        "accumulated": sums[stops],
        "stop_probability": expit(sums[stops] - fit.bias),
        "costliest_step": worst - begin + 1,
        "cost": costs[worst],
    }
    if isinstance(fit.model, LinearModel):
        added = remembered(fit.model.shares(block), block.begin, memory)[stops]
        main = np.argmax(added, axis=1) if len(stops) else np.zeros(0, np.int64)
        found["main_reason"] = main
        found["added"] = added[np.arange(len(stops)), main]
    return found


def _weighted(costs: np.ndarray, leak: float | None) -> np.ndarray:
    if leak is None:
        return costs
    return costs * leak ** np.arange(len(costs) - 1, -1, -1)
