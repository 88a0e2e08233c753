"""Small words of reports."""

from termdp.report.names import counted


def test_numbers_and_their_nouns():
    assert counted(1, "environment") == "1 environment"
    assert [counted(n, "method") for n in (0, 2)] == ["0 methods", "2 methods"]
