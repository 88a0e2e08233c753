"""Request bodies: small JSON objects, one class for each, every field checked.

A field's `Meta` holds its limits and describes in words what is expected. The error
message for a bad body is made of these words.
"""

import json
import re
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request

from termdp.people.driving.ride import BACKSEAT
from termdp.people.records import tokens
from termdp.people.records.fields import (
    LARGEST,
    NAME_LENGTH,
    ClientId,
    Latency,
    Reason,
    Replays,
    Seed,
    Share,
    Speed,
    Step,
    StepMs,
    Text,
    description,
    digits,
    form,
    text,
    whole,
)

DRIVE_STEPS = 2000
MAX_RIDES = 5000
MAX_INVITES = 500
_LONGEST_SHOWN = 40


class RefusedError(Exception):
    """A request that cannot be answered as asked: an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


# The store checks names more precisely.
Name = Annotated[str, text(NAME_LENGTH)]
Token = Annotated[
    str, form(tokens.FORM, "a token of 16 to 128 letters, digits, '-' or '_'")
]
Names = Annotated[
    list[Name],
    Meta(
        min_length=1,
        max_length=MAX_INVITES,
        description=f"a list of 1 to {MAX_INVITES} names of at most {NAME_LENGTH} "
        "characters",
    ),
]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JSON object; unknown fields are refused."""


class InviteBody(Body, frozen=True, kw_only=True):
    """`POST /api/invite`."""

    invite: Token


class GuestBody(Body, frozen=True, kw_only=True):
    """`POST /api/guest`."""

    name: Name
    study: Name | None = None


class JoinBody(Body, frozen=True, kw_only=True):
    """`POST /api/join`."""

    invite: Token
    nonce: Token
    consent_hash: Annotated[str, text(64)]


class FinishBody(Body, frozen=True, kw_only=True):
    """`POST /api/showings/ID/finish`."""

    client_id: ClientId = msgspec.field(name="id")
    speed: Speed = 1.0
    replays: Replays = 0
    client_ms: Annotated[int, whole(-LARGEST, LARGEST)] | None = None


class StopBody(FinishBody, frozen=True, kw_only=True):
    """`POST /api/showings/ID/stop`."""

    step: Step
    latency_ms: Latency
    reason: Reason = ""


class MistakeBody(Body, frozen=True, kw_only=True):
    """`POST /api/showings/ID/mistake`; `stop` is the id that the stop was sent with."""

    client_id: ClientId = msgspec.field(name="id")
    stop: ClientId


class ReasonBody(Body, frozen=True, kw_only=True):
    """`POST /api/showings/ID/reason`."""

    client_id: ClientId = msgspec.field(name="id")
    reason: Reason


class DriveBody(Body, frozen=True, kw_only=True):
    """`POST /api/drives`."""

    client_id: ClientId = msgspec.field(name="id")
    seed: Seed
    actions: Annotated[str, digits(DRIVE_STEPS)]


class WithdrawBody(Body, frozen=True, kw_only=True):
    """`POST /api/withdraw`."""

    keep_stops: Annotated[bool, Meta(description="true or false")]


class StudyBody(Body, frozen=True, kw_only=True):
    """`POST /api/admin/studies`."""

    name: Name
    title: Text = ""
    consent: Text | None = None
    step_ms: StepMs = 200
    repeat_share: Share = 0.1
    seed: Seed = 0
    env: Name = BACKSEAT
    rides: Annotated[int, whole(0, MAX_RIDES)] = 0
    steps: Annotated[int, whole(1, 2000)] = 200


class RidesBody(Body, frozen=True, kw_only=True):
    """`POST /api/admin/studies/NAME/rides`."""

    count: Annotated[int, whole(1, MAX_RIDES)]
    steps: Annotated[int, whole(1, 2000)] = 200
    seed: Seed = 0


class InvitesBody(Body, frozen=True, kw_only=True):
    """`POST /api/admin/studies/NAME/invites`."""

    names: Names
    kind: Name = "person"


Kind = TypeVar("Kind", bound=Body)


async def read_body(request: Request, kind: type[Kind]) -> Kind:
    """The checked body of a request (its size was limited before)."""
    sent = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if sent != "application/json":
        raise RefusedError(
            415, f"expected a body of type application/json, got {sent or 'none'}"
        )
    try:
        values = json.loads(await request.body(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RefusedError(
            400, "expected JSON in the body, got malformed text"
        ) from error
    if not isinstance(values, dict):
        raise RefusedError(
            400, f"expected a JSON object in the body, got {_shown(values)}"
        )
    try:
        return msgspec.convert(values, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise RefusedError(422, _sentence(str(error), values, kind)) from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _sentence(problem: str, values: dict[str, Any], kind: type[Body]) -> str:
    """Say what is wrong with a body, given msgspec's message."""
    expected = {
        field.encode_name: description(field.type)
        for field in msgspec.structs.fields(kind)
    }
    unknown = sorted(values.keys() - expected.keys())
    if unknown:
        known = ", ".join(expected)
        return f"expected the fields {known}, got an unknown field {_shown(unknown[0])}"
    for name in expected.keys() - values.keys():
        if f"`{name}`" in problem:
            return f"expected a field {name} ({expected[name]}), got none"
    place = re.search(r"`\$\.(\w+)", problem)
    name = place[1] if place else ""
    return f"expected {name} to be {expected[name]}, got {_shown(values[name])}"


def _shown(value: Any) -> str:
    """A value as JSON; only the size if it is long."""
    words = json.dumps(value)
    if len(words) <= _LONGEST_SHOWN:
        return words
    if isinstance(value, str):
        return f"text of {len(value)} characters"
    return f"{words[:_LONGEST_SHOWN]}…"
