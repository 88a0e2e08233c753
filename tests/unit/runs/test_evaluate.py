"""Fresh episodes: under whom, how they end, and never silently the wrong observer."""

import numpy as np
import pytest

import termdp
from termdp.runs.evaluate import Evaluation, place_of
from tiny_config import tiny
from tiny_envs import Counter, action_is_cost

CONFIG = tiny()
# Observers here are meant to be impossible to please.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::termdp.runs.advice.ObserverWarning"),
]
STOPS_AT_ONCE = termdp.Observer(lambda observation, action: 0.0, window=1, bias=-50.0)


def mine(bias=1e6):
    return termdp.observe(
        Counter(), termdp.Observer(action_is_cost, window=3, bias=bias)
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    env = mine()
    params = env.default_params.replace(game_over_at=7)
    folder = tmp_path_factory.mktemp("evaluate") / "run"
    return termdp.train(
        env, "pg", params=params, steps=64, seeds=2, config=CONFIG, out=folder
    )


def test_a_result_is_played_where_it_was_trained(result):
    found = termdp.evaluate(result, episodes=8)
    assert found.return_mean == found.length_mean == 7.0
    assert (found.game_over_rate, found.stop_rate, found.truncated_rate) == (1, 0, 0)
    assert set(found.parts) == {0, 1}
    assert len(found.returns) == 16


def test_another_observer_and_none(result):
    env = mine()
    params = env.default_params.replace(game_over_at=7)
    options = {"env": env, "params": params, "episodes": 8}
    found = termdp.evaluate(result.folder, observer=STOPS_AT_ONCE, **options)
    assert (found.stop_rate, found.return_mean) == (1.0, 1.0)
    found = termdp.evaluate(result.folder, observer=False, **options)
    assert (found.stop_rate, found.game_over_rate) == (0.0, 1.0)
    found = termdp.evaluate(result.agent(), **options)
    assert found.game_over_rate == 1.0


def test_what_no_file_can_hold_is_asked_for(result):
    with pytest.raises(ValueError, match=r"expected env=…"):
        termdp.evaluate(result.folder, episodes=4)
    with pytest.raises(ValueError, match=r"expected env=…"):
        termdp.evaluate(result.agent(), episodes=4)


@pytest.fixture(scope="module")
def notifier(tmp_path_factory):
    """Trained under an impatient observer, unlike the environment's own."""
    folder = tmp_path_factory.mktemp("evaluate") / "notifier"
    termdp.train("notifier", "pg", steps=2048, bias=-50.0, out=folder)
    return folder


def test_the_observer_of_training_is_kept(notifier):
    _, params = place_of(termdp.load(notifier))
    assert float(params.observer.bias) == -50.0
    assert termdp.evaluate(notifier, episodes=8).stop_rate == 1.0
    _, params = place_of(termdp.load(notifier), "notifier")
    assert float(params.observer.bias) == 10.0
    assert termdp.evaluate(notifier, observer=False, episodes=8).stop_rate == 0.0


def test_an_observer_of_python_is_never_replaced_in_silence(tmp_path):
    options = {"steps": 2048, "observer": STOPS_AT_ONCE, "out": tmp_path / "run"}
    termdp.train("notifier", "pg", **options)
    with pytest.raises(ValueError, match=r"expected observer=…"):
        termdp.evaluate(tmp_path / "run", episodes=4)
    found = termdp.evaluate(tmp_path / "run", observer=STOPS_AT_ONCE, episodes=4)
    assert found.stop_rate == 1.0


def test_deterministic_episodes_of_a_deterministic_game_are_all_alike(result):
    env = mine(bias=1e6)
    params = env.default_params.replace(game_over_at=7)
    found = termdp.evaluate(
        result.agent(), env, params=params, episodes=6, deterministic=True
    )
    assert np.all(found.returns == found.returns[0])


def test_an_environment_that_does_not_fit_is_refused(notifier):
    with pytest.raises(ValueError, match=r"observations of shape .* from Breakout"):
        termdp.evaluate(notifier, "breakout", episodes=2)
    _, params = termdp.make("notifier")
    with pytest.raises(ValueError, match="params only with your own environment"):
        termdp.evaluate(notifier, params=params, episodes=2)
    for episodes in (0, 10**9):
        with pytest.raises(ValueError, match="expected episodes from 1 to 100000"):
            termdp.evaluate(notifier, episodes=episodes)


def test_intervals_by_hand():
    ends = np.array(["stopped", "game_over", "truncated"], object)
    one = Evaluation(np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3]), ends)
    # Student's t with two degrees of freedom: 4.303 · 1 / √3.
    assert one.return_interval == pytest.approx((2 - 2.484, 2 + 2.484), abs=1e-3)
    assert one.stop_rate == one.game_over_rate == one.truncated_rate == 1 / 3
    other = Evaluation(np.full(3, 6.0), np.ones(3), ends)
    both = Evaluation(
        np.concatenate([one.returns, other.returns]),
        np.ones(6),
        np.concatenate([ends, ends]),
        {0: one, 1: other},
    )
    # Two seeds with means 2 and 6: 12.706 · 2.828 / √2.
    assert both.return_mean == 4.0
    assert both.return_interval == pytest.approx((4 - 25.412, 4 + 25.412), abs=1e-2)
    alone = Evaluation(np.array([1.0]), np.array([1]), ends[:1])
    assert alone.return_interval is None
    assert alone.to_plain()["return_interval"] is None
    assert "return 4 (" in repr(both)
