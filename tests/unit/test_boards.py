"""What an onlooker sees on a board, against a slow twin."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termdp.boards import REACHES, board_columns, board_names, num_board_columns

SHAPE = (4, 5, 3)
CELLS = [(row, column) for row in range(4) for column in range(5)]


def twin(board):
    """Cell by cell."""
    found = [any(board[row, c, 0] for c in range(5)) for row in range(4)]
    found += [any(board[r, column, 0] for r in range(4)) for column in range(5)]
    for reach in REACHES:
        for channel in (1, 2):
            found.append(
                any(
                    board[y, x, channel] and board[v, u, 0]
                    for y, x in CELLS
                    for v, u in CELLS
                    if max(abs(y - v), abs(x - u)) <= reach
                )
            )
    return np.array(found, np.float32)


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=60, max_size=60))
def test_columns_are_those_of_the_twin_for_numpy_and_jax(bits):
    board = np.array(bits).reshape(SHAPE)
    np.testing.assert_array_equal(board_columns(board, np), twin(board))
    np.testing.assert_array_equal(board_columns(jnp.asarray(board), jnp), twin(board))
    many = board_columns(np.stack([board, ~board]), np)
    np.testing.assert_array_equal(many, [twin(board), twin(~board)])


def test_names_say_what_columns_are():
    names = board_names(SHAPE, ("player", "enemy", "gold"))
    assert len(names) == num_board_columns(SHAPE)
    board = np.zeros(SHAPE, np.uint8)
    board[1, 3, 0] = board[2, 2, 1] = board[1, 0, 2] = 7
    seen = board_columns(board, np)
    assert {name for name, value in zip(names, seen, strict=True) if value} == {
        "player in row 2",
        "player in column 4",
        "enemy within 1 of player",
        "enemy within 3 of player",
        "gold within 3 of player",
    }


@pytest.mark.parametrize("xp", [np, jnp])
def test_an_empty_board_has_nothing(xp):
    assert not board_columns(xp.zeros(SHAPE, bool), xp).any()
