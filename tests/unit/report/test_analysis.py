"""What the report claims from results that were made up for it."""

import dataclasses
import json

import numpy as np
import pytest

from bench_results import write_results
from termdp.bench.suites import SUITES
from termdp.intervals import Interval
from termdp.report import analysis, results, words
from termdp.report.bench_page import write_report
from termdp.report.tables import (
    best_table,
    number,
    percent,
    row_groups,
    score_tables,
)

pytestmark = pytest.mark.slow

NOISE = (-0.1, 0.0, 0.1)
MEANS = {
    "pg": 5.0,
    "pg_naive": 2.0,
    "pg_rs": 5.2,
    "termpg": 8.0,
    "termpg_rs": 5.0,
    "termpg_penalty": 4.0,
    "oracle": 9.0,
    "pg_recurrent": 1.0,
}


def score(column, row, seed):
    """TermPG is better on Breakout, worse on Asterix, the same on Seaquest."""
    if column == "seaquest":
        return 5.0 + NOISE[seed]
    if column == "asterix" and row.startswith("termpg"):
        return 3.0 + NOISE[seed]
    return MEANS.get(row, 5.0) + NOISE[seed]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "paper"
    write_results(path, score, envs=["breakout", "asterix", "seaquest", "backseat"])
    return path


@pytest.fixture(scope="module")
def found(folder):
    return results.load([folder])


@pytest.fixture(scope="module")
def findings(found):
    return analysis.analyse(found)


def test_results_come_in_the_papers_order(found):
    assert found.columns == ["backseat", "seaquest", "breakout", "asterix"]
    assert found.rows[:2] == ["pg", "pg_naive"]
    np.testing.assert_allclose(found.values("breakout", "termpg"), [7.9, 8.0, 8.1])
    assert found.seeds == 3
    assert found.missing == 0


def test_best_against_best(findings):
    best = {b.column: b for b in findings.best}
    breakout = best["breakout"]
    assert (breakout.ours, breakout.theirs) == ("termpg", "pg_rs")
    assert breakout.relative.value == pytest.approx(8.0 / 5.2 - 1)
    assert (breakout.claimed, breakout.implied) == (4.1, pytest.approx(4.857, abs=0.01))
    assert breakout.is_supported
    assert best["asterix"].is_contradicted
    assert not best["seaquest"].is_supported
    assert not best["seaquest"].is_contradicted


def test_only_what_excludes_zero_is_claimed(found, findings):
    first, second, third, *rest = words.conclusions(found, findings)
    assert first.startswith("The best TermPG earns more than the best PG on")
    assert "Breakout" in first
    assert "Asterix" not in first
    assert second.startswith("It earns less on Asterix")
    assert third.startswith("No difference")
    assert "Seaquest" in third
    assert any("better than PG on Backseat coins and Breakout" in s for s in rest)
    assert any("ignores all ends" in s and "2.00 against 5.00" in s for s in rest)
    assert not any("Incomplete" in s and "missing" in s for s in rest)


def test_intervals_that_disagree_are_neither_a_loss_nor_no_difference(findings):
    loss = Interval(-0.23, -0.41, -0.05)
    both = [
        dataclasses.replace(findings.best[0], relative=loss, gap=gap)
        for gap in (Interval(-0.6, -1.3, 0.1), Interval(-0.6, -1.3, -0.1))
    ]
    assert [best.is_undecided for best in both] == [True, False]
    said = words.best_sentences(dataclasses.replace(findings, best=both[:1]))
    assert len(said) == 1
    assert said[0].startswith("Not settled: ") and "−23%" in said[0]


def test_nothing_is_claimed_when_nothing_differs(tmp_path):
    write_results(tmp_path / "same", lambda c, r, s: 5 + NOISE[s], envs=["breakout"])
    same = results.load([tmp_path / "same"])
    sentences = words.conclusions(same, analysis.analyse(same))
    assert sentences[0].startswith("No difference")
    assert "not told apart from PG on 1 of 1" in sentences[1]
    assert not any("more than" in s or "weaker" in s for s in sentences)


