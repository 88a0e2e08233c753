"""The store, the same tests on SQLite and on a real PostgreSQL."""

import threading

import numpy as np
import pytest

from people_server import recorded
from termdp.people.records import plan, tokens
from termdp.people.records.study_store import (
    ConflictError,
    NotFoundError,
    ReviewInput,
    StudyStore,
    record_drive,
    record_join,
    record_live,
    record_reason,
    record_review,
    to_ride,
)
from termdp.people.records.tables import Base, Drive

NONCE = "n" * 32


def join(store, name="ann", study="coins"):
    invite = store.invite(study, name)
    found, supervisor = store.invited(invite)
    recorded(store, record_join, invite, NONCE, tokens.digest(found.consent))
    return supervisor.id


def review(store, supervisor_id, showing, *values, **more):
    given = ReviewInput(*values, **more)
    return recorded(store, record_review, supervisor_id, showing.id, given)


@pytest.fixture
def filled(store, straight_rides):
    store.create_study("coins", repeat_share=0.25)
    store.add_rides("coins", straight_rides, [False] * 12)
    return store


def review_all(store, supervisor_id, stop=lambda ride: False):
    order = []
    while (showing := store.next_showing(supervisor_id)) is not None:
        stopped = stop(showing.ride)
        review(store, supervisor_id, showing, f"client-{showing.id}", stopped, 1, 80)
        order.append((showing.ride.number, showing.is_repeat))
    return order


def test_rides_come_back_bit_for_bit(filled, straight_rides):
    assert [to_ride(row) for row in filled.rides("coins")] == straight_rides
    assert [row.number for row in filled.rides("coins")] == list(range(12))


def test_everything_survives_reopening(database_url, straight_rides):
    store = StudyStore.open(database_url)
    store.create_study("coins", title="Coins?", seed=3)
    store.add_rides("coins", straight_rides, [False] * 12)
    ann = join(store)
    showing = store.next_showing(ann)
    review(store, ann, showing, "c" * 16, True, 2, 120, "too close")
    store.close()

    again = StudyStore.open(database_url)
    assert again.study("coins").title == "Coins?"
    (first,) = [s for s in again.showings("coins") if s.review]
    assert first.id == showing.id
    assert (first.review.stopped, first.review.step) == (True, 2)
    assert (first.review.latency_ms, first.review.reason) == (120, "too close")
    again.close()


def test_each_supervisor_sees_all_rides_in_an_order_of_their_own(filled):
    orders = [review_all(filled, join(filled, name)) for name in ("ann", "bo")]
    for order in orders:
        first_showings = [number for number, is_repeat in order if not is_repeat]
        assert sorted(first_showings) == list(range(12))
        assert sum(is_repeat for _, is_repeat in order) == 3
        for place, (number, is_repeat) in enumerate(order):
            if is_repeat:
                assert order.index((number, False)) <= place - plan._MIN_GAP - 1 or (
                    place == len(order) - 1
                )
    assert orders[0] != orders[1]


def test_rides_added_later_come_later(filled, straight_rides):
    ann = join(filled)
    review_all(filled, ann)
    assert filled.next_showing(ann) is None
    filled.add_rides("coins", straight_rides[:2], [False, False])
    later = {number for number, _ in review_all(filled, ann)}
    assert later == {12, 13}
    done, total = filled.progress(ann)
    assert done == total


def test_no_repeats_if_none_are_asked_for():
    rng = np.random.default_rng(0)
    assert not any(repeat for _, repeat in plan.showings(range(20), 0.0, rng))
    assert len(plan.showings(range(20), 1.0, rng)) == 40
    assert plan.showings([7], 0.5, rng)[0] == (7, False)


def test_a_review_that_comes_twice_counts_once(filled):
    ann = join(filled)
    showing = filled.next_showing(ann)
    given = ("same-client-id-1", True, 1, 30)
    first = review(filled, ann, showing, *given)
    assert review(filled, ann, showing, *given).id == first.id
    assert sum(s.review is not None for s in filled.showings("coins")) == 1


def test_a_second_stop_is_refused(filled):
    ann = join(filled)
    showing = filled.next_showing(ann)
    review(filled, ann, showing, "first-client-id", True, 1, 30)
    with pytest.raises(ConflictError, match="stopped at step 1 already"):
        review(filled, ann, showing, "other-client-id", True, 2, 30)


def test_a_stop_after_the_end_is_refused(store, straight_rides):
    store.create_study("coins")
    store.add_rides("coins", straight_rides[:1], [True])
    ann = join(store)
    showing = store.next_showing(ann)
    with pytest.raises(ConflictError, match="crash at step 2"):
        review(store, ann, showing, "c" * 16, True, 2, 30)
    with pytest.raises(ConflictError, match="over after step 2"):
        review(store, ann, showing, "c" * 16, True, 3, 30)
    review(store, ann, showing, "c" * 16, False, 0)
    with pytest.raises(ConflictError, match="is over already"):
        review(store, ann, showing, "d" * 16, True, 1, 30)


def test_a_wrong_clock_is_recorded_and_changes_nothing(filled):
    ann = join(filled)
    showing = filled.next_showing(ann)
    kept = review(filled, ann, showing, "c" * 16, True, 1, 30, client_ms=0)
    assert kept.skew_ms == -kept.created_ms
    assert kept.created_ms > 1_700_000_000_000


