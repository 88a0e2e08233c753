"""Windows, leaks and labels, against slow loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termdp.costs.buffer import NO_LABEL, NOT_STOPPED, STOPPED
from termdp.logs.memory import Memory, remembered, step_labels
from termdp.logs.sessions import CENSORED, GAME_OVER

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=5)


def laid_out(lengths):
    first = np.append(0, np.cumsum(lengths))
    return first, np.repeat(first[:-1], lengths)


@settings(max_examples=40, deadline=None)
@given(LENGTHS, st.integers(1, 12), st.integers(0, 99))
def test_windows_are_sums_of_the_last_steps_of_the_session(lengths, window, seed):
    first, begin = laid_out(lengths)
    values = np.random.default_rng(seed).normal(size=(first[-1], 2))
    found = remembered(values, begin, Memory(window=window))
    for row, start in enumerate(begin):
        low = max(start, row - window + 1)
        np.testing.assert_allclose(
            found[row], values[low : row + 1].sum(axis=0), atol=1e-12
        )


@settings(max_examples=40, deadline=None)
@given(LENGTHS, st.floats(0.05, 1.0), st.integers(0, 99))
def test_a_leak_keeps_its_share_from_step_to_step(lengths, leak, seed):
    first, begin = laid_out(lengths)
    values = np.random.default_rng(seed).normal(size=first[-1])
    found, before = remembered(values, begin, Memory(leak=leak)), 0.0
    for row, start in enumerate(begin):
        before = values[row] + (leak * before if row > start else 0.0)
        assert found[row] == pytest.approx(before, abs=1e-6)


@pytest.mark.parametrize(
    ("end", "delay", "expected"),
    [
        (STOPPED, 0, [0, 0, 0, 1]),
        (STOPPED, 1, [0, 0, 1, -1]),
        (STOPPED, 9, [1, -1, -1, -1]),
        (GAME_OVER, 0, [0, 0, 0, -1]),
        (GAME_OVER, 2, [0, -1, -1, -1]),
        (CENSORED, 0, [0, 0, 0, 0]),
        (CENSORED, 1, [0, 0, 0, -1]),
        (CENSORED, 9, [-1, -1, -1, -1]),
    ],
)
def test_labels_of_each_end_and_delay(end, delay, expected):
    assert (NO_LABEL, NOT_STOPPED, STOPPED) == (-1, 0, 1)
    # A second session beside it changes nothing.
    first, ends = np.array([0, 4, 6]), np.array([end, STOPPED])
    assert step_labels(first, ends, delay)[:4].tolist() == expected


def test_spans_make_windows_and_leaks_comparable():
    assert Memory(window=20).span == pytest.approx(Memory(leak=0.95).span)
    assert str(Memory(window=20, delay=2)) == "window 20, delay 2"
