"""The demo, small: it trains, plays, and says only what its numbers support."""

import dataclasses

import numpy as np
import pytest
from PIL import Image

from runs_long import optimised
from termdp.report import demo, demo_page
from termdp.runs.evaluate import Evaluation


@pytest.fixture(scope="module")
def small():
    settings = demo.DemoSettings(steps=2 * 2048, seeds=2, episodes=8)
    told = []
    with optimised():
        results = demo.run_demo(settings, lambda *words: told.append(words))
    return settings, results, told


def test_everything_is_on_the_page(small, tmp_path):
    settings, results, told = small
    page = demo_page.write_page(results, settings, tmp_path / "demo").read_text()
    assert demo.verdict(results).split(":")[0] in page
    assert page.count("data:image/gif") == 3
    assert page.count("data:image/svg") == 4
    assert page.index("data:image/gif") < page.index("Results")
    assert "http" not in page.replace("http-equiv", "")
    assert told[0][2] == "compiling"
    durations = []
    for method in demo.METHODS:
        with Image.open(tmp_path / "demo" / f"{method}.gif") as film:
            durations.append(sum(_duration(film, n) for n in range(film.n_frames)))
    assert len(set(durations)) == 1, "the films do not keep step"


def _duration(film, number):
    film.seek(number)
    return film.info["duration"]


def test_the_films_returns_and_the_tables_means_agree_in_words(small):
    _, results, _ = small
    rides = {method: demo.typical_ride(results, method) for method in demo.METHODS}
    for method, ride in rides.items():
        others = results.returns(method).mean()
        assert ride.total == pytest.approx(others, abs=0.15)
    said = demo_page.typical(rides, results)
    for method, name in (("pg", "PG"), ("termpg", "TermPG"), ("oracle", "Oracle")):
        mean = results.returns(method).mean()
        assert f"{name} {rides[method].total:.1f} (mean {mean:.1f})" in said


def test_costs_are_compared_step_by_step(small):
    settings, results, _ = small
    truths, guesses = demo.cost_pairs(results)
    assert len(truths) == settings.seeds
    assert all(((t == 0) | (t == demo.TURN_COST)).all() for t in truths)
    assert [t.shape for t in truths] == [g.shape for g in guesses]
    assert all(np.isfinite(g).all() and g.std() > 0 for g in guesses)


@pytest.mark.parametrize(
    ("gaps", "words"),
    [
        ([2.0, 2.1, 1.9], "TermPG earns more than PG (plain PPO)"),
        ([-2.0, -2.1, -1.9], "TermPG earns less than PG (plain PPO)"),
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