def test_a_loss_alone_names_who_lost(tmp_path):
    write_results(tmp_path / "worse", score, envs=["asterix"])
    worse = results.load([tmp_path / "worse"])
    first = words.conclusions(worse, analysis.analyse(worse))[0]
    assert first.startswith("The best TermPG earns less than the best PG on Asterix")


def test_one_method_left_out_takes_no_environment_from_the_pool(tmp_path):
    most = [row.label for row in SUITES["fair"].rows if row.label != "pg_0.953"]
    envs = ["breakout", "asterix"]
    write_results(tmp_path / "most", score, suite="fair", envs=envs, methods=most)
    one = {"suite": "fair", "envs": ["breakout"], "methods": ["pg_0.953"]}
    write_results(tmp_path / "one", score, **one)
    found = analysis.analyse(results.load([tmp_path / "most", tmp_path / "one"]))
    assert set(found.pooled_columns) == set(envs)
    assert set(found.pooled) == set(most)


def test_probabilities_are_over_the_pooled_environments_for_every_row(tmp_path):
    most = [row.label for row in SUITES["fair"].rows]
    write_results(tmp_path / "both", score, suite="fair", envs=["breakout"])
    # On Asterix TermPG is worse, but too few methods ran there for it to be pooled.
    few = {"suite": "fair", "envs": ["asterix"], "methods": ["pg", "termpg"]}
    write_results(tmp_path / "few", score, **few)
    found = analysis.analyse(results.load([tmp_path / "both", tmp_path / "few"]))
    assert found.pooled_columns == ["breakout"]
    assert found.probability_pg["termpg"].value == 1.0
    assert set(found.probability_pg) == set(most) - {"pg"}


def test_a_discount_alone_is_no_merit_of_the_costs(tmp_path):
    def short_sight_helps(column, row, seed):
        return (9.0 if row.endswith("_0.97") else 5.0) + NOISE[seed]

    with_it = {
        "suite": "hard",
        "envs": ["breakout_hard"],
        "also": ["termpg_discount_0.97", "oracle_discount_0.97"],
    }
    rows = ["pg", "pg_0.97", "termpg", "oracle"]
    write_results(tmp_path / "with", short_sight_helps, methods=rows, **with_it)
    found = results.load([tmp_path / "with"])
    text = " ".join(words.conclusions(found, analysis.analyse(found)))
    assert "TermPG is not told apart from PG on 1 of 1" in text
    assert "TermPG with discount 0.97 is not told apart from PG with discount" in text
    assert "Even an agent that is told the true costs is not clearly better" in text
    # Where there is no PG with that discount, plain PG is all there is to compare with.
    rows.remove("pg_0.97")
    write_results(tmp_path / "without", short_sight_helps, methods=rows, **with_it)
    found = results.load([tmp_path / "without"])
    text = " ".join(words.conclusions(found, analysis.analyse(found)))
    assert "TermPG with discount 0.97 is better than PG on Breakout" in text
    assert "if that ran) on Breakout hard, 1 of 1 environment." in text


def test_results_of_another_version_say_so(tmp_path):
    choice = {"envs": ["breakout"], "methods": ["pg", "termpg"]}
    folder = write_results(tmp_path / "old", score, **choice)
    folder.manifest["versions"]["termdp"] = "0.0.1"
    folder.save_manifest()
    old = results.load([tmp_path / "old"])
    last = words.conclusions(old, analysis.analyse(old))[-1]
    assert last.startswith("Made by termdp 0.0.1, reported by termdp ")


def test_pooling_and_probabilities(findings):
    assert set(findings.pooled_columns) == {
        "backseat",
        "seaquest",
        "breakout",
        "asterix",
    }
    assert findings.pooled["pg"].value == pytest.approx(1.0)
    # Better on two, worse on one, equal on one: ties count half.
    assert findings.probability_pg["termpg"].value == pytest.approx(
        (1 + 1 + 0 + 0.5) / 4
    )
    assert "pg" not in findings.probability_pg
    # The other way round for PG, and TermPG is not compared with itself.
    assert findings.probability_termpg["pg"].value == pytest.approx(
        (0 + 0 + 1 + 0.5) / 4
    )
    assert "termpg" not in findings.probability_termpg


