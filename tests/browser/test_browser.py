"""The web app in a real Chromium, on a real server."""

import json
import re

import numpy as np
import pytest

from browser_visitor import DEAD_MS, difference_of_pixels
from termdp.people.driving.drivers import random_driver, scripted_driver
from termdp.people.driving.rides import game, record_many, replay
from termdp.people.driving.track import ride_data
from termdp.people.records.study_store import StudyStore
from termdp.people.server.client import Client
from termdp.render.backseat import draw, moves

RIDE_MS = 1000  # 40 steps of 50 ms, twice as fast
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def reviews_of(server, name):
    store = StudyStore.open(server.db)
    shown = [s for s in store.showings("comfort") if s.supervisor.name == name]
    store.close()
    return [s.review for s in shown if s.review is not None]


def state(visitor, name):
    visitor.page.wait_for_selector(f"body[data-state={name}]")


def reviewing(visit, name, hurried=False):
    """A visitor in the middle of a slow ride on the Review page."""
    visitor = visit(hurried=hurried)
    visitor.sign_in(name)
    visitor.open("/review?speed=0.25")
    visitor.page.click("#start")
    state(visitor, "playing")
    return visitor


def test_joining_needs_consent_and_works_once(visit, server):
    ann = visit()
    ann.page.goto(f"{server.url}/review")  # not joined: sent to the door
    ann.page.wait_for_url("**/join")
    assert "need an invitation" in ann.text("main")
    admin = server.admin()
    invite = admin.invite("comfort", ["joiner"])["joiner"]
    admin.close()
    ann.page.goto(f"{server.url}/join#{invite}")
    ann.page.wait_for_selector("#consent")
    assert "stop those that make you feel uncomfortable" in ann.text("#consent")
    assert ann.page.is_disabled("#join")
    ann.page.check("#agree")
    ann.page.click("#join")
    ann.page.wait_for_selector("#progress-card")
    assert "you are joiner" in ann.text("#who")

    thief = visit()
    thief.page.goto(f"{server.url}/join#{invite}")
    thief.page.wait_for_selector("#problem:has-text('already been used')")
    thief.page.goto(f"{server.url}/join#{'x' * 43}")
    thief.page.reload()
    thief.page.wait_for_selector("#problem:has-text('does not work')")


def test_drive_a_round(visit, server):
    visitor = visit(hurried=True)
    visitor.sign_in("driver")
    visitor.open("/drive?speed=4")
    visitor.page.keyboard.press("Space")
    for key in ("ArrowLeft", "ArrowRight", "d", "a"):
        visitor.page.keyboard.press(key)
        visitor.wait(60)
    visitor.wait_for("body[data-outcome]")
    outcome = json.loads(visitor.page.get_attribute("body", "data-outcome"))
    here, there = outcome["here"], outcome["server"]
    assert here["crashed"] and there["crashed"]
    assert here["score"] == pytest.approx(there["score"], abs=1e-4)
    assert (here["coins"], here["overtaken"]) == (there["coins"], there["overtaken"])
    assert "driver" in visitor.text("#scores")
    assert "Crash!" in visitor.text("#over")


def test_ride_and_stop(visit, server):
    visitor = visit()
    visitor.sign_in("rider")
    visitor.open("/ride?speed=0.25")  # a short ride must outlast the dead time
    visitor.page.keyboard.press("Space")
    visitor.page.wait_for_selector("#stop:enabled", timeout=60_000)
    visitor.stop()
    visitor.page.wait_for_selector("#status:has-text('Saved')")
    assert "You stopped after" in visitor.text("#outcome")
    (review,) = reviews_of(server, "rider")
    shown = float(re.search(r"after ([\d.]+) s", visitor.text("#outcome"))[1])
    assert review.stopped
    assert (review.step + 0.5) * 0.2 == pytest.approx(shown, abs=0.3)
    assert 0 <= review.latency_ms <= 200
    visitor.page.click("#chips button:has-text('jerky')")
    visitor.page.fill("#reason", "and loud")
    visitor.page.click("#again")
    visitor.page.wait_for_selector("#stop:enabled")
    (review,) = reviews_of(server, "rider")
    assert review.reason == "jerky; and loud"


