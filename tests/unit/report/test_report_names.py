"""Names, order and colours of methods and environments; small words."""

import json
from pathlib import Path

import pytest

from termdp.agents.methods import METHODS
from termdp.pages import counted
from termdp.registry import REGISTRY
from termdp.report import published
from termdp.report.names import (
    COLOURS,
    MARKERS,
    METHOD_NAMES,
    colours,
    column_colours,
    column_name,
    in_order,
    marker,
    method_name,
    split_discount,
)

RESULTS = Path(__file__).parents[3] / "results"


def stored_rows():
    found = set()
    for file in RESULTS.glob("**/manifest.json"):
        found |= set(json.loads(file.read_text())["rows"])
    return sorted(found)


def test_every_method_has_a_name_and_a_colour():
    assert set(METHODS) <= set(METHOD_NAMES)
    assert set(METHOD_NAMES) == set(COLOURS)
    assert {*published.TOP, *published.ABLATIONS} <= set(METHOD_NAMES)


def test_every_stored_row_has_a_name_of_its_own():
    rows = stored_rows()
    assert len(rows) > 10
    assert len({*map(method_name, rows)} - {*rows}) == len(rows)


def test_no_two_methods_share_a_colour():
    rows = list(dict.fromkeys([*METHOD_NAMES, *stored_rows()]))
    found = colours(rows)
    assert len(set(found.values())) == len(rows)
    # One method has one colour in all figures, whatever else is there.
    assert all(colours([row])[row] == found[row] for row in rows)


def test_a_method_has_one_marker_whatever_else_is_there():
    assert [marker(row) for row in ("pg", "termpg", "oracle")] == ["o", "s", "^"]
    assert marker("termpg_discount_1") != marker("termpg_discount_0.97")
    assert {*map(marker, [*METHOD_NAMES, "mine"])} <= {*MARKERS}


def test_unknown_methods_get_colours_that_are_free():
    found = colours([f"m{i}" for i in range(6)] + ["termpg", "pg"])
    assert len(set(found.values())) == 8
    assert found["termpg"] == COLOURS["termpg"]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("termpg", "TermPG"),
        ("termpg_discount_1", "TermPG, discount 1"),
        ("termpg_rs_discount_1", "TermPG + RS, discount 1"),
        ("oracle_discount_0.97", "Oracle, discount 0.97"),
        ("termpg_fixed_discount", "No dynamic discount"),
        ("mine", "mine"),
        ("mine_discount_1", "mine_discount_1"),
    ],
)
def test_a_discount_is_part_of_the_name(row, name):
    assert method_name(row) == name


def test_labels_are_split_at_their_discount():
    assert split_discount("termpg_rs_discount_0.97") == ("termpg_rs", "0.97")
    assert split_discount("termpg_fixed_discount") == ("termpg_fixed_discount", "")


def test_rows_stand_beside_their_method():
    rows = ["zebra", "termpg_discount_0.97", "oracle", "termpg_discount_1", "pg"]
    assert in_order([*rows, "termpg"]) == [
        *("pg", "termpg", "termpg_discount_1", "oracle"),
        *("termpg_discount_0.97", "zebra"),
    ]


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("breakout", "Breakout"),
        ("breakout_hard", "Breakout hard"),
        ("backseat_hard", "Backseat hard"),
        ("backseat_passenger", "Backseat passenger"),
        ("asterix_middle_hard", "Asterix middle hard"),
        ("mine", "mine"),
    ],
)
def test_columns_have_names(column, name):
    assert column_name(column) == name


def test_every_environment_has_a_name_and_a_colour_of_its_own():
    assert len({column_name(env) for env in REGISTRY} - {*REGISTRY}) == len(REGISTRY)
    found = column_colours(REGISTRY)
    assert len(set(found.values())) == len(REGISTRY)
    both = column_colours(["breakout", "breakout_hard"])
    assert both["breakout"] == found["breakout"] != both["breakout_hard"]


def test_numbers_and_their_nouns():
    assert counted(1, "environment") == "1 environment"
    assert [counted(n, "method") for n in (0, 2)] == ["0 methods", "2 methods"]