def test_the_score_table_shows_published_numbers_and_ratios(found, findings):
    (table,) = score_tables(found, findings)
    lines = {
        row[0].text: dict(zip(table.headings, row, strict=True)) for row in table.rows
    }
    breakout = lines["TermPG"]["Breakout"]
    assert breakout.text == "8.00 ± 0.10"
    assert breakout.note == "paper 8.2 ± 0.3"
    assert breakout.mark == "better"
    assert lines["TermPG"]["Asterix"].mark == "worse"
    assert lines["PG"]["Breakout"].mark == ""
    # Backseat Driver is another game here: never its absolute numbers.
    assert lines["TermPG"]["Backseat coins"].note == "×1.60, paper ×1.64"
    assert "▲ (paper 8.2 ± 0.3)" in table.markdown()
    assert "+410%" in best_table(findings).markdown()


def test_the_gap_is_closed_only_where_there_is_one(tmp_path):
    choice = {"envs": ["breakout", "seaquest"], "methods": ["pg", "termpg", "oracle"]}
    write_results(tmp_path / "fair", score, suite="fair", **choice)
    fair = results.load([tmp_path / "fair"])
    closed = analysis.analyse(fair).closed
    assert closed["breakout", "termpg"].value == pytest.approx(0.75)
    assert closed["seaquest", "termpg"] is None
    assert ("breakout", "oracle") not in closed


def test_the_page_needs_no_network_and_has_everything(
    folder, found, findings, tmp_path
):
    page = write_report(found, findings, tmp_path / "out")
    text = page.read_text()
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    assert "default-src 'none'" in text
    assert text.count("<script>") == 1
    figures = text.count('<figure class="plot">')
    assert text.count("What this means.") == figures
    assert '<a href="#learned-costs">Learned costs</a>' in text
    assert '<h3 id="learned-costs">' in text
    for words_ in ("Table 1, top", "Learned costs", "Welch", "termdp bench paper"):
        assert words_ in text
    assert found.manifests[0]["commits"][0] in text
    assert text.count("data:image/svg+xml;base64,") >= 5
    names = {file.stem for file in (tmp_path / "out" / "figures").iterdir()}
    assert names == {"final_1", "improvement", "pooled", "learning_1_1", "cost_error"}
    for name in names:
        for suffix in ("svg", "png"):
            assert (
                tmp_path / "out" / "figures" / f"{name}.{suffix}"
            ).stat().st_size > 1e3
    tables = (tmp_path / "out" / "tables.md").read_text()
    assert "8.00 ± 0.10 ▲ (paper 8.2 ± 0.3)" in tables
    assert "jax" in tables


def test_several_folders_make_one_report(folder, tmp_path):
    choice = {"envs": ["breakout"], "methods": ["pg", "termpg_half_window"]}
    write_results(tmp_path / "more", score, suite="ablations", **choice)
    both = results.load([folder, tmp_path / "more"])
    assert "termpg_half_window" in both.rows
    assert len(both.records["breakout", "pg"]) == 3, "a run that is in both counts once"


def test_rows_with_the_papers_discount_stand_in_the_papers_tables(tmp_path):
    rows = ["pg", "pg_rs", "termpg", "termpg_mean", "oracle"]
    also = ["termpg_discount_1", "termpg_mean_discount_1", "termpg_discount_0.97"]
    write_results(
        tmp_path / "all", score, "all", envs=["breakout"], methods=rows, also=also
    )
    found = results.load([tmp_path / "all"])
    assert row_groups(found) == [
        ("Table 1, top: methods", ["pg", "pg_rs", "termpg", "termpg_discount_1"]),
        (
            "Table 1, bottom: ablations",
            ["termpg", "termpg_discount_1", "termpg_mean", "termpg_mean_discount_1"],
        ),
        (
            "Controls and oracle",
            ["pg", "termpg", "termpg_discount_1", "oracle", "termpg_discount_0.97"],
        ),
    ]
    table = score_tables(found, analysis.analyse(found))[0].markdown()
    assert table.count("paper 8.2 ± 0.3") == 2
    assert "PG: policy gradient, here PPO. RS: reward shaping, −p on a stop." in table
    controls = score_tables(found, analysis.analyse(found))[-1].markdown()
    assert "| TermPG, discount 0.97 | 5.00 ± 0.10 |" in controls


