"""From suites to jobs: who shares a program, and what is left out."""

import dataclasses

import pytest

from termdp.bench.plan import RunKey, make_jobs, make_plan
from termdp.bench.suites import RECOMMENDER, Column, Row, Suite, find_suite
from termdp.registry import find
from termdp.runs.program import make_recipe
from tiny_bench import tiny_plan


def plan_of(name, **choice):
    return make_plan(find_suite(name), **choice)


def test_methods_share_a_program_by_memory_and_by_whether_they_learn_costs():
    plan = plan_of("paper", envs=["breakout"], seeds=5)
    plain, recurrent, learning = make_jobs(plan)
    rows = [{key.row for key in job.keys} for job in (plain, recurrent, learning)]
    assert rows[1] == {"pg_recurrent"}
    assert rows[0] == {"pg", "pg_naive", "pg_rs"}
    assert rows[2] == {"termpg", "termpg_rs", "termpg_penalty"}
    assert (plain.recurrent, recurrent.recurrent) == (False, True)
    assert learning.all_steps == 15_000_000
    job = learning.training_job()
    assert len(job.methods) == len(job.seeds) == 15


def test_rivals_that_need_more_do_not_slow_the_others():
    plan = plan_of("rivals", envs=["recommender"], seeds=2)
    jobs = make_jobs(plan)
    for job in jobs:
        kinds = {(c.method.program, c.learner_window) for c, _ in job.runs}
        assert len(kinds) == 1
    assert len(jobs) == 5, "without costs, with them, and three programs of their own"
    # What is trained does not depend on who else is in the suite.
    alone = plan_of("smoke", methods=["termpg"]).cells[0]
    among = next(c for c in plan.cells if c.row.label == "termpg")
    assert alone.config == among.config
    memories = {job.program: job.config.costs.memory for job in jobs}
    assert memories == {"": "window", "reference": "window", "sum": "sum", "gru": "gru"}
    assert {job.name for job in jobs} == {
        *("recommender", "recommender window 30", "recommender reference"),
        *("recommender sum window 30", "recommender gru window 30"),
    }


def test_observers_of_one_game_that_differ_in_numbers_share_a_program():
    columns = (
        Column("usual", "breakout"),
        Column("patient", "breakout", {"window": 60, "bias": 9.0, "width": 3}),
        Column("forgetful", "breakout", {"leak": 0.9}),  # another way to remember
        Column("other", "asterix"),
    )
    plan = make_plan(Suite("own", "", columns, (Row("oracle", "oracle"),)), seeds=2)
    jobs = {job.name: job for job in make_jobs(plan)}
    assert set(jobs) == {"usual + patient", "forgetful", "other"}
    job = jobs["usual + patient"].training_job()
    assert job.windows == (30, 30, 60, 60)
    assert job.max_window == 60
    assert job.method_params().window.tolist() == [30, 30, 60, 60]
    assert [p.observer.bias for p in job.run_params] == [6.0, 6.0, 9.0, 9.0]
    assert {p.observer.capacity for p in job.run_params} == {60}
    assert jobs["other"].training_job().run_params is None


def test_a_run_does_not_depend_on_its_company():
    # A window four times as long needs longer segments: for that method alone.
    plan = plan_of("window", envs=["breakout"], seeds=1)
    lengths = {
        cell.row.label: cell.config.costs.segment_length
        for job in make_jobs(plan)
        for cell, _ in job.runs
    }
    long = lengths.pop("termpg_window_4")
    assert set(lengths.values()) == {128}
    assert long == 256
    alone = plan_of("paper", envs=["breakout"], methods=["termpg"], seeds=1)
    among = next(c for c in plan.cells if c.row.label == "termpg")
    assert alone.cells[0].settings() == among.settings()


def test_what_is_finished_is_left_out_and_names_stay_unique():
    plan = plan_of("paper", envs=["breakout", "asterix"], seeds=2)
    done = [RunKey("breakout", "pg", 0), RunKey("asterix", "pg_recurrent", 1)]
    jobs = make_jobs(plan, done, most_runs=lambda job: 4)
    keys = [key for job in jobs for key in job.keys]
    assert len(keys) == len(set(keys)) == len(plan.runs) - 2
    assert not set(done) & set(keys)
    assert max(len(job.runs) for job in jobs) <= 4
    assert len({job.name for job in jobs}) == len(jobs)
    everything = [RunKey(c.column.label, c.row.label, s) for c, s in plan.runs]
    assert make_jobs(plan, everything) == []


def test_a_matched_discount_comes_from_the_column_if_it_has_one():
    column = Column("mine", "breakout", {"width": 2}, matched_discount=0.9)
    suite = Suite("own", "", (column,), (Row("pg_matched", "pg_matched"),))
    assert make_plan(suite).cells[0].method.discount == 0.9
    usual = plan_of("fair", envs=["breakout"], methods=["pg_matched"])
    assert usual.cells[0].method.discount == find("breakout").matched_discount


