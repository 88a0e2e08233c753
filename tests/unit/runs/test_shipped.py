"""The agents that come with the package."""

import json

import jax
import numpy as np
import pytest

import termdp
from termdp.cli import main
from termdp.registry import REGISTRY
from termdp.runs.shipped import FOLDER, agent_path, shipped_agents

NAMES = [card.name for card in shipped_agents()]


def test_every_environment_has_both_methods():
    methods = ("pg", "termpg")
    assert [f"{env}/{method}" for env in REGISTRY for method in methods] == NAMES


def test_all_of_them_are_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*")) < 10_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_acts_where_its_card_says(name):
    env_name, method = name.split("/")
    card = next(card for card in shipped_agents() if card.name == name)
    agent = termdp.load(name)
    spec = agent.card.spec
    assert (spec.env, spec.method, spec.seed) == (env_name, method, card.seed)
    assert card.steps == spec.steps
    words = card.command.split()
    assert words[0] == "termdp" and {env_name, method} <= set(words)
    env, params = termdp.make(env_name)
    observation = env.observation_space(params).sample(jax.random.key(0))
    action, _ = agent.predict(np.asarray(observation))
    assert env.action_space(params).contains(action)


def test_what_is_on_disk_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakout" / "termpg").mkdir(parents=True)
    assert agent_path("breakout/termpg").resolve().is_relative_to(tmp_path)


def test_an_unknown_name_is_told_where_the_list_is():
    with pytest.raises(ValueError, match="termdp agents"):
        termdp.load("breakout/dqn")


def test_the_command_lists_them(capsys):
    main(["agents", "--json"])
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == NAMES
    main(["agents"])
    assert "breakout/termpg" in capsys.readouterr().out
