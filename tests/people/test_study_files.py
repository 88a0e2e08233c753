"""Files from others: what is wrong is said, and nothing is taken or written before.

The files here are real exports, changed: fields that do not belong, values out of range,
numbers that promise gigabytes, and bytes flipped at random.
"""

import copy
import json
import stat
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutations import fuzz
from people_server import straight
from termdp.cli import main
from termdp.people.driving.drivers import random_driver
from termdp.people.driving.rides import record_with_ends
from termdp.people.records import dataset, study_schema
from termdp.people.records.study_files import import_study
from termdp.people.records.study_store import StudyStore

# Past what the process takes to read a good file: mostly the libraries it imports.
MEGABYTES = 100
SECONDS = 10


def good_record():
    """Two supervisors, one ride that crashes and two that do not, stops and ends."""
    ((crashing, crashed),) = record_with_ends(random_driver(), [1], 30)
    assert crashed
    rides = [crashing, *straight(2)]
    people = {"kind": "person", "consent_hash": "0" * 64, "joined_ms": 5}
    return {
        "format": "termdp study",
        "version": 2,
        "observation_shape": [21, 5, 12],
        "study": {
            "name": "comfort",
            "title": "Comfort",
            "consent": "Do you agree?",
            "step_ms": 200,
            "repeat_share": 0.1,
            "seed": 3,
            "created_ms": 1_700_000_000_000,
        },
        "supervisors": [
            {"name": name, "created_ms": 4, **people} for name in ("ann", "bo")
        ],
        "rides": [
            {
                "number": number,
                "seed": ride.seed,
                "driver": ride.driver,
                "actions": "".join(map(str, ride.actions)),
                "crashed": number == 0,
                "live": False,
                "created_ms": 6,
            }
            for number, ride in enumerate(rides)
        ],
        "showings": [
            showing_of(supervisor, number, ride)
            for supervisor in (0, 1)
            for number, ride in enumerate(rides)
        ],
    }


def showing_of(supervisor, number, ride):
    """The second ride is stopped, the others are watched to their ends."""
    stopped = number == 1
    return {
        "supervisor": supervisor,
        "ride": number,
        "position": number,
        "is_repeat": False,
        "shown_ms": 7,
        "client_id": f"client-{supervisor}-{number}",
        "stopped": stopped,
        "step": 2 if stopped else len(ride) - 1,
        "latency_ms": 80 if stopped else None,
        "reason": "too close" if stopped else None,
        "created_ms": 8,
        "speed": 1.0,
        "replays": 0,
        "skew_ms": None,
    }


RECORD = good_record()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A whole file, as an export writes it."""
    path = tmp_path_factory.mktemp("good") / "good.parquet"
    dataset.write(path, study_schema.convert(RECORD))
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """An empty store that must stay so."""
    with StudyStore.open(str(tmp_path_factory.mktemp("store") / "p.db")) as store:
        yield store


def with_record(good, path, content):
    """The good file's rows with other metadata."""
    table = pq.read_table(good)
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    meta = {dataset.METADATA_KEY: content}
    pq.write_table(table.replace_schema_metadata(meta), path, compression="zstd")
    return path


