"""Every row of the table of methods, and its numbers in the compiled program."""

import dataclasses

import jax
import pytest

from termdp.agents.matched_discounts import MATCHED_DISCOUNTS
from termdp.agents.methods import METHODS, Method, find_method

# What SPEC's table says: (learns, knows, dynamic, stop handling, differing numbers).
TABLE = {
    "pg": (False, False, False, "cut", {}),
    "pg_naive": (False, False, False, "ignored", {}),
    "pg_recurrent": (False, False, False, "cut", {"recurrent": True}),
    "pg_rs": (False, False, False, "cut", {"stop_penalty": 1.0}),
    "termpg": (True, False, True, "expected", {}),
    "termpg_rs": (True, False, True, "expected", {"stop_penalty": 1.0}),
    "termpg_penalty": (True, False, True, "expected", {"cost_penalty": 0.1}),
    "termpg_min": (True, False, True, "expected", {"optimism": "min"}),
    "termpg_std": (True, False, True, "expected", {"optimism": "std"}),
    "termpg_mean": (True, False, True, "expected", {"optimism": "mean"}),
    "termpg_fixed_discount": (True, False, False, "cut", {}),
    "termpg_horizon": (True, False, True, "expected", {"horizon": 0.97}),
    "termpg_half_window": (True, False, True, "expected", {"window_factor": 0.5}),
    "termpg_double_window": (True, False, True, "expected", {"window_factor": 2.0}),
    "termpg_bonus_0.1": (True, False, True, "expected", {"bonus": 0.1}),
    "termpg_bonus_1": (True, False, True, "expected", {"bonus": 1.0}),
    "oracle": (False, True, True, "expected", {}),
    "oracle_horizon": (False, True, True, "expected", {"horizon": 0.97}),
    "pg_0.953": (False, False, False, "cut", {"discount": 0.953}),
}
NUMBERS = (
    "discount",
    "horizon",
    "stop_penalty",
    "cost_penalty",
    "bonus",
    "optimism",
    "std_factor",
    "uncertainty",
    "window_factor",
    "recurrent",
)


@pytest.mark.parametrize("name", TABLE)
def test_method_is_as_the_table_says(name):
    method = find_method(name)
    learns, knows, dynamic, handling, differing = TABLE[name]
    assert (method.learns_costs, method.knows_costs) == (learns, knows)
    assert method.dynamic_discount == dynamic
    assert method.handles_stops == handling
    plain = Method()
    defaults = {number: getattr(plain, number) for number in NUMBERS}
    if learns:
        defaults["optimism"] = find_method("termpg").optimism
    found = {number: getattr(method, number) for number in NUMBERS}
    assert found == defaults | differing
    assert (found["discount"], found["std_factor"]) == (
        differing.get("discount", 0.99),
        1.0,
    )
    assert found["uncertainty"] == "range"
    assert method.description


def test_no_method_is_missing_or_unknown_to_the_table():
    # pg_matched takes its constant from a table of its own.
    assert set(METHODS) - {"pg_matched"} == set(TABLE)


@pytest.mark.parametrize(
    ("factor", "window", "expected"),
    [(1.0, 30, 30), (0.5, 30, 15), (0.5, 35, 17), (0.5, 1, 1), (2.0, 30, 60)],
)
def test_the_learners_window_is_rounded_down_and_at_least_one(factor, window, expected):
    method = find_method("termpg", window_factor=factor)
    assert method.learner_window(window) == expected
    assert int(method.method_params(window).window) == expected


@pytest.mark.parametrize(
    ("handling", "stop", "game_over"),
    [("expected", 1.0, 0.0), ("cut", 0.0, 0.0), ("ignored", 1.0, 1.0)],
)
def test_stop_handling_decides_what_bootstraps(handling, stop, game_over):
    method_params = find_method("pg", stop_handling=handling).method_params(30)
    assert float(method_params.stop_bootstraps) == stop
    assert float(method_params.game_over_bootstraps) == game_over


def test_switches_say_who_sees_costs():
    seen = {name: float(METHODS[name].method_params(30).sees_costs) for name in TABLE}
    assert seen == {name: float(row[0] or row[1]) for name, row in TABLE.items()}
    assert float(METHODS["oracle"].method_params(30).knows_costs) == 1.0
    assert float(METHODS["termpg"].method_params(30).knows_costs) == 0.0


def test_optimism_weights_are_one_of_four():
    for kind in ("min", "std", "mean", "logit"):
        optimism = find_method("termpg", optimism=kind).method_params(30).optimism
        weights = {
            k: float(getattr(optimism, k)) for k in ("min", "std", "mean", "logit")
        }
        assert weights == {k: float(k == kind) for k in weights}


def test_all_methods_are_the_same_program():
    shapes = {
        str(jax.tree.map(lambda x: (x.shape, x.dtype), method.method_params(30)))
        for method in (m.for_environment("breakout") for m in METHODS.values())
    }
    assert len(shapes) == 1


def test_a_matched_discount_comes_from_the_table_of_environments():
    method = find_method("pg_matched")
    for env_id, discount in MATCHED_DISCOUNTS.items():
        assert method.for_environment(env_id).discount == discount
        assert 0.9 < discount < 1.0
    with pytest.raises(ValueError, match=r"matched discount .*'pacman'.*--discount"):
        method.for_environment("pacman")
    given = find_method("pg_matched", discount=0.5)
    assert given.for_environment("pacman").discount == 0.5
    with pytest.raises(ValueError, match="for_environment"):
        method.method_params(30)


def test_changes_are_taken_and_none_means_no_change():
    method = find_method("pg", discount=0.5, optimism=None)
    assert method == dataclasses.replace(METHODS["pg"], discount=0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stop_handling": "maybe"}, "stop_handling to be one of expected, cut, ignor"),
        ({"optimism": "max"}, "optimism to be one of min, std, mean, logit, got 'max'"),
        ({"uncertainty": "var"}, "uncertainty to be one of range, std, got 'var'"),
        ({"discount": 1.5}, r"discount to be a number in \[0, 1\], got 1.5"),
        ({"window_factor": 0.0}, "window_factor to be a number > 0, got 0.0"),
        ({"bonus": float("nan")}, "bonus to be a finite number, got nan"),
    ],
)
def test_bad_numbers_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        find_method("termpg", **changes)


def test_unknown_method_lists_the_known():
    with pytest.raises(ValueError, match=r"expected a method \(pg, .*\), got 'ppo'"):
        find_method("ppo")


def test_a_dynamic_discount_needs_costs_to_make_it_of():
    with pytest.raises(ValueError, match="dynamic_discount"):
        Method(dynamic_discount=True)
