"""Tokens: made here, shown once, kept as digests."""

import hashlib
import math
import re
import secrets
import time
from collections.abc import Callable
from typing import Any

FORM = r"[A-Za-z0-9_-]{16,128}"
# The environment variable with the admin's token.
ADMIN_VARIABLE = "TERMDP_ADMIN_TOKEN"
# A token that was replaced by another one works for this long at most.
REMEMBERED_SECONDS = 5.0
MAX_REMEMBERED = 10_000
# Invites and tokens work for this many days unless the server is told otherwise.
DAYS = 30.0
MS_PER_DAY = 86_400_000


class Known:
    """Remembers who sent a token, so that not every request asks the database."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock = clock
        self._found: dict[str, tuple[float, Any]] = {}

    def get(self, token: str) -> Any:
        """Who it was; None if nobody asked recently."""
        since, found = self._found.get(digest(token), (-math.inf, None))
        return found if self.clock() - since < REMEMBERED_SECONDS else None

    def put(self, token: str, found: Any) -> None:
        """Remember for a while."""
        if len(self._found) > MAX_REMEMBERED:
            self._found.clear()
        self._found[digest(token)] = (self.clock(), found)

    def clear(self) -> None:
        """Forget everybody, so that the database is asked again."""
        self._found.clear()


def make() -> str:
    """A new token of 256 random bits, safe to use in addresses."""
    return secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """What the store keeps of a token (64 hexadecimal digits)."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_well_formed(token: object) -> bool:
    """Whether this could be a token at all."""
    return isinstance(token, str) and re.fullmatch(FORM, token) is not None


def is_older(since_ms: int | None, days: float, now_ms: int) -> bool:
    """Whether something has expired; if its age is unknown, it has."""
    return since_ms is None or now_ms - since_ms > days * MS_PER_DAY


def same(digest_a: str, digest_b: str) -> bool:
    """Compare digests in constant time."""
    return secrets.compare_digest(digest_a, digest_b)
