"""Fields, types and ranges in the files of a sweep. Anything else is refused."""

from typing import Annotated, Any

import msgspec

from termdp.bench.suites import Column, Row
from termdp.reading import Count, Name, Plain, from_plain

# Labels become names of folders: no separators, and no dot at the start.
Label = Annotated[str, msgspec.Meta(pattern=r"^\w[\w.+=-]{0,99}$")]
Cell = Annotated[str, msgspec.Meta(pattern=r"^\w[\w.+=-]{0,99}/\w[\w.+=-]{0,99}$")]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Seeds = Annotated[int, msgspec.Meta(ge=0, le=4096)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Words = Annotated[str, msgspec.Meta(max_length=20_000)]
MOST_RUNS = 100_000


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Times and speed of a program."""

    job: Name = ""
    columns: list[Label] = []
    column: Name = ""  # of older sweeps, whose programs had one
    env: Name = ""
    recurrent: bool = False
    preset: Name = ""
    runs: Count = 0
    devices: Count = 0
    device: Name = ""
    steps: Count = 0
    compile_s: Seconds = 0.0
    wall_s: Seconds = 0.0
    steps_per_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    bytes_per_run: Count = 0


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Runs that failed, and why."""

    runs: list[tuple[Label, Label, Seed]]
    error: Words


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`manifest.json`: settings, version, times."""

    format: int
    suite: Name
    seeds: Annotated[int, msgspec.Meta(ge=1, le=4096)]
    steps: Annotated[int, msgspec.Meta(ge=1, le=10**15)]
    preset: Name
    end_handling: Name | None
    columns: dict[Label, Column]
    rows: dict[Label, Row]
    left_out: dict[Label, Words]
    commands: Annotated[list[Words], msgspec.Meta(min_length=1)]
    commits: list[Name]
    versions: dict[str, Name]
    wall_s: Seconds
    programs: Annotated[list[Facts], msgspec.Meta(max_length=MOST_RUNS)]
    failures: Annotated[list[Failure], msgspec.Meta(max_length=MOST_RUNS)]
    hardware: dict[str, Plain] = {}
    begun: Name = ""
    finished: Name | None = None
    asked: dict[Cell, Seeds] = {}
    seed: Seed = 0
    note: Words = ""
    # Of folders that were gathered from parts.
    commits_of: dict[Cell, list[Name]] = {}
    devices_of: dict[Cell, list[Name]] = {}


class RunFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of `seedN.json` except settings and the other measured numbers."""

    column: Label
    row: Label
    seed: Seed
    return_mean: float | None
    env: Name = ""
    method: Name = ""
    preset: Name = ""
    steps: Count = 0
    job: Facts = Facts()


def check_manifest(content: dict[str, Any]) -> None:
    """Refuse a manifest that no sweep wrote."""
    manifest: Manifest = from_plain(content, Manifest)
    if "termdp" not in manifest.versions:
        raise ValueError("it lacks the version of termdp")


def checked_record(content: Any, settings: Any) -> dict[str, Any]:
    """The record of a run: facts, measured numbers by name, settings."""
    if not isinstance(content, dict) or not isinstance(settings, dict):
        raise ValueError("expected a record with settings")
    known = RunFacts.__struct_fields__
    facts = {name: value for name, value in content.items() if name in known}
    from_plain(facts, RunFacts)
    for name, value in content.items():
        if name in known or name == "settings":
            continue
        if not name.isidentifier() or not isinstance(value, int | float | None):
            raise ValueError(f"expected a number or null by its name, got {name!r:.60}")
    from_plain(settings, dict[str, Plain | dict[str, Plain | dict[str, Plain]]])
    return {**content, "settings": settings}
