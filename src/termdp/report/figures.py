"""The report's figures, drawn with Matplotlib."""

import contextlib
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from termdp.bench.curves import Curve
from termdp.intervals import Interval, mean_band, mean_interval
from termdp.report.analysis import BASELINE, Findings
from termdp.report.names import (
    MARKERS,
    colours,
    column_colours,
    column_name,
    marker,
    method_name,
    split_discount,
)
from termdp.report.results import Results

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9aa3b6",
    "axes.labelcolor": "#3a4152",
    "xtick.color": "#5d6577",
    "ytick.color": "#5d6577",
    "text.color": "#1d2230",
    "axes.grid": True,
    "grid.color": "#e6e9f0",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "termdp",
    "figure.facecolor": "white",
}
PANEL = (3.15, 2.35)
MOST_PANELS_IN_A_ROW = 4


@contextlib.contextmanager
def drawing() -> Iterator[Any]:
    """Matplotlib's pyplot in the reports' style."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(_STYLE):
        yield plt


def panels(plt: Any, count: int, size: tuple[float, float] = PANEL) -> tuple[Any, Any]:
    """A figure with this many panels, in rows."""
    across = min(count, MOST_PANELS_IN_A_ROW)
    if count > MOST_PANELS_IN_A_ROW:
        # 6 panels look better as 3 + 3 than as 4 + 2.
        across = math.ceil(count / math.ceil(count / MOST_PANELS_IN_A_ROW))
    down = math.ceil(count / across)
    figure, axes = plt.subplots(
        down, across, figsize=(size[0] * across, size[1] * down), squeeze=False
    )
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    return figure, list(axes.flat[:count])


def learning_curves(
    results: Results, rows: Sequence[str], columns: Sequence[str]
) -> Any:
    """Return while training: mean over seeds and its 95% interval, per environment."""
    palette = colours(results.rows)
    with drawing() as plt:
        figure, axes = panels(plt, len(columns))
        handles: dict[str, Any] = {}
        for axis, column in zip(axes, columns, strict=True):
            for row in rows:
                found = results.curves_of(column, row)
                if found:
                    look = palette[row], marker(row)
                    line = _band(axis, found, "return_mean", look, _is_main(row))
                    handles.setdefault(row, line)
            axis.set_title(column_name(column))
            _step_axis(axis)
            _show_seeds(axis, results, rows, column)
        axes[0].set_ylabel("return")
        _legend(figure, handles)
        return figure


def _is_main(row: str) -> bool:
    return row == BASELINE or split_discount(row)[0] == "termpg"


def _show_seeds(axis: Any, results: Results, rows: Sequence[str], column: str) -> None:
    """Limit the axis to the seeds' own values: the interval of two seeds is huge."""
    values = [
        curve["return_mean"][np.isfinite(curve["return_mean"])]
        for row in rows
        for curve in results.curves_of(column, row)
    ]
    together = np.concatenate(values) if values else np.zeros(0)
    if len(together):
        margin = 0.06 * float(np.ptp(together) or 1.0)
        axis.set_ylim(together.min() - margin, together.max() + margin)


