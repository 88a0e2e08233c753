"""The exported graph decides as `agent.predict` does, step after step."""

import dataclasses
import json

import jax
import numpy as np
import onnx
import onnxruntime
import pytest

import termdp
from onnx_agents import random_agent
from termdp.agents.actor_critic import PolicyInput
from termdp.runs import cost_features
from termdp.runs.agent import card_from_plain
from termdp.runs.export import MANIFEST

pytestmark = pytest.mark.slow

PROMISED = ("grid", "vector", "image", "recurrent")  # docs/export.md
SMALL = {"hidden": 16, "filters": 4, "lstm_size": 8, "cost_hidden": 4}
AGENTS = {
    "grid": ("breakout", "termpg", {"numbers": SMALL}),
    "vector": ("recommender", "termpg_std", {}),
    "image": ("breakout", "termpg_paper", {"preset": "paper"}),
    "own_image": ("backseat", "pg", {"preset": "paper"}),
    "recurrent": ("backseat", "pg_recurrent", {"numbers": SMALL}),
    "logit": ("recommender", "termpg_logit", {}),
    "gru": ("notifier", "traces", {}),
    "sum": ("notifier", "ct", {}),
    "continuous": ("notifier", "termpg", {"continuous": 2}),
}


def open_graph(agent, folder):
    path = agent.to_onnx(folder / "policy.onnx")
    return onnxruntime.InferenceSession(path)


def run(session, feeds):
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def empty(session, rows):
    return {
        one.name: np.zeros((rows, *one.shape[1:]), np.float32)
        for one in session.get_inputs()
    }


def distribution(agent):
    """What the policy's network says of the actions, by the agent's own parts."""

    @jax.jit
    def found(mind, state, observations):
        nothing = np.zeros(len(observations), np.float32)
        cost = cost_features.visible_costs(
            mind.method_params, mind.costs, state.recent_costs, nothing, 0.0
        )
        seen = PolicyInput(observations, cost)
        _, (parameters, _) = agent.actor.network.apply(mind.weights, state.carry, seen)
        if agent.card.num_actions:
            return {"probabilities": jax.nn.softmax(parameters)}
        mean, deviation = agent.card.distribution.moments(parameters)
        return {"mean": mean, "deviation": deviation}

    return lambda state, observations: found(agent.mind, state, observations)


