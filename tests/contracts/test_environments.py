"""What every environment of the table promises, in JAX and in Gymnasium."""

import subprocess
import sys
import warnings
from importlib.metadata import entry_points

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import termdp
from termdp.registry import REGISTRY

IDS = sorted(REGISTRY)
NUM_ENVS, NUM_STEPS = 8, 150


@pytest.fixture(scope="module", params=IDS)
def made(request):
    return request.param, *termdp.make(request.param, max_steps_in_episode=40)


def rollout(env, params, key):
    """A random policy on several copies, in one program."""

    def one(carry, key):
        states, obs = carry
        key_act, key_step = jax.random.split(key)
        actions = jax.random.randint(key_act, (NUM_ENVS,), 0, env.num_actions)
        keys = jax.random.split(key_step, NUM_ENVS)
        next_obs, states, reward, terminated, truncated, info = jax.vmap(
            env.step, (0, 0, 0, None)
        )(keys, states, actions, params)
        row = info | {"reward": reward, "terminated_outward": terminated}
        row |= {"truncated_outward": truncated, "obs": obs, "actions": actions}
        return (states, next_obs), row | {"next_obs": next_obs}

    keys = jax.random.split(key, NUM_ENVS)
    obs, states = jax.vmap(env.reset, (0, None))(keys, params)
    return jax.lax.scan(one, (states, obs), jax.random.split(key, NUM_STEPS))[1]


def test_rollouts_keep_the_contract(made, key):
    _, env, params = made
    seen = jax.tree.map(np.asarray, jax.jit(lambda k: rollout(env, params, k))(key))
    ends = seen["game_over"].astype(int) + seen["stopped"] + seen["truncated"]
    assert ends.max() == 1, "some episode ends, and never in two ways"
    assert np.array_equal(
        seen["terminated_outward"], seen["game_over"] | seen["stopped"]
    )
    assert np.array_equal(seen["truncated_outward"], seen["truncated"])
    space = env.observation_space(params)
    assert seen["obs"].shape[2:] == space.shape
    assert seen["obs"].dtype == space.dtype
    assert np.isfinite(seen["reward"]).all() and np.isfinite(seen["cost"]).all()
    going_on = ends == 0
    assert np.array_equal(
        seen["next_obs"][going_on], seen["final_observation"][going_on]
    )
    starts = np.concatenate([np.ones((1, NUM_ENVS), bool), ends[:-1].astype(bool)])
    window = int(params.observer.window)
    sums = jax.jit(termdp.window_sums)
    expected = sums(seen["cost"], window, starts)
    np.testing.assert_allclose(seen["window_cost"], expected, atol=1e-4)
    costs_of = jax.jit(jax.vmap(jax.vmap(params.observer.cost)))
    costs = costs_of(seen["obs"], seen["actions"])
    np.testing.assert_allclose(seen["cost"], costs, atol=1e-6)
    assert seen["cost"].std() > 0, "a random policy meets the cost"


def test_parameters_change_without_recompiling(made, key):
    _, env, params = made
    _, state = env.reset(key, params)
    env.step(key, state, 0, params)
    before = env.step._cache_size()
    other = params.replace(bias=1.0, window=7, max_steps_in_episode=20)
    if hasattr(params.game, "sticky_prob"):
        other = other.replace(sticky_prob=0.5)
    env.step(key, state, 0, other)
    assert env.step._cache_size() == before


def test_edge_width_is_a_parameter(key):
    env, params = termdp.make("breakout", width=5, bias=1e6)
    _, state = env.reset(key, params)
    *_, info = env.step(key, state, 0, params)
    assert float(info["cost"]) == 1.0  # with width 5 every column is at an edge


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.filterwarnings("ignore:.*bool.*")
def test_gymnasium_checks_pass(env_id):
    env = gymnasium.make(REGISTRY[env_id].gym_id, render_mode="rgb_array")
    with warnings.catch_warnings():
        # Rewards and features without a bound are no mistake.
        warnings.filterwarnings("ignore", ".*A Box observation space .*")
        check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_the_gymnasium_environment_plays_the_same_game(env_id):
    played = gymnasium.make(REGISTRY[env_id].gym_id).unwrapped
    observation, _ = played.reset(seed=3)
    state, params = played._state, played.params
    jax_env, jax_params = termdp.make(env_id)
    for action in (0, 1, 0, 1, 1):
        _, key = jax.random.split(played._key)
        expected = jax_env.step(key, state, action, jax_params)
        observation, reward, terminated, truncated, info = played.step(action)
        assert np.array_equal(observation, expected[5]["final_observation"])
        assert (reward, terminated, truncated) == tuple(map(float, expected[2:5]))
        assert info["window_cost"] == expected[5]["window_cost"]
        state = expected[1]
        if terminated or truncated:
            break
    assert params.observer.window == REGISTRY[env_id].window