def test_review_ten_rides(visit, server):
    visitor = visit(hurried=True)
    visitor.sign_in("reviewer")
    visitor.open("/review?speed=2")
    page = visitor.page
    page.keyboard.press("Enter")
    for number in range(11):  # ten rides, one of them twice
        if number % 3 == 0:
            state(visitor, "playing")
            visitor.stop()
            page.wait_for_selector("#status:has-text('Saved')")
            page.click("#chips button:has-text('too close')")
            visitor.wait_for("#next:enabled")
        else:
            state(visitor, "playing")
            visitor.wait(RIDE_MS)
            state(visitor, "ended")
        if number == 1:
            page.click("#watch-again")  # look again, it is still fine
            state(visitor, "playing")
            visitor.wait(RIDE_MS)
            state(visitor, "ended")
        visitor.wait(DEAD_MS)
        page.wait_for_selector("#start:enabled", state="attached")
        page.keyboard.press("Enter")
    state(visitor, "done")
    assert "All done" in visitor.text("#over")
    reviews = reviews_of(server, "reviewer")
    assert len(reviews) == 11
    assert [review.stopped for review in reviews] == [n % 3 == 0 for n in range(11)]
    assert {r.reason for r in reviews if r.stopped} == {"too close"}
    assert [review.replays for review in reviews[:3]] == [0, 1, 0]
    assert all(review.speed == 2 for review in reviews)
    visitor.open("/results")
    assert "11 / 11" in visitor.text("main")


def test_pause_and_speed(visit, server):
    visitor = reviewing(visit, "pauser")
    page = visitor.page
    page.keyboard.press("p")
    state(visitor, "paused")
    before = visitor.text("#clock")
    page.wait_for_timeout(200)
    assert visitor.text("#clock") == before
    page.click("#speeds button:has-text('2×')")
    page.click("#pause")
    state(visitor, "playing")
    page.wait_for_selector("#stop[data-armed]")
    page.click("#stop")
    page.wait_for_selector("#status:has-text('Saved')")
    (review,) = reviews_of(server, "pauser")
    assert (review.stopped, review.speed) == (True, 2.0)


def test_the_connection_is_cut_and_comes_back(visit, server):
    """The server is killed while a review runs, and started again on the same port."""
    visitor = reviewing(visit, "patient", hurried=True)
    page = visitor.page
    server.kill()
    visitor.stop()  # while nobody listens
    page.wait_for_selector(".banner:has-text('Connection lost')")
    assert "Saving" in visitor.text("#status")
    assert reviews_of(server, "patient") == []
    server.start()
    visitor.wait_for("#status:has-text('Saved')")
    assert page.query_selector(".banner") is None
    (review,) = reviews_of(server, "patient")
    assert review.stopped
    visitor.wait_for("#next:enabled")
    page.click("#next")  # and it goes on by itself
    state(visitor, "playing")
    visitor.stop()
    page.wait_for_selector("#status:has-text('Saved')")
    assert len(reviews_of(server, "patient")) == 2


def test_a_stop_survives_a_reload_while_the_connection_is_cut(visit, server):
    visitor = reviewing(visit, "reloader")
    page = visitor.page
    page.wait_for_selector("#stop[data-armed]")
    page.route("**/api/**", lambda route: route.abort())
    page.keyboard.press("Space")
    page.wait_for_selector(".banner")
    page.unroute("**/api/**")
    visitor.open("/")
    visitor.page.wait_for_selector("#count:has-text('1 of')")
    (review,) = reviews_of(server, "reloader")
    assert review.stopped


