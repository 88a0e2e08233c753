"""The results of `termdp fit` as a folder; a failure leaves no folder.

DIR/observer.safetensors    the observer: `termdp.load_observer`, `--observer FILE`
DIR/fit.json                what was found, with intervals
DIR/stops.csv               for each stopped session, the steps and columns that led to it
DIR/index.html              a page about the fit
"""

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.csv

from termdp.costs.buffer import STOPPED
from termdp.files import draft_of, is_unused, write_json
from termdp.logs import drawings
from termdp.logs.linear import LinearModel
from termdp.logs.summary import EVERY_STEP
from termdp.observer_file import save_observer
from termdp.pages import Page, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from termdp.logs.fit import Fit


def check_new(folder: Path) -> None:
    """Refuse a folder that is not empty."""
    if not is_unused(folder):
        raise ValueError(
            f"expected a new folder for the results, but {folder} exists: choose "
            "another --out"
        )


def write_fit(fit: "Fit", folder: Path) -> dict[str, Any]:
    """Write everything; returns the content of `fit.json`."""
    check_new(folder)
    summary = fit.summary()
    folder.parent.mkdir(parents=True, exist_ok=True)
    facts = {name: summary[name] for name in ("sessions", "steps", "stops")}
    with draft_of(folder) as draft:
        draft.mkdir()
        save_observer(draft / "observer.safetensors", fit.observer, facts)
        write_json(draft / "fit.json", summary)
        pyarrow.csv.write_csv(fit.stops(), draft / "stops.csv")
        page_of(fit, summary).save(draft / "index.html")
    return summary


def page_of(fit: "Fit", summary: dict[str, Any]) -> Page:
    """The page, for readers who do not know statistics."""
    page = Page(
        "What made them stop",
        f"{summary['stops']:,} stops in {summary['sessions']:,} sessions, "
        f"{summary['steps']:,} steps, from {Path(summary['log']).name}.",
    )
    page.findings([*_findings(fit, summary), *summary["notes"]])
    page.heading("How soon they leave")
    page.plot(_svg(drawings.survival_figure(fit)), _soon(fit))
    page.heading("What makes them leave")
    _effects(page, fit, summary)
    page.heading("How long they remember")
    page.plot(_svg(drawings.memory_figure(fit)), _remember(fit, summary))
    page.heading("How sure this is")
    page.plot(
        _svg(drawings.calibration_figure(fit)),
        "Each dot stands for steps with about the same predicted chance of a stop, in "
        "sessions that the fit had not seen. Its height is the observed share of "
        "stops. On the line, prediction and observation agree. Bars: 95% intervals.",
    )
    page.facts(_facts(summary))
    page.heading("Three sessions")
    page.plot(
        _svg(drawings.sessions_figure(fit)),
        "The cost of each step, and the sum of the costs that are remembered. When the "
        "sum reaches the dotted line, each step has an even chance of a stop. stops.csv "
        "has every stopped session.",
    )
    return page


def _findings(fit: "Fit", summary: dict[str, Any]) -> list[str]:
    found = []
    rows = drawings.effect_rows(fit)
    sure = [row for row in rows if row[2] is None or row[2][0] > 0 or row[2][1] < 0]
    worse = [name for name, effect, _ in sure if effect > 0][:3]
    better = [name for name, effect, _ in sure if effect < 0][:3]
    if worse:
        found.append(f"They leave sooner with: {', '.join(worse)}.")
    if better:
        found.append(f"They stay longer with: {', '.join(better)}.")
    if not sure:
        found.append("No column has an effect that is clearly more than chance.")
    found.append(_remember(fit, summary).split(". ")[0].rstrip(".") + ".")
    found.append(
        f"Of two steps, one with a stop and one without, the fit picks the right one "
        f"in {summary['auc']:.0%} of cases (50% is guessing), in sessions that it had "
        "not seen."
    )
    return found


