"""A self-contained HTML page: no network, no scripts, pictures inside."""

import base64
import html
import io
import re
from pathlib import Path
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2230; --soft: #5d6577; --paper: #fbfbfd;
  --line: #dfe3ec; --card: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9f0; --soft: #9aa3b6;
  --paper: #12141c; --line: #2b3040; --card: #1a1d28; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 980px; margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin-bottom: .3rem; }
h2 { font-size: 1.25rem; margin-top: 2.4rem; }
p.lead { color: var(--soft); font-size: 1.08rem; margin-top: 0; }
figure { margin: 1.2rem 0; padding: 1rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 10px; }
figure img { max-width: 100%; display: block; margin: 0 auto; border-radius: 4px; }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .6rem; }
.row { display: flex; gap: 1rem; flex-wrap: wrap; }
.row figure { flex: 1 1 240px; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: right; padding: .45rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
code, pre { font: .9em ui-monospace, monospace; background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; padding: .1em .35em; }
pre { padding: .8rem 1rem; overflow-x: auto; }
body.wide { max-width: 1240px; }
.wide > p, .wide > ul { max-width: 76ch; }
h3 { font-size: 1.02rem; margin: 2rem 0 .2rem; }
h3 + p { color: var(--soft); font-size: .92rem; margin: 0; }
.scroll { overflow-x: auto; }
table.scores { font-variant-numeric: tabular-nums; font-size: .92rem; width: auto;
  min-width: 34rem; }
table.scores th, table.scores td { padding: .45rem .4rem .45rem .9rem; }
table.scores th:first-child, table.scores td:first-child { padding-left: .4rem;
  position: sticky; left: 0; background: var(--paper); }
table.scores th { font-weight: 600; color: var(--soft); white-space: nowrap;
  vertical-align: bottom; }
table.scores td { white-space: nowrap; vertical-align: top; }
table.scores tbody tr:hover { background: color-mix(in srgb, var(--line) 35%,
  transparent); }
table.scores small { display: block; color: var(--soft); font-size: .8rem; }
table.scores td:first-child small { white-space: normal; max-width: 34ch; }
td.better { color: var(--better); font-weight: 600; }
td.worse { color: var(--worse); font-weight: 600; }
td.better small, td.worse small { font-weight: 400; }
:root { --better: #1f7a36; --worse: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --better: #69db7c; --worse: #ff8787; } }
ul.findings { padding: 1rem 1.4rem 1rem 2.2rem; background: var(--card);
  border: 1px solid var(--line); border-left: 4px solid #d6336c; border-radius: 10px; }
ul.findings li { margin: .35rem 0; }
figure.plot img { background: #fff; padding: .4rem; box-sizing: border-box; }
table.facts td { text-align: left; vertical-align: top; font-size: .92rem; }
table.facts td:first-child { color: var(--soft); white-space: nowrap; }
table.facts code { white-space: normal; overflow-wrap: anywhere; }
"""

_PIXELS_PER_POINT = 1.65


class Page:
    """A page in the making: add parts in order, then `save`."""

    def __init__(self, title: str, lead: str, wide: bool = False):
        self.title = title
        self._kind = ' class="wide"' if wide else ""
        self._parts = [f"<h1>{_safe(title)}</h1>", f'<p class="lead">{_safe(lead)}</p>']

    def heading(self, text: str) -> None:
        """A section's heading."""
        self._parts.append(f"<h2>{_safe(text)}</h2>")

    def paragraph(self, text: str) -> None:
        """A paragraph of plain text."""
        self._parts.append(f"<p>{_safe(text)}</p>")

    def commands(self, lines: list[str]) -> None:
        """Commands to copy."""
        self._parts.append(f"<pre>{_safe(chr(10).join(lines))}</pre>")

    def table(self, headings: list[str], rows: list[list[str]]) -> None:
        """A table; the first column names the rows."""
        head = "".join(f"<th>{_safe(h)}</th>" for h in headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        self._parts.append(f"<table><tr>{head}</tr>{body}</table>")

    def raw(self, fragment: str) -> None:
        """HTML that is known to be safe."""
        self._parts.append(fragment)

    def findings(self, sentences: list[str]) -> None:
        """What came out, as a list that stands out."""
        items = "".join(f"<li>{_safe(sentence)}</li>" for sentence in sentences)
        self._parts.append(f'<ul class="findings">{items}</ul>')

    def plot(self, svg: bytes, caption: str) -> None:
        """A drawing on white, whatever the colours of the page, larger than printed."""
        inside = _figure(svg, "svg+xml", caption)
        inside = inside.replace("<figure>", '<figure class="plot">', 1)
        width = round(_PIXELS_PER_POINT * _svg_points(svg))
        self._parts.append(inside.replace("<img ", f'<img width="{width}" ', 1))

    def figure(self, data: bytes, kind: str, caption: str) -> None:
        """A picture; `kind` is png, gif or svg+xml."""
        self._parts.append(_figure(data, kind, caption))

    def figures(self, pictures: list[tuple[bytes, str, str]]) -> None:
        """Pictures side by side, as (data, kind, caption)."""
        inside = "".join(_figure(*picture) for picture in pictures)
        self._parts.append(f'<div class="row">{inside}</div>')

    def save(self, path: Path) -> None:
        """Write the page."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{_safe(self.title)}</title><style>{_STYLE}</style></head>"
            f"<body{self._kind}>{''.join(self._parts)}</body></html>\n"
        )


def figure_bytes(figure: Any) -> bytes:
    """A Matplotlib figure as PNG, sharp on dense screens; closes it."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, bbox_inches="tight")
    plt.close(figure)
    return buffer.getvalue()


def _figure(data: bytes, kind: str, caption: str) -> str:
    encoded = base64.b64encode(data).decode()
    return (
        f'<figure><img alt="{_safe(caption)}" src="data:image/{kind};base64,{encoded}">'
        f"<figcaption>{_safe(caption)}</figcaption></figure>"
    )


def _svg_points(svg: bytes) -> float:
    """The width that Matplotlib wrote into the first lines."""
    found = re.search(rb'width="([0-9.]+)pt"', svg[:2000])
    return float(found.group(1)) if found else 600.0


def _safe(text: str) -> str:
    return html.escape(text)
