"""A run as data: from calls and files to a spec, and from a spec to a job."""

import dataclasses
import json

import numpy as np
import pytest

import termdp
from termdp.agents.methods import Method
from termdp.envs.backseat import BackseatDriver
from termdp.registry import find
from termdp.runs.config import flat_numbers
from termdp.runs.spec import (
    RunSpec,
    config_as_toml,
    make_env,
    make_job,
    make_spec,
    read_config,
    spec_from_plain,
)
from tiny_config import tiny
from tiny_envs import Counter, action_is_cost


@pytest.mark.parametrize(
    "spec",
    [
        RunSpec("breakout"),
        RunSpec("breakout", Method("mine", discount=0.5), numbers={"clip": 0.1}),
        RunSpec("seaquest", observer=False, env_numbers={"row": 5}, seed=7),
        RunSpec("own", observer="a.safetensors", unserialised=("env", "algorithm")),
    ],
)
def test_a_spec_survives_json(spec):
    assert spec_from_plain(json.loads(json.dumps(spec.to_plain()))) == spec


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seeds", 0),
        ("seeds", 10**9),
        ("seed", -1),
        ("seed", 2**70),
        ("steps", 0),
        ("steps", 10**30),
        ("snapshots", 51),
        ("preset", "slow"),
    ],
)
def test_impossible_counts_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name}.*got|expected a preset"):
        RunSpec("breakout", **{name: value})


def test_seeds_that_would_repeat_others_are_refused():
    with pytest.raises(ValueError, match="expected seeds below 4294967296"):
        RunSpec("breakout", seed=2**32 - 1, seeds=2)


def test_numbers_of_numpy_and_jax_are_plain():
    spec = make_spec(
        "recommender", "pg", numbers={"bias": np.float32(2.0)}, steps=np.int64(4096)
    )
    assert (spec.env_numbers, spec.steps) == ({"bias": 2.0}, 4096)
    json.dumps(spec.to_plain())


