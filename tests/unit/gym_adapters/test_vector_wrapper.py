"""The NumPy observer around vector environments, in each autoreset mode."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import termdp
from gym_counter import GymCounter
from termdp.gym import ObserverVectorWrapper
from tiny_envs import action_is_cost

NEVER = 1e6
STOPPING = 50.0  # one action of cost 100 is a certain stop, anything else is safe


def stop_on_two(observation, action):
    return 100.0 if action == 2 else float(action)


def vector(mode, game_over_at=1000, make=SyncVectorEnv, **arguments):
    games = [lambda: GymCounter(game_over_at)] * 2
    observer = termdp.Observer(stop_on_two, window=3, bias=STOPPING)
    return ObserverVectorWrapper(
        make(games, autoreset_mode=mode, **arguments), observer
    )


def test_next_step_mode_resets_in_the_step_after_a_stop():
    env = vector(AutoresetMode.NEXT_STEP)
    env.reset(seed=0)
    env.step(np.array([1, 1]))
    obs, rewards, terminated, truncated, infos = env.step(np.array([2, 1]))
    assert infos["stopped"].tolist() == [True, False]
    assert terminated.tolist() == [True, False] and not truncated.any()
    assert obs.tolist() == [[2, 3], [2, 2]]  # the stopped copy shows its last state
    obs, rewards, terminated, truncated, infos = env.step(np.array([2, 1]))
    assert obs.tolist() == [[0, 0], [3, 3]]  # the action 2 was ignored
    assert rewards.tolist() == [0, 1] and not terminated.any()
    assert infos["cost"].tolist() == [0, 1]
    obs, *_, infos = env.step(np.array([1, 1]))
    assert obs.tolist() == [[1, 1], [4, 4]]
    assert infos["window_cost"].tolist() == [1, 3]


def test_next_step_mode_and_the_games_own_end():
    env = vector(AutoresetMode.NEXT_STEP, game_over_at=2)
    env.reset(seed=0)
    env.step(np.array([1, 1]))
    *_, terminated, _, infos = env.step(np.array([2, 1]))
    assert terminated.all()
    assert infos["game_over"].all() and not infos["stopped"].any()
    obs, rewards, terminated, _, infos = env.step(np.array([2, 2]))
    assert obs.tolist() == [[0, 0], [0, 0]] and rewards.tolist() == [0, 0]
    assert not terminated.any() and not infos["stopped"].any()


def test_a_stop_one_step_before_the_games_end_resets_once():
    env = vector(AutoresetMode.NEXT_STEP, game_over_at=2)
    env.reset(seed=0)
    env.step(np.array([2, 1]))  # copy 0 stopped at time 1; inside it goes on to 2
    obs, *_ = env.step(np.array([0, 0]))
    assert obs[0].tolist() == [0, 0]
    obs, *_ = env.step(np.array([1, 0]))
    assert obs[0].tolist() == [1, 1]


def test_same_step_mode_shows_the_next_episode_at_once():
    env = vector(AutoresetMode.SAME_STEP, game_over_at=3)
    env.reset(seed=0)
    env.step(np.array([1, 1]))
    obs, _, terminated, _, infos = env.step(np.array([2, 1]))
    assert terminated.tolist() == [True, False]
    assert obs.tolist() == [[0, 0], [2, 2]]
    assert infos["final_obs"][0].tolist() == [2, 3] and infos["final_obs"][1] is None
    assert infos["_final_obs"].tolist() == [True, False]
    assert infos["final_observation"].tolist() == [[2, 3], [2, 2]]
    obs, _, terminated, _, infos = env.step(np.array([1, 1]))
    assert infos["game_over"].tolist() == [False, True]
    assert infos["final_observation"].tolist() == [[1, 1], [3, 3]]
    assert obs.tolist() == [[1, 1], [0, 0]]
    assert infos["window_cost"].tolist() == [1, 3]


def test_disabled_mode_leaves_the_reset_to_the_caller():
    env = vector(AutoresetMode.DISABLED)
    env.reset(seed=0)
    obs, _, terminated, _, _ = env.step(np.array([2, 1]))
    assert terminated.tolist() == [True, False]
    with pytest.raises(ValueError, match=r"reset_mask.*copies \[0\] have ended"):
        env.step(np.array([1, 1]))
    mask = np.array([True, False])
    options = {"reset_mask": mask}
    obs, _ = env.reset(options=options)
    assert options == {"reset_mask": mask}  # the caller's dictionary is untouched
    assert obs.tolist() == [[0, 0], [1, 1]]
    *_, infos = env.step(np.array([1, 1]))
    assert infos["window_cost"].tolist() == [1, 2]


@pytest.mark.slow
def test_async_environments():
    env = vector(AutoresetMode.NEXT_STEP, make=AsyncVectorEnv, context="spawn")
    try:
        env.reset(seed=0)
        env.step(np.array([2, 1]))
        obs, *_ = env.step(np.array([1, 1]))
        assert obs.tolist() == [[0, 0], [2, 2]]
    finally:
        env.close()


def test_agrees_with_the_single_wrapper(key):
    """The same costs and draws: a vector of one behaves like the wrapper for one."""
    observer = termdp.Observer(action_is_cost, window=4, bias=5.0, background=0.02)
    games = [lambda: GymCounter(25)]
    many = SyncVectorEnv(games, autoreset_mode=AutoresetMode.SAME_STEP)
    many = ObserverVectorWrapper(many, observer)
    single = termdp.gym.ObserverWrapper(GymCounter(25), observer)
    many.reset(seed=1)
    single.reset(seed=1)
    for action in np.random.default_rng(0).integers(0, 3, 200):
        _, _, terminated, _, infos = many.step(np.array([action]))
        _, _, ended, _, info = single.step(action)
        for name in ("game_over", "stopped", "cost", "window_cost", "stop_probability"):
            assert infos[name][0] == pytest.approx(info[name])
        assert terminated[0] == ended
        if ended:
            single.reset()


def test_bad_input_is_named():
    env = vector(AutoresetMode.NEXT_STEP)
    with pytest.raises(ValueError, match=r"expected reset\(\)"):
        env.step(np.array([0, 0]))
    env.reset(seed=[4, 5])
    with pytest.raises(ValueError, match="expected actions in MultiDiscrete"):
        env.step(np.array([0, 3]))
    silent = SyncVectorEnv([GymCounter])
    silent.metadata = {}
    with pytest.raises(ValueError, match="autoreset_mode.*got None"):
        ObserverVectorWrapper(silent, termdp.Observer(stop_on_two))
    with pytest.raises(ValueError, match=r"expected a termdp.Observer, got 'nobody'"):
        ObserverVectorWrapper(SyncVectorEnv([GymCounter]), "nobody")


def test_gymnasium_version_is_supported():
    assert tuple(map(int, gymnasium.__version__.split(".")[:2])) >= (1, 1)
