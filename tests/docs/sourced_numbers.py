"""Numbers in the documents' tables, and what the runs under results/ say they are.

A table names its source in a comment before it:

    <!-- numbers: results/methods_1m -->           runs of these folders, one or several
    <!-- numbers: results/growth_1m | results/growth_3m -->    of either
    <!-- numbers: elsewhere: WHERE AND WHY -->     not from results/; nothing is compared

Rows and columns are known by their names: a method, an environment. Words in a cell's
row and column narrow down what its numbers may be. A number is right if one of the
statistics of its cell rounds to it. "published" in a row or column means the paper's
tables, which `termdp.report.published` holds.
"""

import functools
import re
from pathlib import Path

import numpy as np

from termdp.intervals import difference, mean_interval
from termdp.report import published, statistics
from termdp.report.analysis import analyse
from termdp.report.names import METHOD_NAMES, column_name, method_name
from termdp.report.results import load

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"<!-- numbers: (?P<source>[^>]+?) -->")
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?%?(?!\w)")
# What documents call things, where reports have longer names.
OTHER_NAMES = {"Backseat coins": "backseat", "passenger": "backseat_passenger"}
OTHER_METHODS = {
    "PG, 0.97": "pg_0.97",
    "PG, 0.99": "pg",
    "PG, 0.995": "pg_0.995",
    "PG, 0.999": "pg_0.999",
    "PPO": "pg",
}


def tables(path):
    """Each table of a document: its source (None if it names none), rows of cells."""
    lines = path.read_text().splitlines()
    source, block = None, []
    for line in [*lines, ""]:
        if line.startswith("|"):
            block.append([cell.strip() for cell in line.strip()[1:-1].split("|")])
            continue
        if block:
            yield source, [block[0], *block[2:]]
            source, block = None, []
        found = MARK.match(line)
        source = found["source"] if found else (None if line.strip() else source)


def numbers_in(cell):
    """Numbers of a cell, as printed; those inside names and links do not count."""
    cell = re.sub(r"\]\([^)]*\)|`[^`]*`", "", cell)
    return NUMBER.findall(cell)


def agrees(text, value):
    """Whether a number, rounded as it is printed, is this value."""
    plain = text.replace("−", "-").replace("+", "").replace(",", "").rstrip("%")
    unit = 10.0 ** -len(plain.partition(".")[2])
    scale = 100 if text.endswith("%") else 1
    return abs(float(plain) - scale * value) <= 0.5001 * unit