def changed(*place, value):
    """A record with one value replaced; `...` removes it."""
    record = copy.deepcopy(RECORD)
    inner = record
    for key in place[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return record


WRONG = [
    # A login, a path, a setting of the server: there is no place for them in a file.
    (("supervisors", 0, "token_hash"), "a" * 64, "unknown field token_hash"),
    (("supervisors", 0, "invite_hash"), "a" * 64, "unknown field invite_hash"),
    (("study", "observer"), "/etc/passwd", "unknown field observer"),
    (("study", "id"), 1, "unknown field id"),
    (("settings",), {"admin_token_sha256": "a" * 64}, "unknown field settings"),
    # Names are no paths.
    (("study", "name"), "/tmp/planted", "study.name"),
    (("study", "name"), "../planted", "study.name"),
    (("study", "name"), "..", "study.name"),
    (("study", "name"), "", "study.name"),
    (("study", "name"), "a" * 65, "study.name"),
    (("study", "name"), "a\n", "study.name"),
    (("supervisors", 0, "name"), "../../ann", "supervisors[0].name"),
    (("supervisors", 0, "name"), "bo", "supervisor bo occurs twice"),
    # Kinds and ranges.
    (("supervisors", 0, "kind"), "admin", "supervisors[0].kind"),
    (("supervisors", 0, "consent_hash"), "x", "supervisors[0].consent_hash"),
    (("supervisors", 0, "joined_ms"), -1, "supervisors[0].joined_ms"),
    (("study", "step_ms"), -1, "study.step_ms"),
    (("study", "step_ms"), 1e300, "study.step_ms"),
    (("study", "repeat_share"), 50, "study.repeat_share"),
    (("study", "repeat_share"), "much", "study.repeat_share"),
    (("study", "consent"), "x" * 5_000_000, "study.consent"),
    (("study", "consent"), "", "study.consent"),
    (("study", "title"), "a\0b", "study.title"),
    (("study", "seed"), 2**70, "study.seed"),
    (("study", "created_ms"), None, "study.created_ms"),
    (("study", "title"), ..., "missing required field title"),
    (("study",), [], "expected object, got array"),
    (("rides", 0, "actions"), "", "rides[0].actions"),
    (("rides", 0, "actions"), "0+2", "rides[0].actions"),
    (("rides", 0, "actions"), "013", "ride 0 has actions that backseat does not have"),
    (("study", "env"), "pong", "expected an environment that can be drawn"),
    (("study", "env"), "../x", "study.env"),
    (("study", "env"), "asterix", "its columns or metadata do not match"),
    (("rides", 0, "actions"), "0" * 10_001, "rides[0].actions"),
    (("rides", 0, "actions"), "0" * 40, "not stopped, but ends at a stop"),
    (("rides", 0, "seed"), 7, "crashes at step|it says that|not what"),
    (("rides", 0, "crashed"), False, "ride 0 does not crash, but does"),
    (("rides", 1, "crashed"), True, "ride 1 crashes, but does not"),
    (("rides", 0, "number"), 1, "ride number 1 occurs twice"),
    (("rides", 0, "seed"), -1, "rides[0].seed"),
    (("rides", 0), None, "expected object, got null"),
    (("rides",), ..., "missing required field rides"),
    (("showings", 0, "step"), 10**9, "showings[0].step"),
    (("showings", 0, "step"), 9999, "not stopped, but ends at a stop"),
    (("showings", 1, "step"), 9999, "stopped after its ride's end"),
    (("showings", 1, "step"), 3, "rows for"),
    (("showings", 1, "latency_ms"), None, "stopped without a latency"),
    (("showings", 1, "latency_ms"), -5, "showings[1].latency_ms"),
    (("showings", 1, "latency_ms"), 81, "showing 1 is not what the game does"),
    (("showings", 0, "latency_ms"), 5, "not stopped, but ends at a stop"),
    (("showings", 0, "supervisor"), 2, "supervisor that is not there"),
    (("showings", 0, "supervisor"), -1, "showings[0].supervisor"),
    (("showings", 0, "ride"), 3, "ride that is not there"),
    (("showings", 0, "position"), 1, "position (0, 1) occurs twice"),
    (("showings", 0, "client_id"), "short", "showings[0].client_id"),
    (("showings", 0, "reason"), "x" * 1001, "showings[0].reason"),
    (("showings", 0, "speed"), 0, "showings[0].speed"),
    (("showings", 0, "skew_ms"), 2**60, "showings[0].skew_ms"),
    (("showings", 0, "is_repeat"), 1, "showings[0].is_repeat"),
    (("observation_shape",), [1, 1, 1], "columns or metadata"),
    (("format",), "other", "columns or metadata"),
    (("version",), 1, "got version 1: export the study again"),
]


@pytest.mark.parametrize(
    "place, value, words",
    WRONG,
    ids=[".".join(map(str, p)) + f"={str(v)[:20]}" for p, v, _ in WRONG],
)
def test_one_wrong_value_is_named_and_nothing_is_written(
    good, store, tmp_path, place, value, words
):
    record = changed(*place, value=value)
    path = with_record(good, tmp_path / "changed.parquet", record)
    with pytest.raises(ValueError) as refusal:
        import_study(store, path)
    said = str(refusal.value)
    assert any(word in said for word in words.split("|")), said
    assert len(said) < 400 and "\n" not in said.replace(str(path), "")
    assert store.studies() == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"[" * 1_000_000,
        b"\xff\xfe",
        b'{"format":"\\ud800"}',
        b'{"format":"termdp study","version":2,"x":' + b"[" * 500_000,
    ],
)
def test_metadata_that_are_no_record_are_refused(good, store, tmp_path, content):
    path = with_record(good, tmp_path / "changed.parquet", content)
    with pytest.raises(ValueError, match="expected a file of `termdp studies export`"):
        import_study(store, path)