def _band(
    axis: Any,
    curves: list[Curve],
    name: str,
    look: tuple[str, str],
    is_main: bool,
) -> Any:
    colour, shape = look
    steps, values = stacked(curves, name)
    low, mean, high = mean_band(values)
    order = 3 if is_main else 2
    axis.fill_between(steps, low, high, color=colour, alpha=0.14, lw=0, zorder=order)
    (line,) = axis.plot(
        steps,
        mean,
        color=colour,
        lw=2.0 if is_main else 1.4,
        marker=shape,
        markersize=4.5,
        markevery=max(1, len(steps) // 6),
        zorder=order + 1,
    )
    return line


def stacked(curves: list[Curve], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps `[P]` and values `[seeds, P]`; all seeds of a cell share their steps."""
    points = min(len(curve["step"]) for curve in curves)
    values = np.stack([curve[name][:points] for curve in curves]).astype(float)
    return curves[0]["step"][:points], values


def final_scores(results: Results, columns: Sequence[str]) -> Any:
    """Every seed's final return, the mean and its interval, per environment."""
    rows = [r for r in results.rows if any(results.has(c, r) for c in columns)]
    palette = colours(results.rows)
    with drawing() as plt:
        height = 0.75 + 0.2 * len(rows)
        figure, axes = panels(plt, len(columns), (PANEL[0], height))
        for index, (axis, column) in enumerate(zip(axes, columns, strict=True)):
            _dots(axis, results, rows, column, palette)
            axis.set_title(column_name(column))
            across = min(len(columns), axes[0].get_gridspec().ncols)
            is_first = index % across == 0
            axis.set_yticks(range(len(rows)))
            axis.set_yticklabels(map(method_name, rows) if is_first else [])
            axis.set_ylim(len(rows) - 0.4, -0.6)
            axis.grid(axis="y", visible=False)
        figure.tight_layout()
        return figure


def _dots(
    axis: Any, results: Results, rows: Sequence[str], column: str, palette: dict
) -> None:
    if results.has(column, BASELINE):
        base = float(np.mean(results.values(column, BASELINE)))
        axis.axvline(base, color="#9aa3b6", lw=1, ls=(0, (3, 3)), zorder=1)
    for place, row in enumerate(rows):
        if not results.has(column, row):
            continue
        scores = results.values(column, row)
        found = mean_interval(scores)
        ends = (found.low, found.high)
        axis.plot(ends, [place] * 2, color=palette[row], lw=2.2, alpha=0.45)
        axis.scatter(
            scores, [place] * len(scores), s=9, color=palette[row], alpha=0.55, lw=0
        )
        axis.scatter(
            [found.value],
            [place],
            s=36,
            color=palette[row],
            marker=marker(row),
            zorder=3,
            lw=0,
        )
    # The interval of two seeds is huge, so the axis shows only the seeds' own values.
    everything = np.concatenate([results.values(column, row) for row in rows])
    margin = 0.2 * (np.ptp(everything) or 1.0)
    axis.set_xlim(everything.min() - margin, everything.max() + margin)
    axis.locator_params(axis="x", nbins=4)  # Tick labels must not overlap.


def pooled_scores(results: Results, findings: Findings) -> Any | None:
    """Interquartile means over all environments, and probabilities of improvement."""
    rows = [row for row in results.rows if row in findings.pooled]
    if len(rows) < 2:
        return None
    rows.sort(key=lambda row: -findings.pooled[row].value)
    palette = colours(results.rows)
    panel_of = (
        ("interquartile mean, PG = 1", findings.pooled, 1.0),
        ("P(better than PG)", findings.probability_pg, 0.5),
        ("P(better than best PG)", findings.probability_best, 0.5),
    )
    with drawing() as plt:
        figure, axes = plt.subplots(
            1, 3, figsize=(9.6, 1.0 + 0.24 * len(rows)), sharey=True
        )
        for axis, (title, found, neutral) in zip(axes, panel_of, strict=True):
            axis.axvline(neutral, color="#9aa3b6", lw=1, ls=(0, (3, 3)), zorder=1)
            for place, row in enumerate(rows):
                if row in found:
                    _interval(axis, found[row], place, palette[row], marker(row))
            axis.set_title(title)
            axis.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(rows)))
        axes[0].set_yticklabels(map(method_name, rows))
        axes[0].set_ylim(len(rows) - 0.4, -0.6)
        for axis in axes[1:]:
            axis.set_xlim(-0.03, 1.03)
            axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "¼", "½", "¾", "1"])
        figure.tight_layout()
        return figure


def _interval(
    axis: Any, found: Interval, place: float, colour: str, shape: str = "o"
) -> None:
    axis.plot(
        [found.low, found.high],
        [place] * 2,
        color=colour,
        lw=6,
        alpha=0.3,
        solid_capstyle="round",
    )
    axis.scatter(
        [found.value], [place], s=30, color=colour, marker=shape, zorder=3, lw=0
    )


def improvements(findings: Findings) -> Any | None:
    """Best TermPG over best PG: ours with its interval, claimed, and implied."""
    shown = [best for best in findings.best if math.isfinite(best.relative.low)]
    if not shown:
        return None
    with drawing() as plt:
        figure, axis = plt.subplots(figsize=(7.6, 0.9 + 0.34 * len(shown)))
        axis.axvline(0.0, color="#9aa3b6", lw=1, ls=(0, (3, 3)), zorder=1)
        for place, best in enumerate(shown):
            _interval(axis, _as_percent(best.relative), place, "#d6336c")
            for value, marker, colour in (
                (best.claimed, "D", "#5b6478"),
                (best.implied, "o", "none"),
            ):
                if value is not None:
                    axis.scatter(
                        [100 * value],
                        [place],
                        s=32,
                        marker=marker,
                        color=colour,
                        edgecolors="#5b6478",
                        linewidths=1.2,
                        zorder=2,
                        clip_on=False,
                    )
        axis.set_yticks(range(len(shown)))
        axis.set_yticklabels(column_name(best.column) for best in shown)
        axis.set_ylim(len(shown) - 0.4, -0.6)
        axis.grid(axis="y", visible=False)
        _percent_axis(axis)
        axis.set_title("Best TermPG over best PG")
        _improvement_legend(figure, plt, any(b.implied is not None for b in shown))
        return figure


