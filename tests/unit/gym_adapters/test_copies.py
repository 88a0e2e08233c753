"""Copies in every autoreset mode against a plain loop over single environments."""

import os
import signal
import time

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import termdp
from scripted_env import ENDS, STOPPED_ALONE, Broken, Scripted
from termdp.gym.copies import Copies, end_of, which_ends
from termdp.gym.encoding import encoding_of
from termdp.gym.source import GymnasiumSource

MODES = tuple(AutoresetMode)
FIELDS = ("observations", "finals", "rewards", "game_over", "stopped", "truncated")


def vector_options(vector):
    """Worker processes are not forked: JAX has threads."""
    return {"context": "spawn"} if vector is AsyncVectorEnv else {}


def copies_of(scripts, mode, vector=SyncVectorEnv, start=0):
    env = vector(
        [lambda script=script: Scripted(script, start) for script in scripts],
        autoreset_mode=mode,
        **vector_options(vector),
    )
    encoding = encoding_of(env.single_observation_space, env.single_action_space)
    return Copies(env, encoding, "scripted")


def played(copies, actions):
    """Everything that happens, `[T, B, ...]` by name."""
    rows = [copies.reset(seed=0)]
    steps = [copies.step(row) for row in actions]
    copies.close()
    found = {name: np.array([getattr(s, name) for s in steps]) for name in FIELDS}
    # Only where an episode ended is the last observation looked at.
    ended = found["game_over"] | found["stopped"] | found["truncated"]
    found["finals"] = np.where(ended[..., None], found["finals"], 0.0)
    return found | {"first": rows[0]}


def by_hand(scripts, actions):
    """The same by one environment after the other."""
    found = {name: [] for name in FIELDS}
    first = []
    for index, script in enumerate(scripts):
        env = Scripted(script)
        first.append(env.reset(seed=0)[0])
        rows = {name: [] for name in FIELDS}
        for at, action in enumerate(actions[:, index]):
            seen, reward, *_ = env.step(action)
            end = ENDS[script[at % len(script)]]
            rows["finals"].append(seen if end else np.zeros(3))
            rows["observations"].append(env.reset()[0] if end else seen)
            rows["rewards"].append(reward)
            for name in FIELDS[3:]:
                rows[name].append(name == end)
        for name in FIELDS:
            found[name].append(rows[name])
    return {n: np.swapaxes(rows, 0, 1) for n, rows in found.items()} | {"first": first}


scripts_of = st.lists(
    st.lists(st.integers(0, len(ENDS) - 1), min_size=1, max_size=7),
    min_size=1,
    max_size=3,
)


@settings(max_examples=40, deadline=None)
@given(scripts_of, st.integers(0, 2**16))
def test_all_modes_give_the_same_rollouts(scripts, seed):
    actions = np.random.default_rng(seed).integers(0, 2, (12, len(scripts)))
    expected = by_hand(scripts, actions)
    for mode in MODES:
        found = played(copies_of(scripts, mode), actions)
        for name, values in expected.items():
            assert np.array_equal(found[name], values), (mode, name)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=[m.name for m in MODES])
def test_worker_processes_give_the_same_rollouts(mode):
    scripts = [(0, 1, 0, 2, 5), (0, 0, STOPPED_ALONE), (4, 6)]
    actions = np.random.default_rng(1).integers(0, 2, (10, 3))
    expected = by_hand(scripts, actions)
    found = played(copies_of(scripts, mode, AsyncVectorEnv), actions)
    for name, values in expected.items():
        assert np.array_equal(found[name], values), name


@pytest.mark.parametrize("mode", MODES, ids=[m.name for m in MODES])
def test_observers_around_copies_and_inside_them_are_heard(mode):
    """A cost that stops for certain at the third step, in the wrapper's two places."""

    def late(observation, action):
        return 100.0 * (observation[2] >= 2)

    observer = termdp.Observer(late, window=5, bias=50.0)

    def make():
        return Scripted((0,))

    inside = SyncVectorEnv(
        [lambda: termdp.gym.ObserverWrapper(make(), observer)] * 2, autoreset_mode=mode
    )
    around = termdp.gym.ObserverVectorWrapper(
        SyncVectorEnv([make] * 2, autoreset_mode=mode), observer
    )
    for env in (inside, around):
        encoding = encoding_of(env.single_observation_space, env.single_action_space)
        copies = Copies(env, encoding, "scripted")
        copies.reset(seed=0)
        steps = [copies.step(np.zeros(2, int)) for _ in range(6)]
        stops = np.array([step.stopped for step in steps])
        assert np.array_equal(stops.all(axis=1), [0, 0, 1, 0, 0, 1])
        assert not np.array([step.game_over | step.truncated for step in steps]).any()
        assert np.array([s.truth()[0] for s in steps])[:, 0].tolist() == [
            *(0, 0, 100, 0, 0, 100)
        ]
        assert [s.finals[0, 2] for s in steps] == [1, 2, 3, 1, 2, 3]


def test_game_over_before_stopped_before_truncated():
    stop = {"stopped": np.array([True]), "game_over": np.array([True])}
    assert [e.tolist() for e in which_ends([True], [True], stop)] == [
        *([True], [False], [False])
    ]
    assert end_of(True, True, {"stopped": True}) == "stopped"
    assert end_of(True, True, {}) == "game_over"
    assert end_of(False, True, {}) == "truncated"
    assert end_of(False, False, {"stopped": False}) == ""


def test_actions_are_counted_as_the_environment_counts_them():
    copies = copies_of([(0,)], AutoresetMode.DISABLED, start=5)
    copies.reset(seed=0)
    assert copies.step(np.array([1])).rewards.tolist() == [6.0]  # 5 + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("raise", "after 0 steps it raised RuntimeError: the arm is stuck"),
        ("seen", "finite observations from scripted, got NaN"),
        ("reward", "finite rewards from scripted, got NaN"),
    ],
)
@pytest.mark.parametrize("vector", [SyncVectorEnv, AsyncVectorEnv])
def test_what_goes_wrong_is_told_in_one_sentence(what, sentence, vector):
    env = vector([lambda: Broken(what)], **vector_options(vector))
    encoding = encoding_of(env.single_observation_space, env.single_action_space)
    copies = Copies(env, encoding, "scripted")
    copies.reset(seed=0)
    gymnasium.logger.min_level, before = 50, gymnasium.logger.min_level
    with pytest.raises(ValueError, match=sentence):
        copies.step(np.zeros(1, int))
    gymnasium.logger.min_level = before
    copies.close()


def test_copies_that_cannot_be_reset_singly_are_refused():
    env = gymnasium.make_vec("CartPole-v1", 2)
    encoding = encoding_of(env.single_observation_space, env.single_action_space)
    with pytest.raises(ValueError, match="vectorization_mode='sync'"):
        Copies(env, encoding, "CartPole-v1")
    env.close()


def test_ctrl_c_is_left_to_the_first_process():
    """A terminal sends it to all of them; the run's own process decides what ends."""
    source = GymnasiumSource("gym:CartPole-v1", options={"vectorization": "async"})
    env = source._vector_env(2)
    env.reset(seed=0)
    for process in env.processes:
        os.kill(process.pid, signal.SIGINT)
    time.sleep(0.1)
    _, rewards, *_ = env.step(np.zeros(2, int))
    assert rewards.tolist() == [1, 1]
    env.close()
