"""The MinAtar costs on hand-made boards: hits and near misses."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.envs.asterix import Asterix
from termdp.envs.breakout import Breakout
from termdp.envs.cost_functions import (
    AsterixEnemyCost,
    AsterixMiddleCost,
    BreakoutEdgeCost,
    SeaquestDepthCost,
    SpaceInvadersBulletCost,
)
from termdp.envs.seaquest import Seaquest
from termdp.envs.space_invaders import SpaceInvaders


def board(game: Any, **cells: list[tuple[int, int]]) -> np.ndarray:
    """A board with things at (row, column), by the name of their channel."""
    observation = np.zeros((10, 10, len(game.channels)), bool)
    for name, places in cells.items():
        for row, column in places:
            observation[row, column, game.channels.index(name)] = True
    return observation


@pytest.mark.parametrize(
    ("column", "width", "cost"),
    [
        *[(0, 1, 1), (1, 1, 0), (5, 1, 0), (8, 1, 0), (9, 1, 1)],
        *[(1, 2, 1), (2, 2, 0), (7, 2, 0), (8, 2, 1), (0, 0, 0), (9, 0, 0), (4, 5, 1)],
    ],
)
def test_breakout_edge(column: int, width: int, cost: float) -> None:
    observation = board(Breakout, paddle=[(9, column)], ball=[(9, 0)], trail=[(9, 9)])
    assert BreakoutEdgeCost(width)(observation, 0) == cost


@pytest.mark.parametrize(
    ("bullet", "distance", "cost"),
    [
        *[((9, 5), 1, 1), ((8, 5), 1, 1), ((8, 4), 1, 1), ((8, 6), 1, 1)],
        *[((9, 4), 1, 1), ((7, 5), 1, 0), ((8, 3), 1, 0), ((8, 7), 1, 0)],
        *[((9, 7), 1, 0), ((0, 5), 1, 0), ((7, 3), 2, 1), ((6, 5), 2, 0)],
        *[((9, 5), 0, 1), ((8, 5), 0, 0)],
    ],
)
def test_space_invaders_bullet(
    bullet: tuple[int, int], distance: int, cost: float
) -> None:
    observation = board(SpaceInvaders, cannon=[(9, 5)], enemy_bullet=[bullet])
    assert SpaceInvadersBulletCost(distance)(observation, 0) == cost


def test_space_invaders_ignores_what_is_no_enemy_bullet() -> None:
    near = [(8, 4), (8, 5), (8, 6), (9, 6)]
    observation = board(
        SpaceInvaders, cannon=[(9, 5)], friendly_bullet=near, alien=near
    )
    assert SpaceInvadersBulletCost()(observation, 0) == 0


def test_space_invaders_at_the_edge_does_not_wrap() -> None:
    observation = board(SpaceInvaders, cannon=[(9, 0)], enemy_bullet=[(8, 9)])
    assert SpaceInvadersBulletCost()(observation, 0) == 0


@pytest.mark.parametrize(("row", "cost"), [(0, 0), (3, 0), (4, 1), (5, 0), (8, 0)])
def test_seaquest_depth(row: int, cost: float) -> None:
    observation = board(
        Seaquest, sub_front=[(row, 2)], sub_back=[(row, 3)], enemy_sub=[(4, 7)]
    )
    assert SeaquestDepthCost()(observation, 0) == cost
    assert SeaquestDepthCost(row)(observation, 0) == 1


@pytest.mark.parametrize(
    ("enemy", "distance", "cost"),
    [
        *[((5, 5), 1, 1), ((4, 4), 1, 1), ((6, 6), 1, 1), ((5, 6), 1, 1)],
        *[((6, 5), 1, 1), ((5, 7), 1, 0), ((3, 5), 1, 0), ((7, 4), 1, 0)],
        *[((4, 3), 1, 0), ((3, 7), 2, 1), ((2, 5), 2, 0), ((5, 5), 0, 1)],
        *[((5, 4), 0, 0)],
    ],
)
def test_asterix_enemy(enemy: tuple[int, int], distance: int, cost: float) -> None:
    observation = board(Asterix, player=[(5, 5)], enemy=[enemy])
    assert AsterixEnemyCost(distance)(observation, 0) == cost


def test_asterix_ignores_gold_and_finds_any_enemy() -> None:
    observation = board(Asterix, player=[(1, 0)], gold=[(1, 1)], trail=[(1, 0)])
    assert AsterixEnemyCost()(observation, 0) == 0
    observation = board(Asterix, player=[(1, 0)], enemy=[(8, 9), (2, 1)])
    assert AsterixEnemyCost()(observation, 0) == 1


@pytest.mark.parametrize(
    ("row", "rows", "cost"),
    [
        *[(1, 2, 0), (3, 2, 0), (4, 2, 1), (5, 2, 1), (6, 2, 0), (8, 2, 0), (3, 4, 1)],
        *[(6, 4, 1), (2, 4, 0), (7, 4, 0), (1, 8, 1), (8, 8, 1), (4, 0, 0)],
    ],
)
def test_asterix_middle(row: int, rows: int, cost: float) -> None:
    observation = board(Asterix, player=[(row, 7)], enemy=[(4, 2)], gold=[(5, 3)])
    assert AsterixMiddleCost(rows)(observation, 0) == cost


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float32])
def test_any_type_of_array_gives_a_float32_scalar(dtype: Any) -> None:
    observation = board(Asterix, player=[(5, 5)], enemy=[(5, 6)]).astype(dtype)
    in_numpy = AsterixEnemyCost()(observation, 0)
    in_jax = jax.jit(AsterixEnemyCost())(jnp.asarray(observation), 0)
    assert in_numpy == in_jax == 1
    assert in_numpy.dtype == in_jax.dtype == np.float32
    assert in_numpy.shape == in_jax.shape == ()
    assert isinstance(in_jax, jax.Array)
    assert not isinstance(in_numpy, jax.Array)


@pytest.mark.parametrize(
    ("game", "kind"),
    [
        (Breakout, BreakoutEdgeCost),
        (SpaceInvaders, SpaceInvadersBulletCost),
        (Seaquest, SeaquestDepthCost),
        (Asterix, AsterixEnemyCost),
        (Asterix, AsterixMiddleCost),
    ],
)
def test_parameters_are_traced_and_numpy_agrees(game: Any, kind: Any) -> None:
    num_traces = 0

    @jax.jit
    def costs(cost: Any, observations: jax.Array) -> jax.Array:
        nonlocal num_traces
        num_traces += 1
        return jax.vmap(cost, (0, None))(observations, 0)

    rng = np.random.default_rng(0)
    observations = np.zeros((64, 10, 10, len(game.channels)), bool)
    observations[..., 1:] = rng.random(observations[..., 1:].shape) < 0.05
    low = {Breakout: 9, SpaceInvaders: 9, Seaquest: 0, Asterix: 1}[game]
    rows = rng.integers(low, 10 if low == 9 else 9, 64)
    observations[np.arange(64), rows, rng.integers(0, 10, 64), 0] = True
    for parameter in range(4):
        cost = kind(parameter)
        ours = costs(cost, observations)
        assert ours.tolist() == [float(cost(o, 0)) for o in observations]
    assert num_traces == 1


def test_scale_makes_costs_dearer_and_relief_rewards_harmless_steps() -> None:
    at_edge = board(Breakout, paddle=[(9, 0)])
    inside = board(Breakout, paddle=[(9, 5)])
    cost = BreakoutEdgeCost(scale=2.5, relief=0.25)
    assert (cost(at_edge, 0), cost(inside, 0)) == (2.5, -0.25)
    assert float(jax.jit(cost)(jnp.asarray(inside), 0)) == -0.25
