"""Training where the host steps the environment: rollouts, resume, agents."""

import json
from functools import partial

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import termdp
from scripted_env import Scripted
from termdp.agents.actor_critic import PolicyInput
from termdp.costs import ensemble
from termdp.gym.copies import Copies
from termdp.gym.source import GymnasiumSource
from termdp.runs import host_collect
from termdp.runs.advice import Adviser, ObserverWarning
from termdp.runs.collect import Mind
from termdp.runs.host_program import HostProgram
from termdp.runs.observation_scale import scaled
from termdp.runs.spec import make_job, make_spec

pytestmark = pytest.mark.slow

NUMBERS = {
    "num_envs": 3,
    "rollout_steps": 8,
    "hidden": 8,
    "num_epochs": 1,
    "num_minibatches": 2,
    "cost_hidden": 4,
    "cost_num_steps": 2,
    "cost_segments_per_step": 2,
    "cost_segment_length": 8,
    "cost_buffer_steps": 96,
    "window": 3,
}
STEPS = 24
# Stops, game overs, limits; nothing but episodes of one step at its end.
SCRIPT = (0, 2, 0, 0, 5, 1, 0, 3, 4)


def scripted():
    return Scripted(SCRIPT)


def make_program(method="termpg", steps=2 * STEPS, **numbers):
    spec = make_spec(scripted, method, numbers={**NUMBERS, **numbers}, steps=steps)
    return HostProgram(make_job(spec, env=scripted))


@pytest.fixture(scope="module")
def program():
    return make_program()


def in_mode(program, mode):
    """The program with fresh copies in another autoreset mode."""
    env = SyncVectorEnv([scripted] * 3, autoreset_mode=mode)
    program.source._copies = [Copies(env, program.source.encoding, "scripted")]
    program._standing = {}
    return program


def leaves_of(state):
    state = dataclass_with_key_data(state)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state)]


def dataclass_with_key_data(state):
    return state.replace(key=jax.random.key_data(state.key))


def test_autoreset_modes_train_to_the_same_bits(program):
    ends = []
    for mode in AutoresetMode:
        state, reports = in_mode(program, mode).advance(program.init(), 2)
        ends.append([*leaves_of(state), reports])
    for others in ends[1:]:
        for one, other in zip(ends[0], others, strict=True):
            assert np.array_equal(one, other)


@pytest.fixture(scope="module")
def rollout(program):
    """One rollout, with the state it was played from and the scale after it."""
    in_mode(program, AutoresetMode.DISABLED)
    state = program._apart(program.init())[0]
    fixed, notes, present, heard = program.collect(0, state)
    mind = Mind(state.policy.params, state.costs, program._methods[0])
    truth = np.arange(8 * 3 * 3, dtype=np.float32).reshape(8, 3, 3)
    finish = jax.jit(partial(host_collect.finish, program.recipe.learner))
    _, played = finish(
        mind, fixed.first_cost, notes, present, (), heard._replace(truth=truth)
    )
    played = jax.tree.map(np.asarray, played)
    return {"rollout": played, "scale": present.scale, "state": state, "truth": truth}


def test_rewards_and_ends_are_the_environments(rollout):
    played = rollout["rollout"]
    actions = played.actions
    times = np.arange(8)[:, None]
    assert np.array_equal(played.rewards, 10.0 * times + actions)
    for name, steps in (
        ("game_over", [5]),
        ("stopped", [1, 7]),
        ("truncated", [4]),
    ):
        assert np.flatnonzero(getattr(played, name)[:, 0]).tolist() == steps
    assert np.flatnonzero(played.starts[:, 0]).tolist() == [0, 2, 5, 6]
    assert played.episode_lengths[:, 0].tolist() == [1, 2, 1, 2, 3, 1, 1, 2]
    truth, told = played.truth, rollout["truth"]
    assert np.array_equal(truth.costs, told[:, 0])
    assert np.array_equal(truth.window_costs, told[:, 1])
    assert np.array_equal(truth.stop_probabilities, told[:, 2])


