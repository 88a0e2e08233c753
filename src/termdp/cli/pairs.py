"""`--set NAME=VALUE`, and the values of flags for numbers."""

from typing import Any


def name_and_value(pair: str) -> tuple[str, Any]:
    """The name, with underscores, and the value of `NAME=VALUE`."""
    name, equals, text = pair.partition("=")
    if not equals:
        raise ValueError(f"expected --set NAME=VALUE, got {pair!r}")
    return name.replace("-", "_"), parsed(text)


def parsed(text: str) -> Any:
    """A text as None, a truth, a whole number, a decimal, or else as it is."""
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
