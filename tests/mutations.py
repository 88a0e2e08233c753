"""Files with something wrong in them: bytes changed, or values in their JSON."""

import copy
import json
import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("TERMDP_FUZZ_EXAMPLES", "25"))
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="TERMDP_FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
    database=None,
)

WEIRD = st.one_of(
    st.sampled_from(
        [
            *(None, True, -1, 0, 2**31, 2**63, 2**70, 10**400, -(10**30), 1e308),
            *(float("nan"), float("inf"), "", "x" * 100_000, "../../etc/passwd", "\0"),
            *([], {}, [[]], {"": {}}, [0] * 1000, "nan", "1", "💥", 10**7, 10**9),
        ]
    ).map(copy.deepcopy),  # a later change may reach into it
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.builds(lambda depth: _deep(depth), st.integers(1, 900)),
)


def _deep(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


@st.composite
def changed_bytes(draw, content):
    """The content with a few bytes changed, cut off, doubled or put in."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(changed) - 1)))
        kind = draw(st.sampled_from(["set", "cut", "insert", "double", "drop"]))
        some = draw(st.binary(min_size=1, max_size=9))
        if kind == "set":
            changed[place : place + len(some)] = some
        elif kind == "cut":
            del changed[place:]
        elif kind == "insert":
            changed[place:place] = some
        elif kind == "double":
            changed += changed[place:]
        else:
            del changed[place : place + len(some)]
    return bytes(changed)


@st.composite
def changed_values(draw, content):
    """Plain data with a few values changed, removed or added, anywhere in it."""
    changed = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        changed = draw(_one_change(changed))
    return changed


@st.composite
def _one_change(draw, content):
    places = list(_places(content))
    if not places:
        return draw(WEIRD)
    inside, name = draw(st.sampled_from(places))
    kind = draw(st.sampled_from(["set", "set", "set", "remove", "add", "all"]))
    if kind == "set":
        inside[name] = draw(WEIRD)
    elif kind == "remove":
        del inside[name]
    elif kind == "add":
        value = draw(WEIRD)
        if isinstance(inside, dict):
            inside[draw(st.text(max_size=10))] = value
        else:
            inside.append(value)
    else:
        return draw(WEIRD)
    return content


def _places(content):
    items = ()
    if isinstance(content, dict):
        items = list(content.items())
    elif isinstance(content, list):
        items = list(enumerate(content))
    for name, value in items:
        yield content, name
        yield from _places(value)


def as_text(content):
    """JSON as Python writes it, even where the content is very deep."""
    try:
        return json.dumps(content)
    except RecursionError:
        return "[" * 100_000
