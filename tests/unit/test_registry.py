"""One entry per environment: what it promises is what is made."""

import dataclasses
import subprocess
import sys

import gymnasium
import jax
import numpy as np
import pytest

import termdp
from bench_results import write_results
from termdp.bench.suites import SUITES, Column, Row, Suite
from termdp.cli import main
from termdp.registry import REGISTRY, EnvironmentEntry, find, register
from termdp.render.drawing import Drawing, picture
from termdp.report.names import column_colours, column_name
from tiny_envs import Counter, action_is_cost


def draw_counter(game, state, observation):
    drawing = Drawing(4, 2, background="#ffffff")
    drawing.rect(0, 0, float(min(state.time, 4)), 2, "#000000")
    return drawing


COUNTER = EnvironmentEntry(
    id="counter",
    gym_id="termdp/Counter-v0",
    description="Counter: counts its steps",
    cost="the action's number",
    display_name="The counter",
    colour="#123456",
    observation_shape=(2,),
    num_actions=3,
    game=lambda: Counter,
    cost_function=lambda game: action_is_cost,
    renderer=draw_counter,
    window=4,
    bias=5.0,
)


@pytest.fixture
def counter():
    register(COUNTER)
    yield COUNTER
    del REGISTRY["counter"], gymnasium.registry["termdp/Counter-v0"]


def test_an_environment_is_registered_on_the_fly(counter, key):
    env, params = termdp.make("counter", bias=2.0)
    assert (params.observer.window, params.observer.bias) == (4, 2.0)
    obs, state = env.reset(key, params)
    *_, info = env.step(key, state, 2, params)
    assert float(info["cost"]) == 2.0
    assert obs.shape == find("counter").observation_shape
    assert (find("counter").display_name, find("counter").colour) == (
        "The counter",
        "#123456",
    )
    bare, params = termdp.make("counter", observer=False, game_over_at=3)
    assert isinstance(bare, Counter) and params.game_over_at == 3


def test_it_has_a_gymnasium_id_with_pictures(counter):
    env = gymnasium.make("termdp/Counter-v0", render_mode="rgb_array", bias=1e6)
    env.reset(seed=0)
    env.step(1)
    env.step(1)
    pixels = env.render()
    assert pixels.shape == (320, 640, 3)
    assert pixels.mean() == pytest.approx(255 / 2)
    vector = gymnasium.make_vec("termdp/Counter-v0", num_envs=2, bias=1e6)
    vector.reset(seed=0)
    assert vector.step(np.array([1, 2]))[4]["cost"].tolist() == [1.0, 2.0]
    spec = gymnasium.spec("termdp/Counter-v0")
    assert gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()) == spec


@pytest.mark.slow
def test_it_trains_is_filmed_and_reported(counter, tmp_path, monkeypatch, capsys):
    """One entry is enough: nothing else knows of this environment."""
    small = ("--num-envs", "4", "--rollout-steps", "8", "--num-minibatches", "2")
    run, film = tmp_path / "run", tmp_path / "film.gif"
    main(["train", "counter", "pg", "--steps", "64", *small, "--out", str(run)])
    main(["video", str(run), str(film), "--max-steps", "5"])
    assert film.stat().st_size > 0
    columns = (Column("counter", "counter"), Column("breakout", "breakout"))
    suite = Suite(
        "mine", "a suite", columns, (Row("pg", "pg"), Row("termpg", "termpg"))
    )
    monkeypatch.setitem(SUITES, "mine", suite)
    results = tmp_path / "results"
    write_results(results, lambda column, row, seed: 10.0 + seed, suite="mine")
    capsys.readouterr()
    main(["report", str(results)])
    assert "The counter" in (results / "report.html").read_text()
    assert column_name("counter_hard") == "The counter hard"
    assert column_colours(["breakout", "counter"])["counter"] == "#123456"


