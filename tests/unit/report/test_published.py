"""The published numbers, and what follows from them."""

import pytest

from termdp.report import published


@pytest.mark.parametrize(
    ("column", "implied"),
    [
        ("space_invaders", 0.55),
        ("seaquest", 3.0),
        ("breakout", 4.86),
        ("asterix", 0.89),
        ("backseat", 0.47),
    ],
)
def test_the_table_implies_other_gains_than_the_text_claims(column, implied):
    assert published.implied_improvement(column) == pytest.approx(implied, abs=0.01)
    assert published.CLAIMS[column] != pytest.approx(implied, abs=0.005)


def test_every_line_has_every_column():
    assert all(set(line) == set(published.COLUMNS) for line in published.ROWS.values())
    assert published.ratio_to_pg("termpg", "backseat") == pytest.approx(8.7 / 5.3)