def test_values_after_an_end_are_those_of_the_true_last_observation(program, rollout):
    played, state = rollout["rollout"], rollout["state"]
    network = program.recipe.learner.network

    def value(observation, cost):
        seen = scaled(rollout["scale"], observation)
        inputs = PolicyInput(seen[None], cost[None])
        return float(network.apply(state.policy.params, (), inputs)[1][1][0])

    # Step 4 is a limit: what follows in the game is (5, episode 1, its step 3).
    last = np.array([5.0, 1.0, 3.0], np.float32)
    features = cost_features_after(program, state, played, 2, 4)
    assert played.next_values[4, 0] == pytest.approx(value(last, features), abs=1e-4)
    # Step 2 goes on: what follows is what the agent saw next.
    assert played.next_values[2, 0] == played.values[3, 0]


def cost_features_after(program, state, played, first, last):
    """C and ρ(C − b̄) of some steps of the first copy, from its networks' costs alone."""
    costs = program._apart(program.init())[0].costs
    rows = slice(first, last + 1)
    seen, actions = played.inputs.observation[rows, 0], played.actions[rows, 0]
    each = np.asarray(ensemble.member_costs(costs, seen, actions))
    biases = np.asarray(ensemble.biases(costs))
    logit = each[:, -3:].mean(axis=0).sum() - biases.mean()
    total = logit + biases.mean()
    return np.array([total / 5.0, 1 / (1 + np.exp(-logit))], np.float32)