class Source:
    """Statistics of some folders, by environment and method."""

    def __init__(self, folders):
        self.results = load([ROOT / folder for folder in folders])
        self.findings = analyse(self.results)

    def columns(self, words):
        """Environments that some words name."""
        named = {column_name(c): c for c in self.results.columns} | OTHER_NAMES
        named |= {c.removesuffix(" hard"): d for c, d in named.items() if " hard" in c}
        plain = words.replace(" ▲", "").strip("* ").rpartition(": ")[2]
        return {named[plain]} & {*self.results.columns} if plain in named else set()

    def rows(self, words):
        """Methods that some words name; several for "best PG" and the like."""
        if "best PPO" in words or "best PG" in words:
            return set(self.results.family("pg"))
        named = {method_name(row): row for row in self.results.rows} | OTHER_METHODS
        named |= {
            METHOD_NAMES[row]: row for row in self.results.rows if row in METHOD_NAMES
        }
        found = named.get(words.strip("* ").partition(": ")[0])
        return {found} & {*self.results.rows} if found else set()

    @functools.cached_property
    def best(self):
        return {found.column: found for found in self.findings.best}

    def of_cell(self, column, row):
        """Everything that a cell of a table may say of a method on an environment."""
        values = self.results.values(column, row)
        mean = mean_interval(values)
        yield from (
            *statistics.mean_and_std(values),
            mean.low,
            mean.high,
            mean.half_width,
        )
        yield from values
        correlation = self.results.mean(column, row, "cost_corr")
        if correlation is not None:
            yield correlation
        base = self.results.values(column, "pg")
        if len(base):
            yield np.mean(values) / np.mean(base)
        for found in (self.findings.against_pg, self.findings.closed):
            interval = found.get((column, row))
            if interval is not None:
                yield from (interval.value, interval.low, interval.high)

    def of_column(self, column):
        """What is said of TermPG, or the best TermPG, and the best PG there."""
        if column not in self.best:
            return
        found = self.best[column]
        yield from (found.relative.value, found.relative.low, found.relative.high)
        for row in {found.ours, "termpg"}:
            for other in {found.theirs, self.best_discount(column)}:
                yield from self.of_difference(column, row, other)

    def best_discount(self, column):
        """The best PG of those that differ in their discount alone."""
        rows = [row for row in OTHER_METHODS.values() if self.results.has(column, row)]
        return max(
            rows, key=lambda row: self.results.values(column, row).mean(), default=None
        )

    def of_difference(self, column, row, other):
        """What is said of one method against another."""
        if other is None or not self.results.has(column, row):
            return
        ours, theirs = (self.results.values(column, name) for name in (row, other))
        interval = difference(ours, theirs)
        yield from (interval.value, interval.low, interval.high)
        if len(ours) == len(theirs):
            paired = mean_interval(ours - theirs)
            yield from (paired.value, paired.half_width)

    def of_row(self, row):
        """What is said of a method over all environments."""
        found = self.findings
        for by_row in (found.pooled, found.probability_pg, found.probability_termpg):
            if row in by_row:
                interval = by_row[row]
                yield from (interval.value, interval.low, interval.high)

    def candidates(self, *labels):
        """What the numbers of a cell may be, by the words in its row and column."""
        columns = set().union(*(self.columns(words) for words in labels))
        rows = set().union(*(self.rows(words) for words in labels))
        compares = any(re.search("differ|gain|over|− best|interval", w) for w in labels)
        if columns and (compares or not rows):
            for column in columns:
                yield from self.of_column(column)
        if rows and not columns:
            for row in rows:
                yield from self.of_row(row)
        if "correlation" in " ".join(labels):
            rows = set(self.results.of("termpg"))
        for column in columns:
            for row in rows:
                if self.results.has(column, row):
                    yield from self.of_cell(column, row)


def published_numbers(*labels):
    """The paper's numbers for the methods and environments that some words name."""
    names = {column_name(column): column for column in published.COLUMNS}
    words = " ".join(labels)
    columns = [c for name, c in names.items() if name in words] or [*published.COLUMNS]
    for row, line in published.ROWS.items():
        if METHOD_NAMES[row].split(",")[0].split(" (")[0] in words:
            for column in columns:
                yield from (*line[column], published.ratio_to_pg(row, column))


@functools.cache
def source_of(names):
    return Source(names.split())


def sources_of(words):
    """What a comment names: one source, or several of which any will do."""
    return [source_of(names.strip()) for names in words.split("|")]


def wrong_numbers(path):
    """Numbers of a document's tables that its sources do not have, with their place."""
    for source, (header, *rows) in tables(path):
        known = source is not None and source.startswith("results/")
        if source is not None and source.startswith("elsewhere: "):
            continue
        for cells in rows:
            for words, cell in zip(header[1:], cells[1:], strict=True):
                labels = (header[0], words, cells[0])
                given = numbers_in(cell)
                if given and not known:
                    yield f"{cells[0]} / {words}: {cell}: the table names no source"
                    continue
                if "published" in f"{words} {cells[0]}".lower():
                    allowed = [*published_numbers(*labels)]
                else:
                    groups = sources_of(source) if given else []
                    allowed = [v for group in groups for v in group.candidates(*labels)]
                for number in given:
                    if not any(agrees(number, value) for value in allowed):
                        yield f"{cells[0]} / {words}: {number} of “{cell}”"
