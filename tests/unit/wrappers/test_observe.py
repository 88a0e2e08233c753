"""The observer around JAX environments."""

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.wrappers import StickyActionWrapper
from hypothesis import given, settings
from hypothesis import strategies as st

import termdp
from tiny_envs import Counter, action_is_cost

NEVER, AT_ONCE = 1e6, -1e6  # biases under which the observer never/always stops


def play(env, params, actions, key):
    """Everything that happens over a stream of actions, in one compiled program."""

    def one(carry, action):
        state, key = carry
        key, key_step = jax.random.split(key)
        obs, state, reward, terminated, truncated, info = env.step(
            key_step, state, action, params
        )
        seen = {**info, "obs": obs, "reward": reward, "time": state.time}
        seen |= {"terminated_outward": terminated, "truncated_outward": truncated}
        return (state, key), seen

    _, state = env.reset(key, params)
    _, seen = jax.lax.scan(one, (state, key), jnp.asarray(actions))
    return jax.tree.map(np.asarray, seen)


def observed_counter(**changes):
    env = termdp.observe(Counter(), termdp.Observer(action_is_cost, window=3))
    return env, env.default_params.replace(**changes)


def test_cost_window_and_probability_by_hand(key):
    env, params = observed_counter(bias=NEVER)
    seen = play(env, params, [1, 2, 0, 1, 1], key)
    assert seen["cost"].tolist() == [1, 2, 0, 1, 1]
    assert seen["window_cost"].tolist() == [1, 3, 3, 3, 2]
    expected = termdp.stop_probability(seen["window_cost"], NEVER)
    np.testing.assert_allclose(seen["stop_probability"], expected)
    assert not seen["stopped"].any()


def test_a_stop_resets_and_keeps_the_final_observation(key):
    env, params = observed_counter(bias=AT_ONCE)
    seen = play(env, params, [1, 2], key)
    assert seen["stopped"].tolist() == [True, True]
    assert seen["terminated_outward"].tolist() == [True, True]
    assert not seen["game_over"].any() and not seen["truncated"].any()
    # The game is stepped in any case; what the agent sees next is a new episode.
    assert seen["reward"].tolist() == [1, 1]
    assert seen["final_observation"].tolist() == [[1, 1], [1, 2]]
    assert seen["obs"].tolist() == [[0, 0], [0, 0]]
    assert seen["window_cost"].tolist() == [1, 2]  # nothing is carried over


def test_cost_reads_the_observation_acted_on(key):
    steps_played = termdp.Observer(lambda obs, action: obs[0], window=1, bias=NEVER)
    env = termdp.observe(Counter(), steps_played)
    seen = play(env, env.default_params.replace(game_over_at=3), [0] * 5, key)
    assert seen["cost"].tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("bias", "game_over_at", "limit", "expected"),
    [
        (AT_ONCE, 1, 1, "game_over"),
        (AT_ONCE, 9, 1, "stopped"),
        (NEVER, 9, 1, "truncated"),
        (NEVER, 1, 1, "game_over"),
    ],
)
def test_precedence_of_ends(bias, game_over_at, limit, expected, key):
    env, params = observed_counter(
        bias=bias, game_over_at=game_over_at, max_steps_in_episode=limit
    )
    seen = play(env, params, [0], key)
    ends = {name: bool(seen[name][0]) for name in ("game_over", "stopped", "truncated")}
    assert [name for name, happened in ends.items() if happened] == [expected]
    assert seen["terminated_outward"][0] == (expected != "truncated")
    assert seen["truncated_outward"][0] == (expected == "truncated")


def test_delay_and_a_game_that_ends_first(key):
    env, params = observed_counter(bias=AT_ONCE, delay=3)
    seen = play(env, params, [0] * 8, key)
    assert seen["stopped"].tolist() == [False] * 3 + [True] + [False] * 3 + [True]
    seen = play(env, params.replace(game_over_at=2), [0] * 4, key)
    assert seen["game_over"].tolist() == [False, True, False, True]
    assert not seen["stopped"].any()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    window=st.integers(1, 8),
    bias=st.floats(0, 6),
    limit=st.integers(1, 40),
    game_over_at=st.integers(1, 40),
)
def test_streams_of_episodes(seed, window, bias, limit, game_over_at):
    """Ends are exclusive and C restarts with each episode, whatever the parameters."""
    params = STREAM_ENV.default_params.replace(
        window=window,
        bias=bias,
        max_steps_in_episode=limit,
        game_over_at=game_over_at,
    )
    key = jax.random.key(seed)
    actions = jax.random.randint(key, (120,), 0, 3)
    seen = jax.tree.map(np.asarray, STREAM(params, actions, key))
    ends = seen["game_over"].astype(int) + seen["stopped"] + seen["truncated"]
    assert ends.max() <= 1
    ended = ends.astype(bool)
    starts = np.concatenate([[True], ended[:-1]])
    expected = termdp.window_sums(seen["cost"], window, starts)
    np.testing.assert_allclose(seen["window_cost"], expected, atol=1e-4)
    assert np.array_equal(seen["time"] == 0, ended)
    assert np.array_equal(
        seen["terminated_outward"], seen["game_over"] | seen["stopped"]
    )


