"""TermPG in Stable-Baselines3: what the policy sees, how values discount, SB3's ways."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import termdp
from termdp.costs import ensemble
from termdp.sb3 import AccumulatedCost, TermPG
from termdp.sb3.accumulated_cost import ends, find, with_cost, without_cost
from termdp.sb3.termpg import fill_advantages

pytestmark = pytest.mark.slow

WINDOW, GAMMA, LAMBDA = 3, 0.9, 0.8
SIZES = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "device": "cpu", "seed": 0}
NUMBERS = {
    "window": WINDOW,
    "gamma": GAMMA,
    "gae_lambda": LAMBDA,
    "policy_kwargs": {"net_arch": [8]},
    "cost_kwargs": {"hidden": 4, "segment_length": 16, "num_steps": 2},
    **SIZES,
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Walk(gymnasium.Env):
    """Random places; ends by itself now and then, and after 8 steps in any case."""

    def __init__(self, actions=None):
        self.observation_space = spaces.Box(-5.0, 5.0, (2,))
        self.action_space = actions or spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._look(), {}

    def step(self, action):
        self.steps += 1
        over = self.np_random.random() < 0.05
        return self._look(), self.np_random.normal(), over, self.steps >= 8, {}

    def _look(self):
        return self.np_random.normal(size=2).astype(np.float32).clip(-5, 5)


def cost(observation, action):
    return float(np.sum(action)) + 0.3 * observation[0]


OBSERVER = termdp.Observer(cost, window=WINDOW, bias=3.5)


def watched(actions=None):
    return Monitor(termdp.gym.ObserverWrapper(Walk(actions), OBSERVER))


def copies(count=3):
    return DummyVecEnv([watched] * count)


class Listener(BaseCallback):
    """Keeps what SB3 and TermPG made of each rollout."""

    def __init__(self):
        super().__init__()
        self.rollouts = []

    def _on_rollout_start(self):
        self.steps = []

    def _on_step(self):
        names = self.locals
        kept = ("clipped_actions", "dones", "infos", "new_obs")
        step = {name: names[name] for name in kept}
        self.steps.append(step | {"rewards": names["rewards"].copy()})
        return True

    def _on_rollout_end(self):
        buffer = self.locals["rollout_buffer"]
        with torch.no_grad():
            last = self.model.policy.predict_values(
                torch.as_tensor(self.locals["new_obs"])
            )
        self.rollouts.append(
            {
                "steps": self.steps,
                "seen": buffer.observations.copy(),
                "values": buffer.values.copy(),
                "advantages": buffer.advantages.copy(),
                "returns": buffer.returns.copy(),
                "last": last.numpy().ravel(),
                "costs": self.model.cost_learner.costs,
                "values_of": {
                    (t, i): self._value(step["infos"][i]["terminal_observation"])
                    for t, step in enumerate(self.steps)
                    for i in np.flatnonzero(step["dones"])
                },
            }
        )

    def _value(self, observation):
        with torch.no_grad():
            found = self.model.policy.predict_values(torch.as_tensor(observation)[None])
        return found.item()


@pytest.fixture(scope="module")
def trained():
    """Three rollouts of three environments, listened to."""
    listener = Listener()
    model = TermPG("MlpPolicy", copies(), **NUMBERS)
    before = model.cost_learner.costs
    model.learn(3 * 16 * 3, callback=listener)
    return model, before, listener.rollouts


def mean_costs(costs, rollout):
    """What networks say of the steps of a rollout, `[T, B]`: their mean."""
    actions = np.stack([step["clipped_actions"] for step in rollout["steps"]])
    members = ensemble.member_costs(costs, rollout["seen"][..., :2], actions)
    return np.asarray(members).mean(0)


def episodes_of(rollouts):
    """For each rollout, step and environment: (rollout, step) of its episode so far."""
    paths, found = [[] for _ in range(3)], []
    for r, rollout in enumerate(rollouts):
        found.append([])
        for t, step in enumerate(rollout["steps"]):
            for path in paths:
                path.append((r, t))
            found[-1].append([list(path) for path in paths])
            paths = [
                [] if over else path
                for path, over in zip(paths, step["dones"], strict=True)
            ]
    return found


def test_the_policy_sees_the_costs_of_the_steps_before(trained):
    """C of steps 1 … t−1 of the episode, of the networks that were there."""
    _, before, rollouts = trained
    episodes, starts = episodes_of(rollouts), 0
    networks = [before, *(rollout["costs"] for rollout in rollouts)]
    for r, rollout in enumerate(rollouts):
        costs = {a: mean_costs(networks[r], rollouts[a]) for a in (r - 1, r) if a >= 0}
        bias = float(ensemble.biases(networks[r]).mean())
        for t in range(16):
            for i in range(3):
                past = episodes[r][t][i][:-1][-WINDOW:]
                C = sum(costs[a][b, i] for a, b in past)
                shown = rollout["seen"][t, i, 2:]
                assert shown[0] == pytest.approx(C / 5, abs=1e-5)
                assert shown[1] == pytest.approx(1 / (1 + np.exp(bias - C)), abs=1e-5)
                assert past or shown[0] == 0
                starts += not past
    assert starts > 3


def test_advantages_follow_the_termination_bellman_equation(trained):
    """γ_t with C after step t, by the fresh networks; a stop bootstraps, a crash not.

    Costs of steps before the rollout are as the rollout before left them.
    """
    _, _, rollouts = trained
    episodes, kinds = episodes_of(rollouts), {"stopped": 0, "game_over": 0, "cut": 0}
    costs = [mean_costs(rollout["costs"], rollout) for rollout in rollouts]
    for r, rollout in enumerate(rollouts):
        bias = float(ensemble.biases(rollout["costs"]).mean())
        later = np.zeros(3)
        for t in reversed(range(16)):
            step = rollout["steps"][t]
            for i in range(3):
                C = sum(costs[a][b, i] for a, b in episodes[r][t][i][-WINDOW:])
                discount = GAMMA / (1 + np.exp(C - bias))
                following = (
                    rollout["last"][i] if t == 15 else rollout["values"][t + 1, i]
                )
                if step["dones"][i]:
                    info = step["infos"][i]
                    kind = "stopped" if info["stopped"] else "cut"
                    kinds["game_over" if info["game_over"] else kind] += 1
                    following = rollout["values_of"][t, i]
                    discount = 0.0 if info["game_over"] else discount
                    later[i] = 0.0
                value = rollout["values"][t, i]
                delta = step["rewards"][i] + discount * following - value
                later[i] = delta + discount * LAMBDA * later[i]
                assert rollout["advantages"][t, i] == pytest.approx(later[i], abs=1e-5)
                expected = later[i] + value
                assert rollout["returns"][t, i] == pytest.approx(expected, abs=1e-5)
    assert min(kinds.values()) > 0, kinds


def test_the_state_that_would_have_followed_has_its_cost(trained):
    """A stop's last observation shows C after the stopped step."""
    _, before, rollouts = trained
    episodes, checked = episodes_of(rollouts), 0
    costs = mean_costs(before, rollouts[0])
    for t, step in enumerate(rollouts[0]["steps"]):
        for i in np.flatnonzero(step["dones"]):
            C = sum(costs[b, i] for _, b in episodes[0][t][i][-WINDOW:])
            last = step["infos"][i]["terminal_observation"]
            assert last[2] == pytest.approx(C / 5, abs=1e-5)
            assert step["new_obs"][i, 2] == 0
            checked += 1
    assert checked > 2


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_its_advantages_are_termdps(data):
    """On any values, rewards, discounts and ends."""
    seed = data.draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    shape = (6, 2)
    buffer = RolloutBuffer(
        6, spaces.Box(-1, 1, (1,)), spaces.Discrete(2), "cpu", LAMBDA, GAMMA, 2
    )
    buffer.values = rng.normal(size=shape).astype(np.float32)
    rewards = rng.normal(size=shape).astype(np.float32)
    following = rng.normal(size=shape).astype(np.float32)
    ended = rng.random(shape) < data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    discounts = rng.random(shape) * (rng.random(shape) < 0.8)
    fill_advantages(buffer, rewards, following, discounts, ended)
    expected = termdp.gae(
        rewards, buffer.values, following, discounts.astype(np.float32), ended, LAMBDA
    )
    np.testing.assert_allclose(buffer.advantages, expected, atol=1e-5)
    later = np.zeros(2)
    for t in reversed(range(6)):
        delta = rewards[t] + discounts[t] * following[t] - buffer.values[t]
        later = delta + discounts[t] * LAMBDA * np.where(ended[t], 0, later)
        np.testing.assert_allclose(buffer.advantages[t], later, atol=1e-5)
    np.testing.assert_allclose(buffer.returns, buffer.advantages + buffer.values)


