"""Tokens: made here, shown once, kept as digests."""

import hashlib
import re
import secrets

_FORM = re.compile(r"[A-Za-z0-9_-]{16,128}")


def make() -> str:
    """A new token of 256 random bits, fit for addresses."""
    return secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """What the store keeps of a token (64 hexadecimal digits)."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_well_formed(token: object) -> bool:
    """Whether this could be a token at all."""
    return isinstance(token, str) and _FORM.fullmatch(token) is not None


def same(digest_a: str, digest_b: str) -> bool:
    """Compare digests in constant time."""
    return secrets.compare_digest(digest_a, digest_b)
