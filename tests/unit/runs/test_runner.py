"""The loop on the host: chunks, troubles, rows, and what a result shows."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import termdp
from termdp.agents.methods import find_method
from termdp.runs.config import TrainConfig
from termdp.runs.program import Job, TrainProgram
from termdp.runs.runner import Runner, chunk_length, find_troubles
from tiny_config import tiny
from tiny_envs import Counter, action_is_cost

pytestmark = pytest.mark.slow

JOB = SimpleNamespace(
    env=SimpleNamespace(name="Game"),
    seeds=(5, 6),
    config=TrainConfig(num_envs=4, rollout_steps=8),
)
GOOD = {
    "reward_sum": np.zeros((2, 3)),
    "bad_observations": np.zeros((2, 3)),
    "bad_parameters": np.zeros((2, 3)),
    "value_loss": np.zeros((2, 3)),
    "calibration": np.zeros((2, 3, 10)),
}


def with_bad(name, run, iteration, value):
    values = GOOD[name].copy()
    values[run, iteration] = value
    return GOOD | {name: values}


def test_no_trouble_where_all_is_well():
    assert find_troubles(GOOD, 320, JOB) == {}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("reward_sum", np.nan, "finite rewards, got NaN or infinity from Game"),
        ("bad_observations", 1, "finite observations, got NaN or infinity from Game"),
        ("bad_parameters", 3, "finite parameters"),
        ("value_loss", np.inf, "finite training, but value_loss became"),
        ("calibration", np.nan, "finite training, but calibration became"),
    ],
)
def test_troubles_say_what_where_and_whose(name, value, words):
    found = find_troubles(with_bad(name, 1, 2, value), 320, JOB)
    # Two whole rollouts of 32 after step 320, and the third is at fault.
    assert list(found) == [1]
    assert words in found[1]
    assert found[1].endswith("at step 416 of seed 6")


def test_the_cause_is_named_before_its_consequences():
    reports = with_bad("reward_sum", 0, 1, np.nan)
    reports = reports | {"value_loss": np.full((2, 3), np.nan)}
    found = find_troubles(reports, 0, JOB)
    assert "rewards" in found[0]
    assert "value_loss" in found[1]


@given(total=st.integers(1, 5000))
def test_the_host_looks_at_least_fifty_times(total):
    most = chunk_length(total)
    chunks = -(-total // most)
    # 5,000,000 steps of `fast` are 2,441 iterations, a prime number.
    assert min(total, 50) <= chunks < 100


@pytest.fixture(scope="module")
def program():
    env = termdp.observe(Counter(), termdp.Observer(action_is_cost, window=3, bias=4.0))
    params = env.default_params.replace(game_over_at=7)
    methods = (find_method("termpg"), find_method("pg"))
    return TrainProgram(Job(env, params, methods, (0, 1), tiny(), 6))


def test_reports_are_complete_whatever_the_chunks(program):
    told = []
    runner = Runner(program, on_progress=told.append)
    runner.run()
    assert [progress.step for progress in told] == [32 * i for i in range(1, 7)]
    assert runner.taken == runner.done == 6
    assert all(values.shape[:2] == (2, 6) for values in runner.reports.values())
    assert [row["step"] for row in runner.rows(0, 6)[::2]] == [
        32 * i for i in range(1, 7)
    ]
    first = told[0].rows
    assert [row["seed"] for row in first] == [0, 1]
    # The run of PG learns no costs, though the program does.
    assert first[0]["bias"] is not None and first[1]["bias"] is None
    assert runner.facts()["steps"] == 192


def test_a_broken_run_leaves_the_others_alone(program, monkeypatch):
    """Reports of the second run are made NaN on their way to the host."""
    unpack = program.unpack

    def broken(packed):
        reports = unpack(packed)
        losses = np.array(reports["value_loss"])
        losses[1] = np.nan
        return reports | {"value_loss": losses}

    monkeypatch.setattr(program, "unpack", broken)
    with pytest.raises(ValueError, match="value_loss became .* training has stopped"):
        Runner(program).run()
    runner = Runner(program, raise_troubles=False)
    runner.run()
    assert list(runner.troubles) == [1]
    assert runner.taken == 6


MANY = tiny(num_envs=64, costs={"buffer_steps": 2048})


def observed(cost, bias, reward_per_step=1.0):
    class Paying(Counter):
        def step_env(self, key, state, action, params):
            observation, state, _, game_over, info = super().step_env(
                key, state, action, params
            )
            return observation, state, np.float32(reward_per_step), game_over, info

    env = termdp.observe(Paying(), termdp.Observer(cost, window=3, bias=bias))
    return env, env.default_params.replace(game_over_at=50)


@pytest.mark.parametrize(
    ("cost", "bias", "reward", "words"),
    [
        (lambda o, a: 0.0, 1.0, 1.0, "even at no cost"),
        (lambda o, a: 1.0, 3.0, 1.0, "no agent can avoid these stops"),
        (lambda o, a: 1.0 * a, 2.0, -1.0, "gains by being stopped"),
    ],
    ids=["base rate", "constant cost", "negative rewards"],
)
def test_an_observer_that_no_agent_can_please_is_warned_of_once(
    cost, bias, reward, words
):
    env, params = observed(cost, bias, reward)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        termdp.train(env, "pg", params=params, steps=64 * 64, config=MANY)
    found = [
        str(warning.message) for warning in caught if words in str(warning.message)
    ]
    assert len(found) == 1
    assert "choosing_an_observer" in found[0]


def test_a_patient_observer_needs_no_warning():
    env, params = observed(lambda o, a: 1.0 * a, 8.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        termdp.train(env, "pg", params=params, steps=64 * 64, config=MANY)


def test_a_result_shows_itself(program):
    env = termdp.observe(Counter(), termdp.Observer(action_is_cost, window=3, bias=4.0))
    result = termdp.train(env, "pg", steps=128, seeds=12, config=tiny(num_envs=2))
    lines = repr(result).splitlines()
    assert lines[0] == "Result(pg on Counter, 128 steps per seed)"
    assert len(lines) == 12 and lines[-1] == "  … and 2 more seeds"
    figure = result.plot()
    assert [axes.get_title() for axes in figure.axes] == ["return", "episodes stopped"]
    assert len(figure.axes[0].lines) == 12
    stopped = termdp.train(
        env, "pg", steps=128, config=tiny(), should_stop=lambda: True
    )
    assert repr(stopped) == "Result(pg on Counter, interrupted after 0 steps)"
