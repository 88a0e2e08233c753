"""An agent acts as it did in training, needs nothing else, and comes back from files."""

import json
import subprocess
import sys

import jax
import numpy as np
import pytest

import termdp
from termdp.runs.agent import card_from_plain
from termdp.runs.evaluate import play_steps
from tiny_config import tiny
from tiny_envs import Counter, action_is_cost

pytestmark = pytest.mark.slow

CONFIG = tiny(lstm_size=4)


def counter():
    return termdp.observe(
        Counter(), termdp.Observer(action_is_cost, window=3, bias=4.0)
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Runs of several methods, each in a folder."""
    folder = tmp_path_factory.mktemp("agents")
    return {
        method: termdp.train(
            counter(),
            method,
            steps=64,
            seeds=2,
            seed=5,
            config=CONFIG,
            out=folder / method,
        )
        for method in ("pg", "termpg", "pg_recurrent", "oracle")
    }


def walk(agent, observations, starts, **options):
    """Actions and stop probabilities, one step of a batch after the other."""
    state, actions, chances = None, [], []
    for observation, start in zip(observations, starts, strict=True):
        chosen, after = agent.predict(observation, state, start, **options)
        if state is None:
            state = agent.initial_state(len(observation))
        chances.append(agent.stop_probability(observation, chosen, state))
        actions.append(chosen)
        state = after
    return np.array(actions), chances


@pytest.mark.parametrize("method", ["pg", "termpg", "pg_recurrent"])
def test_it_decides_as_the_rollout_did(trained, method):
    """With the observations of a rollout, the most probable actions are the same."""
    agent = trained[method].agent()
    env = counter()
    played = play_steps(agent, env, env.default_params, jax.random.key(3), 4, 20)
    likely = np.argmax(np.asarray(played.dist_params), axis=-1)
    # What it remembers depends on what was done, so it is shown what was done.
    state = agent.initial_state(4)
    for t in range(20):
        observation = np.asarray(played.inputs.observation[t])
        start = np.asarray(played.starts[t])
        chosen, _ = agent.predict(observation, state, start, deterministic=True)
        np.testing.assert_array_equal(chosen, likely[t])
        state = follow(agent, observation, state, start, np.asarray(played.actions[t]))


def follow(agent, observation, state, start, actions):
    """The state after doing `actions` instead of one's own."""
    _, after = agent.predict(observation, state, start, deterministic=True)
    if after.recent_costs is None:
        return after
    from termdp.runs import cost_features

    mind = agent.mind
    newest = cost_features.channel_costs(
        mind.method_params, mind.costs, observation, actions
    )
    before = np.where(start, 0.0, np.asarray(state.recent_costs))
    return after.replace(recent_costs=cost_features.remember(before, newest))


def test_stop_probability_by_hand(trained):
    agent = trained["termpg"].agent(5)
    costs, window = agent.mind.costs, 3
    observations = np.array([[[t, 0.0]] for t in range(6)], np.float32)
    starts = [[True], [False], [False], [False], [True], [False]]
    actions, chances = walk(agent, observations, starts, deterministic=True)
    from termdp.costs import ensemble

    each = [
        np.asarray(ensemble.member_costs(costs, o, a)).mean(axis=0)[0]
        for o, a in zip(observations, actions, strict=True)
    ]
    bias = float(np.mean(ensemble.biases(costs)))
    began = 0
    for t, start in enumerate(starts):
        if start[0]:
            began = t
            continue  # stop_probability is told of the state, not of the start
        total = sum(each[max(began, t - window + 1) : t + 1])
        assert chances[t][0] == pytest.approx(1 / (1 + np.exp(bias - total)), rel=1e-4)


def test_methods_without_costs_know_no_probability(trained):
    agent = trained["pg"].agent()
    assert agent.stop_probability(np.zeros(2, np.float32), 0) is None


def test_one_observation_or_a_batch(trained):
    agent = trained["termpg"].agent()
    action, state = agent.predict(np.zeros(2, np.float32))
    assert isinstance(action, int)
    assert isinstance(agent.stop_probability(np.zeros(2), 1, state), float)
    actions, _ = agent.predict(np.zeros((3, 2), np.float32))
    assert actions.shape == (3,)
    with pytest.raises(
        ValueError, match=r"shape \(2,\) or a batch of them, got \(5,\)"
    ):
        agent.predict(np.zeros(5))


def test_draws_repeat_with_the_seed_and_vary_otherwise(trained):
    agent = trained["pg"].agent()
    observation = np.zeros((64, 2), np.float32)
    agent.reseed(3)
    first = agent.predict(observation)[0]
    second = agent.predict(observation)[0]
    agent.reseed(3)
    np.testing.assert_array_equal(agent.predict(observation)[0], first)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("method", ["pg", "termpg", "pg_recurrent"])
def test_a_saved_agent_is_the_agent(trained, method, tmp_path):
    result = trained[method]
    agent = result.agent(6)
    again = termdp.load(agent.save(tmp_path / "a.safetensors"))
    from_run = termdp.load(result.folder, seed=6)
    assert again.card == agent.card == from_run.card
    observations = np.random.default_rng(0).normal(size=(8, 4, 2)).astype(np.float32)
    starts = [[True] * 4] + [[False] * 4] * 7
    expected = walk(agent, observations, starts, deterministic=True)
    for other in (again, from_run):
        actions, chances = walk(other, observations, starts, deterministic=True)
        np.testing.assert_array_equal(actions, expected[0])
        if method == "termpg":
            np.testing.assert_array_equal(chances, expected[1])


def test_the_best_seed_is_meant_unless_one_is_named(trained):
    result = trained["pg"]
    returns = {row["seed"]: row["return_mean"] for row in result.summary["seeds"]}
    best = max(returns, key=returns.get)
    assert result.agent().card.spec.seed == best
    assert termdp.load(result.folder).card.spec.seed == best
    assert termdp.load(result.folder).card.return_mean == pytest.approx(returns[best])
    for load in (result.agent, lambda seed: termdp.load(result.folder, seed)):
        with pytest.raises(ValueError, match=r"a seed of .*\(5, 6\), got 7"):
            load(7)


def test_the_oracle_cannot_act_without_the_observer(trained):
    with pytest.raises(ValueError, match=r"true costs\. Use termdp.evaluate"):
        trained["oracle"].agent().predict(np.zeros(2, np.float32))


def test_loading_needs_neither_environment_nor_observer(trained):
    code = f"""
import numpy as np, termdp
agent = termdp.load({str(trained["termpg"].folder)!r})
action, state = agent.predict(np.zeros(2, np.float32), deterministic=True)
print(action, agent.stop_probability(np.zeros(2, np.float32), action))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    action, chance = done.stdout.split()
    agent = termdp.load(trained["termpg"].folder)
    expected, _ = agent.predict(np.zeros(2, np.float32), deterministic=True)
    assert int(action) == expected
    assert 0 < float(chance) < 1


def test_a_card_survives_json_and_damage_is_named(trained):
    card = trained["termpg"].agent().card
    plain = json.loads(json.dumps(card.to_plain()))
    assert card_from_plain(plain) == card
    for damaged in (
        {},
        plain | {"window": "long"},
        plain | {"costs": {"members": 0}},
        None,
    ):
        with pytest.raises(ValueError, match="expected the description of an agent"):
            card_from_plain(damaged)


def test_what_is_no_agent_is_said(tmp_path, trained):
    with pytest.raises(ValueError, match="no such file"):
        termdp.load(tmp_path / "none.safetensors")
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"not an agent")
    with pytest.raises(ValueError, match="not a safetensors file"):
        termdp.load(other)
    with pytest.raises(ValueError, match="expected the folder of a run"):
        termdp.load(tmp_path)
    from safetensors.numpy import save_file

    save_file({"x": np.zeros(2)}, other)
    with pytest.raises(ValueError, match="another kind"):
        termdp.load(other)


def test_repr_fits_one_line(trained):
    text = repr(trained["pg"].agent(5))
    assert text.startswith("Agent(pg on Counter, seed 5, return ")
    assert len(text) < 120 and "\n" not in text


def test_stable_baselines_evaluates_it(trained):
    import gymnasium
    from stable_baselines3.common import evaluation

    class Board(gymnasium.Env):
        """The counter as a Gymnasium environment: ten steps of reward 1."""

        observation_space = gymnasium.spaces.Box(-99.0, 99.0, (2,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.time, self.total = 0, 0
            return np.zeros(2, np.float32), {}

        def step(self, action):
            self.time, self.total = self.time + 1, self.total + int(action)
            observation = np.array([self.time, self.total], np.float32)
            return observation, 1.0, self.time >= 10, False, {}

    from stable_baselines3.common.vec_env import DummyVecEnv

    for method in ("pg", "termpg", "pg_recurrent"):
        agent = trained[method].agent()
        mean, deviation = evaluation.evaluate_policy(agent, Board(), 4, warn=False)
        assert (mean, deviation) == (10.0, 0.0)
        several = DummyVecEnv([Board, Board])
        mean, _ = evaluation.evaluate_policy(agent, several, 4, warn=False)
        assert mean == 10.0
        found = termdp.evaluate(agent, Board(), episodes=3)
        assert (found.return_mean, found.game_over_rate) == (10.0, 1.0)
