"""`termdp report DIR… --site OUT`: one site about many results, fits included.

OUT/index.html              list of the results, with what each found
OUT/NAME/report.html        a benchmark's report, made again
OUT/NAME/index.html         the page of a fit (`termdp fit`, `termdp studies fit`), copied
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from termdp.pages import Cell, Page, Table, counted
from termdp.reading import MEGABYTE, read_small
from termdp.report import bench_page, figures
from termdp.report.analysis import analyse
from termdp.report.names import in_order
from termdp.report.results import load
from termdp.report.tables import NOTHING
from termdp.report.words import conclusions

MOST_FINDINGS = 3
SIZES = ("methods", "environments", "seeds", "steps", "stops")
_MOST_PAGE = 64 * MEGABYTE
HOME = "../index.html"
Kind = TypeVar("Kind")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One page of the site.

    Attributes:
        name: of the folder.
        kind: benchmark, fit of a log or fit of a study.
        page: address, from the site's folder.
        about: what was done, in a sentence.
        findings: what was found, in sentences.
        sizes: by name, the numbers of the first page's table.
        rows: methods that are in it.
    """

    name: str
    kind: str
    page: str
    about: str
    findings: list[str]
    sizes: dict[str, int]
    rows: list[str] = dataclasses.field(default_factory=list)


class LogFit(msgspec.Struct, frozen=True):
    """What the site says of a `fit.json`."""

    sessions: int
    steps: int
    stops: int
    auc: float


class StudyFitSummary(msgspec.Struct, frozen=True):
    """What the site says of a study's `summary.json`."""

    study: str
    reviews: int
    stops: int
    window: int


def write_site(
    folders: Sequence[Path],
    out: Path,
    on_progress: Callable[[str], None] = lambda words: None,
) -> tuple[Path, list[Entry]]:
    """Write the site; returns its first page and what is on it.

    Args:
        folders: of results, or of folders of results.
        out: the site's folder.
        on_progress: gets the name of what is being made.
    """
    found = result_folders(folders)
    names = _names(found)
    entries = []
    for folder, name in zip(found, names, strict=True):
        on_progress(name)
        entries.append(_MAKERS[_kind(folder)](folder, name, out))
    path = out / "index.html"
    on_progress("the first page")
    _index(entries).save(path)
    return path, entries


def result_folders(folders: Sequence[Path]) -> list[Path]:
    """These folders, or those directly inside them, that hold results; each once."""
    found: list[Path] = []
    for folder in folders:
        inside = sorted(folder.iterdir()) if folder.is_dir() else []
        here = [folder] if _kind(folder) else [path for path in inside if _kind(path)]
        if not here:
            raise ValueError(
                f"expected a folder of termdp bench, termdp fit or termdp studies fit, "
                f"or a folder of such folders, got {folder}"
            )
        found += [
            path for path in here if path.resolve() not in map(Path.resolve, found)
        ]
    return found


def _kind(folder: Path) -> str:
    """What kind of results a folder holds; empty if unknown."""
    if (folder / "manifest.json").is_file():
        return "benchmark"
    if not (folder / "index.html").is_file():
        return ""
    if (folder / "fit.json").is_file():
        return "fit of a log"
    return "fit of a study" if (folder / "summary.json").is_file() else ""


def _names(folders: Sequence[Path]) -> list[str]:
    """The folders' names; repeated ones get a number."""
    names: list[str] = []
    for folder in folders:
        name, number = folder.resolve().name, 2
        while name in names:
            name, number = f"{folder.resolve().name}-{number}", number + 1
        names.append(name)
    return names


def _benchmark(folder: Path, name: str, out: Path) -> Entry:
    results = load([folder])
    findings = analyse(results)
    page = bench_page.write_report(results, findings, out / name, home=HOME)
    return Entry(
        name,
        "benchmark",
        f"{name}/{page.name}",
        bench_page.lead(results),
        conclusions(results, findings)[:MOST_FINDINGS],
        {
            "methods": len(results.rows),
            "environments": len(results.columns),
            "seeds": results.seeds,
            "steps": results.manifests[0]["steps"],
        },
        results.rows,
    )


def _log_fit(folder: Path, name: str, out: Path) -> Entry:
    fit = _read(folder / "fit.json", LogFit)
    about = (
        f"An observer fitted to a log: {counted(fit.stops, 'stop')} in "
        f"{counted(fit.sessions, 'session')}, {fit.steps:,} steps."
    )
    right = (
        "Of two steps, one with a stop and one without, the fit picks the right one in "
        f"{fit.auc:.0%} of cases."
    )
    page = _copied(folder, name, out)
    sizes = {"stops": fit.stops, "steps": fit.steps}
    return Entry(name, "fit of a log", page, about, [right], sizes)


def _study_fit(folder: Path, name: str, out: Path) -> Entry:
    fit = _read(folder / "summary.json", StudyFitSummary)
    about = (
        f"Observers fitted to the study {fit.study}: {counted(fit.stops, 'stop')} in "
        f"{counted(fit.reviews, 'review')}."
    )
    window = f"The saved observers remember {counted(fit.window, 'step')}."
    page = _copied(folder, name, out)
    return Entry(name, "fit of a study", page, about, [window], {"stops": fit.stops})


def _read(path: Path, kind: type[Kind]) -> Kind:
    """The few numbers of a fit's file that the first page needs."""
    try:
        return msgspec.json.decode(read_small(path), type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(
            f"expected what termdp wrote in {path}, but {error}: run the fit again"
        ) from error


_MAKERS: dict[str, Callable[[Path, str, Path], Entry]] = {
    "benchmark": _benchmark,
    "fit of a log": _log_fit,
    "fit of a study": _study_fit,
}


def _copied(folder: Path, name: str, out: Path) -> str:
    """A self-contained page, with a link back to the first page."""
    text = read_small(folder / "index.html", _MOST_PAGE).decode("utf-8", "replace")
    back = f'<p class="home"><a href="{HOME}">← All results</a></p>\n<h1>'
    page = out / name / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text.replace("<h1>", back, 1), encoding="utf-8")
    return f"{name}/index.html"


def _size(entry: Entry, name: str) -> Cell:
    return Cell(f"{entry.sizes[name]:,}" if name in entry.sizes else NOTHING)


def _index(entries: Sequence[Entry]) -> Page:
    page = Page(
        "Results",
        f"{counted(len(entries), 'set')} of results. Each has its own page with tables, "
        "figures, commands and versions.",
        wide=True,
        contents=True,
    )
    page.table(
        Table(
            "All of them",
            "Click a heading to sort. Steps are those of one run, or of the log.",
            ["results", "kind", *SIZES],
            [
                [
                    Cell(entry.name, link=entry.page),
                    Cell(entry.kind),
                    *(_size(entry, name) for name in SIZES),
                ]
                for entry in entries
            ],
        )
    )
    rows = in_order(row for entry in entries for row in entry.rows)
    if rows:
        page.heading("The methods")
        page.plot(
            figures.svg_bytes(figures.method_legend(rows)),
            "Each method has one name, one colour and one marker on all pages.",
            "PG is a policy gradient, here PPO: it is stopped like the others and never "
            "learns why. TermPG learns costs from the stops. An oracle is told the true "
            "costs.",
        )
    page.heading("What each found")
    for entry in entries:
        page.heading(entry.name, level=3)
        page.paragraph(entry.about)
        page.findings(entry.findings)
        page.link(entry.page, "The whole page")
    return page