def test_on_a_phone(visit, server):
    visitor = visit(hurried=True, **PHONE, device_scale_factor=2)
    visitor.sign_in("phone")
    page = visitor.page
    for path in ("/", "/drive", "/ride", "/review", "/results"):
        if path == "/":
            page.goto(server.url)
        else:
            visitor.open(path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{path} is wider than the screen"
    visitor.open("/drive")
    page.tap("#start")
    page.wait_for_selector("#over", state="hidden")
    assert page.is_visible("#left") and page.is_visible("#right")
    page.tap("#left")
    visitor.wait_for("body[data-outcome]")
    assert json.loads(page.get_attribute("body", "data-outcome"))["here"]["crashed"]
    visitor.open("/review?speed=0.25")
    page.tap("#start")
    state(visitor, "playing")
    for part in ("#canvas", "#stop"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 844, f"{part} needs scrolling"
    visitor.past_dead_time()
    page.tap("#stop")
    page.wait_for_selector("#status:has-text('Saved')")
    box = page.locator("#next").bounding_box()
    assert box["y"] + box["height"] <= 844
    assert len(reviews_of(server, "phone")) == 1


def test_two_supervisors_at_once(visit, server):
    people = [visit(hurried=True), visit(hurried=True)]
    for visitor, name in zip(people, ("first", "second"), strict=True):
        visitor.sign_in(name)
        visitor.open("/review?speed=0.25")
    for visitor in people:
        visitor.page.click("#start")
    for _ in range(3):
        for visitor in people:
            state(visitor, "playing")
        for visitor in people:
            visitor.stop()
        for visitor in people:
            visitor.page.wait_for_selector("#status:has-text('Saved')")
            visitor.wait_for("#next:enabled")
            visitor.page.keyboard.press("Enter")
    store = StudyStore.open(server.db)
    shown = store.showings("comfort")
    store.close()
    orders = [
        [s.ride.number for s in shown if s.supervisor.name == name]
        for name in ("first", "second")
    ]
    assert orders[0] != orders[1]
    for name in ("first", "second"):
        assert len(reviews_of(server, name)) == 3


def test_an_admin_creates_invites_and_sees_results(visit, server):
    from people_server import ADMIN

    visitor = visit()
    page = visitor.page
    visitor.open("/admin#wrong-token-wrong-token")
    assert "expected the admin token" in visitor.text("#door-problem")
    page.fill("#token", ADMIN)
    page.click("#enter")
    page.wait_for_selector("#studies tr")
    page.fill("#new-name", "fresh")
    page.fill("#new-title", "Fresh study")
    page.fill("#new-rides", "2")
    page.fill("#new-steps", "20")
    page.click("#create")
    page.wait_for_selector("#studies a:has-text('Fresh study')", timeout=60_000)
    page.select_option("#invite-study", "fresh")
    page.fill("#invite-names", "zoe")
    page.click("#invite")
    link = page.inner_text("[data-link=zoe]")
    token = link.rpartition("#")[2]
    client = Client(server.url)
    client.join(token)
    client.stop(client.next_ride()["showing"], 1, 5, "because")
    client.close()
    visitor.open("/results?study=fresh")
    assert "zoe" in visitor.text("main")
    page.click(".strip")
    page.wait_for_selector(".below .cursor", state="attached")
    with page.expect_download() as download:
        page.goto(f"{server.url}/admin")
        page.click("#studies tr:has-text('Fresh study') button")
    assert download.value.suggested_filename == "fresh.parquet"


# The browser's game is the game


def test_the_browser_plays_rides_as_the_game_does(visit, server):
    visitor = visit()
    visitor.page.goto(server.url)
    rides = record_many(random_driver(), list(range(40)), 200)
    rides += record_many(scripted_driver("late"), list(range(40, 60)), 200)
    found = visitor.page.evaluate(
        """async (rides) => {
          const { World } = await import("/static/world.js");
          const game = await (await fetch("/api/game")).json();
          return rides.map((ride) => {
            const world = new World(game.road, ride).playAll(ride.actions);
            const { rewards, coinCount, overtaken, crash, steps, lanes } = world;
            return { rewards, coinCount, overtaken, crash, steps, lanes };
          });
        }""",
        [ride_data(ride) for ride in rides],
    )
    for ride, here in zip(rides, found, strict=True):
        again = replay(ride)
        assert here["steps"] == len(ride)
        np.testing.assert_allclose(here["rewards"], again.rewards, atol=1e-6)
        assert here["coinCount"] == again.coins.sum()
        assert here["overtaken"] == again.overtaken.sum()
        assert here["lanes"] == np.asarray(again.states.agent).tolist()
        assert (here["crash"] is not None) == again.game_over[-1]
        if here["crash"] is not None:
            frame = int(again.states.phase[-1])
            assert here["crash"] == len(ride) - 1 + frame / 4


def test_the_browser_draws_what_the_game_draws(visit, server):
    visitor = visit(viewport={"width": 900, "height": 900})
    visitor.page.goto(server.url)
    (ride,) = record_many(scripted_driver("collector"), [3], 40)
    again = replay(ride)
    for moment, drawing in (
        (30, draw(_state(again, 30), game().road)),
        (25.5, moves(game(), _state(again, 25), ride.actions[25])[1]),
    ):
        found = visitor.page.evaluate(
            """async ([ride, moment]) => {
              const { World } = await import("/static/world.js");
              const { Picture } = await import("/static/picture.js");
              const game = await (await fetch("/api/game")).json();
              const canvas = document.createElement("canvas");
              Object.defineProperty(canvas, "clientWidth", { value: 272 });
              Object.defineProperty(canvas, "clientHeight", { value: 420 });
              const world = new World(game.road, ride).playAll(ride.actions);
              new Picture(canvas, game).draw(world, moment);
              return canvas.toDataURL("image/png");
            }""",
            [ride_data(ride), moment],
        )
        difference = difference_of_pixels(found, drawing)
        # Edges are smoothed differently, and a car leans while it changes lanes.
        assert np.mean(difference > 40) < 0.02
        assert difference.mean() < 4


def _state(again, step):
    import jax

    return jax.tree.map(lambda x: x[step], again.states)


def test_it_can_be_installed(visit, server):
    visitor = visit()
    visitor.page.goto(server.url)
    manifest = visitor.page.evaluate(
        "async () => (await fetch('/static/app.webmanifest')).json()"
    )
    assert manifest["display"] == "standalone"
    for icon in manifest["icons"]:
        answer = visitor.context.request.get(server.url + icon["src"])
        assert answer.ok
    scope = visitor.page.evaluate(
        "async () => (await navigator.serviceWorker.ready).scope"
    )
    assert scope == f"{server.url}/"