def _percent_axis(axis: Any) -> None:
    """Percentages, on a logarithmic scale beyond ±100% if any is above 120%.

    Otherwise the largest published claims would squeeze the rest.
    """
    low, high = axis.get_xlim()
    if high > 120:
        axis.set_xscale("symlog", linthresh=100, linscale=1.6)
        ticks = [t for t in (-100, -50, 0, 50, 100, 400) if low <= t <= high]
    else:
        step = 10 if high - low < 80 else 25
        ticks = [t for t in range(-1000, 1000, step) if low <= t <= high]
    axis.set_xticks(ticks, [f"{t:+d}%" if t else "0" for t in ticks])
    axis.minorticks_off()


def _as_percent(found: Interval) -> Interval:
    return Interval(100 * found.value, 100 * found.low, 100 * found.high)


def _improvement_legend(figure: Any, plt: Any, with_paper: bool) -> None:
    line = plt.Line2D
    handles = [
        line([], [], color="#d6336c", marker="o", lw=4, label="here, 95% interval")
    ]
    if with_paper:
        grey = {"color": "none", "markeredgecolor": "#5b6478", "lw": 0}
        handles += [
            line(
                [], [], marker="D", markerfacecolor="#5b6478", label="claimed", **grey
            ),
            line([], [], marker="o", label="the paper's table", **grey),
        ]
    figure.legend(handles=handles, loc="lower center", ncols=3, fontsize=8)
    figure.tight_layout(rect=(0, 0.27 / figure.get_size_inches()[1], 1, 1))


def cost_errors(results: Results, columns: Sequence[str], row: str) -> Any | None:
    """ℓ2 error per step and correlation of the learned costs while training."""
    shown = [c for c in columns if results.curves_of(c, row)]
    if not shown:
        return None
    palette = column_colours(results.columns)
    with drawing() as plt:
        figure, axes = plt.subplots(1, 2, figsize=(8.2, 2.7))
        handles = {}
        for axis, name in zip(axes, ("cost_rmse", "cost_corr"), strict=True):
            for column in shown:
                curves = results.curves_of(column, row)
                look = palette[column], MARKERS[results.columns.index(column) % 12]
                line = _band(axis, curves, name, look, is_main=False)
                handles[column] = line
            _step_axis(axis)
        axes[0].set_title("ℓ2 error of the cost, per step")
        axes[0].set_ylim(bottom=0)
        axes[1].set_title("correlation with the true cost")
        axes[1].set_ylim(min(0.0, axes[1].get_ylim()[0]), 1.0)
        _legend(figure, handles, column_name)
        return figure


def _step_axis(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def words(value: float, _: Any) -> str:
        if value >= 1e6:
            return f"{value / 1e6:g}M"
        return f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"

    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter(FuncFormatter(words))
    axis.margins(x=0)


def _legend(figure: Any, handles: dict[str, Any], name: Any = method_name) -> None:
    height = figure.get_size_inches()[1]
    lines = math.ceil(len(handles) / 5)
    figure.tight_layout(rect=(0, 0.26 * lines / height, 1, 1))
    figure.legend(
        handles.values(),
        [name(key) for key in handles],
        loc="lower center",
        ncols=min(5, len(handles)),
        fontsize=8.5,
    )


def save(figure: Any, folder: Path, name: str) -> bytes:
    """Write a figure as SVG and PNG and close it; returns the SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    (folder / f"{name}.svg").write_bytes(buffer.getvalue())
    (folder / f"{name}.png").write_bytes(figure_bytes(figure))
    return buffer.getvalue()


def method_legend(rows: Sequence[str]) -> Any:
    """Every method's name, colour and marker."""
    palette = colours(rows)
    with drawing() as plt:
        figure = plt.figure(figsize=(8.4, 0.1 + 0.27 * math.ceil(len(rows) / 3)))
        handles = [
            plt.Line2D([], [], color=palette[row], marker=marker(row), lw=2)
            for row in rows
        ]
        names = [method_name(row) for row in rows]
        figure.legend(handles, names, ncols=3, loc="center", fontsize=9)
        return figure


def svg_bytes(figure: Any) -> bytes:
    """A figure as SVG; closes it."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return buffer.getvalue()


def figure_bytes(figure: Any) -> bytes:
    """A figure as PNG, sharp on dense screens; closes it."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, bbox_inches="tight")
    plt.close(figure)
    return buffer.getvalue()