def test_ends_are_never_mixed():
    infos = [
        {"stopped": True, "TimeLimit.truncated": True},
        {"stopped": True, "game_over": True},
        {"TimeLimit.truncated": True},
        {},
        {"stopped": True},
    ]
    stopped, game_over = ends(np.array([True] * 4 + [False]), infos)
    assert stopped.tolist() == [True, False, False, False, False]
    assert game_over.tolist() == [False, True, False, True, False]


def test_saved_and_loaded_it_is_the_same_and_learns_on(trained, tmp_path):
    model, _, _ = trained
    model.save(tmp_path / "model")
    again = TermPG.load(tmp_path / "model.zip", env=copies(), device="cpu")
    assert (again.window, again.optimism) == (WINDOW, "mean")
    seen = [one.wrap(watched()).reset(seed=1)[0] for one in (model, again)]
    np.testing.assert_array_equal(*seen)
    first, second = (one.get_parameters()["cost_learner"] for one in (model, again))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert (
        model.predict(seen[0], deterministic=True)[0]
        == (again.predict(seen[0], deterministic=True)[0])
    )
    again.learn(48, reset_num_timesteps=False)
    assert again.num_timesteps == model.num_timesteps + 48
    third = again.get_parameters()["cost_learner"]
    assert any(not torch.equal(third[name], second[name]) for name in second)
    alone = TermPG.load(tmp_path / "model.zip", device="cpu")  # only to predict
    assert alone.predict(seen[0])[0] in (0, 1)


