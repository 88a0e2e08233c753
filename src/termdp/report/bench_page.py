"""`termdp report`: a page, tables and figures about benchmark results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from termdp.pages import Page, Table, counted
from termdp.report import figures, meanings
from termdp.report.analysis import BASELINE, CEILING, Findings
from termdp.report.detail_tables import detail_tables, observer_table, time_table
from termdp.report.names import (
    column_name,
    has_usual_discount,
    method_name,
)
from termdp.report.results import Results
from termdp.report.tables import (
    best_table,
    column_groups,
    pooled_table,
    row_groups,
    score_tables,
)
from termdp.report.words import conclusions

OnProgress = Callable[[str], None]


def write_report(
    results: Results,
    findings: Findings,
    out: Path,
    on_progress: OnProgress = lambda words: None,
    home: str = "",
) -> Path:
    """Write `report.html`, `tables.md` and `figures/`; returns the page's path.

    Args:
        results: what was measured.
        findings: what follows from it.
        out: the folder.
        on_progress: gets the name of what is being drawn.
        home: address of the first page, if the report is part of a site.
    """
    out.mkdir(parents=True, exist_ok=True)
    sentences = conclusions(results, findings)
    headline = score_tables(results, findings)
    observers = observer_table(results)
    if observers is not None:
        headline.append(observers)
    comparison = [best_table(findings)] if findings.best else []
    comparison.append(pooled_table(results, findings))
    details = [*detail_tables(results, findings), time_table(results)]
    _write_markdown(results, sentences, [*headline, *comparison, *details], out)
    page = Page(title(results), lead(results), wide=True, contents=True, home=home)
    page.heading("What the numbers support")
    page.findings(sentences)
    page.heading("Returns")
    _add_tables(page, headline)
    _add_score_figures(page, results, findings, out, on_progress)
    page.heading("Comparisons")
    _add_comparisons(page, findings, results, comparison, out, on_progress)
    page.heading("Learning")
    _add_curves(page, results, out, on_progress)
    page.heading("Details")
    _add_tables(page, details)
    page.heading("Where this comes from")
    page.facts(provenance(results))
    path = out / "report.html"
    page.save(path)
    return path


def title(results: Results) -> str:
    """The page's title."""
    names = list(dict.fromkeys(m["suite"] for m in results.manifests))
    return f"termdp bench: {', '.join(names)}"


def lead(results: Results) -> str:
    """What was run, in one sentence."""
    first = results.manifests[0]
    ends = first["end_handling"]
    forced = f", all ends {ends}" if ends else ""
    runs = sum(len(found) for found in results.records.values())
    return (
        f"{counted(len(results.rows), 'method')} on "
        f"{counted(len(results.columns), 'environment')}, up to "
        f"{results.seeds} seeds, {first['steps']:,} steps per run, preset "
        f"{first['preset']}{forced}: {runs} runs."
    )


def _write_markdown(
    results: Results, sentences: list[str], tables: list[Table], out: Path
) -> None:
    parts = [
        f"# {title(results)}",
        "",
        lead(results),
        "",
        "## What the numbers support",
        "",
        *(f"- {sentence}" for sentence in sentences),
        "",
        "## Tables",
        "",
        *(table.markdown() for table in tables),
        "## Where this comes from",
        "",
        *(f"- {name}: {value}" for name, value in provenance(results)),
        "",
    ]
    (out / "tables.md").write_text("\n".join(parts))


def _add_tables(page: Page, tables: list[Table]) -> None:
    for table in tables:
        page.table(table)


def _add_score_figures(
    page: Page,
    results: Results,
    findings: Findings,
    out: Path,
    on_progress: OnProgress,
) -> None:
    for number, (_, columns) in enumerate(column_groups(results), start=1):
        on_progress("final returns")
        figure = figures.final_scores(results, columns)
        page.plot(
            figures.save(figure, out / "figures", f"final_{number}"),
            "Final returns. Small dots: seeds. Large dots: their mean, with its 95% t "
            "interval. Dashed: PG's mean.",
            meanings.of_final_scores(results, findings, columns),
        )


