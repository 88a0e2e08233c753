"""The two presets, against the numbers of the paper and of SPEC."""

from types import SimpleNamespace

import pytest

from termdp.agents.ppo import PPOConfig
from termdp.runs.presets import for_preset, make_config, network_kind


def environment(*shape):
    return SimpleNamespace(
        observation_space=lambda params: SimpleNamespace(shape=shape)
    )


def test_paper_preset_is_the_papers():
    config = make_config("paper", environment(10, 10, 4), None, 30)
    assert config.rollout_size == 1024
    assert config.num_envs == 8
    assert config.rollout_size // config.ppo.num_minibatches == 32
    assert config.ppo.num_epochs == 3
    assert config.learning_rate == 5e-5
    assert config.gae_lambda == 1.0
    assert config.network == config.costs.network == "image"
    assert (config.kl_coef, config.ppo.kl_target) == (0.2, 0.01)
    assert (config.ppo.clip, config.ppo.value_clip) == (0.3, 10.0)
    assert (config.ppo.value_coef, config.ppo.entropy_coef) == (1.0, 0.0)
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
    fast = make_config("fast", environment(*shape), None, 30).costs
    paper = make_config("paper", environment(*shape), None, 30).costs
    assert (fast.rate_decay_steps is not None) == is_vector
    assert paper.rate_decay_steps is None


def test_ppo_defaults_are_specs():
    config = PPOConfig()
    assert (config.clip, config.value_clip, config.value_coef) == (0.3, 10.0, 1.0)
    assert (config.entropy_coef, config.kl_target) == (0.0, 0.01)


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
        config = make_config(preset, environment(*shape), None, 30)
        assert config.network == config.costs.network == kind


@pytest.mark.parametrize("window", [1, 30, 70, 200])
def test_segments_hold_the_longest_window_and_more(window):
    for preset in ("fast", "paper"):
        config = make_config(preset, environment(5), None, window)
        assert config.costs.segment_length >= 2 * window
        config.costs.check_window(window)


def test_bad_words_and_shapes_are_named():
    with pytest.raises(ValueError, match=r"a preset \(fast, paper\), got 'slow'"):
        make_config("slow", environment(5), None, 30)
    with pytest.raises(ValueError, match=r"vectors .* got shape \(3, 4\)"):
        network_kind((3, 4))


@pytest.mark.parametrize(("preset", "most"), [("fast", 1024), ("paper", 8192)])
def test_a_window_that_the_buffer_cannot_hold_is_named(preset, most):
    config = make_config(preset, environment(5), None, most)
    assert config.costs.segment_length == 2 * most
    for window in (most + 1, 10**12):
        with pytest.raises(
            ValueError, match=f"window of at most {most} steps.*{window}"
        ):
            make_config(preset, environment(5), None, window)


def test_the_paper_sees_backseat_driver_as_a_picture():
    assert for_preset("paper", "backseat") == {"observation": "image"}
    assert for_preset("paper", "backseat_passenger") == {"observation": "image"}
    assert for_preset("fast", "backseat") == for_preset("paper", "breakout") == {}
