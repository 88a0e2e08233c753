"""Single values that come from outside: their kinds, limits, and words for them.

Requests (`server.bodies`) and files (`records.study_schema`) are made of these.
"""

from typing import Annotated, Any

from msgspec import Meta

from termdp.people.driving.ride import MAX_SEED, MAX_STEPS

NAME_LENGTH = 64
REASON_LENGTH = 1000
TEXT_LENGTH = 20_000
MAX_LATENCY_MS = 600_000
MAX_ID = 2**31 - 1
# What JavaScript and any database hold exactly.
LARGEST = 2**53
# What any database can hold: no null characters, no halves of surrogate pairs.
_PLAIN = r"^[^\x00\ud800-\udfff]*\Z"
# Names of people, in any script: letters and digits with their marks. Nothing that could
# turn the text around, be taken for a path, or not be seen at all.
_MARKS = r"[^\x00-\xbf\u2000-\u206f\ud800-\uf8ff\ufff0-\uffff\s]"
PERSON_FORM = rf"[^\W_](?:[\w.-]|{_MARKS}){{0,{NAME_LENGTH - 1}}}"
PERSON_WORDS = (
    f"at most {NAME_LENGTH} letters or digits of any script, '.', '_' or '-', beginning "
    "with a letter or digit"
)
NAME_FORM = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_LENGTH - 1}}}"


def whole(low: int, high: int) -> Meta:
    """Whole numbers within limits."""
    return Meta(ge=low, le=high, description=f"a whole number from {low} to {high}")


def number(low: float, high: float) -> Meta:
    """Numbers within limits."""
    return Meta(ge=low, le=high, description=f"a number from {low:g} to {high:g}")


def text(longest: int, shortest: int = 0) -> Meta:
    """Plain text of limited length."""
    words = f"plain text of at most {longest} characters"
    return Meta(
        min_length=shortest, max_length=longest, pattern=_PLAIN, description=words
    )


def form(pattern: str, words: str) -> Meta:
    """Text that a pattern matches from its first to its last character."""
    return Meta(pattern=rf"^(?:{pattern})\Z", description=words)


def digits(longest: int) -> Meta:
    """Actions on a road, a digit each."""
    return form(f"[012]{{1,{longest}}}", f"1 to {longest} digits 0, 1 and 2")


def actions(longest: int) -> Meta:
    """Actions of any game, a digit each; after 9 come lower-case letters."""
    return form(f"[0-9a-z]{{1,{longest}}}", f"1 to {longest} digits or letters a to z")


def description(annotation: Any) -> str:
    """The description of a type, or of the type in an optional one; empty without one."""
    for part in (annotation, *getattr(annotation, "__args__", ())):
        for meta in getattr(part, "__metadata__", ()):
            if isinstance(meta, Meta) and meta.description:
                return meta.description
    return ""


# Names that are used in addresses and file names.
Name = Annotated[
    str,
    form(
        NAME_FORM,
        f"at most {NAME_LENGTH} letters, digits, '.', '_' or '-', beginning with a "
        "letter or digit",
    ),
]
PersonName = Annotated[str, form(PERSON_FORM, PERSON_WORDS)]
Text = Annotated[str, text(TEXT_LENGTH)]
Reason = Annotated[str, text(REASON_LENGTH)]
Seed = Annotated[int, whole(0, MAX_SEED)]
Step = Annotated[int, whole(0, MAX_STEPS)]
StepMs = Annotated[int, whole(20, 5000)]
Share = Annotated[float, number(0, 1)]
Latency = Annotated[int, whole(0, MAX_LATENCY_MS)]
Speed = Annotated[float, number(0.05, 20)]
Replays = Annotated[int, whole(0, 10_000)]
# Made up by the sender, the same in every retry.
ClientId = Annotated[
    str, form("[A-Za-z0-9_-]{8,64}", "8 to 64 letters, digits, '-' or '_'")
]
# Milliseconds since 1970, by the server's clock.
Moment = Annotated[int, whole(0, LARGEST)]
