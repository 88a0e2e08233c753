"""The Ray engine on a real cluster of two nodes, one of which is killed."""

import os
import subprocess
import sys
import threading
import time

import pytest

from termdp.bench import cluster as engine
from termdp.bench.plan import make_jobs
from termdp.bench.sweep import sweep
from termdp.bench.sweep_folder import SweepFolder, read_manifest, read_records
from tiny_bench import BROKEN, tiny_plan

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and processes to the garbage collector.
    pytest.mark.filterwarnings("ignore"),
]


LISTENING = """
import os, sys
from pathlib import Path
from termdp.bench import cluster

cluster.connect()
import ray

def task():
    return os.getpid()

ray.get(ray.remote(task).remote())
parents = {}
for stat in Path("/proc").glob("[0-9]*/stat"):
    try:
        words = stat.read_text().rsplit(")", 1)[1].split()
        parents[int(stat.parent.name)] = int(words[1])
    except OSError:
        pass

def is_mine(pid):
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()

sockets = set()
for pid in filter(is_mine, parents):
    try:
        links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        continue
    sockets |= {link[8:-1] for link in links if link.startswith("socket:[")}
found = set()
for table in ("tcp", "tcp6"):
    for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in sockets:
            found.add(words[1].split(":")[0])
print("LISTENS", *sorted(found))
token = Path.home() / ".ray" / "auth_token"
if token.exists():
    print("TOKEN", oct(token.stat().st_mode & 0o777))
"""
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "0" * 24 + "01000000"}


def test_a_local_cluster_is_for_this_machine_alone(tmp_path):
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("0123456789abcdef" * 4)
    (tmp_path / ".ray" / "auth_token").chmod(0o644)
    done = subprocess.run(
        [sys.executable, "-c", LISTENING],
        env=os.environ | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (listens,) = [line for line in done.stdout.splitlines() if line.startswith("LIST")]
    addresses = set(listens.split()[1:])
    assert addresses and addresses <= LOOPBACK
    assert "TOKEN 0o600" in done.stdout


@pytest.fixture
def two_nodes():
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    second = cluster.add_node(num_cpus=1)
    yield cluster, second
    cluster.shutdown()


def test_a_killed_node_loses_nothing_and_doubles_nothing(
    two_nodes, tmp_path, monkeypatch
):
    cluster, second = two_nodes
    attempts = tmp_path / "attempts.txt"
    real = engine.work

    def noted(job, version):
        import ray

        with attempts.open("a") as file:
            file.write(f"{ray.get_runtime_context().get_node_id()} {job.name}\n")
        return real(job, version)

    monkeypatch.setattr(engine, "work", noted)
    killed = threading.Event()

    def kill_while_it_works():
        while not killed.is_set():
            lines = attempts.read_text().splitlines() if attempts.exists() else []
            if any(line.startswith(second.node_id) for line in lines):
                time.sleep(0.5)
                cluster.remove_node(second, allow_graceful=False)
                killed.set()
            time.sleep(0.1)

    plan = tiny_plan("pg", "pg_rs", "pg_naive", seeds=1)
    broken = tiny_plan("pg", seeds=1, columns=(BROKEN,))
    jobs = make_jobs(plan, most_runs=lambda job: 1) + make_jobs(broken)
    folder = SweepFolder.create(tmp_path / "out", plan, "command")
    run = engine.connect(cluster.address)
    killer = threading.Thread(target=kill_while_it_works)
    killer.start()
    outcome = sweep(run(jobs), folder)
    was_killed = killed.is_set()
    killed.set()
    killer.join()
    assert was_killed, "the second node never worked"
    tried = attempts.read_text().splitlines()
    lost = [line.split(" ", 1)[1] for line in tried if line.startswith(second.node_id)]
    again = [line for line in tried if line.split(" ", 1)[1] in lost]
    assert len(again) > len(lost), "what the dead node had was tried again"
    records = read_records(folder.path)
    assert sorted(r["row"] for r in records) == ["pg", "pg_naive", "pg_rs"]
    assert len(read_manifest(folder.path)["programs"]) == 3, "every job came back once"
    assert sorted(key.row for key in outcome.finished) == ["pg", "pg_naive", "pg_rs"]
    ((keys, error),) = outcome.failures
    assert keys[0].column == "broken"
    assert "equal minibatches" in error
