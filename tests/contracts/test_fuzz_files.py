"""Damaged and hostile files: one sentence each; no traceback, no wait, no memory.

Real files of every kind, changed at random. `make soak` does the same with thousands of
examples (`TERMDP_FUZZ_EXAMPLES`).
"""

import contextlib
import json
import os
import resource
import time
import warnings
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import termdp
from bench_results import write_results
from log_maker import ROLES, make_log, make_table
from mutations import as_text, changed_bytes, changed_values, fuzz
from termdp import observer_file
from termdp.array_files import read_manifest
from termdp.bench import curves
from termdp.logs.sessions import Roles, read_sessions
from termdp.logs.sources import open_source
from termdp.observer_file import load_observer, shipped_path
from termdp.report import results as report_results
from termdp.runs import agent as agent_file
from termdp.runs import checkpoint
from termdp.runs.folder import RunFolder
from termdp.runs.program import TrainProgram
from termdp.runs.spec import make_job, make_spec, read_config
from termdp.runs.train import load_agents, train

SECONDS = 10.0  # of the processor: other programs may hold it up
MEGABYTES = 500


@contextlib.contextmanager
def bounded():
    """No more memory than so much on top of what is used now; no more work."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    # Of addresses, compilers reserve many: this only spares the machine.
    reserved = int(Path("/proc/self/statm").read_text().split()[0])
    most = reserved * resource.getpagesize() + 2**33
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from now on
    peak, began = peak_megabytes(), time.process_time()
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert time.process_time() - began < SECONDS
    assert peak_megabytes() - peak < MEGABYTES


def peak_megabytes():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def believe_or_refuse(read, *args):
    """Read; anything but one sentence is a bug. Returns the sentence, if any."""
    with bounded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(*args)
        except ValueError as error:
            words = str(error)
            assert words.startswith("expected"), words
            assert "\n" not in words, words
            assert len(words) < 1500, words[:200]
            return words
    return None


# ---- a run: config.json, checkpoints, agents ------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("fuzz") / "run"
    sizes = {"num_envs": 4, "rollout_steps": 16, "hidden": 8, "cost_hidden": 4}
    sizes |= {"cost_buffer_steps": 512, "cost_segment_length": 64}
    sizes |= {"cost_stop_capacity": 64}
    train(
        "recommender", "termpg", steps=64, seeds=2, out=out, num_minibatches=2, **sizes
    )
    return out


def open_run(path):
    folder, spec = RunFolder.open(path)
    folder.card().check()
    folder.numbers()
    TrainProgram(make_job(spec))


@fuzz
@given(data=st.data())
def test_configs_of_runs(run, tmp_path_factory, data):
    content = (run / "config.json").read_bytes()
    path = tmp_path_factory.mktemp("run")
    changed = data.draw(
        changed_values(json.loads(content)).map(as_text).map(str.encode)
        | changed_bytes(content)
    )
    (path / "config.json").write_bytes(changed)
    believe_or_refuse(open_run, path)


@fuzz
@given(data=st.data())
def test_manifests_of_checkpoints(run, tmp_path_factory, data):
    (newest,) = [
        p for p in checkpoint.complete(run / "checkpoints") if p.name[-1] == "1"
    ]
    path = tmp_path_factory.mktemp("checkpoints") / newest.name
    path.mkdir()
    for file in newest.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    content = (path / "manifest.json").read_bytes()
    plain = data.draw(changed_values(json.loads(content)) | st.just(None))
    changed = data.draw(changed_bytes(content)) if plain is None else as_text(plain)
    changed = changed if isinstance(changed, bytes) else changed.encode()
    (path / "manifest.json").write_bytes(changed)
    words = believe_or_refuse(checkpoint.load, path)
    if words is None:  # only what means the same is believed
        found = checkpoint.load(path)[2]
        assert found == msgspec.convert(json.loads(content), checkpoint.Manifest)


@fuzz
@given(data=st.data())
def test_states_of_checkpoints_are_never_believed_once_changed(run, data):
    newest = checkpoint.complete(run / "checkpoints")[-1]
    for name in ("state.safetensors", "reports.safetensors"):
        file = newest / name
        content = file.read_bytes()
        changed = data.draw(changed_bytes(content))
        if changed == content:
            continue
        file.write_bytes(changed)
        try:
            words = believe_or_refuse(checkpoint.load, newest)
            assert words is not None and f"{name} was changed" in words
        finally:
            file.write_bytes(content)


def changed_safetensors(data, source, name, out):
    """A safetensors file with other bytes, or with other values in its manifest."""
    if data.draw(st.booleans()):
        out.write_bytes(data.draw(changed_bytes(source.read_bytes())))
        return
    text = as_text(data.draw(changed_values(read_manifest(source, name))))
    save_file(load_file(source), out, {name: text})


@pytest.fixture(scope="module")
def agent(run):
    return load_agents(run)[0].save(run.parent / "agent.safetensors")


@fuzz
@given(data=st.data())
def test_agents(agent, tmp_path_factory, data):
    out = tmp_path_factory.mktemp("agent") / "changed.safetensors"
    changed_safetensors(data, agent, agent_file.MANIFEST, out)
    believe_or_refuse(agent_file.read_agent, out)


@fuzz
@given(data=st.data())
def test_observers(tmp_path_factory, data):
    out = tmp_path_factory.mktemp("observer") / "changed.safetensors"
    with shipped_path() as source:
        changed_safetensors(data, source, observer_file.MANIFEST, out)
    believe_or_refuse(load_observer, out)


@pytest.fixture(scope="module")
def log_observer(tmp_path_factory):
    """An observer that was fitted to a log."""
    path = tmp_path_factory.mktemp("fitted") / "observer.safetensors"
    found = termdp.fit(make_log(0, sessions=40), **ROLES, window=5, bins=3)
    observer_file.save_observer(path, found.observer, {"stops": 3})
    load_observer(path)  # JAX's threads take memory, once
    return path


@fuzz
@given(data=st.data())
def test_observers_of_logs(log_observer, tmp_path_factory, data):
    out = tmp_path_factory.mktemp("observer") / "changed.safetensors"
    changed_safetensors(data, log_observer, observer_file.MANIFEST, out)
    believe_or_refuse(load_observer, out)


# ---- logs ------------------------------------------------------------------------------


def read_log(path):
    return read_sessions(open_source(path), Roles(**ROLES))


@pytest.fixture(scope="module", params=["log.csv", "log.parquet"])
def log(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / request.param
    table = make_table(0, sessions=4, longest=10)
    write = pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table
    write(table, path)
    return path


@fuzz
@given(data=st.data())
def test_logs(log, tmp_path_factory, data):
    out = tmp_path_factory.mktemp("log") / log.name
    out.write_bytes(data.draw(changed_bytes(log.read_bytes())))
    believe_or_refuse(read_log, out)


# ---- what people write: --config -------------------------------------------------------


def use_config(path):
    make_job(make_spec("recommender", "termpg", config=path))


CONFIG = {
    "steps": 100_000,
    "seeds": 2,
    "learning_rate": 1e-3,
    "num_envs": 8,
    "optimism": "min",
    "bias": 3.0,
    "window": 12,
    "cost_members": 2,
    "anneal": True,
}
TOML = "".join(f"{n} = {json.dumps(v)}\n" for n, v in CONFIG.items())


@fuzz
@given(data=st.data())
def test_config_files(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("config")
    if data.draw(st.booleans()):
        path = path / "c.json"
        path.write_text(as_text(data.draw(changed_values(CONFIG))))
    else:
        path = path / "c.toml"
        path.write_bytes(data.draw(changed_bytes(TOML.encode())))
    believe_or_refuse(use_config, path)


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        Path.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path),
        lambda path: (path.touch(), os.truncate(path, 2**40)),
    ],
    ids=["pipe", "folder", "device", "loop", "a terabyte of nothing"],
)
def test_what_is_no_plain_file_is_not_waited_for(tmp_path, make):
    path = tmp_path / "x.json"
    make(path)
    for read in (read_config, load_observer, agent_file.read_agent):
        assert believe_or_refuse(read, path) is not None
    (tmp_path / "config.json").symlink_to(path)
    assert believe_or_refuse(open_run, tmp_path) is not None


# ---- a sweep: manifest, records, curves, observers -------------------------------------


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "out"
    write_results(path, lambda *key: 3.0, suite="smoke", seeds=2)
    row = {"column": "recommender", "why": "", "overrides": {"bias": 3.0}}
    numbers = ("lost", "kept", "stopped", "length", "least_bias", "bias")
    row |= {name: [1.0, 2.0] for name in ("unobserved", "switched_on", "oracle")}
    row |= dict.fromkeys(numbers, 0.5)
    (path / "observers.json").write_text(json.dumps([row]))
    return path


FILES = [
    "manifest.json",
    "results.json",
    "observers.json",
    "curves.parquet",
    "runs/recommender/pg/seed0.json",
    "runs/recommender/pg/seed0.parquet",
]


@pytest.mark.parametrize("name", FILES)
@fuzz
@given(data=st.data())
def test_files_of_sweeps(sweep, name, data):
    file = sweep / name
    content = file.read_bytes()
    changed = changed_bytes(content)
    if file.suffix == ".json":
        changed |= changed_values(json.loads(content)).map(as_text).map(str.encode)
    file.write_bytes(data.draw(changed))
    try:
        believe_or_refuse(report_results.load, [sweep])
    finally:
        for packed in ("curves.parquet", "results.json"):
            (sweep / packed).unlink(missing_ok=True)
        file.write_bytes(content)
        report_results.load([sweep])


def test_a_curve_that_would_fill_the_memory_is_not_read(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 50_000_000
    many = pa.repeat(pa.scalar(0, pa.int64()), rows)
    bomb = tmp_path / "a.parquet"
    pq.write_table(pa.table({"step": many}), bomb, compression="zstd")
    assert bomb.stat().st_size < 2_000_000
    long_word = pa.DictionaryArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), 100_000), ["x" * 100_000]
    )
    words = {"step": pa.repeat(pa.scalar(0, pa.int64()), 100_000), "row": long_word}
    pq.write_table(pa.table(words), tmp_path / "b.parquet")
    header = {"descr": "<i8", "fortran_order": False, "shape": (10**12,)}
    with (
        zipfile.ZipFile(tmp_path / "c.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("step.npy", "w") as file,
    ):
        np.lib.format.write_array_header_1_0(file, header)
    np.savez_compressed(tmp_path / "d.npz", step=np.zeros(20_000_000))
    for name in "abcd":
        with (
            bounded(),
            pytest.raises(ValueError, match=rf"expected|{name}\.|larger|no ar"),
        ):
            curves.read_curve(tmp_path / name)
