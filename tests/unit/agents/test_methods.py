"""Every row of the table of methods, and its numbers in the compiled program."""

import dataclasses

import jax
import pytest

from termdp.agents.method_params import method_params
from termdp.agents.methods import METHODS, Method, find_method
from termdp.registry import REGISTRY

# What SPEC's table says: (learns, knows, dynamic, end handling, differing numbers).
TABLE = {
    "pg": (False, False, False, "cut", {}),
    "pg_naive": (False, False, False, "ignored", {}),
    "pg_recurrent": (False, False, False, "cut", {"recurrent": True}),
    "pg_rs": (False, False, False, "cut", {"stop_penalty": 1.0}),
    "termpg": (True, False, True, "expected", {}),
    "termpg_rs": (True, False, True, "expected", {"stop_penalty": 1.0}),
    "termpg_penalty": (True, False, True, "expected", {"cost_penalty": 0.1}),
    "termpg_paper": (
        *(True, False, True, "expected"),
        {"optimism": "min", "discount": 1.0},
    ),
    "termpg_logit": (True, False, True, "expected", {"optimism": "logit"}),
    "termpg_std": (True, False, True, "expected", {"optimism": "std"}),
    "termpg_mean": (True, False, True, "expected", {"optimism": "mean"}),
    "termpg_fixed_discount": (True, False, False, "cut", {}),
    "termpg_half_window": (True, False, True, "expected", {"window_factor": 0.5}),
    "termpg_double_window": (True, False, True, "expected", {"window_factor": 2.0}),
    "termpg_bonus_0.1": (True, False, True, "expected", {"bonus": 0.1}),
    "termpg_bonus_1": (True, False, True, "expected", {"bonus": 1.0}),
    "oracle": (False, True, True, "expected", {}),
    "pg_0.97": (False, False, False, "cut", {"discount": 0.97}),
    "pg_0.999": (False, False, False, "cut", {"discount": 0.999}),
    "rosarl": (False, False, False, "cut", {"minmax_penalty": True}),
    "rlif": (
        *(False, False, False, "cut"),
        {"drops_rewards": True, "stop_penalty": 1.0},
    ),
    "rlif_task": (False, False, False, "cut", {"stop_penalty": 1.0}),
    "rift": (
        *(False, False, False, "cut"),
        {"stop_penalty": 1.0, "kl_penalty": 0.01, "unobserved_share": 0.5},
    ),
    "ppo_lagrangian": (True, False, False, "cut", {"constrained": True}),
    "ct": (True, False, True, "expected", {"cost_memory": "sum"}),
    "traces": (True, False, True, "expected", {"cost_memory": "gru"}),
    "traces_lagrangian": (
        *(True, False, False, "cut"),
        {"constrained": True, "cost_memory": "gru"},
    ),
}
NUMBERS = (
    "discount",
    "stop_penalty",
    "cost_penalty",
    "bonus",
    "optimism",
    "std_factor",
    "uncertainty",
    "window_factor",
    "recurrent",
    "drops_rewards",
    "minmax_penalty",
    "constrained",
    "cost_memory",
    "kl_penalty",
    "unobserved_share",
)


@pytest.mark.parametrize("name", TABLE)
def test_method_is_as_the_table_says(name):
    method = find_method(name)
    learns, knows, dynamic, handling, differing = TABLE[name]
    assert (method.learns_costs, method.knows_costs) == (learns, knows)
    assert method.dynamic_discount == dynamic
    assert method.handles_ends == handling
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
    assert int(method_params(method, window).window) == expected


@pytest.mark.parametrize(
    ("handling", "stop", "game_over"),
    [("expected", 1.0, 0.0), ("cut", 0.0, 0.0), ("ignored", 1.0, 1.0)],
)
def test_end_handling_decides_what_bootstraps(handling, stop, game_over):
    numbers = method_params(find_method("pg", end_handling=handling), 30)
    assert float(numbers.stop_bootstraps) == stop
    assert float(numbers.game_over_bootstraps) == game_over


