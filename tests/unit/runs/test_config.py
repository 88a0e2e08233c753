"""The two presets, against the numbers of the paper."""

import inspect
import typing

import pytest

import termdp
from termdp.agents.a2c import A2CConfig
from termdp.agents.methods import Method
from termdp.cli.train import TYPES
from termdp.runs.config import (
    GROUPS,
    NUMBERS,
    TrainConfig,
    flat_numbers,
    make_config,
    network_kind,
    split_numbers,
)
from termdp.runs.numbers import Numbers
from termdp.runs.spec import RunSpec, make_env


def test_paper_preset_is_the_papers():
    config = make_config("paper", (10, 10, 4), 30)
    assert config.rollout_size == 1024
    assert config.num_envs == 8
    assert config.rollout_size // config.algorithm.num_minibatches == 32
    assert config.algorithm.num_epochs == 3
    assert config.algorithm.learning_rate == 5e-5
    assert config.gae_lambda == 1.0
    assert config.network == config.costs.network == "image"
    assert (config.algorithm.kl_coef, config.algorithm.kl_target) == (0.2, 0.01)
    assert (config.algorithm.clip, config.algorithm.value_clip) == (0.3, 10.0)
    assert (config.algorithm.value_coef, config.algorithm.entropy_coef) == (1.0, 0.0)
    assert (config.costs.members, config.costs.num_steps) == (3, 30)
    assert config.costs.segments_per_step == 1
    assert config.costs.learning_rate == 1e-3
    assert (config.costs.buffer_episodes, config.costs.buffer_steps) == (1000, 131_072)
    # Cross entropy and Adam, nothing else.
    assert (config.costs.weight_decay, config.costs.sparsity) == (0.0, 0.0)
    assert (config.costs.averaging, config.costs.rate_decay_steps) == (0.0, None)


@pytest.mark.parametrize("shape", [(7,), (10, 10, 4)])
def test_the_rate_of_costs_falls_for_vectors_under_fast_alone(shape):
    is_vector = len(shape) == 1
    fast = make_config("fast", shape, 30).costs
    paper = make_config("paper", shape, 30).costs
    assert (fast.rate_decay_steps is not None) == is_vector
    assert paper.rate_decay_steps is None


@pytest.mark.parametrize(
    ("shape", "fast", "paper"),
    [
        ((7,), "vector", "vector"),
        ((10, 10, 4), "grid", "image"),
        ((42, 42, 12), "image", "image"),
    ],
)
def test_observations_choose_the_network(shape, fast, paper):
    for preset, kind in (("fast", fast), ("paper", paper)):
        config = make_config(preset, shape, 30)
        assert config.network == config.costs.network == kind


@pytest.mark.parametrize("window", [1, 30, 70, 200])
def test_segments_hold_the_longest_window_and_more(window):
    for preset in ("fast", "paper"):
        config = make_config(preset, (5,), window)
        assert config.costs.segment_length >= 2 * window
        config.costs.check_window(window)


def test_bad_words_and_shapes_are_named():
    with pytest.raises(ValueError, match=r"a preset \(fast, paper\), got 'slow'"):
        make_config("slow", (5,), 30)
    with pytest.raises(ValueError, match=r"vectors .* got shape \(3, 4\)"):
        network_kind((3, 4))


@pytest.mark.parametrize(("preset", "most"), [("fast", 1024), ("paper", 8192)])
def test_a_window_that_the_buffer_cannot_hold_is_named(preset, most):
    config = make_config(preset, (5,), most)
    assert config.costs.segment_length == 2 * most
    for window in (most + 1, 10**12):
        with pytest.raises(
            ValueError, match=f"window of at most {most} steps.*{window}"
        ):
            make_config(preset, (5,), window)


@pytest.mark.parametrize(
    ("preset", "env", "shape"),
    [
        ("paper", "backseat", (42, 42, 12)),
        ("paper", "backseat_passenger", (42, 42, 12)),
        ("paper", "breakout", (10, 10, 4)),
    ],
)
def test_the_paper_sees_backseat_driver_as_a_picture(preset, env, shape):
    made, params = make_env(RunSpec(env, preset=preset))
    assert made.observation_space(params).shape == shape
    plain, params = make_env(RunSpec(env))
    assert plain.observation_space(params).shape != (42, 42, 12)


