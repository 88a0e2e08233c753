"""A sentence or two about each figure of a report, from the same numbers."""

from collections.abc import Sequence

import numpy as np

from termdp.pages import counted
from termdp.report.analysis import BASELINE, Findings
from termdp.report.names import column_name, method_name, split_discount
from termdp.report.results import Results
from termdp.report.tables import number
from termdp.report.words import best_sentences, listed

_HALF = 0.5


def of_final_scores(
    results: Results, findings: Findings, columns: Sequence[str]
) -> str:
    """How often each method clearly beats PG, and the best method per environment."""
    parts = []
    for row in results.rows:
        gaps = [g for c in columns if (g := findings.against_pg.get((c, row)))]
        better = sum(gap.low > 0 for gap in gaps)
        worse = sum(gap.high < 0 for gap in gaps)
        if row in (*results.of("termpg"), *results.of("oracle")) and gaps:
            parts.append(
                f"{method_name(row)} is clearly above {method_name(BASELINE)} on "
                f"{better} of {counted(len(gaps), 'environment')}, clearly below on "
                f"{worse}"
            )
    first = [f"{column_name(c)}: {method_name(_first(results, c))}" for c in columns]
    sentence = "; ".join(parts) + ". " if parts else ""
    return f"{sentence}Highest mean: {'; '.join(first)}."


def _first(results: Results, column: str) -> str:
    there = [row for row in results.rows if results.has(column, row)]
    return max(there, key=lambda row: float(np.mean(results.values(column, row))))


def of_improvements(findings: Findings) -> str:
    """Where an improvement may be claimed, and where not."""
    return " ".join(best_sentences(findings))


def of_pooled(findings: Findings) -> str:
    """The best method over all environments, and whether that may be chance."""
    found = findings.pooled
    first = max(found, key=lambda row: found[row].value)
    value = found[first]
    is_clear = value.low > 1
    words = (
        f"Over these environments {method_name(first)} earns the most, "
        f"{number(value.value)} times PG's return"
    )
    words += (
        " (its interval lies above 1)."
        if is_clear
        else " (its interval includes 1: it may be chance)."
    )
    ours = [row for row in found if _method(row) == "termpg" and row != first]
    for row in ours:
        words += (
            f" {method_name(row)} earns {number(found[row].value)} times PG's return."
        )
    return words


def _method(row: str) -> str:
    return split_discount(row)[0]


def of_learning(results: Results, rows: Sequence[str], columns: Sequence[str]) -> str:
    """How many steps each method needs for half of its final return."""
    found = []
    for column in columns:
        halves = [
            f"{method_name(row)} {_steps(at)}"
            for row in rows
            if _method(row) in (BASELINE, "termpg", "oracle")
            and (at := _half_way(results, column, row)) is not None
        ]
        if halves:
            found.append(f"{column_name(column)}: {listed(halves)}")
    if not found:
        return ""
    return f"Steps until half of the final return was reached. {'; '.join(found)}."


def _half_way(results: Results, column: str, row: str) -> int | None:
    curves = results.curves_of(column, row)
    if not curves:
        return None
    points = min(len(curve["step"]) for curve in curves)
    together = np.stack([curve["return_mean"][:points] for curve in curves])
    with np.errstate(all="ignore"):
        known = np.isfinite(together).any(axis=0)
        mean = np.nanmean(together[:, known], axis=0)
    if not len(mean) or mean[-1] <= 0:
        return None
    steps = np.asarray(curves[0]["step"][:points])[known]
    return int(steps[np.argmax(mean >= _HALF * mean[-1])])


def _steps(count: int) -> str:
    return f"{count / 1e6:.2g}M" if count >= 1e6 else f"{count / 1e3:.3g}k"


def of_costs(results: Results, row: str) -> str:
    """Where the costs were learned best and worst."""
    found = {
        column: value
        for column in results.columns
        if (value := results.mean(column, row, "cost_corr")) is not None
    }
    if not found:
        return ""
    best, worst = max(found, key=found.__getitem__), min(found, key=found.__getitem__)
    words = (
        f"The learned costs are best on {column_name(best)} (correlation "
        f"{number(found[best], 2)}; 1 is perfect)"
    )
    if best == worst:
        return f"{words}."
    return f"{words}, worst on {column_name(worst)} ({number(found[worst], 2)})."
