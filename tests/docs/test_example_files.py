"""The examples run, and TermPG in one file is the package's TermPG."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import termdp
from termdp import cli
from termdp.agents import ppo
from termdp.agents.distributions import Discrete
from termdp.agents.update import Examples
from termdp.costs.ensemble import CostParams
from termdp.costs.fit import ensemble_loss
from termdp.costs.sampling import Segments

FOLDER = Path(__file__).parents[2] / "examples"
MOST_LINES = 350


def example(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def single():
    return example("termpg_single_file")


def test_one_file_can_be_read_in_one_sitting():
    text = (FOLDER / "termpg_single_file.py").read_text()
    assert len(text.splitlines()) <= MOST_LINES


def streams(seed, shape=(40, 3)):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=shape), rng.uniform(size=shape) < 0.15


@pytest.mark.slow
def test_one_file_has_the_same_advantages_and_window_sums(single):
    rng, rewards, ended = streams(0)
    values, next_values = rng.normal(size=(2, *rewards.shape))
    discounts = rng.uniform(size=rewards.shape)
    given = (rewards, values, next_values, discounts, ended, 0.8)
    np.testing.assert_allclose(single.gae(*given), termdp.gae(*given), rtol=1e-5)
    costs, starts = jnp.asarray(rewards), jnp.asarray(ended)
    expected = termdp.window_sums(costs, 7, starts)
    np.testing.assert_allclose(
        single.window_sums(costs, starts, 7), expected, rtol=1e-5, atol=1e-5
    )


@dataclass
class Given:
    """A network whose outputs are its parameters."""

    distribution: Discrete
    is_recurrent: bool = False

    @property
    def network(self):
        return self

    def apply(self, params, *inputs, method=None):
        return params["params"] if method is None else params


@pytest.mark.slow
def test_one_file_has_the_same_loss_of_the_policy(single):
    rng = np.random.default_rng(1)
    logits, old_logits = (jnp.asarray(x) for x in rng.normal(size=(2, 50, 4)))
    values, advantages, targets = (jnp.asarray(x) for x in rng.normal(size=(3, 50)))
    actions = jnp.asarray(rng.integers(0, 4, 50))
    settings = single.Settings(kl_coef=0.2)
    batch = {"logits": old_logits, "action": actions}
    batch |= {"advantage": advantages, "target": targets}
    ours = single.ppo_loss(logits, values, batch, settings)
    examples = Examples(
        inputs=None,
        starts=None,
        carry=(),
        actions=actions,
        dist_params=old_logits,
        values=values,
        advantages=advantages,
        targets=targets,
    )
    config = ppo.PPOConfig(clip=settings.clip, value_coef=settings.value_coef)
    theirs, _ = ppo.loss((logits, values), Given(Discrete(4)), examples, 0.2, config)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.slow
def test_one_file_has_the_same_loss_of_the_costs(single):
    rng, costs, starts = streams(2, (2, 64, 5))
    labels = rng.uniform(size=costs.shape) < 0.1
    weights = (rng.uniform(size=costs.shape) < 0.9).astype(np.float32)
    biases, window = np.array([1.0, 2.0]), 10
    ours = sum(
        single.cost_loss(jnp.asarray(c), b, s, y, w, window)
        for c, b, s, y, w in zip(costs, biases, starts, labels, weights, strict=True)
    )
    segments = Segments(
        obs=jnp.zeros(costs.shape),
        actions=jnp.zeros(costs.shape),
        starts=jnp.asarray(starts),
        labels=jnp.asarray(labels, jnp.float32),
        weights=jnp.asarray(weights),
        expected_steps=jnp.float32((64 - window + 1) * 5),
    )
    params = CostParams(network=jnp.asarray(costs), bias=jnp.asarray(biases))
    network = Given(Discrete(2))
    theirs, _ = ensemble_loss(params, network, segments, jnp.int32(window))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.slow
def test_one_file_learns_what_annoys_the_user(single):
    settings = single.Settings(
        num_envs=16,
        buffer_rows=160,
        minibatches=4,
        epochs=2,
        learning_rate=1e-6,
        cost_rate=1e-2,
    )
    said = []
    _, costs = single.train(16 * 32 * 40, 0, settings, every=20, say=said.append)
    assert len(said) == 2
    seen = jnp.array([0.5, 0.0, 0.0])
    quiet, sent = (float(single.cost_of(costs, seen, action)) for action in (0, 1))
    assert sent > quiet + 1.0  # in truth 4.5 and 0


def test_costs_from_logs():
    found = example("costs_from_logs").main(users=120, windows=[5, 20])
    assert found["window"] == 20
    low, high = found["costs"]["action=2"]["interval"]
    assert low < 0.9 < high


@pytest.mark.slow
def test_termcrl_on_the_chain():
    found = example("termcrl_chain").main(episodes=300)
    assert found["TermCRL"] < found["ignores stops"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*stopped.*:UserWarning")
def test_observed_cartpole():
    found = example("observed_cartpole").main(steps=2048)
    assert set(found) == {"pg", "termpg"}
    assert 0 <= found["termpg"].stop_rate <= 1


@pytest.mark.slow
def test_passenger_study(tmp_path, capsys, monkeypatch):
    study = example("passenger_study")

    def in_this_process(*words):
        cli.main([str(word) for word in words])
        return capsys.readouterr().out

    monkeypatch.setattr(study, "termdp", in_this_process)
    found = study.main(
        tmp_path / "study",
        rides=40,
        stops=20,
        steps=512,
        fitting=("--window", 10, "--gradient-steps", 3, "--max-window", 10),
        training=("--num-envs", 4, "--rollout-steps", 32, "--hidden", 8),
    )
    assert found["episodes"] == 16
    assert (tmp_path / "study" / "fit" / "index.html").exists()
