"""Signing out, one's own data and withdrawing, in a real Chromium on a real server."""

import json

from people_server import ADMIN
from termdp.people.records.study_store import StudyStore


def people(server):
    with StudyStore.open(server.db) as store:
        return [person.name for person in store.supervisors("comfort")]


def stops(server, name):
    with StudyStore.open(server.db) as store:
        shown = [s for s in store.showings("comfort") if s.supervisor.name == name]
        return [s.review for s in shown if s.review is not None]


def stop_once(visitor, reason):
    page = visitor.page
    visitor.open("/review?speed=0.25")
    page.click("#start")
    visitor.stop()
    page.wait_for_selector("#status:has-text('Saved')")
    page.fill("#reason", reason)
    visitor.wait_for("#next:enabled")
    page.click("#next")
    page.wait_for_selector("body[data-state=playing]")


def storage(page):
    return page.evaluate("[{...localStorage}, {...sessionStorage}]")


def test_somebody_downloads_their_data_and_leaves(visit, server):
    visitor = visit(hurried=True)
    visitor.sign_in("leaver")
    stop_once(visitor, "far too fast")
    visitor.open("/")
    page = visitor.page
    with page.expect_download() as download:
        page.click("#download")
    assert download.value.suggested_filename == "leaver.json"
    data = json.loads(download.value.path().read_text())
    assert data["person"]["name"] == "leaver"
    assert [s["review"]["reason"] for s in data["showings"] if s["review"]] == [
        "far too fast"
    ]
    page.click("#withdraw")
    page.click("#stay")
    assert not page.is_visible("#leaving")
    assert "leaver" in people(server)
    page.click("#withdraw")
    page.click("#leave")
    page.wait_for_selector("#left")
    assert "Everything about you has been deleted" in visitor.text("#left")
    assert not page.is_visible("#own-data")
    assert "leaver" not in people(server) and stops(server, "leaver") == []
    assert "termdp.token" not in json.dumps(storage(page))
    visitor.page.goto(f"{server.url}/review")  # outside again
    visitor.page.wait_for_url("**/join")


def test_somebody_leaves_their_stops(visit, server):
    visitor = visit(hurried=True)
    visitor.sign_in("giver")
    stop_once(visitor, "my own words")
    visitor.open("/")
    page = visitor.page
    page.click("#withdraw")
    page.check("input[name=stops][value=keep]")
    page.click("#leave")
    page.wait_for_selector("#left:has-text('kept without your name')")
    assert "giver" not in people(server)
    (name,) = [name for name in people(server) if name.startswith("withdrawn-")]
    (review,) = stops(server, name)
    assert (review.stopped, review.reason) == (True, None)


def test_signing_out(visit, server):
    visitor = visit()
    visitor.join("shared")
    page = visitor.page
    token = page.evaluate("localStorage.getItem('termdp.token')")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.click("#sign-out")
    assert page.evaluate("localStorage.getItem('termdp.token')") == token
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("#sign-out")
    page.wait_for_url("**/join")
    assert token not in json.dumps(storage(page))
    with StudyStore.open(server.db) as store:
        assert store.supervisor_of(token) is None
    assert "shared" in people(server)


def test_a_stop_outlives_the_login_it_was_made_with(visit, server):
    """Invited anew in the middle of a ride: the stop arrives with the next login."""
    visitor = visit(hurried=True)
    visitor.sign_in("renewed")
    page = visitor.page
    visitor.open("/review?speed=0.25")
    page.click("#start")
    page.wait_for_selector("body[data-state=playing]")
    admin = server.admin()
    invite = admin.invite("comfort", ["renewed"])["renewed"]
    admin.close()
    visitor.stop()
    page.wait_for_selector("#status:has-text('open your invite link again')")
    assert stops(server, "renewed") == []
    page.goto(f"{server.url}/join#{invite}")
    page.check("#agree")
    page.click("#join")
    page.wait_for_selector("#count:has-text('1 of')")
    assert [review.stopped for review in stops(server, "renewed")] == [True]


def test_the_admin_token_lives_as_long_as_the_tab(visit, server):
    visitor = visit()
    page = visitor.page
    visitor.open(f"/admin#{ADMIN}")
    local, session = storage(page)
    assert ADMIN not in json.dumps(local) and ADMIN in json.dumps(session)
    assert ADMIN not in page.url
    visitor.open("/results?study=comfort")  # the same tab is still inside
    assert "Supervisors" in visitor.text("main")
    other = visitor.context.new_page()
    other.goto(f"{server.url}/admin")
    other.wait_for_selector("#token")  # another tab is not
    other.close()

    visitor.open("/admin")
    page.check("#keep")
    other = visitor.context.new_page()
    other.goto(f"{server.url}/admin")
    other.wait_for_selector("#studies tr")
    assert other.is_checked("#keep")
    other.uncheck("#keep")
    assert ADMIN not in json.dumps(storage(other)[0])
    other.close()

    page.check("#keep")
    page.click("#sign-out")
    page.wait_for_selector("#enter")
    assert ADMIN not in json.dumps(storage(page))


def test_what_an_older_version_kept_is_thrown_away(visit, server):
    visitor = visit()
    page = visitor.page
    page.goto(server.url)
    page.evaluate(f"localStorage.setItem('termdp.admin', '{ADMIN}')")
    visitor.open("/admin")
    assert page.is_visible("#enter")
    assert ADMIN not in json.dumps(storage(page))


def test_the_admin_sees_what_was_done(visit, server):
    visitor = visit()
    visitor.open(f"/admin#{ADMIN}")
    page = visitor.page
    page.select_option("#invite-study", "comfort")
    page.fill("#invite-names", "seen")
    page.click("#invite")
    page.wait_for_selector("#audit tr:has-text('seen')")
    row = page.inner_text("#audit tr:has-text('seen')")
    assert "admin" in row and "invited" in row and "comfort" in row
    # One wrong name: no link at all, and the sentence says why.
    page.fill("#invite-names", "fine wrong/name")
    page.click("#invite")
    page.wait_for_selector("#invite-problem:has-text('wrong/name')")
    assert "fine" not in people(server)
