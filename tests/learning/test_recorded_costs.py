"""Costs of Backseat Driver from 10,000 recorded stops of a random driver.

`make soak` learns three networks, which takes four minutes; `make test` learns one, for
half a minute.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "recorded_costs.py"
SETTINGS = (
    *("network=columns", "channels=3", "buffer_steps=524288", "weight_decay=0.03"),
    *("learning_rate=0.01", "segments_per_step=16", "stops_per_step=64"),
)
IS_LONG = "TERMDP_LONG_TESTS" in os.environ
LONG = (["--steps", "3000"], ["rate_decay_steps=1000"], 0.8)
SHORT = (["--steps", "800"], ["rate_decay_steps=250", "members=1"], 0.7)


def test_costs_of_single_steps_are_found():
    steps, numbers, least = LONG if IS_LONG else SHORT
    command = [sys.executable, SCRIPT, "backseat", *steps, "--set", *SETTINGS, *numbers]
    # Compiled as users compile: the program runs for long.
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"(\d+) stops, correlation ([\d.]+), bias ([\d.]+)", done.stdout)
    stops, correlation, bias = map(float, found.groups())
    assert 10_000 <= stops < 10_200
    assert correlation >= least
    assert bias == pytest.approx(6.0, abs=0.5)
