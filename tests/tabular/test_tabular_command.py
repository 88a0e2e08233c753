"""`termdp tabular`, the summaries it prints and the figures it writes."""

import json
from dataclasses import replace

import numpy as np
import pytest

from termdp import tabular
from termdp.cli import main
from termdp.tabular import plots
from termdp.tabular.regret import cost_errors, error_rate, log_log_slope, mean_coverage

SHORT = ("--episodes", "60", "--seeds", "2", "--bonus-scale", "0.05")


@pytest.mark.slow
def test_the_command_writes_figures_a_table_and_a_summary(tmp_path, capsys):
    main(["tabular", "paper_example", *SHORT, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    agents = ("termcrl", "known costs", "ignores stops", "whole history")
    for agent in (*agents, "ofuglb", "mixture", "thompson"):
        assert agent in printed
    assert max(map(len, printed.splitlines())) <= 80
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["seeds"] == [0, 1]
    assert summary["bonus_scale"] == 0.05
    figures = summary["agents"]["ignores stops"]
    assert figures["is_exact"]
    assert figures["cost_error"] == {"mean": None, "interval": None}
    assert figures["cost_coverage"] == {"mean": None, "interval": None}
    assert summary["agents"]["mixture"]["cost_coverage"]["mean"] == 1.0
    assert summary["agents"]["termcrl"]["cost_coverage"]["mean"] < 0.5
    for name in ("regret", "cost_error", "model"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5000


@pytest.mark.slow
def test_json_is_all_that_goes_to_standard_output(tmp_path, capsys):
    main(["tabular", "paper_example", *SHORT, "--out", str(tmp_path), "--json"])
    summary = json.loads(capsys.readouterr().out)
    agent = tabular.IgnoreStops(bonus_scale=0.05)
    runs = [agent.run(tabular.paper_example(), 60, seed) for seed in (0, 1)]
    expected = np.mean([run.cumulative[-1] for run in runs])
    found = summary["agents"]["ignores stops"]["regret"]["mean"]
    assert found == pytest.approx(expected)
    assert summary["optimal_value"] == pytest.approx(0.875)


@pytest.mark.parametrize(
    "words", [["maze"], ["chain", "--seeds", "0"], ["chain", "--bonus-scale", "-1"]]
)
def test_bad_input_is_one_sentence_and_code_2(words, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["tabular", *words, "--out", str(tmp_path)])
    assert ended.value.code == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("termdp: exp")


@pytest.mark.slow
def test_larger_models_go_without_the_whole_history(tmp_path, capsys):
    main(["tabular", "chain", *SHORT, "--out", str(tmp_path), "--json"])
    assert "whole history" not in json.loads(capsys.readouterr().out)["agents"]


def test_coverage_is_a_mean_over_plans_that_had_something_to_cover():
    model = tabular.paper_example()
    run = tabular.TermCRL(model.radius, bonus_scale=0.05).run(model, 20, 0)
    assert mean_coverage(replace(run, cost_coverage=np.array([np.nan, 1, 0.5]))) == 0.75
    assert np.isnan(mean_coverage(replace(run, cost_coverage=np.array([np.nan]))))


def test_every_agent_has_a_colour_of_its_own(tmp_path, capsys):
    """Seven agents learn the paper's example; a figure shows them all."""
    model = tabular.paper_example()
    run = tabular.IgnoreStops(bonus_scale=0.05).run(model, 20, 0)
    runs = {str(number): [run] for number in range(7)}
    lines = plots.plot_regret(runs).axes[0].get_lines()
    assert len({line.get_color() for line in lines}) == 7


def test_slopes_of_known_curves():
    episodes = np.arange(1, 10_001)
    assert log_log_slope(3.0 * episodes) == pytest.approx(1.0)
    assert log_log_slope(np.sqrt(episodes)) == pytest.approx(0.5)
    assert np.isnan(log_log_slope(np.zeros(100)))
    visits = np.geomspace(1, 1e5, 40)
    assert error_rate(visits, 2 / np.sqrt(visits)) == pytest.approx(-0.5)
    assert np.isnan(error_rate(visits[:2], visits[:2]))


def test_cost_errors_are_those_of_visited_costs():
    model = tabular.paper_example()
    run = tabular.TermCRL(model.radius, bonus_scale=0.05).run(model, 100, 0)
    ignoring = tabular.IgnoreStops(bonus_scale=0.05).run(model, 20, 0)
    visits, errors = cost_errors(model, [run, ignoring])
    assert visits.min() >= 1
    assert len(visits) == (run.estimate.visits > 0).sum()
    gap = run.estimate.costs[0, 0, 1] - (model.cost[0, 1] - model.bias)
    assert np.isclose(errors, abs(gap)).any()


def test_a_figure_without_estimates_is_still_a_figure(tmp_path):
    model = tabular.paper_example()
    runs = [tabular.IgnoreStops(bonus_scale=0.05).run(model, 20, 0)]
    plots.plot_cost_errors(model, runs).savefig(tmp_path / "none.png")
    plots.plot_regret({"one seed": runs}).savefig(tmp_path / "one.png")
    assert (tmp_path / "one.png").exists()