def test_the_whole_file_is_accepted_and_nobody_has_a_login(good, tmp_path):
    with StudyStore.open(str(tmp_path / "p.db")) as store:
        assert import_study(store, good) == "comfort"
        people = store.supervisors("comfort")
        assert [p.name for p in people] == ["ann", "bo"]
        for person in people:
            hashes = (person.token_hash, person.invite_hash, person.nonce_hash)
            assert hashes == (None, None, None)


def test_a_name_never_becomes_a_path(good, tmp_path, monkeypatch, capsys):
    """`studies fit` wrote its results wherever the study's name pointed to."""
    monkeypatch.chdir(tmp_path)
    outside = tmp_path / "outside"
    record = changed("study", "name", value=str(outside))
    with_record(good, tmp_path / "evil.parquet", record)
    with pytest.raises(SystemExit) as exit_info:
        main(["studies", "fit", "evil.parquet", "--gradient-steps", "1"])
    assert exit_info.value.code == 2
    assert "study.name" in capsys.readouterr().err
    assert not outside.exists() and not (tmp_path / "fits").exists()
    with pytest.raises(SystemExit):
        main(["studies", "import", str(good), "--db", "p.db", "--name", "../x"])
    assert "expected a study name" in capsys.readouterr().err


def test_exports_are_for_their_owner_alone(good):
    assert stat.S_IMODE(good.stat().st_mode) == 0o600


# Bombs, each in a process of its own whose memory is measured


def bomb_of_pages(path, good):
    """A column that unpacks to gigabytes: a million equal values in every page."""
    table = pq.read_table(good)
    meta = table.schema.metadata
    with pq.ParquetWriter(
        path, table.schema, compression="zstd", data_page_size=2**30
    ) as writer:
        rows = table.slice(0, 1).take(np.zeros(1_000_000, int)).combine_chunks()
        for _ in range(8):
            writer.write_table(rows, row_group_size=1_000_000)
    assert (
        pq.read_schema(path).metadata[dataset.METADATA_KEY]
        == meta[dataset.METADATA_KEY]
    )


def bomb_of_names(path, good, size=2_000_000, rows=None):
    """One long name, in a dictionary, for every row."""
    table = pq.read_table(good).slice(0, rows)
    names = pa.array(["x" * size] * table.num_rows)
    pq.write_table(
        table.set_column(8, dataset.Packing().columns[8], names),
        path,
        compression="zstd",
    )


def bomb_of_one_page(path, good):
    """The same name, too large for a page."""
    bomb_of_names(path, good, 20_000_000, rows=8)


def bomb_of_steps(path, good):
    """Rides of 10,000 steps in 8,000 showings: far more rows than bytes."""
    record = copy.deepcopy(RECORD)
    record["rides"] = [dict(record["rides"][1], actions="0" * 10_000)]
    shown = dict(record["showings"][0], ride=1, step=9_999, client_id="c" * 8)
    record["showings"] = [dict(shown, position=i) for i in range(8_000)]
    content = json.dumps(record, separators=(",", ":")).encode()
    table = pq.read_table(good).replace_schema_metadata({dataset.METADATA_KEY: content})
    pq.write_table(table, path, compression="zstd")


