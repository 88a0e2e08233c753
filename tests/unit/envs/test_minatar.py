"""What the four MinAtar games share: actions, stickiness, ends, parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.envs import minatar
from termdp.envs.asterix import Asterix
from termdp.envs.breakout import Breakout
from termdp.envs.seaquest import Seaquest
from termdp.envs.space_invaders import SpaceInvaders

GAMES = [Breakout, SpaceInvaders, Asterix, Seaquest]
ACTIONS = {
    Breakout: ("none", "left", "right"),
    SpaceInvaders: ("none", "left", "right", "fire"),
    Asterix: ("none", "left", "up", "right", "down"),
    Seaquest: ("none", "left", "up", "right", "down", "fire"),
}


@pytest.fixture(params=GAMES, ids=lambda game: game.__name__)
def game(request: pytest.FixtureRequest) -> Any:
    return request.param()


def test_action_sets(game: Any) -> None:
    assert game.action_names == ACTIONS[type(game)]
    assert game.action_space().n == len(game.action_names) == game.num_actions
    full = type(game)(use_minimal_action_set=False)
    assert full.action_names == ("none", "left", "up", "right", "down", "fire")


@pytest.mark.slow
def test_every_action_is_executed_as_named(game: Any, key: jax.Array) -> None:
    params = game.default_params.replace(sticky_prob=0.0)
    _, state = game.reset(key, params)
    for action, name in enumerate(game.action_names):
        after = game.step_env(key, state, action, params)[1]
        assert minatar.ACTION_NAMES[int(after.last_action)] == name


def test_observation_is_in_its_space(game: Any, key: jax.Array) -> None:
    obs, _ = game.reset(key)
    space = game.observation_space()
    assert obs.shape == space.shape == (10, 10, len(game.channels))
    assert obs.dtype == space.dtype == jnp.bool_


def test_sticky_action_repeats_the_last_executed(game: Any, key: jax.Array) -> None:
    always = game.default_params.replace(sticky_prob=1.0)
    never = game.default_params.replace(sticky_prob=0.0)
    _, state = game.reset(key, never)
    state = game.step_env(key, state, 1, never)[1]
    after = game.step_env(key, state, 2, always)[1]
    assert int(after.last_action) == int(state.last_action) == game.action_set[1]


def test_last_action_survives_an_end_but_not_a_reset(game: Any, key: jax.Array) -> None:
    params = game.default_params.replace(max_steps_in_episode=1, sticky_prob=0.0)
    _, state = game.reset(key, params)
    obs, state, _, terminated, truncated, info = game.step(key, state, 1, params)
    assert bool(truncated)
    assert not bool(terminated)
    assert int(state.time) == 0
    assert int(state.last_action) == game.action_set[1]
    np.testing.assert_array_equal(obs, game.get_obs(state))
    assert info["final_observation"].shape == obs.shape
    _, state = game.reset(key, params)
    assert int(state.last_action) == 0


def test_sticky_share(game: Any) -> None:
    """About a tenth of the steps execute the last action instead of the wanted one."""
    params = game.default_params
    _, state = game.reset(jax.random.key(0), params)
    state = state.replace(last_action=jnp.int32(3))
    keys = jax.random.split(jax.random.key(1), 20_000)

    @jax.jit
    @jax.vmap
    def executed(key: jax.Array) -> jax.Array:
        return game.step_env(key, state, 0, params)[1].last_action

    move = executed(keys)
    assert abs(float((move == 3).mean()) - 0.1) < 0.01


def test_parameters_change_without_compiling(game: Any, key: jax.Array) -> None:
    num_traces = 0

    @jax.jit
    def step(state: Any, params: Any) -> Any:
        nonlocal num_traces
        num_traces += 1
        return game.step(key, state, 0, params)

    params = game.default_params
    _, state = game.reset(key, params)
    for limit, sticky in ((10, 0.5), (20, 0.0)):
        changed = params.replace(max_steps_in_episode=limit, sticky_prob=sticky)
        if hasattr(changed, "ramping"):
            changed = changed.replace(ramping=limit == 10)
        step(state, changed)
    assert num_traces == 1


def test_defaults_are_the_originals(game: Any) -> None:
    params = game.default_params
    assert params.sticky_prob == 0.1
    assert params.max_steps_in_episode == 10_000
    assert getattr(params, "ramping", True)


def test_chance_of_what_enters() -> None:
    keys = jax.random.split(jax.random.key(5), 40_000)
    asterix = jax.jit(jax.vmap(Asterix().sample_draws))(keys)
    seaquest = jax.jit(jax.vmap(Seaquest().sample_draws))(keys)
    for event, probability in [
        (asterix.enters_left, 1 / 2),
        (asterix.is_gold, 1 / 3),
        (seaquest.enemy_enters_left, 1 / 2),
        (seaquest.enemy_is_sub, 1 / 3),
        (seaquest.diver_enters_left, 1 / 2),
    ]:
        assert abs(float(event.mean()) - probability) < 0.01
    rows = [asterix.row_choice % 8 + 1, seaquest.enemy_y, seaquest.diver_y]
    for row in rows:
        share = np.bincount(np.asarray(row), minlength=9) / len(keys)
        assert share[0] == 0
        np.testing.assert_allclose(share[1:], 1 / 8, atol=0.01)
    assert int(asterix.row_choice.max()) < 840


def test_breakout_starts_on_either_side() -> None:
    keys = jax.random.split(jax.random.key(6), 2_000)
    states = jax.vmap(Breakout().first_state)(keys)
    assert set(np.unique(states.ball_x).tolist()) == {0, 9}
    assert abs(float((states.ball_x == 9).mean()) - 0.5) < 0.05
    assert bool(((states.ball_x == 0) == states.moves_right).all())


def test_words() -> None:
    words = jnp.array([0, 1, 0b1010, 1 << 31], jnp.uint32)
    assert minatar.lowest_bit(words).tolist() == [0, 1, 2, 1 << 31]
    assert minatar.highest_bit(words).tolist() == [0, 1, 8, 1 << 31]
    columns = jnp.arange(10, dtype=jnp.uint32)
    assert minatar.shift_right(columns).tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert minatar.shift_left(columns).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert int(minatar.column_at(columns, jnp.int32(7))) == 7
    assert int(minatar.column_at(columns, jnp.int32(-1))) == 0


def test_settled_changes_nothing() -> None:
    state = {"a": jnp.arange(10, dtype=jnp.uint32), "b": jnp.array([True, False])}
    after = minatar.settled(state)
    for name, array in state.items():
        assert after[name].dtype == array.dtype
        np.testing.assert_array_equal(after[name], array)
