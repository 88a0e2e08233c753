"""Self-contained HTML pages: no network, pictures inside, one small script.

`templates/page.html` is the only template; everything in it is escaped. The script
(`templates/page.js`) sorts tables and restarts films. The page's security policy allows
no other script and no requests.
"""

import base64
import dataclasses
import functools
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from termdp.files import draft_of

_PIXELS_PER_POINT = 1.65
LEAST_ROWS = 3  # of a table that is worth sorting
MARKS = {"better": " ▲", "worse": " ▼", "": ""}


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell of a table: a number, a note below it, and a mark.

    Attributes:
        text: the number.
        note: smaller, below; in Markdown in brackets.
        mark: `better` or `worse`, or nothing.
        link: address of another page of the same site, or nothing.
    """

    text: str
    note: str = ""
    mark: str = ""
    link: str = ""

    def __str__(self) -> str:
        return self.text + MARKS[self.mark]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table; its first column names the rows.

    Attributes:
        title: a heading; empty if the text above says it.
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
        meaning: what follows from it, in a sentence or two; empty for nothing.
    """

    source: str
    caption: str
    width: int | None = None
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Heading:
    """A heading that can be linked to: its words, its address in the page, its level."""

    text: str
    anchor: str
    level: int = 2


class Page:
    """A page: add parts in order, then `save`.

    Args:
        title: of the page.
        lead: what it is about, in a sentence.
        wide: for pages with large tables.
        contents: whether it begins with a list of its headings.
        home: address of the site's first page, for a link back; empty for none.
    """

    def __init__(
        self,
        title: str,
        lead: str,
        wide: bool = False,
        contents: bool = False,
        home: str = "",
    ):
        self.title, self.lead, self.wide = title, lead, wide
        self.contents, self.home = contents, home
        self.headings: list[Heading] = []
        self._parts: list[tuple[str, Any]] = []

    def heading(self, text: str, level: int = 2) -> None:
        """A heading: of a section, or (level 3) of a part of one."""
        taken = [heading.anchor for heading in self.headings]
        anchor = first = "-".join(re.findall(r"\w+", text.lower())) or "part"
        number = 2
        while anchor in taken:
            anchor, number = f"{first}-{number}", number + 1
        self.headings.append(Heading(text, anchor, level))
        self._parts.append(("heading", self.headings[-1]))

    def paragraph(self, text: str) -> None:
        """A paragraph of plain text."""
        self._parts.append(("paragraph", text))

    def link(self, address: str, text: str) -> None:
        """A link to another page of the same site."""
        self._parts.append(("link", (address, text)))

    def commands(self, lines: Sequence[str]) -> None:
        """Commands to copy."""
        self._parts.append(("commands", lines))

    def findings(self, sentences: Sequence[str]) -> None:
        """The findings, as a highlighted list."""
        self._parts.append(("findings", sentences))

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """Names and values; a value in backticks is code."""
        self._parts.append(("facts", rows))

    def table(self, table: Table) -> None:
        """A table, under its title."""
        if table.title:
            self.heading(table.title, level=3)
        self._parts.append(("table", table))

    def plot(self, svg: bytes, caption: str, meaning: str = "") -> None:
        """A drawing on white, whatever the colours of the page, larger than printed."""
        width = round(_PIXELS_PER_POINT * _svg_points(svg))
        source = _url(svg, "svg+xml")
        self._parts.append(("picture", Picture(source, caption, width, meaning)))

    def plots(self, drawings: Sequence[tuple[bytes, str]], caption: str) -> None:
        """Drawings on white, as (svg, what it shows), side by side if there is room."""
        found = [
            Picture(_url(svg, "svg+xml"), words, round(_svg_points(svg)))
            for svg, words in drawings
        ]
        self._parts.append(("plots", (found, caption)))

    def films(self, films: Sequence[tuple[bytes, str]]) -> None:
        """Films that start together, as (GIF, caption)."""
        found = [Picture(_url(data, "gif"), words) for data, words in films]
        self._parts.append(("films", found))

    def figure(self, data: bytes, kind: str, caption: str) -> None:
        """A picture; `kind` is png, gif or svg+xml."""
        self._parts.append(("picture", Picture(_url(data, kind), caption)))

    def figures(self, pictures: Sequence[tuple[bytes, str, str]]) -> None:
        """Pictures side by side, as (data, kind, caption)."""
        found = [Picture(_url(data, kind), caption) for data, kind, caption in pictures]
        self._parts.append(("pictures", found))

    def html(self) -> str:
        """The whole page."""
        script = _script() if self._needs_script() else ""
        return _template().render(
            title=self.title,
            lead=self.lead,
            wide=self.wide,
            home=self.home,
            contents=self.headings if self.contents else [],
            parts=self._parts,
            script=script,
            script_digest=_digest(script),
            least_rows=LEAST_ROWS,
        )

    def _needs_script(self) -> bool:
        return any(
            kind == "films" or (kind == "table" and len(content.rows) >= LEAST_ROWS)
            for kind, content in self._parts
        )

    def save(self, path: Path) -> None:
        """Write the page."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(path) as draft:
            draft.write_text(self.html(), encoding="utf-8")


TEMPLATES = Path(__file__).parent / "templates"


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 environment, 2 environments."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@functools.cache
def _script() -> str:
    return (TEMPLATES / "page.js").read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """The script's digest for the page's security policy: no other script may run."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
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
