"""What a study has found, by small cases worked out by hand."""

import numpy as np
import pytest

from termdp.people.records.study_store import new_study
from termdp.people.records.tables import Review, Showing, StoredRide, Supervisor
from termdp.people.server.results import (
    agreement_table,
    cohens_kappa,
    reaction_ms,
    rides_table,
    supervisors_table,
)


def showing(
    name, ride, stop=None, repeat=False, actions=b"\0" * 8, latency=50, speed=1.0
):
    """A reviewed one: `stop` is a step, or None for a ride watched to its end."""
    return Showing(
        supervisor=Supervisor(name=name, kind="person"),
        is_repeat=repeat,
        ride=StoredRide(
            id=ride, number=ride, seed=0, driver="p", actions=actions, crashed=False
        ),
        review=Review(
            stopped=stop is not None,
            step=len(actions) - 1 if stop is None else stop,
            latency_ms=None if stop is None else latency,
            speed=speed,
        ),
    )


def test_kappa_of_a_textbook_table():
    # 20 both yes, 5 only a, 10 only b, 15 both no: p = 0.7, e = 0.5, kappa = 0.4
    rows = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert cohens_kappa(np.array(rows, bool)) == pytest.approx(0.4)


def test_kappa_is_unknown_where_chance_explains_all():
    assert cohens_kappa(np.ones((5, 2), bool)) is None
    assert cohens_kappa(np.array([[1, 0], [0, 1]], bool)) == pytest.approx(-1.0)


def test_agreement_counts_common_rides_once():
    shown = [
        showing("ann", 1, stop=2),
        showing("ann", 2),
        showing("ann", 2, stop=1, repeat=True),  # a second look is no second ride
        showing("ann", 3, stop=5),
        showing("bo", 1, stop=6),
        showing("bo", 2, stop=3),
        showing("bo", 4),
    ]
    (row,) = agreement_table(shown)
    assert (row["a"], row["b"], row["rides"]) == ("ann", "bo", 2)
    assert row["same"] == 0.5
    assert row["gap_steps"] == 4.0


def test_supervisors_and_their_consistency():
    shown = [
        showing("ann", 1, stop=2),
        showing("ann", 1, stop=4, repeat=True),
        showing("ann", 2),
        showing("ann", 2, stop=3, repeat=True),
    ]
    (row,) = supervisors_table(shown, new_study("comfort", step_ms=200))
    assert (row["reviews"], row["stops"], row["stop_rate"]) == (4, 3, 0.75)
    assert row["repeats"]["rides"] == 2
    assert row["repeats"]["same"] == 0.5
    assert row["repeats"]["gap_steps"] == 2.0
    assert row["reaction_ms"] is None  # the driver never did anything


def test_reaction_is_counted_from_the_last_lane_change():
    turns = bytes([0, 1, 0, 0, 0, 0, 0, 0])  # a lane change in step 1
    late = showing("ann", 1, stop=4, actions=turns, latency=50)
    assert reaction_ms(late, 200) == 3 * 200 + 50
    faster = showing("ann", 1, stop=4, actions=turns, latency=25, speed=2.0)
    assert reaction_ms(faster, 200) == 3 * 100 + 25
    at_once = showing("ann", 1, stop=1, actions=turns, latency=120)
    assert reaction_ms(at_once, 200) == 120
    before = showing("ann", 1, stop=0, actions=turns, latency=120)
    assert reaction_ms(before, 200) is None
    assert reaction_ms(showing("ann", 1, actions=turns), 200) is None


def test_a_change_off_the_road_is_none():
    # From the middle of five lanes two changes reach the edge, the third does nothing.
    turns = bytes([1, 1, 1, 0, 0, 0, 0, 0])
    assert reaction_ms(showing("ann", 1, stop=3, actions=turns, latency=0), 200) == 400


def test_rides_with_all_their_reviews():
    shown = [showing("ann", 2, stop=2), showing("bo", 2), showing("bo", 1)]
    first, second = rides_table(shown)
    assert (first["ride"], second["ride"]) == (1, 2)
    stops = [(v["supervisor"], v["stop"]) for v in second["reviews"]]
    assert stops == [("ann", 2), ("bo", None)]