def bomb_of_entries(path, good):
    """A footer of a million empty columns: three bytes each, 800 in memory."""
    content = good.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    empty = bytes([0x26, 0x00, 0x00])  # file_offset = 0, end
    columns = b"\x19\xfc" + b"\xc0\x84\x3d" + empty * 1_000_000
    group = columns + b"\x16\x00\x16\x00\x00"
    schema = b"\x15\x04" + b"\x19\x1c" + b"\x48\x01x\x15\x00\x00"
    footer = schema + b"\x16\x00" + b"\x19\x1c" + group + b"\x00"
    body = content[: len(content) - 8 - size]
    path.write_bytes(body + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def bomb_of_showings(path, good):
    """A step of 10⁹."""
    with_record(good, path, changed("showings", 0, "step", value=10**9))


READ = f"""
import resource, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (2 ** 33, 2 ** 33))  # spare the machine
from termdp.people.records import dataset
good_peak = None
for path in map(Path, sys.argv[1:]):
    began = time.process_time()
    try:
        dataset.read(path)
        said = "accepted"
    except ValueError as error:
        said = str(error)
    assert time.process_time() - began < {SECONDS}, path
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
    good_peak = good_peak or peak
    assert peak - good_peak < {MEGABYTES} * 1024, (path, peak, good_peak)
    print(said)
"""

BOMBS = {
    bomb_of_pages: "a page has|rows for",
    bomb_of_names: "damaged",
    bomb_of_one_page: "a page has 200000",
    bomb_of_steps: "too many for so small a file",
    bomb_of_entries: "too many entries",
    bomb_of_showings: "showings[0].step",
}


def test_bombs_take_neither_memory_nor_time(good, tmp_path):
    """In one process of their own, which fails past its megabytes or seconds of work."""
    paths = [tmp_path / f"{bomb.__name__}.parquet" for bomb in BOMBS]
    for bomb, path in zip(BOMBS, paths, strict=True):
        bomb(path, good)
    command = [sys.executable, "-c", READ, str(good), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    first, *said = done.stdout.splitlines()
    for sentence, words in zip(said, BOMBS.values(), strict=True):
        assert any(word in sentence for word in words.split("|")), sentence
    assert first == "accepted"


@pytest.mark.parametrize(
    "offset, value, words",
    [(1, 0x0D, "packed in an unknown way"), (0, 0x19, "tables are damaged")],
)
def test_a_codec_that_nobody_knows_is_refused(good, tmp_path, offset, value, words):
    """A number that ends pyarrow's process, a list for a number: found by fuzzing."""
    content = bytearray(good.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # A column's name in a list, then its codec: field 4, a number, ZSTD.
    place = content.index(b"\x18\x06reward\x15\x0c", footer) + 8
    content[place + offset] = value
    path = tmp_path / "codec.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        dataset.read(path)


# Fuzzing


def is_one_sentence(path):
    """Accepted or refused in one sentence, in time (of work); anything else fails."""
    began = time.process_time()
    try:
        dataset.read(path)
    except ValueError as error:
        assert str(error).startswith("expected a file of `termdp studies export`")
        assert type(error) is ValueError
    assert time.process_time() - began < SECONDS


@fuzz
@given(
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)),
        min_size=1,
        max_size=6,
    ),
    kept=st.just(1.0) | st.floats(0, 1),
    in_footer=st.booleans(),
)
def test_damaged_files_are_refused(good, tmp_path, changes, kept, in_footer):
    content = bytearray(good.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    first = len(content) - footer if in_footer else 0
    for place, value in changes:
        content[first + int(place * (len(content) - first))] = value
    path = tmp_path / "damaged.parquet"
    path.write_bytes(content[: int(kept * len(content))])
    is_one_sentence(path)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from([2**31, 2**63, 10**30, "../x", "\0", "0" * 9_999, "1" * 300]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value, here=()):
    """Every place of a record."""
    yield here
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, inner in items:
        yield from places(inner, (*here, key))


@fuzz
@given(data=st.data(), value=VALUES)
def test_records_with_any_value_anywhere_are_refused_or_sound(
    good, tmp_path, data, value
):
    place = data.draw(st.sampled_from(list(places(RECORD))[1:]))
    record = copy.deepcopy(RECORD)
    inner = record
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    is_one_sentence(with_record(good, tmp_path / "fuzzed.parquet", record))