def test_a_renderer_may_return_pixels(counter, key):
    pixels = np.zeros((5, 6, 3), np.uint8)
    entry = dataclasses.replace(counter, renderer=lambda game, state, obs: pixels)
    obs, state = Counter().reset(key)
    assert picture(entry.drawer(Counter())(state, obs)).shape == (5, 6, 3)
    without = dataclasses.replace(counter, renderer=None)
    with pytest.raises(ValueError, match="can be drawn, got 'counter'"):
        without.drawer(Counter())


def test_entries_that_cannot_be_used_are_refused(counter):
    with pytest.raises(ValueError, match="ids? .*new, got 'counter'"):
        register(counter)
    with pytest.raises(ValueError, match="new, got 'other' and 'termdp/Counter-v0'"):
        register(dataclasses.replace(counter, id="other"))
    with pytest.raises(ValueError, match="either cost_function or observer .* neither"):
        dataclasses.replace(counter, cost_function=None)
    with pytest.raises(ValueError, match="either cost_function or observer .* both"):
        dataclasses.replace(counter, observer=lambda game: None)
    with pytest.raises(ValueError, match="colour as #rrggbb .* got 'red'"):
        dataclasses.replace(counter, colour="red")


def test_without_a_renderer_there_are_no_pictures(counter):
    REGISTRY["counter"] = dataclasses.replace(counter, renderer=None)
    assert gymnasium.make("termdp/Counter-v0").metadata["render_modes"] == []


@pytest.mark.parametrize("env_id", list(REGISTRY))
def test_entries_say_what_is_made(env_id):
    entry = REGISTRY[env_id]
    env, params = termdp.make(env_id)
    assert env.observation_space(params).shape == entry.observation_shape
    assert env.num_actions == entry.num_actions
    assert env.action_space(params).n == entry.num_actions
    assert params.observer.window == entry.window
    assert params.observer.bias == pytest.approx(entry.bias, abs=0.005)


def test_ids_names_and_colours_are_unique():
    for attribute in ("gym_id", "display_name", "colour"):
        values = [getattr(entry, attribute) for entry in REGISTRY.values()]
        assert len(set(values)) == len(values), attribute


def test_two_observers_of_one_game_share_the_rest():
    one, other = find("asterix"), find("asterix_middle")
    assert (one.game, one.renderer) == (other.game, other.renderer)
    assert find("backseat_passenger").paper_image
    assert not find("breakout").paper_image
    assert 0.9 < find("breakout").matched_discount < 1
    assert find("asterix_middle").matched_discount is None


def test_a_misspelt_override_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="got 'baias': did you mean bias"):
        termdp.make("breakout", baias=2.0)
    with pytest.raises(ValueError, match="did you mean use_minimal_action_set"):
        termdp.make("breakout", minimal_action_set=False)
    with pytest.raises(ValueError, match="of the game .* did you mean sticky_prob"):
        termdp.make("breakout", observer=False, sticky_probability=0.0)
    with pytest.raises(ValueError, match="got 'zzz': no name is near it"):
        termdp.make("breakout", zzz=1)


def test_override_names_are_those_that_make_takes():
    names = find("breakout").override_names()
    for name in ("use_minimal_action_set", "sticky_prob", "window", "bias", "width"):
        assert name in names
    assert len(set(names)) == len(names)
    assert "scale" in find("backseat_passenger").override_names()


def test_the_table_is_read_without_jax():
    code = (
        "import sys, termdp.registry as r\n"
        "assert [e.num_actions for e in r.REGISTRY.values()]\n"
        "from termdp.cli import main; main(['envs', '--json'])\n"
        "assert 'jax' not in sys.modules and 'flax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_states_are_drawn_from_the_device(key):
    entry = find("notifier")
    game = entry.game()()
    obs, state = game.reset(key)
    assert isinstance(state.mood, jax.Array)
    assert picture(entry.drawer(game)(state, obs)).shape == (320, 512, 3)
