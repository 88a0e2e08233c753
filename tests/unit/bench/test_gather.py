"""A sweep that ran in parts becomes one folder, and says where each cell came from."""

import json

import pytest

from bench_results import write_results
from termdp.bench.gather import gather
from termdp.bench.plan import RunKey
from termdp.bench.sweep_folder import read_curves, read_manifest, read_records
from termdp.cli import main
from termdp.report.bench_page import provenance
from termdp.report.results import load


def scores(record):
    return record["column"], record["row"], record["seed"], record["return_mean"]


def part(path, methods, envs=("breakout",), score=1.0, **choice):
    choice = {"methods": methods, "envs": envs, "seeds": 2} | choice
    return write_results(path, lambda column, row, seed: score + seed, **choice)


def changed_manifest(folder, **changes):
    path = folder.path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_runs_and_curves_of_all_parts_are_in_one_folder(tmp_path):
    one = part(tmp_path / "one", ("pg",))
    two = part(tmp_path / "two", ("termpg",), envs=("breakout", "asterix"), score=5.0)
    changed_manifest(one, commits=["aaa"])
    changed_manifest(two, commits=["bbb"])
    out = tmp_path / "whole"
    assert vars(gather([one.path, two.path], out)) == {
        "runs": 6,
        "repeated": 0,
        "outdated": 0,
    }
    assert [scores(record) for record in read_records(out)] == [
        ("asterix", "termpg", 0, 5.0),
        ("asterix", "termpg", 1, 6.0),
        ("breakout", "pg", 0, 1.0),
        ("breakout", "pg", 1, 2.0),
        ("breakout", "termpg", 0, 5.0),
        ("breakout", "termpg", 1, 6.0),
    ]
    assert len(read_curves(out)) == 6
    manifest = read_manifest(out)
    assert set(manifest["columns"]) == {"breakout", "asterix"}
    assert set(manifest["rows"]) == {"pg", "termpg"}
    assert manifest["commits"] == ["aaa", "bbb"]
    assert manifest["commits_of"] == {
        "asterix/termpg": ["bbb"],
        "breakout/pg": ["aaa"],
        "breakout/termpg": ["bbb"],
    }
    assert manifest["wall_s"] == 150.0
    assert load([out]).missing == 0


def test_what_was_gathered_may_be_gathered_again(tmp_path):
    one, two = part(tmp_path / "one", ("pg",)), part(tmp_path / "two", ("termpg",))
    three = part(tmp_path / "three", ("pg",), envs=("asterix",))
    for run, commit, device in (
        (one, "aaa", "H200"),
        (two, "bbb", "H200"),
        (three, "ccc", "cpu"),
    ):
        hardware = read_manifest(run.path)["hardware"] | {"device": device}
        changed_manifest(run, commits=[commit], hardware=hardware)
    half, whole = tmp_path / "half", tmp_path / "whole"
    gather([one.path, two.path], half)
    gather([three.path, half], whole)
    manifest = read_manifest(whole)
    assert manifest["commits_of"] == {
        "asterix/pg": ["ccc"],
        "breakout/pg": ["aaa"],
        "breakout/termpg": ["bbb"],
    }
    assert manifest["devices_of"] == {
        "asterix/pg": ["cpu"],
        "breakout/pg": ["H200"],
        "breakout/termpg": ["H200"],
    }
    assert manifest["hardware"]["device"] == "cpu or H200"
    said = dict(provenance(load([whole])))
    assert said["hardware"] == "H200: Breakout; cpu: Asterix"


def test_of_two_equal_runs_the_first_counts(tmp_path):
    one = part(tmp_path / "one", ("pg",), score=1.0)
    two = part(tmp_path / "two", ("pg",), score=5.0, seeds=3)
    found = gather([one.path, two.path], tmp_path / "whole")
    assert (found.runs, found.repeated) == (3, 2)
    returns = [record["return_mean"] for record in read_records(tmp_path / "whole")]
    assert returns == [1.0, 2.0, 7.0]


def test_a_cell_has_one_kind_of_settings(tmp_path):
    one = part(tmp_path / "one", ("pg",))
    two = part(tmp_path / "two", ("pg",), seeds=3)
    packed = two.path / "results.json"
    content = json.loads(packed.read_text())
    content["settings"]["breakout/pg"]["numbers"]["discount"] = 0.5
    packed.write_text(json.dumps(content))
    for file in two.path.glob("runs/*/*/*.json"):
        file.unlink()
    found = gather([one.path, two.path], tmp_path / "whole")
    assert (found.runs, found.repeated, found.outdated) == (2, 0, 3)


def test_a_failure_is_told_unless_another_part_has_the_run(tmp_path):
    one = part(tmp_path / "one", ("pg", "termpg"))
    failures = [
        {"runs": [["breakout", "pg", 7]], "error": "NaN"},
        {"runs": [["breakout", "pg", 0]], "error": "NaN"},
    ]
    changed_manifest(one, failures=failures)
    gather([one.path], tmp_path / "whole")
    assert read_manifest(tmp_path / "whole")["failures"] == failures[:1]


def test_missing_seeds_still_count_as_missing(tmp_path):
    def score(column, row, seed):
        return None if (row, seed) == ("pg", 2) else 1.0

    choice = {"methods": ("pg", "termpg"), "envs": ("breakout",), "seeds": 3}
    one = write_results(tmp_path / "one", score, **choice)
    gather([one.path], tmp_path / "whole")
    assert load([tmp_path / "whole"]).missing == 1
    assert RunKey("breakout", "pg", 2) not in read_curves(tmp_path / "whole")


def test_parts_of_different_sweeps_are_refused(tmp_path):
    one = part(tmp_path / "one", ("pg",))
    two = part(tmp_path / "two", ("pg",), steps=2_000_000)
    with pytest.raises(
        ValueError, match="same steps, got 1000000 in .*one and 2000000"
    ):
        gather([one.path, two.path], tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_an_existing_folder_is_not_written_to(tmp_path):
    one = part(tmp_path / "one", ("pg",))
    with pytest.raises(ValueError, match="expected a new folder"):
        gather([one.path], one.path)


def test_the_command_says_what_it_left_out(tmp_path, capsys):
    one = part(tmp_path / "one", ("pg",))
    out = str(tmp_path / "whole")
    main(["bench", "--gather", str(one.path), str(one.path), "--out", out])
    assert capsys.readouterr().out.splitlines() == [
        f"2 runs in {out}",
        "2 runs left out: an earlier folder has them",
    ]


@pytest.mark.parametrize("choice", [["paper"], [], ["--out", "whole", "--seeds", "3"]])
def test_the_command_needs_a_folder_and_nothing_else(tmp_path, capsys, choice):
    one = part(tmp_path / "one", ("pg",))
    with pytest.raises(SystemExit) as stopped:
        main(["bench", *choice, "--gather", str(one.path)])
    assert stopped.value.code == 2
    assert "expected --gather with --out" in capsys.readouterr().err
