"""Self-contained HTML pages: no network, no scripts, pictures inside.

`templates/page.html` is the one page there is; everything in it is escaped.
"""

import base64
import dataclasses
import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from termdp.files import draft_of

_PIXELS_PER_POINT = 1.65
MARKS = {"better": " ▲", "worse": " ▼", "": ""}


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell of a table: a number, what stands below it, and whether it stands out.

    Attributes:
        text: the number.
        note: smaller, below; in Markdown in brackets.
        mark: `better` or `worse`, or nothing.
    """

    text: str
    note: str = ""
    mark: str = ""

    def __str__(self) -> str:
        return self.text + MARKS[self.mark]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table; its first column names the rows.

    Attributes:
        title: a heading; empty where the text above says it.
        caption: how to read it.
        headings: of the columns.
        rows: cells, with marks and notes or plain.
    """

    title: str
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]

    def markdown(self) -> str:
        """The table for a Markdown file."""
        lines = [
            f"### {self.title}",
            "",
            self.caption,
            "",
            _pipes(self.headings),
            _pipes(["---"] + ["---:"] * (len(self.headings) - 1)),
            *(_pipes([_markdown(cell) for cell in row]) for row in self.rows),
            "",
        ]
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture inside a page.

    Attributes:
        source: its data as a URL.
        caption: what it shows.
        width: in pixels, for a drawing on white; None for the picture's own.
    """

    source: str
    caption: str
    width: int | None = None


class Page:
    """A page in the making: add parts in order, then `save`."""

    def __init__(self, title: str, lead: str, wide: bool = False):
        self.title, self.lead, self.wide = title, lead, wide
        self._parts: list[tuple[str, Any]] = []

    def heading(self, text: str) -> None:
        """A section's heading."""
        self._parts.append(("heading", text))

    def paragraph(self, text: str) -> None:
        """A paragraph of plain text."""
        self._parts.append(("paragraph", text))

    def commands(self, lines: Sequence[str]) -> None:
        """Commands to copy."""
        self._parts.append(("commands", lines))

    def findings(self, sentences: Sequence[str]) -> None:
        """What came out, as a list that stands out."""
        self._parts.append(("findings", sentences))

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """Names and values; a value in backticks is code."""
        self._parts.append(("facts", rows))

    def table(self, table: Table) -> None:
        """A table."""
        self._parts.append(("table", table))

    def plot(self, svg: bytes, caption: str) -> None:
        """A drawing on white, whatever the colours of the page, larger than printed."""
        width = round(_PIXELS_PER_POINT * _svg_points(svg))
        self._parts.append(("picture", Picture(_url(svg, "svg+xml"), caption, width)))

    def figure(self, data: bytes, kind: str, caption: str) -> None:
        """A picture; `kind` is png, gif or svg+xml."""
        self._parts.append(("picture", Picture(_url(data, kind), caption)))

    def figures(self, pictures: Sequence[tuple[bytes, str, str]]) -> None:
        """Pictures side by side, as (data, kind, caption)."""
        found = [Picture(_url(data, kind), caption) for data, kind, caption in pictures]
        self._parts.append(("pictures", found))

    def html(self) -> str:
        """The whole page."""
        return _template().render(
            title=self.title, lead=self.lead, wide=self.wide, parts=self._parts
        )

    def save(self, path: Path) -> None:
        """Write the page."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(path) as draft:
            draft.write_text(self.html(), encoding="utf-8")


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html")


def _pipes(words: Sequence[str]) -> str:
    return "| " + " | ".join(words) + " |"


def _markdown(cell: str | Cell) -> str:
    note = cell.note if isinstance(cell, Cell) else ""
    return f"{cell} ({note})" if note else str(cell)


def _url(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _svg_points(svg: bytes) -> float:
    """The width that Matplotlib wrote into the first lines."""
    found = re.search(rb'width="([0-9.]+)pt"', svg[:2000])
    return float(found.group(1)) if found else 600.0
