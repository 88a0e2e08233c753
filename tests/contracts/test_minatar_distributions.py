"""With its own chance each, our games and the originals are the same in law."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minatar import Environment
from minatar_oracle import GAMES
from scipy import stats

NUM_EPISODES = 1_200


def play_original(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns and lengths of random episodes of the original, sticky as by default."""
    rng = np.random.default_rng(seed)
    env = Environment(name)
    env.seed(seed)
    actions = GAMES[name]().action_set
    returns, lengths = np.zeros(NUM_EPISODES), np.zeros(NUM_EPISODES)
    for i in range(NUM_EPISODES):
        env.reset()
        env.last_action = 0
        game_over = False
        while not game_over:
            reward, game_over = env.act(actions[int(rng.random() * len(actions))])
            returns[i] += reward
            lengths[i] += 1
    return returns, lengths


def play_ours(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for our game: one episode in each of many environments."""
    game = GAMES[name]()
    params = game.default_params

    def step(key: jax.Array, state: Any) -> Any:
        key_act, key_step = jax.random.split(key)
        action = jax.random.randint(key_act, (), 0, game.num_actions)
        return game.step_env(key_step, state, action, params)[1:4]

    def body(carry: Any) -> Any:
        key, state, over, returns, lengths = carry
        key, key_steps = jax.random.split(key)
        keys = jax.random.split(key_steps, NUM_EPISODES)
        state, reward, game_over = jax.vmap(step)(keys, state)
        returns, lengths = returns + jnp.where(over, 0, reward), lengths + ~over
        return key, state, over | game_over, returns, lengths

    @jax.jit
    def play(key: jax.Array) -> Any:
        keys = jax.random.split(key, NUM_EPISODES)
        _, state = jax.vmap(game.reset_env, (0, None))(keys, params)
        nothing = jnp.zeros(NUM_EPISODES)
        start = (key, state, nothing > 0, nothing, nothing)
        return jax.lax.while_loop(lambda carry: ~carry[2].all(), body, start)[3:]

    returns, lengths = play(jax.random.key(seed))
    return np.asarray(returns), np.asarray(lengths)


@pytest.mark.parametrize("name", GAMES)
def test_random_episodes_have_equal_distributions(name: str) -> None:
    originals, ours = play_original(name, seed=1), play_ours(name, seed=2)
    for what, original, our in zip(("return", "length"), originals, ours, strict=True):
        same_shape = stats.ks_2samp(original, our, method="asymp").pvalue
        same_rank = stats.mannwhitneyu(original, our).pvalue
        print(
            f"{name} {what}: {original.mean():.3f} and {our.mean():.3f}, "
            f"p {same_shape:.3f} and {same_rank:.3f}"
        )
        assert min(same_shape, same_rank) > 0.001, (
            f"{what}: {original.mean():.3f} in the original, {our.mean():.3f} here"
        )


def test_a_small_difference_would_be_noticed() -> None:
    """As many episodes tell a mean length of 20 from one of 17."""
    rng = np.random.default_rng(0)
    sample = rng.geometric(0.05, NUM_EPISODES), rng.geometric(0.06, NUM_EPISODES)
    assert stats.mannwhitneyu(*sample).pvalue < 0.001
