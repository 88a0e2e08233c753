"""Figures of a fit: effects, windows, calibration, single sessions, survival."""

from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np

from termdp.costs.buffer import STOPPED
from termdp.logs.linear import LinearModel
from termdp.logs.summary import EVERY_STEP, linear_costs, network_effects

matplotlib.use("Agg")
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from termdp.logs.fit import Fit

BLUE, ORANGE, GREY, RED = "#2b6cb0", "#c05621", "#718096", "#c53030"
MOST_EFFECTS = 12
MOST_CURVES = 3


def overview(fit: "Fit") -> Figure:
    """Effects, window curve and calibration beside each other."""
    figure = _figure(13.0, 4.2)
    one, two, three = figure.subplots(1, 3)
    _effects(one, fit)
    _memory(two, fit)
    _calibration(three, fit)
    return figure


def effects_figure(fit: "Fit") -> Figure:
    """The effects: what makes people leave."""
    rows = len(effect_rows(fit))
    figure = _figure(5.0, 1.0 + 0.3 * max(rows, 2))
    _effects(figure.add_subplot(), fit)
    return figure


def effect_rows(fit: "Fit") -> list[tuple[str, float, tuple[float, float] | None]]:
    """Effects by name: cost of a typical change with its interval, largest first."""
    found: list[tuple[str, float, tuple[float, float] | None]] = []
    if isinstance(fit.model, LinearModel):
        for name, row in linear_costs(fit.model).items():
            if name == EVERY_STEP or row["interval"] is None:
                continue
            low, high = (float(end) * row["typical"] for end in row["interval"])
            found.append((name, row["cost"] * row["typical"], (low, high)))
    else:
        effects = network_effects(fit)
        found = [(name, row["extra_cost"], None) for name, row in effects.items()]
    found.sort(key=lambda row: -abs(row[1]))
    return found[:MOST_EFFECTS]


def memory_figure(fit: "Fit") -> Figure:
    """Held-out likelihood against the memory."""
    figure = _figure(5.0, 3.0)
    _memory(figure.add_subplot(), fit)
    return figure


def calibration_figure(fit: "Fit") -> Figure:
    """Predicted against observed shares of stops, on held-out sessions."""
    figure = _figure(4.4, 3.6)
    _calibration(figure.add_subplot(), fit)
    return figure


def survival_figure(fit: "Fit") -> Figure:
    """How soon people leave: the share of sessions not yet stopped (Kaplan–Meier)."""
    figure = _figure(5.0, 2.6)
    axes = figure.add_subplot()
    steps, share = kept_share(fit.sessions.lengths, fit.sessions.ends == STOPPED)
    axes.step(np.append(0, steps), np.append(1.0, share), where="post", color=BLUE)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, None)
    axes.set_xlabel("step of the session")
    axes.set_ylabel("share not stopped")
    return figure


