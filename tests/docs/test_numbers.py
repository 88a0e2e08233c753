"""Every number in a table of README.md and of the results' pages has runs behind it."""

import re

import pytest
from sourced_numbers import MARK, ROOT, agrees, wrong_numbers

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("results*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_numbers_of_tables_are_those_of_the_runs(page):
    assert [*wrong_numbers(page)] == []


def test_the_sources_have_manifests():
    for page in PAGES:
        for source in MARK.findall(page.read_text()):
            for name in re.findall(r"results/\w+", source):
                assert (ROOT / name / "manifest.json").is_file(), name


def test_a_wrong_number_is_found(tmp_path):
    page = tmp_path / "page.md"
    table = "| | PG |\n|---|---:|\n| Recommender | {} |\n"
    page.write_text(
        "<!-- numbers: results/methods_1m -->\n\n" + table.format("96.3 ± 3.2")
    )
    assert [*wrong_numbers(page)] == []
    page.write_text(
        "<!-- numbers: results/methods_1m -->\n\n" + table.format("96.1 ± 3.2")
    )
    (wrong,) = wrong_numbers(page)
    assert "96.1" in wrong
    page.write_text(table.format("96.0"))
    (wrong,) = wrong_numbers(page)
    assert "names no source" in wrong
    assert agrees("−0.55", -0.548) and not agrees("−0.55", 0.548)
    assert agrees("13%", 0.1305) and not agrees("13%", 0.14)