def test_the_policy_sees_costs_of_its_own_episode_alone(program, rollout):
    played, state = rollout["rollout"], rollout["state"]
    seen = played.inputs.cost[:, 0]
    for start in (2, 5, 6):
        assert np.array_equal(seen[start], seen[0])
    expected = cost_features_after(program, state, played, 2, 3)
    assert np.allclose(seen[4], expected, atol=1e-5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was interrupted after one iteration and resumed."""
    out = tmp_path_factory.mktemp("host") / "run"
    asked = []

    def once():
        asked.append(True)
        return len(asked) > 1

    begun = termdp.train(
        scripted, "termpg", steps=3 * STEPS, out=out, should_stop=once, **NUMBERS
    )
    assert begun.summary is None
    return out, termdp.resume(out, env=scripted)


def test_a_run_goes_on_and_tells_what_it_always_tells(run):
    out, result = run
    text = (out / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["step"] for line in lines] == [STEPS, 2 * STEPS, 3 * STEPS]
    summary = json.loads((out / "summary.json").read_text())
    assert summary == result.summary and summary["steps"] == 3 * STEPS
    (seed,) = summary["seeds"]
    assert 0 < seed["stop_rate"] < 1 and seed["bias"] is not None
    assert seed["cost_mae"] is None and seed["cost_corr"] is None
    # Counts of what was seen go on after the resume: nothing began anew.
    assert float(result.state.observation_scale.count[0]) == 3 * STEPS


def test_agents_act_on_observations_as_they_come(run, tmp_path):
    out, result = run
    agent, raw = termdp.load(out), np.array([700.0, 3.0, 2.0])
    assert agent.card.encoding.scaling == "running"
    action, state = agent.predict(raw, deterministic=True)
    assert action in (0, 1)
    assert 0 < agent.stop_probability(raw, action, state) < 1
    again = termdp.load(agent.save(tmp_path / "agent.safetensors"))
    for other in (again, result.agent()):
        assert np.array_equal(other.scale.mean, agent.scale.mean)
        assert other.stop_probability(raw, 1) == agent.stop_probability(raw, 1)
    unscaled = termdp.Agent(agent.card, agent.mind.weights, agent.mind.costs)
    assert unscaled.stop_probability(raw, 1) != agent.stop_probability(raw, 1)


def test_evaluation_counts_the_three_ends(run):
    out, result = run
    for agent, env in ((result, None), (out, scripted), (out, scripted())):
        found = termdp.evaluate(agent, env, episodes=6)
        # Ends of the script in order: stopped, limit, over, stopped, over (of both).
        ends = ["stopped", "truncated", "game_over", "stopped", "game_over"]
        assert found.ends.tolist() == [*ends, "stopped"]
    with pytest.raises(ValueError, match="expected env=…"):
        termdp.evaluate(out)


class Room(gymnasium.Env):
    """Observations of a kind, rewards of 1, a limit of 5 steps by its own count."""

    def __init__(self, space, actions):
        self.observation_space, self.action_space = space, actions
        self.observation_space.seed(0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        return self.observation_space.sample(), 1.0, False, self.time == 5, {}


@pytest.mark.parametrize(
    ("space", "actions", "method"),
    [
        (
            spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-9, 9, (2, 2))}),
            spaces.Box(-0.1, 0.1, (2,), np.float64),
            "pg",
        ),
        (
            spaces.Box(0, 255, (6, 6, 3), np.uint8),
            spaces.Discrete(2, start=3),
            "pg",
        ),
        (spaces.MultiBinary(4), spaces.Discrete(2), "pg_recurrent"),
    ],
    ids=["dict", "pixels", "recurrent"],
)
def test_kinds_of_spaces_train_and_act(space, actions, method):
    numbers = {**NUMBERS, "lstm_size": 4, "filters": 2, "num_envs": 2}
    result = termdp.train(
        lambda: Room(space, actions), method, steps=16, on_progress=False, **numbers
    )
    assert result.summary["seeds"][0]["length_mean"] == 5
    action, _ = result.agent().predict(space.sample())
    assert actions.contains(action)
    assert termdp.evaluate(result, episodes=2).truncated_rate == 1


def test_nobody_stopping_is_said_once():
    adviser = Adviser(make_program().job.params)
    reports = {"steps": np.full((2, 10), 9_000.0), "stops": np.zeros((2, 10))}
    adviser.look_for_stops(reports, is_over=False)
    reports["steps"] *= 2
    with pytest.warns(ObserverWarning, match="nobody stopped the agent in the first"):
        adviser.look_for_stops(reports, is_over=False)
    adviser.look_for_stops(reports, is_over=True)


def test_a_short_run_without_a_stop_says_so_at_its_end():
    adviser = Adviser(make_program().job.params)
    reports = {"steps": np.full((2, 10), 100.0), "stops": np.zeros((2, 10))}
    adviser.look_for_stops(reports, is_over=False)
    stopped = {**reports, "stops": np.eye(2, 10)}
    Adviser(make_program().job.params).look_for_stops(stopped, is_over=True)
    with pytest.warns(ObserverWarning, match="in the first 1,000 steps"):
        adviser.look_for_stops(reports, is_over=True)


def test_the_window_is_the_observers_unless_given():
    observer = termdp.Observer(lambda o, a: 1.0 * a, window=7, bias=2.0)
    numbers = {n: v for n, v in NUMBERS.items() if n != "window"}
    spec = make_spec(
        scripted, "pg", observer=observer, numbers=numbers, steps=STEPS, seeds=2
    )
    job = make_job(spec, env=scripted, observer=observer)
    assert job.windows == (7, 7)
    assert HostProgram(job)._has_truth


@pytest.mark.parametrize(
    ("env", "options", "sentence"),
    [
        (scripted(), {"num_envs": 2}, "give a function"),
        (scripted(), {"num_envs": 1, "seeds": 2}, "2 seeds.*give a function"),
        (SyncVectorEnv([scripted] * 3), {"num_envs": 2}, "num_envs=3"),
        (lambda: 3, {}, "makes a int"),
        (lambda: 1 / 0, {}, "raised ZeroDivisionError"),
        (scripted, {"bias": 3.0}, "no bias with a Gymnasium"),
        (scripted, {"params": {}}, "no params with a Gymnasium"),
        (scripted, {"observer": False}, "no observer=False"),
        (scripted, {"method": "oracle"}, "learns from stops alone"),
        (scripted, {"method": "rift"}, "unobserved phase"),
        (scripted, {"method": "pg_matched"}, "matched discount"),
        (scripted, {"vectorization": "async"}, "expected a number of the run"),
    ],
    ids=[
        *("copies", "seeds", "vector", "number", "error", "bias", "params", "nobody"),
        *("oracle", "rift", "matched", "async"),
    ],
)
def test_bad_input_is_one_sentence(env, options, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        termdp.train(env, steps=10_000, **options)
    assert "\n" not in str(caught.value)


def test_copies_with_other_spaces_are_refused():
    sizes = iter(range(2, 9))

    def make():
        return Room(spaces.Box(-1, 1, (next(sizes),)), spaces.Discrete(2))

    source = GymnasiumSource(make)
    with pytest.raises(ValueError, match="copies with the same spaces"):
        source.copies(0, 3)
