"""One site over several results: every folder has its page, and each leads back."""

import json
import re

import pytest

from bench_results import write_results
from termdp.cli import main
from termdp.report.site import result_folders

FIT = {"sessions": 30, "steps": 400, "stops": 12, "auc": 0.8}
STUDY = {"study": "third", "reviews": 9, "stops": 4, "window": 35}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    some = {"envs": ["breakout"], "methods": ["pg", "termpg"]}
    write_results(path / "paper", lambda column, row, seed: 5.0 + seed, **some)
    for name, file, content in (
        ("log", "fit.json", FIT | {"more": 1}),
        ("study", "summary.json", STUDY),
    ):
        (path / name).mkdir()
        (path / name / file).write_text(json.dumps(content))
        (path / name / "index.html").write_text("<body><h1>What made them stop</h1>")
    (path / "notes").mkdir()
    return path


@pytest.mark.slow
def test_a_site_links_every_folder_and_each_leads_back(results, tmp_path, capsys):
    out = tmp_path / "site"
    main(["report", str(results), "--site", str(out), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in said["results"]] == ["log", "paper", "study"]
    index = (out / "index.html").read_text()
    pages = set(re.findall('href="([^"#]+)"', index))
    assert pages == {"log/index.html", "paper/report.html", "study/index.html"}
    for page in pages:
        assert 'href="../index.html"' in (out / page).read_text()
    assert "12 stops in 30 sessions" in index and "4 stops in 9 reviews" in index


def test_what_is_no_result_is_refused(results, tmp_path, capsys):
    with pytest.raises(ValueError, match="expected a folder of termdp bench"):
        result_folders([results / "notes"])
    twice = [results, results / "paper"]
    assert [path.name for path in result_folders(twice)] == ["log", "paper", "study"]
    with pytest.raises(SystemExit) as stop:
        main(["report", str(results), "--site", "a", "--out", "b"])
    assert stop.value.code == 2
    assert "--site or --out" in capsys.readouterr().err