def test_an_environment_is_a_column_or_else_all_columns_of_that_game():
    def columns(suite, env):
        plan = plan_of(suite, envs=[env])
        return {cell.column.label for cell in plan.cells}

    assert columns("all", "breakout") == {"breakout"}
    assert columns("all", "breakout_hard") == {"breakout_hard"}
    assert columns("hard", "breakout") == {"breakout_hard"}


def test_all_methods_can_be_made_to_ignore_ends():
    plan = plan_of("paper", envs=["breakout"], numbers={"end_handling": "ignored"})
    assert {cell.method.handles_ends for cell in plan.cells} == {"ignored"}
    with pytest.raises(ValueError, match="end_handling to be one of"):
        plan_of("paper", numbers={"end_handling": "maybe"})


def test_numbers_of_a_sweep_are_those_of_all_its_methods():
    chosen = {"hidden": 7, "cost_members": 2, "clip": 0.1}
    plan = plan_of("paper", envs=["breakout"], numbers=chosen)
    for cell in plan.cells:
        config = cell.config
        assert (config.hidden, config.algorithm.clip) == (7, 0.1)
        assert config.costs.members == 2
        assert chosen.items() <= cell.settings()["numbers"].items()


def test_numbers_that_tell_methods_apart_are_refused_for_a_sweep():
    with pytest.raises(ValueError, match="got discount: it makes a method what it is"):
        plan_of("paper", numbers={"discount": 0.9})
    with pytest.raises(ValueError, match="got 'hidn'.*hidden"):
        plan_of("paper", numbers={"hidn": 7})
    with pytest.raises(ValueError, match="cost_members to be a whole number"):
        plan_of("paper", numbers={"cost_members": 0})


def test_an_environment_that_does_not_exist_is_left_out_with_a_reason():
    suite = Suite(
        "own",
        "",
        (Column("breakout", "breakout"), Column("pacman", "pacman")),
        (Row("pg", "pg"),),
    )
    plan = make_plan(suite)
    assert [cell.column.label for cell in plan.cells] == ["breakout"]
    assert "pacman" in plan.left_out["pacman"]
    with pytest.raises(ValueError, match="got none"):
        make_plan(suite, envs=["pacman"])


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"seeds": 0}, "seeds to be a whole number of at least 1 .*got 0"),
        ({"steps": 10}, "at least one rollout"),
        ({"preset": "slow"}, "expected a preset"),
        ({"envs": ["pacman"]}, r"environments of the suite paper \(.*'pacman'"),
        ({"methods": ["ppo"]}, r"methods of the suite paper \(pg, .*'ppo'"),
    ],
)
def test_bad_choices_are_named(choice, message):
    with pytest.raises(ValueError, match=message):
        plan_of("paper", **choice)


def test_runs_are_filled_up_to_a_multiple_of_the_devices():
    (job,) = make_jobs(tiny_plan("pg", "pg_rs", seeds=1))
    assert job.training_job(multiple=2).seeds == (0, 0)
    (job,) = make_jobs(tiny_plan("pg", "pg_rs", "oracle", seeds=1))
    padded = job.training_job(multiple=2)
    assert len(padded.seeds) == len(padded.methods) == 4
    assert padded.methods[-1] == padded.methods[-2]


PLAIN = ("pg", "pg_rs", "oracle")


def test_on_the_cpu_only_runs_that_are_alike_alone_share_a_program():
    """Other windows, capacities or cost learners make another program of a run."""
    patient = Column("patient", "recommender", {"window": 7, "bias": 9.0})
    longer = Row("termpg_x2", "termpg", {"window_factor": 2.0})
    strict = Row("termpg_rs", "termpg", {"stop_penalty": 2.0})
    rows = (*PLAIN, "termpg", strict, longer)
    plan = tiny_plan(*rows, columns=(RECOMMENDER, patient))
    jobs = make_jobs(plan, as_alone=True)
    found = {frozenset((key.column, key.row) for key in job.keys) for job in jobs}
    expected = set()
    for column in ("recommender", "patient"):
        for labels in (
            ("pg", "pg_rs", "oracle"),
            ("termpg", "termpg_rs"),
            ("termpg_x2",),
        ):
            expected.add(frozenset((column, label) for label in labels))
    assert found == expected
    for job in jobs:
        together = job.training_job()
        for place in range(len(job.runs)):
            run = dataclasses.replace(job, runs=job.runs[place : place + 1])
            alone = run.training_job()
            assert alone.run_params is None and together.run_params is None
            assert alone.max_window == together.max_window
            assert make_recipe(alone).learns_costs == make_recipe(together).learns_costs
    # On an accelerator the columns share programs; other windows still do not.
    on_accelerator = make_jobs(plan)
    assert sum(cell.learner_window is None for cell, _ in on_accelerator[0].runs) == 12
    windows = {job.runs[0][0].learner_window for job in on_accelerator}
    assert windows == {None, 30, 60, 7, 14} and len(on_accelerator) == 5
