"""What holds for all methods, and their numbers in the compiled program."""

import dataclasses

import jax
import pytest

from termdp.agents.method_params import method_params
from termdp.agents.methods import METHODS, Method, find_method
from termdp.registry import REGISTRY


def changes_of(name, base):
    """The numbers in which a method differs from another; not its description."""
    mine, other = dataclasses.asdict(METHODS[name]), dataclasses.asdict(METHODS[base])
    mine.pop("description")
    return {key: value for key, value in mine.items() if value != other[key]}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_learns_costs_or_is_told_them_and_is_explained(name):
    method = METHODS[name]
    assert not (method.learns_costs and method.knows_costs)
    if name.startswith(("pg", "termpg")):
        assert method.learns_costs == name.startswith("termpg")
        assert not method.knows_costs
    assert method.description


@pytest.mark.parametrize(
    "name", [name for name in METHODS if name.startswith(("pg_", "termpg_"))]
)
def test_variants_differ_in_one_thing_from_what_they_vary(name):
    changes = changes_of(name, name.split("_")[0])
    # The paper's TermPG differs in two; ours without optimism is the default today.
    assert len(changes) == {"termpg_paper": 2, "termpg_mean": 0}.get(name, 1)


@pytest.mark.parametrize(
    ("start", "field"),
    [
        *(("pg_0", "discount"), ("termpg_bonus_", "bonus")),
        *(("termpg_std", "optimism"), ("termpg_mean", "optimism")),
        ("termpg_logit", "optimism"),
    ],
)
def test_a_name_that_holds_a_number_or_a_kind_means_it(start, field):
    named = [name for name in METHODS if name.startswith(start)]
    assert named
    for name in named:
        assert str(getattr(METHODS[name], field)) in (
            name.split("_")[-1],
            f"{name.split('_')[-1]}.0",
        )


def test_the_papers_termpg_is_the_papers():
    """Equation 4 has no other discount; costs are the least of the networks."""
    changes = changes_of("termpg_paper", "termpg")
    assert changes == {"discount": 1.0, "optimism": "min"}


def test_a_stop_is_an_end_unless_the_discount_counts_it():
    for name, method in METHODS.items():
        usual = "expected" if method.dynamic_discount else "cut"
        assert method.handles_ends == ("ignored" if name == "pg_naive" else usual)


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
    for method in (m.for_environment("breakout") for m in METHODS.values()):
        numbers = method_params(method, 30)
        assert bool(numbers.sees_costs) == (method.learns_costs or method.knows_costs)
        assert bool(numbers.knows_costs) == method.knows_costs


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


def test_programs_are_shared_unless_policy_or_memory_is_of_another_kind():
    for method in METHODS.values():
        own = method.recurrent or method.has_reference or method.cost_memory != "window"
        assert bool(method.program) == own
    assert METHODS["traces"].program == METHODS["traces_lagrangian"].program
    assert (
        len({METHODS[n].program for n in ("pg_recurrent", "rift", "ct", "traces")}) == 4
    )


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