def test_ids_are_registered_by_import_and_by_entry_point():
    (point,) = entry_points(group="gymnasium.envs", name="termdp")
    ids = {spec.gym_id for spec in REGISTRY.values()}
    kept = {name: gymnasium.registry.pop(name) for name in ids}
    try:
        point.load()()
        assert ids <= set(gymnasium.registry)
    finally:
        gymnasium.registry.update(kept)
    code = "import gymnasium; gymnasium.make('termdp:termdp/Breakout-v0').reset(seed=0)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("env_id", IDS)
def test_rendering(env_id):
    env = gymnasium.make(REGISTRY[env_id].gym_id, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.shape[0] == 320
    assert picture.std() > 5, "something is on the picture"


def test_numpy_observer_around_the_bare_game_agrees_with_the_jax_one():
    """Same game, same costs: only the draws of stops differ, and nobody stops here."""
    jax_env, params = termdp.make("breakout", bias=1e6)
    bare = gymnasium.make("termdp/Breakout-v0", observer=False).unwrapped
    wrapped = termdp.gym.ObserverWrapper(bare, params.observer)
    wrapped.reset(seed=0)
    state = jax_env.reset(jax.random.key(0), params)[1]
    state = state.replace(game=bare._state, observation=jnp.asarray(bare._observation))
    memory = params.observer.initial_memory()
    for action in np.random.default_rng(0).integers(0, 3, 40):
        state = state.replace(game=bare._state, memory=memory)
        state = state.replace(observation=jnp.asarray(bare._observation))
        *_, expected = jax_env.step(jax.random.key(1), state, action, params)
        _, _, terminated, _, info = wrapped.step(action)
        assert info["cost"] == float(expected["cost"])
        assert info["window_cost"] == pytest.approx(float(expected["window_cost"]))
        if terminated:
            break
        memory = jax.tree.map(jnp.asarray, wrapped._memory)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vector_environment(mode):
    env = gymnasium.make_vec(
        "termdp/Breakout-v0", num_envs=4, autoreset_mode=mode, max_steps_in_episode=5
    )
    first, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    waiting = np.zeros(4, bool)
    lengths = np.zeros(4, int)
    for _ in range(30):
        obs, rewards, terminated, truncated, infos = env.step(rng.integers(0, 3, 4))
        ended = terminated | truncated
        assert not (terminated & truncated).any()
        if mode is AutoresetMode.NEXT_STEP:
            assert not ended[waiting].any() and (rewards[waiting] == 0).all()
            lengths = np.where(waiting, 0, lengths + 1)
            waiting = ended
        else:
            lengths = lengths + 1
        assert (lengths <= 5).all() and ended[lengths == 5].all()
        if mode is AutoresetMode.SAME_STEP:
            for index in np.flatnonzero(ended):
                final = infos["final_obs"][index]
                assert np.array_equal(final, infos["final_observation"][index])
            lengths = np.where(ended, 0, lengths)
        else:
            shown = infos["final_observation"]
            assert np.array_equal(obs, shown)
        if mode is AutoresetMode.DISABLED and ended.any():
            with pytest.raises(ValueError, match="autoreset is disabled"):
                env.step(np.zeros(4, int))
            obs, _ = env.reset(options={"reset_mask": ended})
            assert obs.shape == first.shape
            lengths = np.where(ended, 0, lengths)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="expected an environment id .*got 'brakeout'"):
        termdp.make("brakeout")
    with pytest.raises(ValueError, match="expected a parameter .* got 'speed'"):
        termdp.make("breakout", speed=2)
    with pytest.raises(ValueError, match="parameter of the game .* got 'bias'"):
        termdp.make("breakout", observer=False, bias=2.0)
    with pytest.raises(ValueError, match="window to be a whole number"):
        termdp.make("breakout", window=0)
    with pytest.raises(ValueError, match="autoreset_mode to be one of .* got 'Never'"):
        gymnasium.make_vec("termdp/Breakout-v0", num_envs=2, autoreset_mode="Never")
    env = gymnasium.make("termdp/Breakout-v0").unwrapped
    with pytest.raises(ValueError, match=r"expected reset\(\) before step\(\)"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"expected an action in Discrete\(3\), got 3"):
        env.step(3)
    with pytest.raises(ValueError, match="render_mode to be one of .* got 'human'"):
        termdp.gym.JaxEnv(*termdp.make("breakout"), render_mode="human")


def test_an_observer_of_ones_own(key):
    calm = termdp.Observer(lambda obs, action: 0.0, window=None, bias=20.0)
    env, params = termdp.make("asterix", observer=calm)
    assert params.observer.window is None
    _, state = env.reset(key, params)
    *_, info = env.step(key, state, 0, params)
    assert float(info["stop_probability"]) < 1e-6