def test_every_number_has_one_name_and_a_sentence():
    groups = [set(group) for group in GROUPS.values()]
    assert sum(map(len, groups)) == len(set.union(*groups)) == len(NUMBERS)
    for name, field in NUMBERS.items():
        assert field.metadata["about"].endswith("."), name


def test_typed_keywords_are_the_numbers():
    observers = {"window", "bias", "background", "delay", "leak"}
    found = typing.get_type_hints(Numbers)
    assert set(found) == set(NUMBERS) | observers
    for name in NUMBERS:
        assert found[name] == TYPES[name], name


def test_notebooks_complete_every_number():
    assert set(NUMBERS) <= set(inspect.signature(termdp.train).parameters)


def test_a_users_number_wins_over_the_preset_and_the_kind_of_observation():
    config = make_config("fast", (7,), 30, numbers={"hidden": 5, "cost_hidden": 6})
    assert (config.hidden, config.costs.hidden) == (5, 6)
    assert make_config("fast", (7,), 30).hidden == 64


def test_flat_numbers_make_the_same_config_again():
    config = make_config("paper", (10, 10, 4), 30, numbers={"clip": 0.1})
    flat = flat_numbers(Method(), config)
    assert set(flat) == set(NUMBERS)
    assert make_config("fast", (10, 10, 4), 30, numbers=flat) == config


def test_a2c_takes_its_own_numbers_only():
    config = make_config("fast", (7,), 1, "a2c", {"entropy_coef": 0.2})
    assert config.algorithm == A2CConfig(entropy_coef=0.2)
    with pytest.raises(ValueError, match="numbers of a2c, got num_epochs"):
        make_config("fast", (7,), 1, "a2c", {"num_epochs": 3})
    with pytest.raises(ValueError, match=r"algorithm \(ppo, a2c\), got 'dqn'"):
        make_config("fast", (7,), 1, "dqn")


@pytest.mark.parametrize("name", ["optimizm", "learning_rat", "cost_membrs", "baias"])
def test_a_misspelt_number_is_answered_with_the_nearest_known(name):
    near = {"optimizm": "optimism", "baias": "bias", "cost_membrs": "cost_members"}
    with pytest.raises(
        ValueError, match=f"did you mean .*{near.get(name, 'learning')}"
    ):
        split_numbers({name: 1}, ["bias", "window", "width"])


def test_numbers_are_sorted_into_the_runs_and_the_environments():
    found = split_numbers({"bias": 2, "clip": 0.1, "stop_handling": "cut"}, ["bias"])
    assert found == ({"clip": 0.1, "end_handling": "cut"}, {"bias": 2})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("learning_rate", -1, "a number above 0"),
        ("learning_rate", float("nan"), "a number above 0"),
        ("learning_rate", "fast", "a number above 0"),
        ("num_envs", 0, "a whole number of at least 1"),
        ("num_envs", 2.5, "a whole number"),
        ("num_envs", True, "a whole number"),
        ("gae_lambda", 1.5, "at least 0 and at most 1"),
        ("network", "transformer", "one of auto, grid, image, vector"),
        ("anneal", 1, "true or false"),
        ("cost_members", 0, "at least 1"),
        ("cost_averaging", 1.0, "at least 0 and below 1"),
        ("cost_draw", "all", "one of segments, trajectories"),
    ],
)
def test_impossible_numbers_are_refused_in_one_sentence(name, value, words):
    with pytest.raises(ValueError, match=f"expected .* {words}.*, got") as found:
        make_config("fast", (7,), 1, numbers={name: value})
    assert "\n" not in str(found.value)


def test_steps_below_one_rollout_are_named():
    config = TrainConfig(num_envs=4, rollout_steps=8)
    assert config.num_iterations(32) == 1
    assert config.num_iterations(127) == 3
    with pytest.raises(ValueError, match=r"at least one rollout \(32 .*got 31"):
        config.num_iterations(31)


def test_more_updates_than_can_be_counted_are_refused():
    config = TrainConfig()
    with pytest.raises(ValueError, match="at most 68,719,474,688"):
        config.num_iterations(99_999_999_999_999)
