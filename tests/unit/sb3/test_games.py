"""Our games in Stable-Baselines3: a VecEnv, small grids, what a plain install says."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from termdp.gym import JaxVectorEnv
from termdp.registry import make
from termdp.sb3 import GridExtractor, TermPG, make_vec_env

pytestmark = pytest.mark.slow

GRID = {"features_extractor_class": GridExtractor, "net_arch": []}
GRID["features_extractor_kwargs"] = {"filters": 2, "hidden": 8}
SIZES = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "device": "cpu", "seed": 0}


@pytest.fixture(scope="module")
def breakout():
    return make_vec_env("breakout", 4, seed=3)


def test_it_steps_as_the_game_does(breakout):
    ours = JaxVectorEnv(*make("breakout"), 4, "SameStep")
    expected, _ = ours.reset(seed=3)
    breakout.seed(3)
    np.testing.assert_array_equal(breakout.reset(), expected)
    rng, ends = np.random.default_rng(0), 0
    for _ in range(60):
        actions = rng.integers(3, size=4)
        seen, rewards, terminated, truncated, infos = ours.step(actions)
        mine, my_rewards, ended, my_infos = breakout.step(actions)
        np.testing.assert_array_equal(mine, seen)
        np.testing.assert_array_equal(my_rewards, rewards)
        np.testing.assert_array_equal(ended, terminated | truncated)
        for i in np.flatnonzero(ended):
            for name in ("game_over", "stopped"):
                assert my_infos[i][name] == infos[name][i]
            last = my_infos[i]["terminal_observation"]
            np.testing.assert_array_equal(last, infos["final_observation"][i])
            assert my_infos[i]["TimeLimit.truncated"] == truncated[i]
            assert my_infos[i]["episode"]["l"] > 0
            ends += 1
    assert ends > 4


def test_it_is_a_vec_env(breakout):
    assert isinstance(breakout, VecMonitor)
    space = breakout.observation_space
    assert (space.shape, space.dtype) == ((10, 10, 4), bool)
    assert breakout.get_attr("num_envs", [0, 1]) == [4, 4]
    assert breakout.env_is_wrapped(VecMonitor) == [False] * 4
    with pytest.raises(ValueError, match="copies have of their own, got 'bias'"):
        breakout.set_attr("bias", 3)
    with pytest.raises(ValueError, match="copies have of their own, got 'jump'"):
        breakout.env_method("jump")
    unobserved = make_vec_env("breakout", 2, observer=False)
    unobserved.reset()
    assert unobserved.step(np.zeros(2, int))[0].shape == (2, 10, 10, 4)


def test_ppo_and_termpg_learn_on_grids(breakout):
    plain = PPO("MlpPolicy", breakout, policy_kwargs=GRID, **SIZES).learn(64)
    assert plain.num_timesteps == 64
    numbers = {"segment_length": 64, "hidden": 4, "filters": 2, "num_steps": 2}
    model = TermPG(
        "MultiInputPolicy", breakout, policy_kwargs=GRID, cost_kwargs=numbers, **SIZES
    ).learn(64)
    seen = model.get_env().reset()
    assert seen["observation"].shape == (4, 10, 10, 4) and seen["cost"].shape == (4, 2)
    action, _ = model.predict(seen, deterministic=True)
    assert action.shape == (4,)
    with pytest.raises(ValueError, match="MultiInputPolicy"):
        TermPG("MlpPolicy", breakout, **SIZES)


def test_the_extractor_joins_costs():
    grid = spaces.Box(0.0, 1.0, (5, 4, 2))
    both = spaces.Dict({"observation": grid, "cost": spaces.Box(0.0, 1.0, (2,))})
    extractor = GridExtractor(both, filters=3, hidden=7)
    picture, cost = torch.rand(6, 5, 4, 2), torch.rand(6, 2)
    layer = extractor.convolution.requires_grad_(False)
    found = extractor({"observation": picture, "cost": cost})
    assert found.shape == (6, 7)
    # One window of the convolution, by hand.
    window = picture[0, 1:4, 0:3].permute(2, 0, 1)
    by_hand = (window * layer.weight[1]).sum() + layer.bias[1]
    assert layer(picture.permute(0, 3, 1, 2))[0, 1, 1, 0] == pytest.approx(
        by_hand.item(), abs=1e-5
    )
    assert not torch.equal(found, extractor({"observation": picture, "cost": 0 * cost}))
    assert GridExtractor(grid)(picture).shape == (6, 256)


@pytest.mark.parametrize(
    "space",
    [spaces.Box(0, 1, (4,)), spaces.Box(0, 1, (2, 5, 1)), spaces.Discrete(3)],
    ids=str,
)
def test_the_extractor_refuses_what_is_no_grid(space):
    with pytest.raises(ValueError, match=r"expected grids \[height, width, channels\]"):
        GridExtractor(space)


SCRIPT = """
import json, sys

class Blocked:
    def find_spec(name, path=None, target=None):
        if name in ("torch", "stable_baselines3"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import termdp
termdp.train, termdp.gym, termdp.make
early = [name for name in ("torch", "stable_baselines3") if name in sys.modules]
sys.meta_path.insert(0, Blocked)
try:
    termdp.sb3
except ImportError as error:
    print(json.dumps([early, str(error)]))
"""


def test_a_plain_install_needs_none_of_it_and_is_told():
    words = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    early, said = json.loads(done.stdout)
    assert early == []
    assert said.startswith("expected the package ")
    assert said.endswith("is not installed: pip install 'termdp[sb3]'")
