"""What a sweep shows while it works."""

import pytest
from rich.console import Console

from termdp.bench.events import Event, sentence
from termdp.bench.execute import JobResult
from termdp.bench.plan import make_jobs
from termdp.bench.speeds import Speeds
from termdp.cli.bench_progress import Progress, picture, shown
from tiny_bench import tiny_plan

FACTS = {"steps_per_s": 1000.0, "wall_s": 9.0, "compile_s": 30.0}


@pytest.fixture
def jobs():
    return make_jobs(tiny_plan("pg", "termpg", "oracle"), most_runs=lambda job: 1)


@pytest.fixture
def speeds(tmp_path):
    return Speeds("cpu", tmp_path / "speeds.json")


def test_jobs_done_running_failed_and_the_time_left(jobs, speeds):
    progress = Progress(jobs, speeds)
    whole = sum(job.all_steps / speeds.of(job) for job in jobs)
    assert progress.seconds_left() == pytest.approx(whole)
    for job in jobs:
        progress.hear(Event("started", job))
    progress.hear(Event("finished", jobs[0], 1.0, JobResult([], {}, FACTS)))
    progress.hear(Event("failed", jobs[1], error="it rained"))
    progress.hear(Event("running", jobs[2], 0.25))
    assert "1 of 6 jobs done, 1 running, 3 waiting" in progress.counts()
    assert "1 failed" in progress.counts()
    assert progress.seconds_left() == pytest.approx(whole / 6 * 3.75)
    console = Console(record=True, width=120)
    console.print(picture(progress, height=40))
    text = console.export_text()
    for words in ("finished", "1,000/s, 9 s + 30 s compiling", "it rained", "running"):
        assert words in text
    console.print(picture(progress, height=5))
    assert "30 s compiling" not in console.export_text().split("\n", 1)[1]


def test_a_cluster_works_on_several_jobs_at_once(jobs, speeds):
    progress = Progress(jobs, speeds, jobs_at_once=3)
    whole = sum(job.all_steps / speeds.of(job) for job in jobs)
    for job in jobs:
        progress.hear(Event("sent", job))
    assert "0 of 6 jobs done, 6 with the cluster, 0 failed" in progress.counts()
    assert progress.seconds_left() == pytest.approx(whole / 3)
    for job in jobs[1:]:
        progress.hear(Event("finished", job, 1.0, JobResult([], {}, FACTS)))
    # One job alone is not divided.
    assert progress.seconds_left() == pytest.approx(whole / 6)


def test_lines_where_nobody_looks(jobs, speeds, capsys):
    with shown(jobs, speeds) as hear:
        hear(Event("running", jobs[0], 0.5))
        assert capsys.readouterr().err == ""
        hear(Event("finished", jobs[0], 1.0, JobResult([], {}, FACTS)))
    assert "recommender: finished, 1,000/s" in capsys.readouterr().err


def test_errors_become_one_line():
    assert sentence(ValueError("so\n  it\ngoes")) == "ValueError: so it goes"
    assert sentence(KeyboardInterrupt()) == "KeyboardInterrupt: KeyboardInterrupt"
    assert len(sentence(ValueError("x" * 1000))) == 500
