"""The report's tables."""

import math
from collections.abc import Callable

from termdp.intervals import Interval
from termdp.pages import Cell, Table
from termdp.registry import REGISTRY
from termdp.report import published
from termdp.report.analysis import BASELINE, Findings
from termdp.report.names import (
    ABBREVIATIONS,
    column_name,
    has_usual_discount,
    method_name,
    split_discount,
)
from termdp.report.results import Results
from termdp.report.statistics import mean_and_std

NOTHING = "–"


def number(value: float | None, digits: int = 3) -> str:
    """A number with some significant digits, never in scientific notation."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 4)}f}".replace("-", "−")


def interval(found: Interval | None, digits: int = 3) -> str:
    """An estimate with its interval."""
    if found is None:
        return NOTHING
    low, high = number(found.low, digits), number(found.high, digits)
    return f"{number(found.value, digits)} [{low}, {high}]"


def percent(value: float | None) -> str:
    """A share or an improvement, with its sign."""
    if value is None or not math.isfinite(value):
        return NOTHING
    words = f"{100 * value:+.{0 if abs(value) >= 0.1 else 1}f}%"
    return words.replace("-", "−")


def row_groups(results: Results) -> list[tuple[str, list[str]]]:
    """The rows, grouped as in the paper's tables."""
    usual = [row for row in results.rows if has_usual_discount(row)]
    top, ablations, bonuses = (
        [row for row in usual if split_discount(row)[0] in methods]
        for methods in (published.TOP, published.ABLATIONS, published.BONUSES)
    )
    known = {*top, *ablations, *bonuses}
    termpg = [row for row in top if split_discount(row)[0] == "termpg"]
    titles = (
        ("Table 1, top: methods", "Table 1, bottom: ablations", "Appendix: cost bonus")
        if has_paper_columns(results)
        else ("Methods", "Ablations", "Cost bonus")
    )
    groups = [
        (titles[0], top),
        (titles[1], [*termpg, *ablations]),
        (titles[2], [*termpg, *bonuses]),
        (
            "Controls and oracle",
            [r for r in results.rows if r in (BASELINE, *termpg) or r not in known],
        ),
    ]
    reference = {BASELINE, *termpg}
    return [(title, rows) for title, rows in groups if set(rows) - reference] or [
        ("Methods", top)
    ]


def column_groups(results: Results) -> list[tuple[str, list[str]]]:
    """The benchmark's own observers, and the others."""
    usual = [c for c in results.columns if c in REGISTRY]
    others = [c for c in results.columns if c not in REGISTRY]
    groups = [("", usual), (" (other observers)" if usual else "", others)]
    return [(words, columns) for words, columns in groups if columns]


def score_tables(results: Results, findings: Findings) -> list[Table]:
    """Mean ± std as in the paper, with the published number below."""
    found: list[Table] = []
    for title, rows in row_groups(results):
        for words, columns in column_groups(results):
            there = [r for r in rows if any(results.has(c, r) for c in columns)]
            if not there:
                continue
            lines = [
                [
                    Cell(method_name(row)),
                    *(_score(results, findings, column, row) for column in columns),
                ]
                for row in there
            ]
            headings = ["", *map(column_name, columns)]
            caption = "Read as above." if found else _score_caption(results)
            found.append(Table(title + words, caption, headings, lines))
    return found


def _score_caption(results: Results) -> str:
    paper = (
        " Below it the published number, for Backseat Driver as a ratio to PG (its own "
        "game is not public)."
    )
    return (
        "Return over the last tenth of training, mean ± standard deviation over seeds."
        + (paper if has_paper_columns(results) else "")
        + " ▲ better, ▼ worse than our PG: the 95% interval of the difference excludes "
        f"zero. {ABBREVIATIONS}"
    )


def has_paper_columns(results: Results) -> bool:
    """Whether any environment is one of the paper's."""
    return any(column in published.COLUMNS for column in results.columns)