def _add_comparisons(
    page: Page,
    findings: Findings,
    results: Results,
    tables: list[Table],
    out: Path,
    on_progress: OnProgress,
) -> None:
    on_progress("comparisons")
    improvement = figures.improvements(findings)
    if improvement is not None:
        page.plot(
            figures.save(improvement, out / "figures", "improvement"),
            "Relative improvement of the best TermPG over the best PG; bars: 95% "
            "bootstrap intervals that include the choice of the best.",
            meanings.of_improvements(findings),
        )
    pooled = figures.pooled_scores(results, findings)
    if pooled is not None:
        page.plot(
            figures.save(pooled, out / "figures", "pooled"),
            "All environments together, 95% stratified bootstrap intervals.",
            meanings.of_pooled(findings),
        )
    _add_tables(page, tables)


def _add_curves(
    page: Page, results: Results, out: Path, on_progress: OnProgress
) -> None:
    for group, (words, rows) in enumerate(_curve_groups(results), start=1):
        for part, (_, columns) in enumerate(column_groups(results), start=1):
            shown = [c for c in columns if any(results.curves_of(c, r) for r in rows)]
            if not shown:
                continue
            on_progress(f"learning curves: {words}")
            figure = figures.learning_curves(results, rows, shown)
            page.plot(
                figures.save(figure, out / "figures", f"learning_{group}_{part}"),
                f"{words}. Return while training; bands: 95% t interval over seeds.",
                meanings.of_learning(results, rows, shown),
            )
    on_progress("cost errors")
    row = next(iter(results.of("termpg")), "termpg")
    figure = figures.cost_errors(results, results.columns, row)
    if figure is not None:
        page.plot(
            figures.save(figure, out / "figures", "cost_error"),
            f"Costs learned by {method_name(row)} against the true ones: ℓ2 error per "
            "step, and correlation. A network that says zero everywhere may have a small "
            "error, but has no correlation.",
            meanings.of_costs(results, row),
        )


def _curve_groups(results: Results) -> list[tuple[str, list[str]]]:
    """Rows that are drawn together: a table's rows with PG, the first also the oracle."""
    found = []
    for words, rows in row_groups(results):
        wanted = {BASELINE, *rows}
        if "top" in words or words == "Methods":
            wanted |= {row for row in results.of(CEILING) if has_usual_discount(row)}
        found.append((words, [row for row in results.rows if row in wanted]))
    return found


def provenance(results: Results) -> list[tuple[str, str]]:
    """Commands, commits, versions, machines, times."""
    found: list[tuple[str, str]] = []
    for manifest in results.manifests:
        versions = {k: v for k, v in manifest["versions"].items() if k != "device"}
        found += [
            ("suite", manifest["suite"]),
            *(("command", f"`{command}`") for command in manifest["commands"]),
            *([("note", manifest["note"])] if "note" in manifest else []),
            ("commit", ", ".join(manifest["commits"])),
            ("versions", ", ".join(f"{k} {v}" for k, v in versions.items())),
            ("hardware", _machines(manifest)),
            (
                "time",
                f"{manifest['wall_s']:.0f} s in all, begun {manifest['begun']}, "
                f"finished {manifest['finished'] or 'never'}",
            ),
        ]
        found += [
            (
                f"observer of {column_name(label)}",
                f"{_overrides(column['overrides'])}: {column['why']}",
            )
            for label, column in manifest["columns"].items()
            if column["overrides"] and label in results.columns
        ]
    return found


def _machines(manifest: dict[str, Any]) -> str:
    """Where the runs were made: for each device, which columns."""
    machine = manifest["hardware"]
    columns: dict[str, set[str]] = {}
    for cell, devices in manifest.get("devices_of", {}).items():
        for device in devices:
            columns.setdefault(device, set()).add(column_name(cell.split("/")[0]))
    if len(columns) > 1:
        return "; ".join(
            f"{device}: {', '.join(sorted(names))}"
            for device, names in sorted(columns.items())
        )
    return (
        f"{machine['devices']} × {machine['platform']} {machine['device']}, "
        f"{machine['cpus']} CPU cores, {machine['machine']}"
    )


def _overrides(numbers: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in numbers.items())
