"""The admin watches a running study, without loading the page again."""

from people_server import ADMIN
from termdp.people.records.study_store import StudyStore, to_ride


def test_who_rides_now_and_stops_just_now(visit, server):
    watcher, rider = visit(hurried=True), visit(hurried=True)
    with StudyStore.open(server.db) as store:
        store.create_study("watched", step_ms=50)
        rides = [to_ride(ride) for ride in store.rides("comfort")[:2]]
        store.add_rides("watched", rides, [False, False])
    watcher.open(f"/admin#{ADMIN}")
    page = watcher.page
    page.select_option("#live-study", "watched")
    page.wait_for_selector("#riding:has-text('Nobody is riding')")
    rider.sign_in("on-watch", "watched")
    rider.open("/review?speed=0.25")
    rider.page.click("#start")
    page.wait_for_selector("[data-rider=on-watch]:has-text('Review, ride')")
    rider.stop()
    rider.page.wait_for_selector("#status:has-text('Saved')")
    rider.page.click("#chips button:has-text('jerky')")
    rider.open("/")  # the reason is sent when the page is left
    watcher.wait_for("#last-stops tr:has-text('jerky')")
    assert "on-watch" in watcher.text("#last-stops")
    watcher.wait_for("#riding:has-text('Nobody is riding')")
    shown, stops = page.locator("#live .figure b").all_inner_texts()[1:]
    assert (shown, stops) == ("1", "1")
