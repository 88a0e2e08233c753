"""What a study's file may hold: every field, its kind and its limits, and nothing else.

The same record is written by an export and read by an import or a fit. There is no place
in it for logins, paths or settings of a server: a file that brings them is refused.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from termdp.people.driving.ride import (
    BACKSEAT,
    DIGITS,
    MAX_STEPS,
    Ride,
    from_digits,
    studied,
)
from termdp.people.records import fields

FORMAT, FORMAT_VERSION = "termdp study", 2
_DRIVER_LENGTH = 1000
Id = Annotated[int, fields.whole(0, fields.MAX_ID)]
Digest = Annotated[str, fields.form("[0-9a-f]{64}", "64 hexadecimal digits")]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object of a record; unknown fields are refused."""


class StudyPart(Part, frozen=True, kw_only=True, omit_defaults=True):
    """See `tables.Study`. A file without `env` is of Backseat Driver."""

    name: fields.Name
    title: fields.Text
    consent: Annotated[str, fields.text(fields.TEXT_LENGTH, shortest=1)]
    step_ms: fields.StepMs
    repeat_share: fields.Share
    seed: fields.Seed
    created_ms: fields.Moment
    env: fields.Name = BACKSEAT


class SupervisorPart(Part, frozen=True, kw_only=True):
    """See `tables.Supervisor`; a file has no logins."""

    name: fields.PersonName
    kind: Literal["person", "simulated"]
    consent_hash: Digest | None
    joined_ms: fields.Moment | None
    created_ms: fields.Moment


class RidePart(Part, frozen=True, kw_only=True):
    """See `tables.StoredRide`; `actions` has a digit or letter for each step."""

    number: Id
    seed: fields.Seed
    driver: Annotated[str, fields.text(_DRIVER_LENGTH)]
    actions: Annotated[str, fields.actions(MAX_STEPS)]
    crashed: bool
    live: bool
    created_ms: fields.Moment

    def ride(self, env: str) -> Ride:
        """The ride itself; `env` is its study's."""
        return Ride(self.seed, self.driver, from_digits(self.actions), env)


class MistakePart(Part, frozen=True, kw_only=True):
    """A stop that was taken back; see `tables.Mistake`. No fit reads it."""

    client_id: fields.ClientId
    step: fields.Step
    latency_ms: fields.Latency | None
    stopped_ms: fields.Moment
    created_ms: fields.Moment


class ShowingPart(Part, frozen=True, kw_only=True):
    """A reviewed showing; see `tables.Showing` and `tables.Review`.

    `supervisor` is a place in the list of supervisors, `ride` the number of a ride.
    """

    supervisor: Id
    ride: Id
    position: Id
    is_repeat: bool
    shown_ms: fields.Moment | None
    client_id: fields.ClientId
    stopped: bool
    step: fields.Step
    latency_ms: fields.Latency | None
    reason: fields.Reason | None
    created_ms: fields.Moment
    speed: fields.Speed
    replays: fields.Replays
    skew_ms: Annotated[int, fields.whole(-2 * fields.LARGEST, fields.LARGEST)] | None
    mistakes: list[MistakePart] = []

    @property
    def num_steps(self) -> int:
        """Steps that were shown: up to the stop, or to the ride's own end."""
        return self.step + 1


class StudyRecord(Part, frozen=True, kw_only=True):
    """A whole study as plain data, without tokens and without open showings."""

    format: Literal["termdp study"]
    version: Literal[2]
    observation_shape: tuple[int, ...]
    study: StudyPart
    supervisors: list[SupervisorPart]
    rides: list[RidePart]
    showings: list[ShowingPart]


_PARTS: dict[str, type[Part]] = {
    "study": StudyPart,
    "supervisors": SupervisorPart,
    "rides": RidePart,
    "showings": ShowingPart,
}


class _Heading(msgspec.Struct, frozen=True):
    """What tells files of other kinds and versions apart."""

    format: str = ""
    version: Any = None


def decode(content: bytes) -> StudyRecord:
    """A record out of a file's JSON; raises `ValueError` with what is wrong."""
    try:
        heading = msgspec.json.decode(content, type=_Heading)
        if heading.format != FORMAT:
            raise ValueError("its columns or metadata do not match")
        if heading.version != FORMAT_VERSION:
            raise ValueError(
                f"expected version {FORMAT_VERSION} of the format, got version "
                f"{str(heading.version)[:20]}: export the study again with this "
                "version of termdp"
            )
        record = msgspec.json.decode(content, type=StudyRecord)
    except msgspec.DecodeError as error:
        raise ValueError(_sentence(error)) from error
    except (RecursionError, UnicodeError) as error:
        raise ValueError("its metadata are not JSON that termdp writes") from error
    check(record)
    return record


def convert(values: dict[str, Any]) -> StudyRecord:
    """A record out of what a store holds; the same limits as for a file."""
    try:
        record = msgspec.convert(values, StudyRecord)
    except msgspec.ValidationError as error:
        raise ValueError(
            f"expected a store as termdp writes it, got other content: {_sentence(error)}"
        ) from error
    check(record)
    return record


def _sentence(error: Exception) -> str:
    """What is wrong, in the field's own words where it has some."""
    said = str(error)
    place = re.search(r"`\$\.((\w+)(?:\[\d+\])?\.(\w+))`", said)
    if place is not None and place[2] in _PARTS:
        kinds = get_type_hints(_PARTS[place[2]], include_extras=True)
        words = fields.description(kinds[place[3]])
        if words:
            return f"expected {place[1]} to be {words}"
    said = said.replace("`", "").replace("$.", "")
    return said if said.startswith("JSON") else said[0].lower() + said[1:]


def check(record: StudyRecord) -> None:
    """Refuse a record whose names, numbers, actions, places or ends contradict."""
    known = DIGITS[: studied(record.study.env).num_actions]
    for row in record.rides:
        if row.actions.strip(known):
            raise ValueError(
                f"ride {row.number} has actions that {record.study.env} does not have: "
                f"expected {known[0]} to {known[-1]}"
            )
    _check_distinct("supervisor", (s.name for s in record.supervisors))
    _check_distinct("ride number", (ride.number for ride in record.rides))
    _check_distinct("position", ((s.supervisor, s.position) for s in record.showings))
    rides = {ride.number: ride for ride in record.rides}
    for place, showing in enumerate(record.showings):
        if showing.supervisor >= len(record.supervisors):
            raise ValueError(f"showing {place} is of a supervisor that is not there")
        if showing.ride not in rides:
            raise ValueError(f"showing {place} is of a ride that is not there")
        _check_end(place, showing, rides[showing.ride])


def _check_distinct(what: str, values: Iterable[Any]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"the {what} {value} occurs twice")
        seen.add(value)


def _check_end(place: int, showing: ShowingPart, ride: RidePart) -> None:
    last = len(ride.actions) - 1
    if showing.stopped:
        if showing.step > last or (showing.step == last and ride.crashed):
            raise ValueError(f"showing {place} is stopped after its ride's end")
        if showing.latency_ms is None:
            raise ValueError(f"showing {place} is stopped without a latency")
    elif showing.step != last or showing.latency_ms is not None:
        raise ValueError(f"showing {place} is not stopped, but ends at a stop")
