"""Requests' bodies: small JSON objects, every field checked by name, type and range."""

import json
import math
import re
from typing import Any

from starlette.requests import Request

from termdp.people.records import tokens

_CLIENT_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")


class RefusedError(Exception):
    """A request that cannot be answered as asked: an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Fields:
    """A body's fields; each may be taken once, and all must be taken."""

    def __init__(self, values: dict[str, Any]):
        self._values = values

    def done(self) -> None:
        """Refuse what nobody asked for: most likely a misspelt name."""
        if self._values:
            names = ", ".join(sorted(self._values)[:5])
            raise RefusedError(422, f"unknown field: {names[:200]}")

    def text(self, name: str, limit: int, default: str | None = None) -> str:
        """A string of at most `limit` characters that any database can hold."""
        value = self._take(name, default)
        if not isinstance(value, str):
            raise RefusedError(422, f"expected {name} to be text, got {_kind(value)}")
        if len(value) > limit:
            raise RefusedError(
                422,
                f"expected {name} of at most {limit} characters, got {len(value)}",
            )
        if "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise RefusedError(422, f"expected {name} to be plain text")
        return value

    def integer(
        self, name: str, low: int, high: int, default: int | None = None
    ) -> int:
        """A whole number within bounds."""
        value = self._take(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise RefusedError(
                422, f"expected {name} to be a whole number, got {_kind(value)}"
            )
        if not low <= value <= high:
            raise RefusedError(422, f"expected {name} within {low} and {high}")
        return value

    def optional_integer(self, name: str, low: int, high: int) -> int | None:
        """The same, or nothing."""
        if self._values.get(name) is None:
            self._values.pop(name, None)
            return None
        return self.integer(name, low, high)

    def number(
        self, name: str, low: float, high: float, default: float | None = None
    ) -> float:
        """A finite number within bounds."""
        value = self._take(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise RefusedError(
                422, f"expected {name} to be a number, got {_kind(value)}"
            )
        if not low <= value <= high or not math.isfinite(value):
            raise RefusedError(422, f"expected {name} within {low} and {high}")
        return float(value)

    def token(self, name: str) -> str:
        """Something that could be a token."""
        value = self._take(name, None)
        if not tokens.is_well_formed(value):
            raise RefusedError(422, f"expected {name} to be a token, it is not")
        assert isinstance(value, str)
        return value

    def client_id(self, name: str = "id") -> str:
        """What a browser made up to recognise a retry."""
        value = self._take(name, None)
        if not isinstance(value, str) or not _CLIENT_ID.fullmatch(value):
            raise RefusedError(
                422, f"expected {name} of 8 to 64 letters, digits, '-' or '_'"
            )
        return value

    def texts(self, name: str, count: int, limit: int) -> list[str]:
        """A list of 1 to `count` strings."""
        value = self._take(name, None)
        if not isinstance(value, list) or not 1 <= len(value) <= count:
            raise RefusedError(422, f"expected {name} to be a list of 1 to {count}")
        return [Fields({name: item}).text(name, limit) for item in value]

    def _take(self, name: str, default: Any) -> Any:
        if name in self._values:
            return self._values.pop(name)
        if default is None:
            raise RefusedError(422, f"expected a field {name}, it is missing")
        return default


async def read_fields(request: Request) -> Fields:
    """The body of a request as fields (its size is limited before this)."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "expected a body of type application/json")
    body = await request.body()
    try:
        values = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "expected JSON in the body, it is malformed") from error
    if not isinstance(values, dict):
        raise RefusedError(
            400, f"expected a JSON object in the body, got {_kind(values)}"
        )
    return Fields(values)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _kind(value: Any) -> str:
    """What a value is, in JSON's words."""
    names = {bool: "true or false", int: "a whole number", float: "a number"}
    names |= {str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "null")