def _soon(fit: "Fit") -> str:
    lengths, ends = fit.sessions.lengths, fit.sessions.ends
    steps, share = drawings.kept_share(lengths, ends == STOPPED)
    below = np.flatnonzero(share <= 0.5)
    half = (
        f"Half of the sessions are stopped within {steps[below[0]]} steps."
        if len(below)
        else f"After {steps[-1]} steps, {share[-1]:.0%} of the sessions are not stopped."
    )
    return (
        f"{half} This is the Kaplan–Meier estimate: sessions that ended in another way "
        "count until their end."
    )


def _remember(fit: "Fit", summary: dict[str, Any]) -> str:
    if fit.memory.leak is not None:
        span = f"{fit.memory.span:.3g}"
        text = f"The past fades: after about {span} steps a third of it is left"
        ends = summary["leak_interval"]
        spans = None if ends is None else [1.0 / max(1.0 - end, 1e-9) for end in ends]
    else:
        count = fit.memory.window
        text = (
            f"The last {count} steps count"
            if count != 1
            else "Only the last step counts"
        )
        spans = summary["window_interval"]
    if spans is None:
        return f"{text}, as you said. Nothing else was compared."
    text += f" (95% interval: {spans[0]:.3g} to {spans[1]:.3g})."
    shortest = summary["window_shortest_as_good"]
    if shortest is not None and shortest < fit.memory.span:
        text += (
            f" A memory of {shortest:.3g} steps is about as good "
            "(one-standard-error rule)."
        )
    return (
        f"{text} The curve shows how well each memory explains sessions that the fit had "
        "not seen, compared with the best one. The band is one standard error."
    )


def _effects(page: Page, fit: "Fit", summary: dict[str, Any]) -> None:
    lasting = (
        f"for the next {fit.memory.window} steps"
        if fit.memory.leak is None
        else "until it has faded"
    )
    if not isinstance(fit.model, LinearModel):
        page.plot(
            _svg(drawings.effects_figure(fit)),
            "Mean cost of steps with a high value in a column (or with that action), "
            "minus that of the other steps. Networks have no intervals; compare with "
            "--model linear.",
        )
        return
    page.plot(
        _svg(drawings.effects_figure(fit)),
        "What one step adds to the cost if a column is higher by one standard deviation "
        f"(or that action is taken instead of the usual one); it counts {lasting}. Bars: "
        "95% intervals, for this memory.",
    )
    rows = []
    for name, row in summary["costs"].items():
        if row["interval"] is None:
            rows.append([name, "never seen in this log", "", ""])
            continue
        low, high = row["interval"]
        typical = row["typical"]
        odds = "" if name == EVERY_STEP else _odds(row["cost"] * typical)
        rows.append([name, f"{row['cost']:.3g}", f"{low:.3g} … {high:.3g}", odds])
    page.table(
        Table(
            "Costs",
            "Cost of one step per unit of a column, with its 95% interval. The last "
            "column says what a typical change (one standard deviation, or that action) "
            f"in one step does to the odds of leaving at each step, {lasting}.",
            ("", "cost", "95% interval", "odds of leaving"),
            rows,
        )
    )


def _odds(cost: float) -> str:
    return f"× {math.exp(min(max(cost, -50.0), 50.0)):.3g}"


def _facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    better = 1.0 - summary["log_loss"] / summary["baseline_log_loss"]
    return [
        ("log loss per step", f"{summary['log_loss']:.5g}"),
        ("with a constant chance", f"{summary['baseline_log_loss']:.5g}"),
        ("with the last step alone", f"{summary['last_step_log_loss']:.5g}"),
        ("log loss explained", f"{better:.1%}"),
        ("calibration error", f"{summary['calibration_error']:.3g}"),
        ("patience (bias)", f"{summary['bias']:.4g}"),
        ("reaction delay", f"{summary['delay']} steps"),
    ]


def _svg(figure: "Figure") -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue()
