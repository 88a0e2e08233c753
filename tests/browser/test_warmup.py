"""The guided warm-up of somebody new: nothing of it becomes data."""

from termdp.people.records.study_store import StudyStore


def state(visitor, name):
    visitor.page.wait_for_selector(f"body[data-state={name}]")


def showings_of(server, name):
    with StudyStore.open(server.db) as store:
        return [s for s in store.showings("comfort") if s.supervisor.name == name]


def test_three_guided_rides_that_are_not_data(visit, server):
    visitor = visit(hurried=True)
    page = visitor.page
    visitor.join("novice")
    page.wait_for_selector("#go-on:has-text('warm-up')")
    sent = []
    page.on("request", lambda r: sent.append(r) if r.method == "POST" else None)
    page.click("#go-on")
    page.wait_for_selector("body[data-ready]")
    assert "Just watch" in visitor.text("#over")
    visitor.open("/warmup?speed=4")
    page.keyboard.press("Space")
    state(visitor, "ended")
    assert page.is_disabled("#stop")
    visitor.wait_for("#start:enabled")
    page.click("#start")
    assert "take it back" in visitor.text("#over")
    page.click("#start")
    visitor.stop()
    state(visitor, "stopped")
    page.click("#mistake")
    state(visitor, "playing")
    assert "Your stop is taken back" in visitor.text("#hint")
    visitor.wait_for("body[data-state=ended]")
    visitor.wait_for("#start:enabled")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    visitor.stop()
    page.click("#chips button:has-text('jerky')")
    visitor.wait_for("#next:enabled")
    page.click("#next")
    state(visitor, "done")
    assert sent == []
    assert showings_of(server, "novice") == []
    page.click("#start")
    page.wait_for_url("**/review")
    page.wait_for_selector("body[data-ready]")
    assert not page.is_visible("#new-here")
    visitor.open("/")
    assert "Begin reviewing" in visitor.text("#go-on")


def test_it_can_be_skipped(visit):
    visitor = visit()
    visitor.sign_in("hasty")
    visitor.open("/review")
    assert "Warm up first" in visitor.text("#new-here")
    visitor.page.click("#new-here")
    visitor.page.wait_for_url("**/warmup")
    visitor.page.wait_for_selector("body[data-ready]")
    visitor.page.click("#skip")
    visitor.page.wait_for_url("**/review")
    visitor.page.wait_for_selector("body[data-ready]")
    assert not visitor.page.is_visible("#new-here")
    assert visitor.page.is_enabled("#start")