def test_runs_are_missing_whatever_the_first_seed_is(tmp_path):
    def one_missing(column, row, seed):
        return None if (row, seed) == ("pg", 8) else 1.0

    choice = {"envs": ["breakout"], "methods": ["pg", "termpg"], "seed": 7}
    write_results(tmp_path / "later", one_missing, **choice)
    found = results.load([tmp_path / "later"])
    assert found.missing == 1
    assert sorted(r["seed"] for r in found.records["breakout", "pg"]) == [7, 9]


def test_findings_are_plain_data(found, findings):
    data = json.loads(json.dumps(analysis.as_data(found, findings)))
    assert data["cells"]["breakout/termpg"]["mean"] == pytest.approx(8.0)
    assert data["best_termpg_over_best_pg"][0]["column"] == "backseat"


def test_folders_that_do_not_belong_together_are_refused(folder, tmp_path):
    choice = {"envs": ["breakout"], "methods": ["pg"]}
    write_results(tmp_path / "longer", score, steps=2_000_000, **choice)
    with pytest.raises(ValueError, match="same steps, got 1000000 .* and 2000000"):
        results.load([folder, tmp_path / "longer"])


def test_cells_with_one_seed_are_left_out_and_named(tmp_path):
    def one_missing(column, row, seed):
        thin = row == "termpg" and seed > 0
        return None if thin else score(column, row, seed)

    write_results(tmp_path / "thin", one_missing, envs=["breakout"])
    thin = results.load([tmp_path / "thin"])
    assert thin.thin == [("breakout", "termpg")]
    assert thin.missing == 2
    sentences = words.conclusions(thin, analysis.analyse(thin))
    assert "fewer than two seeds have a return" in sentences[-1]
    assert "Breakout / TermPG" in sentences[-1]
    assert "2 planned runs are missing" in sentences[-1]


@pytest.mark.parametrize(
    ("value", "words_"),
    [(0.1234, "0.123"), (1234.5, "1,234"), (-0.5, "−0.500"), (0, "0"), (None, "–")],
)
def test_numbers_for_people(value, words_):
    assert number(value) == words_


@pytest.mark.parametrize(
    ("value", "words_"), [(4.1, "+410%"), (-0.052, "−5.2%"), (float("nan"), "–")]
)
def test_percentages_for_people(value, words_):
    assert percent(value) == words_


def test_what_was_measured_of_hard_observers_is_shown(tmp_path):
    hard = {"suite": "hard", "envs": ["breakout_hard"], "methods": ["pg", "termpg"]}
    write_results(tmp_path / "hard", score, **hard)
    row = {
        "column": "breakout_hard",
        "overrides": {"width": 3},
        "why": "wide edges",
        "unobserved": [10.0, 12.0],
        "switched_on": [4.0, 4.0],
        "oracle": [9.0, 9.0],
        "oracle_measured": "fresh episodes",
        "lost": 7 / 11,
        "stopped": 0.5,
        "length": 100.0,
        "kept": 9 / 11,
        "bias": 7.5,
        "least_bias": 6.1,
    }
    (tmp_path / "hard" / "observers.json").write_text(json.dumps([row]))
    found = results.load([tmp_path / "hard"])
    write_report(found, analysis.analyse(found), tmp_path / "out")
    tables = (tmp_path / "out" / "tables.md").read_text()
    assert (
        "| Breakout hard (wide edges) | 11.0 | 4.00 | 64% ▲ | 9.00 | 82% ▲ |" in tables
    )
    assert "better oracle (fresh episodes)" in tables
    assert "### Methods" in tables, "not the paper's Table 1"
