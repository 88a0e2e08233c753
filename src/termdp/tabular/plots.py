"""Figures: regret curves, cost errors, and a picture of each named model."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from matplotlib.ticker import MaxNLocator

from termdp.intervals import mean_band
from termdp.tabular.learner import Regret
from termdp.tabular.model import Array, TerMDP
from termdp.tabular.regret import cost_errors

COLOURS = (
    "#1f6fb4",
    "#d97a1e",
    "#2e8b57",
    "#8d5fb0",
    "#d0533f",
    "#7a6a53",
    "#d184bd",
    "#4d4d4d",
)
INK, PALE, WARM = "#333333", "#e9eef3", "#d0533f"


def plot_regret(runs: dict[str, list[Regret]]) -> Figure:
    """Cumulative regret of all agents with 95% intervals, plain and log-log."""
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    plain, logarithmic = figure.subplots(1, 2)
    for colour, (name, results) in zip(COLOURS, runs.items(), strict=False):
        low, mean, high = mean_band([run.cumulative for run in results])
        places = _few_places(len(mean))
        for axes in (plain, logarithmic):
            axes.plot(places + 1, mean[places], color=colour, label=name, lw=1.8)
            if len(results) > 1:
                axes.fill_between(
                    places + 1,
                    np.maximum(low, 1e-3)[places],
                    high[places],
                    color=colour,
                    alpha=0.2,
                    lw=0,
                )
    _reference_slopes(logarithmic, runs)
    plain.set(xlabel="episodes", ylabel="cumulative regret", ylim=(0, None))
    logarithmic.set(xlabel="episodes", xscale="log", yscale="log")
    smallest = min(np.mean([r.cumulative[0] for r in rs]) for rs in runs.values())
    logarithmic.set_ylim(bottom=max(smallest / 2, 1e-2))
    plain.xaxis.set_major_locator(MaxNLocator(5))
    plain.legend(frameon=False)
    _plain_look(plain, logarithmic)
    return figure


def _reference_slopes(axes: Axes, runs: dict[str, list[Regret]]) -> None:
    """Dotted lines of slope 1 and ½ through the last point of the highest curve."""
    last = max(
        np.mean([r.cumulative[-1] for r in results]) for results in runs.values()
    )
    count = max(len(results[0].cumulative) for results in runs.values())
    ends = np.array([max(count / 100, 1), count])
    for slope, label in ((1.0, "slope 1"), (0.5, "slope ½")):
        heights = max(last, 1e-3) * (ends / count) ** slope
        axes.plot(ends, heights, ":", color=INK, lw=1)
        axes.annotate(
            label,
            (ends[0], heights[0]),
            (-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8,
            color=INK,
        )


def plot_cost_errors(model: TerMDP, runs: list[Regret]) -> Figure:
    """|ĉ − c| of each (h, s, a) against its visits, with the n^{−1/2} line."""
    figure = Figure(figsize=(5.2, 3.8), layout="constrained")
    axes = figure.subplots()
    visits, errors = cost_errors(model, runs)
    axes.scatter(
        visits, errors, s=9, color=COLOURS[0], alpha=0.35, lw=0, label="one cost"
    )
    if len(visits):
        scale = float(np.median(errors * np.sqrt(visits)))
        line = np.geomspace(visits.min(), visits.max(), 50)
        axes.plot(line, scale / np.sqrt(line), color=INK, lw=1.2, label="∝ n$^{-1/2}$")
        middle, height = _medians(visits, errors)
        axes.plot(middle, height, "o-", color=COLOURS[1], ms=4, label="median")
    axes.set(
        xlabel="visits n of (h, s, a)",
        ylabel="error |ĉ − c|",
    )
    if len(visits):
        axes.set(xscale="log", yscale="log")
    axes.legend(frameon=False)
    _plain_look(axes)
    return figure


def _medians(visits: Array, errors: Array, groups: int = 8) -> tuple[Array, Array]:
    edges = np.geomspace(visits.min(), visits.max() + 1, groups + 1)
    number = np.digitize(visits, edges) - 1
    kept = [g for g in range(groups) if (number == g).sum() >= 3]
    return (
        np.array([np.median(visits[number == g]) for g in kept]),
        np.array([np.median(errors[number == g]) for g in kept]),
    )


def draw_model(name: str, model: TerMDP) -> Figure:
    """A picture of a named model."""
    drawings: dict[str, Callable[[TerMDP], Figure]] = {
        "chain": _draw_chain,
        "grid": _draw_grid,
        "random": _draw_random,
        "paper_example": _draw_example,
    }
    if name not in drawings:
        raise ValueError(f"expected a model ({', '.join(drawings)}), got {name!r}")
    return drawings[name](model)


def _draw_chain(model: TerMDP) -> Figure:
    figure, axes = _canvas(1.7 * model.num_states, 2.6)
    last = model.num_states - 1
    for state in range(model.num_states):
        _state(axes, 1.7 * state, 0, str(state), model.reward[state].max())
        if state == last:
            continue
        for action, (bend, height) in enumerate(((0.35, -0.78), (-0.35, 0.78))):
            _arrow(axes, (1.7 * state, 0), (1.7 * (state + 1), 0), bend, action)
            chance = model.transition[state, action, state + 1]
            text = f"p {chance:g}, cost {model.cost[state, action]:g}"
            _label(axes, 1.7 * state + 0.85, height, text, COLOURS[action])
    _label(axes, 0, 1.15, "start: strolling pays 0.1", INK)
    _label(axes, 1.7 * last, 1.15, "pays 1", INK)
    _label(axes, 0.85 * last, -1.2, "blue: stroll, orange: hurry", INK)
    axes.set(xlim=(-0.9, 1.7 * last + 0.9), ylim=(-1.4, 1.4))
    return figure


def _draw_grid(model: TerMDP) -> Figure:
    size = int(np.sqrt(model.num_states))
    figure, axes = _canvas(1.5 * size, 1.5 * size)
    for cell in range(model.num_states):
        row, column = divmod(cell, size)
        cost, reward = model.cost[cell, 0], model.reward[cell, 0]
        fill = "#cfe6cf" if cost > 0 else "#d8e6f4" if cost < 0 else PALE
        axes.add_patch(Rectangle((column, -row), 0.96, 0.96, facecolor=fill))
        _label(axes, column + 0.48, -row + 0.62, f"pays {reward:g}", INK)
        _label(axes, column + 0.48, -row + 0.36, f"cost {cost:g}", WARM)
    _label(axes, 0.48, 0.84, "start", INK)
    axes.set(xlim=(-0.05, size), ylim=(-size + 0.95, 1.02))
    return figure


def _draw_random(model: TerMDP) -> Figure:
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    parts = (
        ("mean reward", model.reward, "Blues"),
        ("cost", model.cost, "OrRd"),
        ("chance of the next state, action 0", model.transition[:, 0], "Greens"),
    )
    for axes, (title, table, colours) in zip(figure.subplots(1, 3), parts, strict=True):
        image = axes.imshow(table, cmap=colours, aspect="auto")
        is_move = table.shape[1] == model.num_states
        axes.set_title(title, fontsize=10)
        axes.set(ylabel="state", xlabel="next state" if is_move else "action")
        axes.set_xticks(range(table.shape[1]))
        axes.set_yticks(range(len(table)))
        figure.colorbar(image, ax=axes, shrink=0.85)
    return figure


def _draw_example(model: TerMDP) -> Figure:
    figure, axes = _canvas(4.6, 3.6)
    top, below, right = (0.0, 0.0), (0.0, -2.0), (2.6, -2.0)
    _arrow(axes, top, below, 0.0, 0)
    _arrow(axes, top, right, 0.0, 1)
    _arrow(axes, below, right, 0.0, 2)
    loop = FancyArrowPatch(
        (2.88, -1.74),
        (2.9, -2.24),
        connectionstyle="arc3,rad=-2.0",
        arrowstyle="-|>",
        mutation_scale=13,
        color=INK,
    )
    axes.add_patch(loop)
    places = (top, below, right)
    for (x, y), label in zip(places, ("$s_0$", "$s_1$", "$s_T$"), strict=True):
        _state(axes, x, y, label, 0.0)
    _label(axes, -0.75, -1.0, f"$a_1$: cost {model.cost[0, 0]:g}", COLOURS[0])
    _label(axes, 2.05, -0.75, f"$a_2$: cost {model.cost[0, 1]:g}", COLOURS[1])
    _label(axes, 1.3, -2.25, f"cost {model.cost[1, 0]:g}", COLOURS[2])
    axes.set(xlim=(-1.5, 3.6), ylim=(-2.6, 0.6))
    return figure


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.set_aspect("equal")
    axes.axis("off")
    return figure, axes


def _state(axes: Axes, x: float, y: float, text: str, reward: float) -> None:
    fill = "#f5d77a" if reward > 0.5 else PALE
    axes.add_patch(Circle((x, y), 0.38, facecolor=fill, edgecolor=INK, zorder=3))
    axes.text(x, y, text, ha="center", va="center", zorder=4, color=INK)


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    bend: float,
    action: int,
) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            shrinkA=22,
            shrinkB=22,
            mutation_scale=13,
            color=COLOURS[action],
            zorder=2,
        )
    )


def _label(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.text(x, y, text, ha="center", va="center", fontsize=8, color=colour, zorder=5)


def _few_places(count: int) -> Array:
    """About 400 points of a long curve, dense at its beginning."""
    spread = [np.geomspace(1, count, 200), np.linspace(1, count, 200)]
    return np.unique(np.concatenate(spread).astype(int)) - 1


def _plain_look(*all_axes: Axes) -> None:
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, lw=0.6)
