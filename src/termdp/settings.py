"""Settings declared once: a default, a sentence, a range.

A number of a run is a field of a frozen dataclass, declared with `number`. Its flag, its
keyword, its check and its line in `termdp train --print-config` all come from there.
"""

import dataclasses
import difflib
import reprlib
import sys
import types
import typing
from collections.abc import Iterable
from typing import Any

MOST = sys.float_info.max
# Of hidden layers on grids and images; weights, optimisers and losses are float32.
PRECISIONS = ("auto", "float32", "bfloat16")
# A value from a file may have any length; an error message may not.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60


def number(
    default: Any,
    about: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A field with its sentence of documentation and the values it may have."""
    limits = {"least": least, "above": above, "most": most, "below": below}
    metadata = {"about": about, "choices": choices, "limits": limits}
    return dataclasses.field(default=default, metadata=metadata)


def numbers_of(settings: Any) -> dict[str, dataclasses.Field]:
    """The fields of a settings class (or object) that were declared with `number`."""
    fields = dataclasses.fields(settings)
    return {field.name: field for field in fields if "about" in field.metadata}


def check(settings: Any, prefix: str = "") -> None:
    """Refuse a value of the wrong type or out of range, in one sentence.

    Call it in `__post_init__`. Whole numbers are accepted where fractions are expected.

    Args:
        settings: an object with fields made by `number`.
        prefix: of the fields' names in messages.
    """
    hints = typing.get_type_hints(type(settings))
    for name, field in numbers_of(settings).items():
        value = getattr(settings, name)
        if not _fits(value, hints[name], field.metadata):
            expected = expectation(hints[name], field.metadata)
            got = _SHORT.repr(value)
            raise ValueError(f"expected {prefix}{name} to be {expected}, got {got}")


def expectation(hint: Any, metadata: Any) -> str:
    """The values that a field may have, in words."""
    kinds = _kinds(hint)
    if metadata["choices"]:
        words = f"one of {', '.join(metadata['choices'])}"
    elif bool in kinds:
        words = "true or false"
    else:
        words = "a number" if float in kinds else "a whole number"
        if str in kinds:
            words = "a word"
        limits = metadata["limits"]
        ranges = {
            "least": "of at least {:g}",
            "above": "above {:g}",
            "most": "at most {:g}",
            "below": "below {:g}",
        }
        given = [
            text.format(limits[name])
            for name, text in ranges.items()
            if limits[name] is not None
        ]
        words = " ".join([words, " and ".join(given)]).strip()
    return f"{words} or none" if type(None) in kinds else words


def _kinds(hint: Any) -> tuple[Any, ...]:
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is (
        typing.Union
    )
    return typing.get_args(hint) if is_union else (hint,)


def _fits(value: Any, hint: Any, metadata: Any) -> bool:
    kinds = _kinds(hint)
    if value is None:
        return type(None) in kinds
    if isinstance(value, bool) or bool in kinds:
        return isinstance(value, bool) and bool in kinds
    if str in kinds:
        choices = metadata["choices"]
        return isinstance(value, str) and (choices is None or value in choices)
    allowed = (int, float) if float in kinds else (int,)
    # Not math.isfinite: whole numbers may be too large for it.
    if not isinstance(value, allowed) or not -MOST <= value <= MOST:
        return False
    limits = metadata["limits"]
    return (
        (limits["least"] is None or value >= limits["least"])
        and (limits["above"] is None or value > limits["above"])
        and (limits["most"] is None or value <= limits["most"])
        and (limits["below"] is None or value < limits["below"])
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """The known names nearest to a misspelt one, as the end of a sentence."""
    found = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(found)}?" if found else "no name is near it"
