"""The results of a fit as plain data, for `fit.json` and the page."""

from typing import TYPE_CHECKING, Any

import numpy as np

from termdp.costs.buffer import STOPPED
from termdp.logs.choice import Choice
from termdp.logs.linear import LinearModel
from termdp.logs.sessions import GAME_OVER
from termdp.provenance import version_of

if TYPE_CHECKING:
    from termdp.logs.fit import Fit

EVERY_STEP = "every step"
_Z = 1.959963984540054  # the normal distribution's quantile for 95% intervals


def summarise(fit: "Fit") -> dict[str, Any]:
    """The content of `fit.json`."""
    sessions, choice, scores = fit.sessions, fit.choice, fit.scores
    ends, roles = sessions.ends, sessions.roles
    found: dict[str, Any] = {
        "log": fit.source,
        "termdp": version_of("termdp"),
        "model": "linear" if isinstance(fit.model, LinearModel) else "network",
        "sessions": len(ends),
        "steps": sessions.num_rows,
        "stops": int((ends == STOPPED).sum()),
        "ended_by_themselves": int((ends == GAME_OVER).sum()),
        "columns": {
            "session": roles.session,
            "stopped": roles.stopped,
            "ended": roles.ended,
            "observations": list(roles.observations),
            "actions": list(roles.actions),
            "num_actions": sessions.num_actions,
        },
        **_memory(choice),
        "bias": fit.bias,
        "costs": None,
        "log_loss": scores.log_loss,
        "baseline_log_loss": scores.baseline_log_loss,
        "last_step_log_loss": scores.last_step_log_loss,
        "auc": scores.auc,
        "calibration_error": scores.calibration_error,
        "calibration": scores.calibration,
        "memories": _compared(choice),
        "notes": notes(fit),
    }
    if isinstance(fit.model, LinearModel):
        found["costs"] = linear_costs(fit.model)
        error = fit.model.bias_error
        found["bias_interval"] = [fit.bias - _Z * error, fit.bias + _Z * error]
        found["usual_action"] = (
            fit.model.columns.usual if sessions.num_actions else None
        )
    else:
        found["effects"] = network_effects(fit)
    return found


def _memory(choice: Choice) -> dict[str, Any]:
    """Window or leak, and delay, with the interval of the choice."""
    memory, interval = choice.memory, choice.interval()
    found: dict[str, Any] = {
        "window": memory.window,
        "window_interval": None,
        "window_shortest_as_good": None,
        "leak": memory.leak,
        "leak_interval": None,
        "delay": memory.delay,
    }
    if interval is not None and memory.leak is None:
        found["window_interval"] = list(interval)
        found["window_shortest_as_good"] = choice.of_kind().shortest_as_good
    elif interval is not None:
        found["leak_interval"] = [1.0 - 1.0 / span for span in interval]
    return found


def _compared(choice: Choice) -> list[dict[str, Any]]:
    """Every memory compared: held-out log-likelihood per session, with 95% interval."""
    intervals, _ = choice.held_out.bootstrap(choice.seed)
    rows = zip(choice.memories, choice.held_out.means, intervals, strict=True)
    return [
        {
            **memory.to_plain(),
            "log_likelihood": float(mean),
            "interval": [float(low), float(high)],
        }
        for memory, mean, (low, high) in sorted(rows, key=lambda row: row[0].span)
    ]


def linear_costs(model: LinearModel) -> dict[str, dict[str, Any]]:
    """Cost per unit of each feature, and of a mean step, with 95% intervals.

    `typical` is the feature's standard deviation (1 for one of several choices): cost
    × typical can be compared between features.
    """
    found: dict[str, dict[str, Any]] = {}
    columns = model.columns
    plain = set(columns.observations) | set(columns.actions)
    if model.memory.window != 1:
        found[EVERY_STEP] = _cost(model.base, model.base_error, 1.0)
    names = zip(columns.names(), model.weights, model.errors, model.spread, strict=True)
    for name, weight, error, spread in names:
        is_number = name in plain or " × " in name
        found[name] = _cost(weight, error, float(spread) if is_number else 1.0)
    return found


def _cost(cost: float, error: float, typical: float) -> dict[str, Any]:
    known = bool(np.isfinite(error))
    return {
        "cost": float(cost),
        "interval": [float(cost - _Z * error), float(cost + _Z * error)]
        if known
        else None,
        "standard_error": float(error) if known else None,
        "typical": typical,
    }


def network_effects(fit: "Fit") -> dict[str, dict[str, Any]]:
    """Effects in a network: mean cost of steps high in a column, minus that of low ones.

    High means above the column's mean. For discrete actions, it is that action against
    all others. In a long log, only some of the blocks are used.
    """
    sessions = fit.sessions
    names = list(sessions.roles.observations)
    blocks = sessions.blocks[:: max(len(sessions.blocks) // 8, 1)]
    costs = np.concatenate([fit.model.costs(block) for block in blocks])
    values = np.concatenate([block.observations for block in blocks])
    actions = np.concatenate([block.actions for block in blocks])
    if sessions.num_actions:
        names += [
            f"{sessions.roles.actions[0]}={k}" for k in range(sessions.num_actions)
        ]
        high = actions[:, None] == np.arange(sessions.num_actions)
    else:
        names += list(sessions.roles.actions)
        high = actions > actions.mean(axis=0)
    high = np.column_stack([values > values.mean(axis=0), high])
    found = {}
    for name, some in zip(names, high.T, strict=True):
        if 0 < some.sum() < len(some):
            extra = float(costs[some].mean() - costs[~some].mean())
            found[name] = {"extra_cost": extra, "share_of_steps": float(some.mean())}
    return found


def notes(fit: "Fit") -> list[str]:
    """Warnings for users of the fit, in sentences."""
    choice, scores, found = fit.choice, fit.scores, []
    curve = choice.of_kind()
    if not choice.is_given:
        if curve.shortest_as_good <= 1:
            found.append(
                "The last step alone explains the log about as well: there is no sign "
                "of a memory."
            )
        if fit.memory.span == max(curve.cases) > 1:
            found.append(
                "The longest memory compared is the best one: compare longer ones "
                "(--windows)."
            )
    if scores.log_loss >= scores.baseline_log_loss:
        found.append(
            "On sessions it has not seen, the fit is no better than a constant chance "
            "of a stop: these columns do not explain the stops."
        )
    stops = int((fit.sessions.ends == STOPPED).sum())
    if stops < 50:
        found.append(f"There are only {stops} stops: all of this is uncertain.")
    return found