def test_switches_say_who_sees_costs():
    seen = {name: float(method_params(METHODS[name], 30).sees_costs) for name in TABLE}
    assert seen == {name: float(row[0] or row[1]) for name, row in TABLE.items()}
    assert float(method_params(METHODS["oracle"], 30).knows_costs) == 1.0
    assert float(method_params(METHODS["termpg"], 30).knows_costs) == 0.0


def test_optimism_weights_are_one_of_four():
    for kind in ("min", "std", "mean", "logit"):
        optimism = method_params(find_method("termpg", optimism=kind), 30).optimism
        weights = {
            k: float(getattr(optimism, k)) for k in ("min", "std", "mean", "logit")
        }
        assert weights == {k: float(k == kind) for k in weights}


def test_all_methods_are_the_same_program():
    shapes = {
        str(jax.tree.map(lambda x: (x.shape, x.dtype), method_params(method, 30)))
        for method in (m.for_environment("breakout") for m in METHODS.values())
    }
    assert len(shapes) == 1


def test_programs_are_shared_by_methods_of_one_kind():
    kinds = {}
    for name, method in METHODS.items():
        kinds.setdefault(method.program, set()).add(name)
    assert kinds.pop("recurrent") == {"pg_recurrent"}
    assert kinds.pop("reference") == {"rift"}
    assert kinds.pop("sum") == {"ct"}
    assert kinds.pop("gru") == {"traces", "traces_lagrangian"}
    assert kinds[""] >= {"pg", "termpg", "oracle", "rosarl", "rlif", "ppo_lagrangian"}
    assert set(kinds) == {""}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("pg", {"multiplier_rate": 0.2}, "pg uses, got multiplier_rate: .*multiplier"),
        ("traces", {"optimism": "min"}, "traces uses, got optimism: .* network only"),
        ("rift", {"unobserved_share": 1.0}, "unobserved_share to be .* below 1, got 1"),
        ("pg_recurrent", {"kl_penalty": 0.1}, "without memory, got a recurrent one"),
        ("ppo_lagrangian", {"stop_rate_target": 0.0}, "stop_rate_target .*, got 0.0"),
    ],
)
def test_numbers_of_rivals_are_checked(name, changes, message):
    with pytest.raises(ValueError, match=message):
        find_method(name, **changes)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"constrained": True}, "only with learns_costs"),
        ({"cost_memory": "sum"}, "only with learns_costs"),
        ({"cost_memory": "all", "learns_costs": True}, "window, sum, gru, got 'all'"),
    ],
)
def test_methods_that_cannot_work_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        Method(**words)


def test_a_matched_discount_comes_from_the_environments_entry():
    method = find_method("pg_matched")
    known = [e for e in REGISTRY.values() if e.matched_discount is not None]
    assert len(known) >= 7
    for entry in known:
        assert method.for_environment(entry.id).discount == entry.matched_discount
        assert 0.9 < entry.matched_discount < 1.0
    with pytest.raises(ValueError, match="'pacman'"):
        method.for_environment("pacman")
    given = find_method("pg_matched", discount=0.5)
    assert given.for_environment("pacman").discount == 0.5
    with pytest.raises(ValueError, match="for_environment"):
        method_params(method, 30)


def test_changes_are_taken():
    assert find_method("pg", discount=0.5) == dataclasses.replace(
        METHODS["pg"], discount=0.5
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"end_handling": "maybe"}, "end_handling to be one of expected, cut, ignor"),
        ({"optimism": "max"}, "optimism to be one of min, std, mean, logit, got 'max'"),
        ({"uncertainty": "var"}, "uncertainty to be one of range, std, got 'var'"),
        (
            {"discount": 1.5},
            "discount to be a number of at least 0 .* 1 or none, got 1.5",
        ),
        ({"window_factor": 0.0}, "window_factor to be a number above 0, got 0.0"),
        ({"bonus": float("nan")}, "bonus to be a number, got nan"),
    ],
)
def test_bad_numbers_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        find_method("termpg", **changes)


def test_an_unknown_method_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"lists them\), got 'pgg': did you mean pg"):
        find_method("pgg")


def test_a_dynamic_discount_needs_costs_to_make_it_of():
    with pytest.raises(ValueError, match="dynamic_discount"):
        Method(dynamic_discount=True)
