"""Documents can be read: short pages, short lines, few numbers in a paragraph."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_WORDS, MOST_COLUMNS, MOST_README_LINES = 1500, 100, 120
# One line per change there, however long.
LONG_LINES = {"CHANGELOG.md"}
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "results/README.md"]
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?!\w*[a-z]\b.*://)")


def without_code(text):
    return FENCE.sub("", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_and_lines_are_short(page):
    if page.name in LONG_LINES:
        return
    text = page.read_text()
    words = len(without_code(text).split())
    assert words <= MOST_WORDS, f"{words} words: split the page"
    for number, line in enumerate(text.splitlines(), 1):
        # A table's row, a table's source and an address cannot be broken.
        if line.startswith(("|", "<!-- numbers: ")) or re.fullmatch(
            r"\S*\(?https?://\S+", line.strip()
        ):
            continue
        assert len(line) <= MOST_COLUMNS, f"line {number} has {len(line)} characters"


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= MOST_README_LINES
    for paragraph in re.split(r"\n\s*\n", without_code(text)):
        if not paragraph.lstrip().startswith(("|", "#", "!", "<", "- ")):
            prose = re.sub(r"`[^`]*`|\]\([^)]*\)|arXiv:\S+", "", paragraph)
            assert len(NUMBER.findall(prose)) <= 2, f"too many numbers: {paragraph}"
