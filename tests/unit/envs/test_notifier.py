"""Notifier: rewards, interest, what is seen and what annoys, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.envs.notifier import (
    QUIET,
    SEND,
    SHOWN_STEPS,
    Notifier,
    NotifierDraws,
    NotifierState,
    interest,
)
from termdp.envs.notifier_costs import NotifierNuisanceCost

GAME = Notifier()
PARAMS = GAME.default_params


def state(mood: float = 0.0) -> NotifierState:
    return NotifierState(
        time=jnp.int32(3),
        mood=jnp.float32(mood),
        sent=jnp.bool_(False),
        opened=jnp.bool_(False),
        history=jnp.zeros(SHOWN_STEPS, jnp.int8),
    )


def draws(choice: float, noise: float = 0.0) -> NotifierDraws:
    return NotifierDraws(jnp.float32(choice), jnp.float32(noise))


@pytest.mark.parametrize(
    ("action", "choice", "reward"),
    [(SEND, 0.49, 1.0), (SEND, 0.51, 0.0), (QUIET, 0.0, 0.0)],
)
def test_a_notification_is_opened_with_the_probability_of_interest(
    action: int, choice: float, reward: float
) -> None:
    # mood 0: interest ½
    after, earned, game_over, info = GAME.advance(
        state(), action, draws(choice), PARAMS
    )
    assert float(earned) == reward
    assert not game_over
    assert bool(info["opened"]) == (reward == 1.0)
    assert int(after.history[-1]) == (action == SEND) + (reward == 1.0)


def test_the_mood_wanders_with_unit_variance() -> None:
    after, *_ = GAME.advance(state(1.0), QUIET, draws(0.5, noise=2.0), PARAMS)
    assert float(after.mood) == pytest.approx(0.8 * 1.0 + 0.6 * 2.0)
    # 0.8² + 0.6² = 1: the variance of the mood stays what it is at the start.


def test_what_is_seen() -> None:
    observation = GAME.get_obs(state(1.0), PARAMS)
    np.testing.assert_allclose(observation, [1 / (1 + np.exp(-2.0)), 0.0, 0.0], 1e-6)
    assert float(interest(state(-1.0), PARAMS)) == pytest.approx(1 / (1 + np.exp(2.0)))


@pytest.mark.parametrize(
    ("seen", "action", "cost"),
    [(1.0, SEND, 3.5), (0.0, SEND, 5.5), (0.25, SEND, 5.0), (0.25, QUIET, 0.0)],
)
def test_disturbing_costs_least_when_it_is_welcome(
    seen: float, action: int, cost: float
) -> None:
    observation = np.array([seen, 1.0, 1.0], np.float32)
    nuisance = NotifierNuisanceCost()
    assert nuisance(observation, action) == pytest.approx(cost)
    assert float(jax.jit(nuisance)(jnp.asarray(observation), action)) == pytest.approx(
        cost
    )
    relieved = nuisance.replace(relief=0.5)(observation, QUIET)
    assert relieved == pytest.approx(-0.5)
