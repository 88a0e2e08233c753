"""Methods of others that need programs of their own: they train, act and come back."""

import json

import jax
import numpy as np
import pytest

import termdp
from termdp.agents.methods import METHODS
from termdp.runs import cost_features
from termdp.runs.evaluate import play_steps
from termdp.runs.program import Job, TrainProgram
from tiny_config import tiny
from tiny_envs import Counter, action_is_cost

OWN = sorted(name for name, method in METHODS.items() if method.program)
RIVALS = [name for name in OWN if not METHODS[name].recurrent]
ITERATIONS = 4


def counter():
    return termdp.observe(
        Counter(), termdp.Observer(action_is_cost, window=3, bias=4.0)
    )


def metrics_of(result):
    lines = (result.folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rivals")
    return {
        name: termdp.train(
            counter(),
            name,
            steps=32 * ITERATIONS,
            seed=3,
            config=tiny(),
            out=folder / name,
        )
        for name in RIVALS
    }


@pytest.mark.parametrize("name", RIVALS)
def test_training_is_finite_and_reports(trained, name):
    result = trained[name]
    for leaf in jax.tree.leaves((result.state.policy, result.state.shaping)):
        assert np.all(np.isfinite(leaf))
    rows = metrics_of(result)
    assert len(rows) == ITERATIONS
    assert ("multiplier" in rows[-1]) == METHODS[name].constrained
    assert ("cost_loss" in rows[-1]) == METHODS[name].learns_costs


@pytest.mark.parametrize("name", RIVALS)
def test_agents_are_saved_loaded_and_evaluated(trained, name, tmp_path):
    result, env = trained[name], counter()
    agents = [
        result.agent(),
        termdp.load(result.folder),
        termdp.load(result.agent().save(tmp_path / "agent.safetensors")),
    ]
    observations = np.ones((4, 2), np.float32)
    chances, actions = [], []
    for agent in agents:
        chosen, state = agent.predict(observations, deterministic=True)
        chosen, state = agent.predict(observations, state, deterministic=True)
        actions.append(chosen)
        chances.append(agent.stop_probability(observations, chosen, state))
    np.testing.assert_array_equal(actions[0], actions[1])
    np.testing.assert_array_equal(actions[0], actions[2])
    if METHODS[name].learns_costs:
        assert np.all((chances[0] > 0) & (chances[0] < 1))
        np.testing.assert_allclose(chances[0], chances[1], rtol=1e-6)
        np.testing.assert_allclose(chances[0], chances[2], rtol=1e-6)
    else:
        assert chances == [None, None, None]
    found = termdp.evaluate(agents[2], env=env, episodes=4)
    assert np.all(np.isfinite(found.returns))


@pytest.mark.parametrize("name", ["ct", "traces"])
def test_what_is_seen_while_playing_is_what_the_rollout_says(trained, name):
    agent, env = trained[name].agent(), counter()
    played = play_steps(agent, env, env.default_params, jax.random.key(3), 4, 40)
    assert np.any(np.asarray(played.stopped)[:-1])
    fresh, _ = cost_features.of_rollout(
        agent.mind.method_params,
        agent.mind.costs,
        agent.initial_state(4).recent_costs,
        played.inputs.observation,
        played.actions,
        played.starts,
        played.ended[-1],
    )
    logits = np.asarray(fresh.accumulated.logit)[:-1]
    bias = float(fresh.bias)
    # Before step t + 1 the policy sees what was after step t, or nothing at a start.
    logits = np.where(played.starts[1:], -bias, logits)
    seen = np.asarray(played.inputs.cost)[1:]
    np.testing.assert_allclose(5 * seen[..., 0], logits + bias, rtol=1e-4, atol=1e-4)
    chances = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(seen[..., 1], chances, rtol=1e-4, atol=1e-5)
    assert np.ptp(seen[..., 0]) > 0


def test_rift_is_observed_after_a_quarter_of_its_steps(trained):
    rows = metrics_of(trained["rift"])
    stops = [(row["stop_rate"] or 0.0) > 0 for row in rows]
    assert stops == [False, True, True, True]
    state = trained["rift"].state
    assert np.all(state.shaping.observed)
    reference = jax.tree.leaves(state.shaping.reference)
    now = jax.tree.leaves(state.policy.params)
    assert any(np.any(a != b) for a, b in zip(reference, now, strict=True))


def test_settings_of_another_memory_are_refused():
    env = counter()
    job = Job(env, env.default_params, (METHODS["ct"],), (0,), tiny(), 2)
    with pytest.raises(ValueError, match="cost memory 'sum', got 'window'"):
        TrainProgram(job)
    with pytest.raises(ValueError, match="one kind of program .* gru, sum"):
        methods = (METHODS["ct"], METHODS["traces"])
        TrainProgram(Job(env, env.default_params, methods, (0, 1), tiny(), 2))