def test_keywords_win_over_the_config(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("learning_rate = 0.5\nclip = 0.1\nsteps = 5000\nbias = 3.0\n")
    spec = make_spec("recommender", "pg", path, numbers={"clip": 0.2}, seed=4)
    assert spec.numbers == {"learning_rate": 0.5, "clip": 0.2}
    assert (spec.steps, spec.seed, spec.env_numbers) == (5000, 4, {"bias": 3.0})
    path = tmp_path / "c.json"
    path.write_text('{"num_envs": 16}')
    assert make_spec("recommender", "pg", str(path)).numbers == {"num_envs": 16}


def _cost_network(env, **choices):
    costs = make_job(make_spec(env, "termpg", **choices)).config.costs
    return costs.network, costs.channels


def test_an_environment_chooses_its_cost_network():
    assert _cost_network("breakout") == ("grid", None)
    assert _cost_network("backseat") == ("columns", 3)
    assert _cost_network("backseat_passenger") == ("columns", 3)
    assert _cost_network("backseat", preset="paper") == ("image", None)
    picture = {"observation": "image"}
    assert _cost_network("backseat", numbers=picture) == ("image", None)


def test_a_user_chooses_it_before_the_environment():
    grid, columns = {"cost_network": "grid"}, {"cost_network": "columns"}
    assert _cost_network("backseat", numbers=grid) == ("grid", None)
    assert _cost_network("backseat", numbers=columns) == ("columns", 3)
    assert _cost_network("backseat", numbers={"cost_channels": 6}) == ("columns", 6)


def test_scorers_of_episodes_learn_more_slowly_unless_a_user_says_otherwise():
    def rate(method, **options):
        return make_job(
            RunSpec("notifier", method, **options)
        ).config.costs.learning_rate

    assert rate("ct") == rate("traces") == 1e-3 < rate("termpg")
    assert rate("ct", numbers={"cost_learning_rate": 0.5}) == 0.5
    assert rate("ct", preset="paper") == rate("termpg", preset="paper")


def test_methods_that_compare_cost_networks_have_three_unless_a_user_says_otherwise():
    def networks(method, **numbers):
        spec = RunSpec("notifier", method, numbers=numbers)
        return make_job(spec).config.costs.members

    for method in ("termpg", "termpg_mean", "termpg_penalty", "ppo_lagrangian", "ct"):
        assert networks(method) == 1
    for method in ("termpg_paper", "termpg_std", "termpg_logit", "termpg_bonus_1"):
        assert networks(method) == 3
    assert networks("termpg", optimism="min") == networks("termpg", bonus=0.5) == 3
    assert networks("termpg_paper", cost_members=2) == 2
    paper = make_job(RunSpec("notifier", "termpg", preset="paper"))
    assert paper.config.costs.members == 3


@pytest.mark.parametrize("name", ["cost_netwrok", "discount"])
def test_an_environment_can_only_choose_what_there_is(name, monkeypatch):
    monkeypatch.setattr(BackseatDriver, "fast_numbers", {name: 1})
    with pytest.raises(
        ValueError, match=f"fast_numbers of BackseatDriver, got '{name}'"
    ):
        make_job(make_spec("backseat", "termpg"))


def test_a_train_config_is_a_config():
    spec = make_spec("recommender", "termpg", tiny(num_envs=2))
    job = make_job(dataclasses.replace(spec, steps=64, env_numbers={"window": 4}))
    assert (job.config.num_envs, job.config.costs.hidden) == (2, 4)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("c.toml", "clip = ", "expected TOML"),
        ("c.json", "{", "expected JSON"),
        ("c.json", "[1]", "a table of names"),
        ("c.toml", "[ppo]\nclip = 1.0", "a flat table"),
        ("c.json", "[" * 99999, "expected JSON"),
    ],
)
def test_bad_config_files_are_named(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_config(path)
    with pytest.raises(ValueError, match="no such file"):
        read_config(tmp_path / "none.toml")


@pytest.mark.parametrize("method", ["termpg", "pg", "oracle"])
def test_what_is_printed_can_be_read_again(tmp_path, method):
    spec = make_spec("breakout", method, numbers={"clip": 0.1, "width": 3}, steps=4096)
    job = make_job(spec)
    path = tmp_path / "c.toml"
    path.write_text(config_as_toml(spec, job.methods[0], job.config))
    again = make_spec("breakout", method, path)
    expected = flat_numbers(job.methods[0], job.config)
    found = make_job(again)
    assert flat_numbers(found.methods[0], found.config) == expected
    assert again.env_numbers == {"width": 3}
    assert again.steps == 4096


def test_a_matched_discount_comes_from_the_environment():
    for env in ("breakout", "backseat"):
        found = RunSpec(env, "pg_matched").resolved_method().discount
        assert found == find(env).matched_discount
    with pytest.raises(ValueError, match="matched discount, got 'notifier'"):
        RunSpec("notifier", "pg_matched").resolved_method()


def test_numbers_that_a_method_does_not_use_are_refused():
    with pytest.raises(ValueError, match="that pg uses, got optimism"):
        RunSpec("breakout", "pg", numbers={"optimism": "min"}).resolved_method()


def test_where_nobody_watches_nobody_stops():
    _, params = make_env(RunSpec("breakout", observer=False))
    assert float(params.observer.bias) == 1e9
    _, params = make_env(
        RunSpec("own", observer=False, unserialised=("env",)), Counter()
    )
    assert float(params.observer.bias) == 1e9


def test_another_observer_does_not_inherit_the_numbers_of_the_one_before():
    spec = RunSpec(
        "breakout", env_numbers={"bias": 9.0, "width": 3, "sticky_prob": 0.0}
    )
    other = spec.with_observer(False)
    assert other.env_numbers == {"sticky_prob": 0.0}
    assert spec.with_observer(None) == spec
    mine = termdp.Observer(lambda observation, action: 0.0, bias=2.0)
    _, params = make_env(spec.with_observer(mine), observer=mine)
    assert float(params.observer.bias) == 2.0


def test_an_environment_of_ones_own_needs_an_observer_or_the_word_that_nobody_watches():
    spec = RunSpec("own", unserialised=("env",))
    with pytest.raises(ValueError, match="pass observer=termdp.Observer"):
        make_env(spec, Counter())
    observer = termdp.Observer(action_is_cost, bias=2.0)
    env, params = make_env(spec, Counter(), observer=observer)
    assert float(params.observer.bias) == 2.0
    _, params = make_env(dataclasses.replace(spec, env_numbers={"bias": 5.0}), env)
    assert float(params.observer.bias) == 5.0


def test_nothing_that_is_given_is_ignored():
    _, params = termdp.make("notifier")
    with pytest.raises(ValueError, match="params only with your own environment"):
        termdp.train("notifier", "pg", steps=2048, params=params)
    with pytest.raises(ValueError, match="out=… with snapshots"):
        termdp.train("notifier", "pg", steps=2048, snapshots=3)


def test_what_no_file_can_hold_must_be_given_again():
    spec = RunSpec("own", unserialised=("env",))
    with pytest.raises(
        ValueError, match=r"your own env, .*: continue from Python, with env=…"
    ):
        make_job(spec)
    with pytest.raises(ValueError, match="expected no algorithm=…"):
        make_job(RunSpec("breakout"), algorithm=object())
