"""NAME=VALUE: names with underscores, values of the type that they look like."""

import pytest

from termdp.cli.pairs import name_and_value


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("cost-members=3", ("cost_members", 3)),
        ("clip=1e-1", ("clip", 0.1)),
        ("anneal=False", ("anneal", False)),
        ("value_clip=None", ("value_clip", None)),
        ("network=grid", ("network", "grid")),
        ("note=a=b", ("note", "a=b")),
    ],
)
def test_values_by_hand(pair, expected):
    name, value = name_and_value(pair)
    assert (name, value) == expected
    assert type(value) is type(expected[1])


def test_a_name_alone_is_refused():
    with pytest.raises(ValueError, match="NAME=VALUE, got 'clip'"):
        name_and_value("clip")
