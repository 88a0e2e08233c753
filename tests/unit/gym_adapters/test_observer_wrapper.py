"""The NumPy observer around single Gymnasium environments."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

import termdp
from termdp.gym import ObserverWrapper
from tiny_envs import GymCounter, action_is_cost

NEVER, AT_ONCE = 1e6, -1e6


def observed(bias=NEVER, game=None, **arguments):
    observer = termdp.Observer(action_is_cost, bias=bias, **{"window": 3} | arguments)
    return ObserverWrapper(game or GymCounter(), observer)


def test_costs_by_hand():
    env = observed()
    env.reset(seed=0)
    seen = [env.step(action)[-1] for action in (1, 2, 0, 1, 1)]
    assert [info["cost"] for info in seen] == [1, 2, 0, 1, 1]
    assert [info["window_cost"] for info in seen] == [1, 3, 3, 3, 2]
    assert not any(info["stopped"] or info["game_over"] for info in seen)


def test_a_stop_ends_the_episode_and_memory_is_cleared_by_reset():
    env = observed(AT_ONCE)
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(2)
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["stopped"] and not info["game_over"] and not info["truncated"]
    assert np.array_equal(info["final_observation"], observation)
    env.reset()
    assert env.step(1)[-1]["window_cost"] == 1


@pytest.mark.parametrize(
    ("bias", "game_over_at", "limit", "expected"),
    [
        (AT_ONCE, 1, 1, "game_over"),
        (AT_ONCE, 9, 1, "stopped"),
        (NEVER, 9, 1, "truncated"),
    ],
)
def test_precedence_of_ends(bias, game_over_at, limit, expected):
    env = observed(bias, GymCounter(game_over_at, limit))
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(0)
    happened = [end for end in ("game_over", "stopped", "truncated") if info[end]]
    assert happened == [expected]
    assert (terminated, truncated) == (expected != "truncated", expected == "truncated")


def test_delay_counts_decisions():
    env = observed(AT_ONCE, delay=2)
    env.reset(seed=0)
    assert [env.step(0)[2] for _ in range(3)] == [False, False, True]


def test_seed_determines_stops_and_watching_changes_nothing_else():
    def returns(env, seed):
        env.reset(seed=seed)
        return [env.step(1)[2] for _ in range(30)]

    assert returns(observed(1.0), 3) == returns(observed(1.0), 3)
    bare, watched = gymnasium.make("CartPole-v1"), gymnasium.make("CartPole-v1")
    watched = ObserverWrapper(watched, termdp.Observer(action_is_cost, bias=NEVER))
    first, _ = bare.reset(seed=5)
    second, _ = watched.reset(seed=5)
    for _ in range(8):
        assert np.array_equal(first, second)
        first, second = bare.step(1)[0], watched.step(1)[0]


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*A Box observation space")
def test_agrees_with_gymnasium_checks():
    env = ObserverWrapper(
        gymnasium.make("CartPole-v1").unwrapped,
        termdp.Observer(lambda obs, action: abs(float(obs[0])), bias=3.0),
    )
    check_env(env, skip_render_check=True)


def test_works_under_other_wrappers():
    env = TimeLimit(observed(), 2)
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[3]


def test_bad_input_is_named():
    env = observed()
    with pytest.raises(ValueError, match=r"expected reset\(\) before"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"an action in Discrete\(3\), got 7"):
        env.step(7)
    with pytest.raises(ValueError, match=r"expected a termdp.Observer, got None"):
        ObserverWrapper(GymCounter(), None)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda obs, action: obs, "one number for one pair"),
        (lambda obs, action: np.nan, "to be finite, got nan"),
    ],
)
def test_bad_costs_are_named_before_anything_is_stepped(cost, message):
    env = ObserverWrapper(GymCounter(), termdp.Observer(cost))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(0)
    assert env.unwrapped.time == 0


def with_if(observation, action):
    if observation[0] >= 2:
        return float(action == 2)
    return np.abs(observation[1]) if action else 0


@pytest.mark.parametrize("vector", [False, True])
def test_plain_python_costs_work(vector):
    observer = termdp.Observer(with_if, bias=NEVER)
    if vector:
        many = gymnasium.vector.SyncVectorEnv([GymCounter, GymCounter])
        env = termdp.gym.ObserverVectorWrapper(many, observer)
    else:
        env = ObserverWrapper(GymCounter(), observer)
    env.reset(seed=0)
    costs = []
    for action in (1, 1, 2, 0):
        *_, info = env.step(np.array([action] * 2) if vector else action)
        costs.append(np.ravel(info["cost"])[0])
    assert costs == [0, 1, 1, 0]


def test_costs_that_are_no_number_are_named():
    for cost, got in ((lambda o, a: None, "None"), (lambda o, a: [1, 2], r"\[1, 2\]")):
        env = ObserverWrapper(GymCounter(), termdp.Observer(cost))
        env.reset(seed=0)
        with pytest.raises(ValueError, match=f"one number for one pair, got {got}: "):
            env.step(0)