def test_it_is_evaluated_as_sb3_does(trained):
    model, _, _ = trained
    returns, lengths = evaluate_policy(
        model, model.get_env(), 6, return_episode_rewards=True
    )
    assert len(returns) == 6 and max(lengths) <= 8
    env = model.wrap(DummyVecEnv([watched]))
    assert evaluate_policy(model, env, 3)[1] >= 0
    single = model.wrap(watched())
    observation, _ = single.reset(seed=0)
    assert single.observation_space.contains(observation)
    state = None
    for _ in range(3):
        action, state = model.predict(observation, state, deterministic=True)
        observation, _, terminated, truncated, info = single.step(action)
        assert observation.shape == (4,) and "stopped" in info
        if terminated or truncated:
            break


def test_one_environment_and_many_show_the_same(trained):
    model, _, _ = trained
    single, many = model.wrap(watched()), model.wrap(DummyVecEnv([watched]))
    many.seed(5)
    first, second = single.reset(seed=5)[0], many.reset()[0]
    for action in (1, 0, 1):
        np.testing.assert_allclose(first, second, atol=1e-6)
        first, _, terminated, truncated, _ = single.step(action)
        second, _, ended, infos = many.step(np.array([action]))
        second = infos[0]["terminal_observation"] if ended[0] else second[0]
        assert ended[0] == (terminated or truncated)
        if ended[0]:
            break
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_callbacks_of_all_kinds():
    model = TermPG("MlpPolicy", copies(), **NUMBERS)
    called = []
    model.learn(48, callback=lambda names, _: called.append(names["n_steps"]) or True)
    assert len(called) == 16
    checked = EvalCallback(model.wrap(DummyVecEnv([watched])), None, None, 2, 8)
    listener = Listener()
    model.learn(96, callback=[listener, checked], reset_num_timesteps=False)
    assert len(listener.rollouts) == 2 and checked.last_mean_reward != 0
    model.learn(64, callback=lambda names, _: False)
    assert model.num_timesteps == 3  # a callback may end training at any step


def test_another_environment_takes_over():
    model = TermPG("MlpPolicy", copies(), **NUMBERS)
    model.learn(48)
    model.set_env(copies())
    assert find(model.get_env()).learner is model.cost_learner
    model.learn(48)


def test_normalised_observations_from_within_and_without():
    inside = TermPG("MlpPolicy", VecNormalize(copies()), **NUMBERS).learn(48)
    assert isinstance(inside.get_env(), AccumulatedCost)
    outside = VecNormalize(AccumulatedCost(copies()))
    model = TermPG("MlpPolicy", outside, **NUMBERS).learn(48)
    assert model.get_env() is outside and model.get_vec_normalize_env() is outside


def test_continuous_actions():
    space = spaces.Box(-1.0, 1.0, (2,))
    model = TermPG("MlpPolicy", watched(space), **NUMBERS).learn(32)
    action, _ = model.predict(model.get_env().reset())
    assert action.shape == (1, 2)


@pytest.mark.parametrize("shape", [(3,), (4, 4, 2)])
def test_spaces_with_costs_and_without(shape):
    space = spaces.Box(-1.0, 2.0, shape)
    both = with_cost(space)
    assert without_cost(both) == space
    assert isinstance(both, spaces.Dict) == (len(shape) == 3)
    if len(shape) == 1:
        assert both.high.tolist() == [2.0, 2.0, 2.0, np.inf, 1.0]


def test_no_word_of_stops_is_said_once():
    model = TermPG("MlpPolicy", DummyVecEnv([lambda: Monitor(Walk())] * 3), **NUMBERS)
    with pytest.warns(UserWarning, match=r"expected info\['stopped'\]") as found:
        model.learn(96)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"window": 0}, "window of at least 1"),
        ({"optimism": "max"}, "optimism to be one of"),
        ({"cost_kwargs": {"hiddens": 3}}, "'hiddens'.*did you mean hidden"),
        ({"cost_kwargs": {"hidden": 0}}, "hidden to be a whole number"),
    ],
    ids=["window", "optimism", "name", "number"],
)
def test_bad_numbers_are_refused(changes, expected):
    with pytest.raises(ValueError, match=expected):
        TermPG("MlpPolicy", watched(), **NUMBERS | changes)


def test_observations_that_costs_cannot_take_are_refused():
    game = gymnasium.wrappers.TransformObservation(
        Walk(),
        lambda seen: {"place": seen},
        spaces.Dict({"place": Walk().observation_space}),
    )
    with pytest.raises(ValueError, match="observations that are a Box"):
        TermPG("MultiInputPolicy", game, **NUMBERS)
    with pytest.raises(ValueError, match=r"use model.wrap\(env\)"):
        AccumulatedCost(copies()).reset()
    model = TermPG("MlpPolicy", watched(), **NUMBERS)
    with pytest.raises(ValueError, match="Gymnasium environment or a VecEnv"):
        model.wrap("CartPole-v1")