@pytest.mark.parametrize("kind", AGENTS)
def test_it_is_the_agent_step_after_step(kind, tmp_path):
    env, method, others = AGENTS[kind]
    agent = random_agent(env, method, **others)
    session, expected = open_graph(agent, tmp_path), distribution(agent)
    rng = np.random.default_rng(0)
    shape = agent.card.observation_shape
    rows = 20 if "image" in kind else 1  # large networks take their steps side by side
    feeds, state, seen = empty(session, rows), agent.initial_state(rows), []
    steps = 1000 if kind in PROMISED else 100
    for _ in range(steps // rows):
        observation = rng.normal(size=(rows, *shape))
        observation = observation > 1 if len(shape) > 1 else observation
        feeds["observation"] = observation.astype(np.float32)
        if rng.random() < 0.02:  # episodes start
            state = agent.initial_state(rows)
            feeds |= {k: 0 * v for k, v in feeds.items() if k.startswith("state_")}
        found = run(session, feeds)
        for name, value in expected(state, feeds["observation"]).items():
            np.testing.assert_allclose(found[name], value, atol=1e-5)
        action, after = agent.predict(feeds["observation"], state, deterministic=True)
        np.testing.assert_allclose(found["action"], action, atol=1e-5)
        chance = agent.stop_probability(feeds["observation"], action, state)
        assert ("stop_probability" in found) == (chance is not None)
        if chance is not None:
            np.testing.assert_allclose(found["stop_probability"], chance, atol=1e-5)
            seen.append(chance[0])
        feeds |= {k[5:]: v for k, v in found.items() if k.startswith("next_")}
        state = after
    if seen:  # the comparison means something: chances are neither 0 nor 1
        assert np.std(seen) > 0.01


def test_rows_do_not_mix_and_noise_draws(tmp_path):
    agent = random_agent("recommender", "termpg")
    session = open_graph(agent, tmp_path)
    rng = np.random.default_rng(0)
    rows = 4000
    feeds = empty(session, rows)
    feeds["observation"][:] = rng.normal(size=feeds["observation"].shape[1:])
    feeds["noise"][:] = rng.gumbel(size=feeds["noise"].shape)
    found = run(session, feeds)
    counts = np.bincount(found["action"], minlength=16) / rows
    np.testing.assert_allclose(counts, found["probabilities"][0], atol=0.03)
    alone = run(session, {name: array[5:6] for name, array in feeds.items()})
    for name, array in alone.items():
        np.testing.assert_allclose(array[0], found[name][5], atol=1e-5)
    # What is remembered is the cost of what was drawn, not of what is likeliest.
    same = found["action"] == found["action"][5]
    newest = found["next_state_costs"][:, -1, 0]
    np.testing.assert_allclose(newest[same], newest[5], atol=1e-5)
    assert np.abs(newest[~same] - newest[5]).min() > 1e-6


def test_the_layout_of_gpus_is_exported_too(tmp_path, monkeypatch):
    agent = random_agent("backseat", "termpg", numbers=SMALL)
    feeds = empty(here := open_graph(agent, tmp_path), 2)
    feeds["observation"][:] = np.random.default_rng(0).random((21, 5, 12)) < 0.2
    monkeypatch.setattr("termdp.layers.fastest_rows", lambda features: 2)
    there = open_graph(agent, tmp_path)
    for name, array in run(here, feeds).items():
        np.testing.assert_allclose(run(there, feeds)[name], array, atol=1e-5)


def test_continuous_noise_is_scaled_and_bounded(tmp_path):
    agent = random_agent("notifier", "pg", continuous=2)
    session = open_graph(agent, tmp_path)
    feeds = empty(session, 3)
    feeds["noise"] = np.array([[0, 0], [1, -0.5], [1e3, -1e3]], np.float32)
    found = run(session, feeds)
    drawn = found["mean"] + found["deviation"] * feeds["noise"]
    np.testing.assert_allclose(found["action"], np.clip(drawn, -1, 1), atol=1e-5)
    assert found["action"][2].tolist() == [1.0, -1.0]


def test_scaled_observations_and_shifted_actions(tmp_path):
    """As for agents of Gymnasium environments, which see numbers in any unit."""
    from termdp.gym.encoding import Encoding, Part
    from termdp.runs.observation_scale import ObservationScale

    agent = random_agent("recommender", "termpg")
    encoding = Encoding((Part((), (22,)),), (22,), "running", 3)
    card = dataclasses.replace(agent.card, encoding=encoding)
    rng = np.random.default_rng(0)
    mean, variance = 100 * rng.normal(size=(2, 22)).astype(np.float32)
    scale = ObservationScale(mean, np.abs(variance), np.float32(9))
    agent = termdp.Agent(card, agent.mind.weights, agent.mind.costs, scale=scale)
    session = open_graph(agent, tmp_path)
    manifest = json.loads(session.get_modelmeta().custom_metadata_map[MANIFEST])
    assert manifest["encoding"]["action_start"] == 3
    feeds, state = empty(session, 5), agent.initial_state(5)
    for _ in range(20):
        seen = mean + 10 * rng.normal(size=(5, 22))
        feeds["observation"] = seen.astype(np.float32)
        found = run(session, feeds)
        action, after = agent.predict(feeds["observation"], state, deterministic=True)
        np.testing.assert_array_equal(found["action"], action)
        chance = agent.stop_probability(feeds["observation"], action, state)
        np.testing.assert_allclose(found["stop_probability"], chance, atol=1e-5)
        feeds |= {k[5:]: v for k, v in found.items() if k.startswith("next_")}
        state = after
    assert action.min() >= 3


def test_the_file_says_what_it_is(tmp_path):
    agent = random_agent("breakout", "termpg_half_window", numbers=SMALL)
    model = onnx.load(agent.to_onnx(tmp_path / "deep" / "policy.onnx"))
    (entry,) = model.metadata_props
    assert entry.key == MANIFEST
    assert json.loads(entry.value) == {
        "version": termdp.__version__,
        "env": "breakout",
        "method": "termpg_half_window",
        "seed": 0,
        "window": 15,
        "observation_shape": [10, 10, 4],
        "observation_dtype": "bool",
        "actions": {"choices": 3},
    }
    assert [x.name for x in model.graph.input] == [
        "observation",
        "noise",
        "state_costs",
    ]


def test_low_precision_is_exported_as_float32(tmp_path):
    numbers = {**SMALL, "precision": "bfloat16", "cost_precision": "bfloat16"}
    agent = random_agent("breakout", "termpg", numbers=numbers)
    full = random_agent("breakout", "termpg", numbers=SMALL)
    graphs = [
        onnx.load(one.to_onnx(tmp_path / f"{i}.onnx")).graph
        for i, one in enumerate((agent, full))
    ]
    assert graphs[0] == graphs[1]


def test_who_needs_true_costs_is_refused(tmp_path):
    agent = random_agent("recommender", "pg")
    card = card_from_plain(agent.card.to_plain())
    method = dataclasses.replace(card.method, knows_costs=True)
    knows = termdp.Agent(
        dataclasses.replace(card, method=method), agent.mind.weights, None
    )
    with pytest.raises(ValueError, match="needs the observer's true costs"):
        knows.to_onnx(tmp_path / "oracle.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    agent = random_agent("recommender", "pg")
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "file").write_text("")
    for place in ("folder.onnx", "file/policy.onnx"):
        with pytest.raises(OSError, match=f"expected to write .*{place}"):
            agent.to_onnx(tmp_path / place)
    assert {p.name for p in tmp_path.iterdir()} == {"folder.onnx", "file"}
