"""The suites: what they hold, and that labels mean one thing."""

import pytest

from termdp.agents.methods import METHODS, find_method
from termdp.bench.suites import HARD_COLUMNS, SUITES, cells, find_suite
from termdp.registry import REGISTRY, make
from termdp.report import published
from termdp.report.names import method_name


def labels(name, part):
    return list(dict.fromkeys(cell[part].label for cell in cells(SUITES[name])))


def test_the_paper_is_its_table():
    assert labels("paper", 0) == list(published.COLUMNS)
    assert set(labels("paper", 1)) == set(published.TOP)


def test_ablations_and_bonus_are_the_papers():
    std = {r.changes["std_factor"] for _, r in cells(SUITES["ablations"]) if r.changes}
    assert std == {0.5, 1.0, 2.0}
    # The standard deviation stands there with its three factors, not by itself.
    others = set(published.ABLATIONS) - {"termpg_std", "termpg_logit"}
    assert others <= set(labels("ablations", 1))
    bonuses = {
        (method.bonus, method.uncertainty)
        for _, row in cells(SUITES["bonus"])
        if (method := find_method(row.method, **row.changes)).bonus
    }
    assert bonuses == {(0.1, "range"), (1.0, "range"), (0.1, "std"), (1.0, "std")}


def test_fair_has_every_end_handling_optimism_and_control():
    termpg = [
        find_method(row.method, **row.changes)
        for _, row in cells(SUITES["fair"])
        if row.method.startswith("termpg")
    ]
    assert {m.handles_ends for m in termpg} == {"expected", "cut", "ignored"}
    assert {m.optimism for m in termpg} == {"min", "std", "mean", "logit"}
    assert {"pg_naive", "pg_matched", "pg_0.953", "oracle"} <= set(labels("fair", 1))
    rows = {row.label: row for _, row in cells(SUITES["fair"])}
    assert rows["pg_recurrent_rs"].changes == {"stop_penalty": 1.0}


def test_windows_run_from_a_quarter_to_four_times():
    factors = {
        find_method(row.method, **row.changes).window_factor
        for _, row in cells(SUITES["window"])
    }
    assert factors == {0.25, 0.5, 1.0, 2.0, 4.0}


def test_rivals_are_run_on_all_columns_beside_the_three_they_are_compared_with():
    every = {c.label for s in SUITES.values() for c, _ in cells(s) if s.name != "smoke"}
    assert set(labels("rivals", 0)) == every
    rows = set(labels("rivals", 1))
    assert {"pg", "termpg", "oracle"} <= rows
    assert not [
        n for n in METHODS if not n.startswith(("pg", "termpg")) and n not in rows
    ]


def test_a_label_means_the_same_in_every_suite():
    columns, rows = {}, {}
    for suite in SUITES.values():
        for column, row in cells(suite):
            assert columns.setdefault(column.label, column) == column
            assert rows.setdefault(row.label, row) == row
    assert {row.method for row in rows.values()} <= set(METHODS)
    assert not [row for row in rows if method_name(row) == row]
    usual = [label for label, column in columns.items() if not column.overrides]
    assert set(usual) <= set(REGISTRY)


def test_all_is_everything_but_smoke_each_cell_once():
    every = cells(SUITES["all"])
    names = [(column.label, row.label) for column, row in every]
    assert len(names) == len(set(names))
    parts = [s for s in SUITES.values() if not s.parts and s.name != "smoke"]
    assert set(names) == {(c.label, r.label) for s in parts for c, r in cells(s)}


@pytest.mark.parametrize("column", HARD_COLUMNS, ids=lambda column: column.label)
def test_hard_observers_can_be_made_and_are_explained(column):
    _, params = make(column.env, **column.overrides)
    usual = make(column.env)[1]
    assert params.observer != usual.observer
    assert column.why


def test_an_unknown_suite_lists_the_known():
    with pytest.raises(ValueError, match=r"expected a suite \(smoke, .*'everything'"):
        find_suite("everything")