def _score(results: Results, findings: Findings, column: str, row: str) -> Cell:
    if not results.has(column, row):
        return Cell(NOTHING)
    mean, spread = mean_and_std(results.values(column, row))
    gap = findings.against_pg.get((column, row))
    mark = ""
    if gap is not None and gap.excludes_zero:
        mark = "better" if gap.low > 0 else "worse"
    places = 1 if abs(mean) >= 10 else 2
    text = f"{mean:,.{places}f} ± {spread:,.{places}f}".replace("-", "−")
    return Cell(text, _published_note(results, column, row, mean), mark)


def _published_note(results: Results, column: str, row: str, mean: float) -> str:
    method, _ = split_discount(row)
    line = published.ROWS.get(method, {}).get(column)
    if line is None or not has_usual_discount(row):
        return ""
    if column not in published.RATIO_ONLY:
        return f"paper {line.mean:g} ± {line.std:g}"
    theirs = f"paper ×{published.ratio_to_pg(method, column):.2f}"
    if not results.has(column, BASELINE):
        return theirs
    return f"×{mean / results.values(column, BASELINE).mean():.2f}, {theirs}"


def best_table(findings: Findings) -> Table:
    """Best TermPG over best PG, beside the claims."""
    rows = [
        [
            Cell(column_name(best.column)),
            Cell(method_name(best.ours)),
            Cell(method_name(best.theirs)),
            Cell(
                f"{percent(best.relative.value)} [{percent(best.relative.low)}, "
                f"{percent(best.relative.high)}]",
                mark="better"
                if best.is_supported
                else ("worse" if best.is_contradicted else ""),
            ),
            Cell(interval(best.gap)),
            Cell(percent(best.claimed)),
            Cell(percent(best.implied)),
        ]
        for best in findings.best
    ]
    return Table(
        "Best TermPG over best PG",
        "TermPG, + RS, + Penalty of any discount against all PG variants that ran. "
        "Every resample for the relative improvement's interval chooses the best again. "
        "▲ needs this interval and that of the difference (Welch) to exclude zero. Last "
        "columns: what the paper's text claims, and what its table gives.",
        [
            "environment",
            "best TermPG",
            "best PG",
            "improvement",
            "difference",
            "claimed",
            "its table",
        ],
        rows,
    )


def pooled_table(results: Results, findings: Findings) -> Table:
    """Interquartile means and probabilities of improvement over all environments."""
    rows = [
        [
            Cell(method_name(row)),
            Cell(interval(findings.pooled.get(row))),
            Cell(interval(findings.probability_pg.get(row), 2)),
            Cell(interval(findings.probability_best.get(row), 2)),
            Cell(interval(findings.probability_termpg.get(row), 2)),
        ]
        for row in results.rows
    ]
    names = ", ".join(map(column_name, findings.pooled_columns))
    return Table(
        "Over all environments",
        "Interquartile mean of returns divided by PG's mean return, and the probability "
        "that a run is better than one of PG, of the environment's best PG variant, or "
        "of TermPG; 95% stratified bootstrap intervals. Pooled environments: "
        f"{names}. A method that did not run on all of them has no interquartile mean.",
        [
            "",
            "IQM, PG = 1",
            "P(better than PG)",
            "P(better than best PG)",
            "P(better than TermPG)",
        ],
        rows,
    )


def grid_table(
    results: Results,
    title: str,
    caption: str,
    cell: Callable[[str, str], str | None],
) -> Table | None:
    """Rows × columns of one quantity; empty rows are left out."""
    rows = []
    for row in results.rows:
        words = [
            cell(column, row) if results.has(column, row) else None
            for column in results.columns
        ]
        if any(word is not None for word in words):
            texts = [NOTHING if w is None else w for w in words]
            rows.append([Cell(method_name(row)), *map(Cell, texts)])
    headings = ["", *map(column_name, results.columns)]
    return Table(title, caption, headings, rows) if rows else None
