"""Named models: on the lattice, and such that the observer matters."""

import numpy as np
import pytest

from termdp import tabular
from termdp.tabular import evaluate, make_model, plan, plots
from termdp.tabular.named_models import COST_UNIT


def greedy_without_stops(model):
    """Best Markov policy if the observer never stopped."""
    value, actions = np.zeros(model.num_states), []
    for h in reversed(range(model.horizon)):
        action_values = model.rewards[h] + model.transitions[h] @ value
        value = action_values.max(axis=1)
        actions.insert(0, action_values.argmax(axis=1))
    return np.array(actions)


@pytest.mark.parametrize("name", list(tabular.NAMED_MODELS))
def test_costs_are_on_the_lattice_and_planning_is_exact_there(name):
    model = make_model(name)
    units = model.cost / COST_UNIT
    assert (units == np.round(units)).all()
    on_lattice = plan(model, resolution=COST_UNIT)
    assert on_lattice.value == pytest.approx(plan(model).value, abs=1e-9)
    assert evaluate(model, on_lattice) == pytest.approx(plan(model).value, abs=1e-9)


@pytest.mark.parametrize("name", list(tabular.NAMED_MODELS))
def test_ignoring_the_observer_is_a_mistake(name):
    model = make_model(name)
    ignoring = evaluate(model, greedy_without_stops(model))
    assert ignoring < 0.97 * plan(model).value


@pytest.mark.parametrize("name", list(tabular.NAMED_MODELS))
def test_each_has_a_picture(name, tmp_path):
    plots.draw_model(name, make_model(name)).savefig(tmp_path / "model.png")
    assert (tmp_path / "model.png").stat().st_size > 5000


def test_parameters_can_be_changed_and_are_checked():
    assert make_model("chain", bias=7.0).bias == 7.0
    assert tabular.grid(size=4).num_states == 16
    assert tabular.random(10, 3, 10).shape == (10, 10, 3)
    assert (tabular.random(branching=3).transition > 0).sum(axis=2).max() == 3
    same, other = tabular.random(seed=1), tabular.random(seed=2)
    np.testing.assert_array_equal(same.cost, tabular.random(seed=1).cost)
    assert (same.cost != other.cost).any()
    with pytest.raises(ValueError, match="expected a model"):
        make_model("maze")
    with pytest.raises(ValueError, match="expected a model"):
        plots.draw_model("maze", tabular.chain())
    with pytest.raises(ValueError, match="2 states or more"):
        tabular.chain(length=1)
    with pytest.raises(ValueError, match="side 2"):
        tabular.grid(size=1)
    with pytest.raises(ValueError, match="branching"):
        tabular.random(branching=9)


def test_the_example_is_the_papers_graph():
    model = tabular.paper_example()
    assert model.transition[0, 0].argmax() == 1
    assert model.transition[0, 1].argmax() == 2
    assert (model.transition[1:, :, 2] == 1).all()
    assert plan(model).act(1, 0) == 1