def kept_share(
    lengths: np.ndarray, stopped: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Kaplan–Meier: steps, and the share of sessions without a stop until then."""
    longest = int(lengths.max())
    stops = np.bincount(lengths[stopped], minlength=longest + 1)
    ends = np.bincount(lengths, minlength=longest + 1)
    there = len(lengths) - np.append(0, np.cumsum(ends)[:-1])
    share = np.cumprod(1.0 - stops / np.maximum(there, 1))
    steps = np.flatnonzero(ends)
    return steps, share[steps]


def sessions_figure(fit: "Fit") -> Figure:
    """Three sessions: what each step cost, and how costs added up."""
    chosen = sample_sessions(fit)
    figure = _figure(6.4, 1.6 * len(chosen) + 0.4)
    every = figure.subplots(len(chosen), 1, squeeze=False)[:, 0]
    for axes, index in zip(every, chosen, strict=True):
        block = fit.sessions.session(index)
        costs, sums = fit.accumulated(block)
        steps = np.arange(1, len(costs) + 1)
        axes.bar(steps, costs, width=1.0, color=ORANGE, label="cost of the step")
        axes.plot(steps, sums, color=BLUE, label="accumulated")
        axes.axhline(fit.bias, color=GREY, linestyle=":", label="patience (bias)")
        stopped = bool(block.ends[0] == STOPPED)
        if stopped:
            axes.axvline(len(costs), color=RED, label="stop")
        axes.set_xlim(0.5, max(len(costs) + 0.5, 2.5))
        end = "stopped" if stopped else "not stopped"
        axes.set_title(
            f"session {_short(str(fit.sessions.ids[index]))}: {end} after {len(costs)} "
            "steps",
            fontsize=9,
            loc="left",
        )
    every[0].legend(frameon=False, ncols=4, fontsize=7, loc="upper left")
    low, high = every[0].get_ylim()
    every[0].set_ylim(low, high + 0.3 * (high - low))
    every[-1].set_xlabel("step")
    return figure


def sample_sessions(fit: "Fit") -> list[int]:
    """A stopped session of medium length, a long one, and one without a stop."""
    lengths, stopped = fit.sessions.lengths, fit.sessions.ends == STOPPED
    chosen: list[int] = []
    for some, share in ((stopped, 0.5), (stopped, 0.9), (~stopped, 0.5)):
        places = np.setdiff1d(np.flatnonzero(some), chosen)
        if len(places) == 0:
            places = np.setdiff1d(np.arange(len(lengths)), chosen)
        if len(places):
            order = places[np.argsort(lengths[places], kind="stable")]
            chosen.append(int(order[int(share * (len(order) - 1))]))
    return chosen


def _effects(axes: Any, fit: "Fit") -> None:
    rows = effect_rows(fit)[::-1]
    for place, (_, effect, interval) in enumerate(rows):
        colour = ORANGE if effect > 0 else BLUE
        if interval is not None:
            axes.plot(interval, [place, place], color=colour, linewidth=2)
        axes.plot(effect, place, "o", color=colour)
    axes.axvline(0.0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(rows)), [_short(name) for name, *_ in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel("cost of a typical change (right: they leave sooner)")


def _memory(axes: Any, fit: "Fit") -> None:
    curve = fit.choice.of_kind()
    # Draw differences from the best window: sessions differ far more among themselves.
    each = curve.log_likelihoods
    gap = each - each[int(np.argmax(curve.means))]
    error = gap.std(axis=1) / np.sqrt(gap.shape[1])
    mean = gap.mean(axis=1)
    axes.fill_between(
        curve.cases, mean - error, mean + error, color=BLUE, alpha=0.2, linewidth=0
    )
    axes.plot(curve.cases, mean, "o-", color=BLUE, markersize=4)
    axes.axvline(fit.memory.span, color=ORANGE, linewidth=1)
    if len(curve.cases) > 1 and max(curve.cases) > 8 * max(min(curve.cases), 1):
        axes.set_xscale("log")
        ticks = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)
        inside = [c for c in ticks if min(curve.cases) <= c <= max(curve.cases)]
        axes.set_xticks(inside, [str(c) for c in inside])
        axes.minorticks_off()
    leak = fit.memory.leak is not None
    axes.set_xlabel("memory in steps, 1 / (1 − leak)" if leak else "window in steps")
    axes.set_ylabel("held-out log-likelihood\nper session, minus the best")


def _calibration(axes: Any, fit: "Fit") -> None:
    rows = fit.scores.calibration
    axes.errorbar(
        [row["predicted"] for row in rows],
        [row["observed"] for row in rows],
        yerr=[1.96 * row["standard_error"] for row in rows],
        fmt="o",
        color=BLUE,
        capsize=2,
    )
    seen = [row[name] for row in rows for name in ("predicted", "observed")]
    positive = [value for value in seen if value > 0]
    ends = [min(positive) * 0.8, min(max(positive) * 1.2, 1.0)]
    axes.plot(ends, ends, color=GREY, linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("predicted chance of a stop at a step")
    axes.set_ylabel("observed share of stops")


def _short(name: str) -> str:
    """A short name that Matplotlib does not take for a formula."""
    return (name if len(name) <= 28 else name[:27] + "…").replace("$", r"\$")


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")