STREAM_ENV = termdp.observe(Counter(), termdp.Observer(action_is_cost, window=8))
STREAM = jax.jit(
    lambda params, actions, key: play_raw(STREAM_ENV, params, actions, key)
)


def play_raw(env, params, actions, key):
    def one(carry, action):
        state, key = carry
        key, key_step = jax.random.split(key)
        _, state, _, terminated, _, info = env.step(key_step, state, action, params)
        return (state, key), {
            **info,
            "time": state.time,
            "terminated_outward": terminated,
        }

    _, state = env.reset(key, params)
    return jax.lax.scan(one, (state, key), actions)[1]


def test_stop_rate_matches_the_probability(key):
    env, params = observed_counter(bias=2.0, window=1)
    actions = jnp.ones(20_000, jnp.int32)  # every step costs 1: ρ(1 − 2) = 0.2689
    stopped = play(env, params, actions, key)["stopped"].mean()
    assert stopped == pytest.approx(0.2689, abs=4 * np.sqrt(0.2689 * 0.7311 / 20_000))


def test_any_gymnax_environment_and_wrapper(key):
    off_centre = termdp.Observer(lambda obs, action: jnp.abs(obs[0]), bias=AT_ONCE)
    cart_pole, _ = gymnax.make("CartPole-v1")
    for game in (cart_pole, StickyActionWrapper(cart_pole, 0.5)):
        env = termdp.observe(game, off_centre)
        obs, state = env.reset(key, env.default_params)
        obs, state, *_, info = env.step(key, state, 1, env.default_params)
        assert bool(info["stopped"])
        assert not np.array_equal(obs, info["final_observation"])
        calm = env.default_params.replace(bias=NEVER)
        obs, state = env.reset(key, calm)
        obs, state, *_, info = env.step(key, state, 1, calm)
        assert not bool(info["stopped"])
        assert np.array_equal(obs, info["final_observation"])


def test_wrapped_environment_resets_by_itself_when_its_game_ends(key):
    bare = StickyActionWrapper(Counter(), 0.0)
    env = termdp.observe(bare, termdp.Observer(action_is_cost, window=3))
    params = env.default_params.replace(bias=NEVER, game_over_at=2)
    obs, state = env.reset(key, params)
    times = []
    for _ in range(4):
        obs, state, *_, info = env.step(key, state, 1, params)
        times.append((int(obs[0]), bool(info["game_over"]), float(info["window_cost"])))
    assert times == [(1, False, 1), (0, True, 2), (1, False, 1), (0, True, 2)]


def test_vmaps_over_environments_and_observers(key):
    env, params = observed_counter(bias=NEVER)
    biases = jnp.array([NEVER, AT_ONCE])
    many = params.replace(bias=biases)
    axes = jax.tree.map(lambda leaf: 0 if leaf is biases else None, many)
    keys = jax.random.split(key, 2)
    _, states = jax.vmap(env.reset, (0, None))(keys, params)
    *_, info = jax.vmap(env.step, (0, 0, None, axes))(keys, states, 1, many)
    assert info["stopped"].tolist() == [False, True]


def test_parameters_change_without_recompiling(key):
    env, params = observed_counter(bias=NEVER)
    _, state = env.reset(key, params)
    env.step(key, state, 1, params)
    before = env.step._cache_size()
    changed = params.replace(bias=2.0, window=2, delay=1, max_steps_in_episode=5)
    env.step(key, state, 1, changed)
    assert env.step._cache_size() == before


def test_unknown_parameter_is_named():
    _, params = observed_counter()
    with pytest.raises(ValueError, match="expected a parameter .*bias.* got 'baias'"):
        params.replace(baias=1.0)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (
            lambda obs, action: obs,
            r"one number for one pair, got float32\[2\]: .*\.sum\(\)",
        ),
        (lambda obs, action: jnp.nan, "to be finite, got nan"),
    ],
)
def test_bad_costs_are_found_when_observing(cost, message):
    with pytest.raises(ValueError, match=message):
        termdp.observe(Counter(), termdp.Observer(cost))


def test_observing_twice_or_with_nobody_is_refused():
    env, _ = observed_counter()
    with pytest.raises(ValueError, match="without observer"):
        termdp.observe(env, env.observer)
    with pytest.raises(ValueError, match="expected a termdp.Observer, got 6"):
        termdp.observe(Counter(), 6)
