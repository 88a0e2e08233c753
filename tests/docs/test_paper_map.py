"""docs/paper_map.md and the source's citations of the paper agree."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "paper_map.md"
PAPER = "arXiv:2205.15376"
ROW = re.compile(
    r"^\| (?P<item>[^|]+) \| `(?P<function>[^`]+)` \| `(?P<test>[^`]+)` \|$"
)


def rows():
    first_part = MAP.read_text().split("\n## ")[0]
    lines = first_part.splitlines()
    table = [line for line in lines if line.startswith("|")][2:]
    assert table, "the map has rows"
    found = [ROW.match(line) for line in table]
    bad = [line for line, match in zip(table, found, strict=True) if match is None]
    assert not bad, f"rows must read | item | `function` | `test` |: {bad[:3]}"
    return [match.groupdict() for match in found]


def load(dotted):
    """Import the longest module prefix, then follow attributes."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            thing = getattr(thing, name)
        return thing
    raise AssertionError(f"no module for {dotted}")


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["function"])
def test_functions_and_tests_of_the_map_exist(row):
    assert callable(load(row["function"]))
    path, _, name = row["test"].partition("::")
    text = (ROOT / path).read_text()
    assert not name or re.search(rf"def {name}\b", text), row["test"]


def modules_that_cite():
    source = ROOT / "src"
    for path in sorted(source.rglob("*.py")):
        if PAPER in path.read_text():
            yield ".".join(path.relative_to(source).with_suffix("").parts)


def test_every_module_that_cites_the_paper_is_in_the_map():
    mapped = {row["function"].rsplit(".", 1)[0] for row in rows()}
    mapped |= {name.rsplit(".", 1)[0] for name in mapped}
    missing = [
        name
        for name in modules_that_cite()
        if name.removesuffix(".__init__") not in mapped
    ]
    assert not missing, f"add rows to docs/paper_map.md for: {missing}"
