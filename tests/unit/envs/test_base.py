"""The contract of an environment, without gymnax."""

import inspect

import jax.numpy as jnp
import pytest
from gymnax.environments import environment

import termdp
from termdp.envs import spaces
from termdp.envs.base import Environment, EnvParams, EnvState, Game


class Clock(Game):
    """Observes the time; over after three steps."""

    def reset_env(self, key, params):
        state = EnvState(jnp.int32(0))
        return self.get_obs(state), state

    def step_env(self, key, state, action, params):
        state = EnvState(state.time + 1)
        return self.get_obs(state), state, jnp.float32(1), state.time >= 3, {}

    def get_obs(self, state, params=None, key=None):
        return jnp.asarray(state.time, jnp.float32)[None]

    @property
    def num_actions(self):
        return 2

    def action_space(self, params=None):
        return spaces.Discrete(2)

    def observation_space(self, params=None):
        return spaces.Box(0.0, 1e6, (1,))


def test_a_game_resets_itself(key):
    clock, params = Clock(), EnvParams(max_steps_in_episode=10)
    _, state = clock.reset(key, params)
    seen = []
    for _ in range(4):
        obs, state, _, terminated, truncated, info = clock.step(key, state, 0, params)
        final = float(info["final_observation"][0])
        seen.append((float(obs[0]), final, bool(terminated), bool(truncated)))
    assert seen == [
        (1, 1, False, False),
        (2, 2, False, False),
        (0, 3, True, False),
        (1, 1, False, False),
    ]


@pytest.mark.parametrize(("limit", "truncated"), [(2, True), (3, False)])
def test_a_games_own_end_comes_before_its_time_limit(key, limit, truncated):
    clock, params = Clock(), EnvParams(max_steps_in_episode=limit)
    _, state = clock.reset(key, params)
    for _ in range(limit):
        *_, ended, cut, _ = clock.step(key, state, 0, params)
        _, state, *_ = clock.step(key, state, 0, params)
    assert (bool(ended), bool(cut)) == (not truncated, truncated)


def test_the_api_is_that_of_gymnax():
    for name in ("reset", "step", "reset_env", "step_env", "is_truncated"):
        ours = list(inspect.signature(getattr(Game, name)).parameters)
        theirs = inspect.signature(getattr(environment.Environment, name)).parameters
        assert ours == list(theirs), name


def test_what_is_not_written_is_asked_for(key):
    nothing = Environment()
    assert nothing.name == "Environment"
    for ask in (
        lambda: nothing.default_params,
        lambda: nothing.num_actions,
        nothing.action_space,
        nothing.observation_space,
        lambda: nothing.reset(key),
        lambda: nothing.step(key, None, 0),
        lambda: Game().reset(key),
        lambda: Game().get_obs(None),
        lambda: Game().step(key, EnvState(0), 0),
    ):
        with pytest.raises(NotImplementedError):
            ask()


def test_a_game_of_ones_own_can_be_observed(key):
    env = termdp.observe(Clock(), termdp.Observer(lambda obs, a: 0.0, bias=1e6))
    params = env.default_params.replace(max_steps_in_episode=2)
    _, state = env.reset(key, params)
    ends = []
    for _ in range(4):
        _, state, *_, info = env.step(key, state, 0, params)
        ends.append(bool(info["truncated"]))
    assert ends == [False, True, False, True]
