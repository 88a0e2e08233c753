"""The demo, small: it trains, plays, and says only what its numbers support."""

import dataclasses

import numpy as np
import pytest

from termdp.report import demo
from termdp.runs.evaluate import Evaluation


@pytest.fixture(scope="module")
def small():
    settings = demo.DemoSettings(steps=4 * 2048, seeds=2, episodes=8)
    told = []
    results = demo.run_demo(settings, lambda *words: told.append(words))
    return settings, results, told


def test_everything_is_on_the_page(small, tmp_path):
    settings, results, told = small
    page = demo.write_page(results, settings, tmp_path / "demo").read_text()
    assert demo.verdict(results).split(":")[0] in page
    assert page.count("data:image/gif") == 3
    assert page.count("data:image/png") == 2
    assert "http" not in page.replace("http://www.w3.org", "")
    assert told[0][2] == "compiling"
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    assert {"index.html", "learning.png", "costs.png", "pg.gif"} <= names


def test_costs_are_compared_step_by_step(small):
    settings, results, _ = small
    truths, guesses = demo.cost_pairs(results)
    assert len(truths) == settings.seeds
    # Notifier: a step costs nothing or 3.5 to 5.5.
    assert all(((t == 0) | ((t >= 3.5) & (t <= 5.5))).all() for t in truths)
    assert [t.shape for t in truths] == [g.shape for g in guesses]
    assert all(np.isfinite(g).all() and g.std() > 0 for g in guesses)


@pytest.mark.parametrize(
    ("gaps", "words"),
    [
        ([2.0, 2.1, 1.9], "TermPG earns more than PPO"),
        ([-2.0, -2.1, -1.9], "TermPG earns less than PPO"),
        ([2.0, -2.1, 0.5], "is not clear"),
    ],
)
def test_a_difference_is_claimed_only_when_its_interval_excludes_zero(
    small, gaps, words
):
    _, results, _ = small

    def played(returns):
        return [
            Evaluation(np.array([value]), np.ones(1), np.array(["stopped"], object))
            for value in returns
        ]

    each = {"pg": played(np.zeros(3)), "termpg": played(gaps)}
    assert words in demo.verdict(dataclasses.replace(results, played=each))
