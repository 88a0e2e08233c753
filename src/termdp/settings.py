"""Names of settings: what to say about a misspelt one."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The known names nearest to a misspelt one, as the end of a sentence."""
    found = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(found)}?" if found else "no name is near it"
