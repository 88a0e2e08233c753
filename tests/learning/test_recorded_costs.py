"""Costs of Backseat Driver from 10,000 recorded stops of a random driver.

`make soak` learns three networks, which takes four minutes; `make test` learns one, for
half a minute.
"""

import os
import re
import runpy
import sys
from pathlib import Path

import pytest

from runs_long import optimised

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "recorded_costs.py"
SETTINGS = (
    *("network=columns", "channels=3", "buffer_steps=524288", "weight_decay=0.03"),
    *("learning_rate=0.01", "segments_per_step=16", "stops_per_step=64"),
)
IS_LONG = "TERMDP_LONG_TESTS" in os.environ
LONG = (["--steps", "3000"], ["rate_decay_steps=1000"], 0.8)
SHORT = (["--steps", "800"], ["rate_decay_steps=250", "members=1"], 0.7)


def test_costs_of_single_steps_are_found(monkeypatch, capsys):
    steps, numbers, least = LONG if IS_LONG else SHORT
    words = [str(SCRIPT), "backseat", *steps, "--set", *SETTINGS, *numbers]
    monkeypatch.setattr(sys, "argv", words)
    with optimised():
        runpy.run_path(str(SCRIPT), run_name="__main__")
    said = capsys.readouterr().out
    found = re.search(r"(\d+) stops, correlation ([\d.]+), bias ([\d.]+)", said)
    stops, correlation, bias = map(float, found.groups())
    assert 10_000 <= stops < 10_200
    assert correlation >= least
    assert bias == pytest.approx(6.0, abs=0.5)