def test_nobody_reviews_another_ones_showing(filled):
    ann, bo = join(filled, "ann"), join(filled, "bo")
    showing = filled.next_showing(ann)
    with pytest.raises(NotFoundError, match="one of your rides"):
        review(filled, bo, showing, "c" * 16, True, 1, 30)


def test_reasons_may_come_later(filled):
    ann = join(filled)
    showing = filled.next_showing(ann)
    with pytest.raises(ConflictError, match="reviewed"):
        recorded(filled, record_reason, ann, showing.id, "why")
    review(filled, ann, showing, "c" * 16, True, 1, 30)
    recorded(filled, record_reason, ann, showing.id, "because")
    (shown,) = [s for s in filled.showings("coins") if s.review]
    assert shown.review.reason == "because"


def test_invites_work_once_but_a_lost_answer_may_be_asked_for_again(filled):
    invite = filled.invite("coins", "ann")
    consent = tokens.digest(filled.study("coins").consent)
    first = recorded(filled, record_join, invite, NONCE, consent)
    second = recorded(filled, record_join, invite, NONCE, consent)
    assert filled.supervisor_of(first) is None
    assert filled.supervisor_of(second)[1].name == "ann"
    with pytest.raises(ConflictError, match="used already"):
        recorded(filled, record_join, invite, "m" * 32, consent)
    with pytest.raises(NotFoundError, match="not valid"):
        recorded(filled, record_join, "x" * 43, NONCE, consent)


def test_a_new_invite_replaces_the_old_one(filled):
    old = filled.invite("coins", "ann")
    new = filled.invite("coins", "ann")
    with pytest.raises(NotFoundError):
        filled.invited(old)
    assert filled.invited(new)[1].name == "ann"
    with pytest.raises(ConflictError, match="kind cannot change"):
        filled.invite("coins", "ann", kind="simulated")


def test_consent_is_to_the_text_that_is_there(filled):
    invite = filled.invite("coins", "ann")
    with pytest.raises(ConflictError, match="another text"):
        recorded(filled, record_join, invite, NONCE, tokens.digest("something else"))
    supervisor = filled.invited(invite)[1]
    assert (supervisor.joined_ms, supervisor.token_hash) == (None, None)


def test_no_token_is_in_the_database(filled, database_url):
    invite = filled.invite("coins", "ann")
    token = recorded(
        filled, record_join, invite, NONCE, tokens.digest(filled.study("coins").consent)
    )
    with filled.database.reading() as session:
        for table in Base.metadata.sorted_tables:
            for row in session.execute(table.select()):
                assert not {invite, token, NONCE} & set(map(str, row))


def test_stops_from_many_threads_are_all_kept(filled):
    people = [join(filled, f"p{i}") for i in range(6)]
    failures = []

    def work(supervisor_id):
        try:
            review_all(filled, supervisor_id, stop=lambda ride: True)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(p,)) for p in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    (line,) = filled.studies()
    assert (line["stops"], line["reviews"]) == (6 * 15, 6 * 15)


def test_live_rides_are_numbered_on_and_not_reviewed_again(filled, straight_rides):
    ann = join(filled)
    number = recorded(filled, record_live, ann, straight_rides[0], False)
    (showing,) = [s for s in filled.showings("coins") if s.id == number]
    assert (showing.ride.number, showing.ride.live) == (12, True)
    assert (showing.ride.seed, showing.ride.crashed) == (straight_rides[0].seed, False)
    assert to_ride(showing.ride) == straight_rides[0]
    assert filled.next_showing(ann).ride.live is False
    review(filled, ann, showing, "c" * 16, True, 1, 30)
    assert len(filled.rides("coins")) == 12
    assert len(filled.rides("coins", live=None)) == 13
    assert filled.progress(ann) == (0, 15)


def test_high_scores(filled):
    ann, bo = join(filled, "ann"), join(filled, "bo")

    def drive(client, score):
        return Drive(
            client_id=client,
            seed=1,
            actions=b"\0",
            score=score,
            coins=0,
            overtaken=0,
            crashed=True,
        )

    recorded(filled, record_drive, ann, drive("a", 1.5))
    recorded(filled, record_drive, bo, drive("a", 2.5))
    recorded(filled, record_drive, bo, drive("a", 9.5))  # a retry: not counted again
    scores = filled.high_scores(filled.study("coins").id)
    assert [(s["name"], s["score"]) for s in scores] == [("bo", 2.5), ("ann", 1.5)]


def test_unknown_studies_are_named(filled):
    with pytest.raises(NotFoundError, match=r"\(coins\), got 'koins'"):
        filled.study("koins")
    with pytest.raises(ConflictError, match="exists"):
        filled.create_study("coins")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"name": "../etc"}, "study name"),
        ({"name": ""}, "study name"),
        ({"name": "x" * 65}, "study name"),
        ({"consent": "  "}, "consent"),
        ({"step_ms": 1}, "step_ms"),
        ({"repeat_share": 1.5}, "repeat_share"),
        ({"title": "x" * 20_001}, "at most 20000"),
        ({"title": "a\0b"}, "null characters"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_studies_are_refused(tmp_path, changes, message):
    store = StudyStore.open(str(tmp_path / "s.db"))
    with pytest.raises(ValueError, match=message):
        store.create_study(**{"name": "fine", **changes})
    assert store.studies() == []
    store.close()
