"""A study of Breakout in a real Chromium: watched, stopped, taken back, found again."""

import numpy as np
import pytest

from browser_visitor import Visitor, difference_of_pixels
from people_server import ADMIN
from termdp.people.driving.drivers import random_driver
from termdp.people.driving.films import film_data
from termdp.people.driving.rides import record, replay
from termdp.people.driving.trained import shipped_driver
from termdp.people.records.study_store import StudyStore

PHONE = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
}


@pytest.fixture(scope="module")
def bricks(visit_admin):
    """The study's name, after the admin has made it on the page."""
    page = visit_admin.page
    page.fill("#new-name", "bricks")
    page.fill("#new-title", "Bricks")
    page.select_option("#new-env", "breakout")
    page.fill("#new-rides", "3")
    page.fill("#new-steps", "40")
    page.click("#create")
    page.wait_for_selector("#studies :text('bricks')")
    assert "breakout" in visit_admin.text("#studies")
    return "bricks"


@pytest.fixture(scope="module")
def visit_admin(browser, server):
    visitor = Visitor(browser, server)
    visitor.page.goto(f"{server.url}/admin#{ADMIN}")
    visitor.page.wait_for_selector("body[data-ready]")
    yield visitor
    visitor.context.close()
    assert visitor.errors == []


def begin(visitor, name, page_name="review", speed=0.1):
    visitor.sign_in(name, study="bricks")
    visitor.open(f"/{page_name}?speed={speed}")
    visitor.page.click("#start")


def saved(visitor):
    visitor.page.wait_for_selector("#status:has-text('Saved')")


@pytest.mark.parametrize("page_name", ["review", "ride"])
@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_a_game_is_watched_stopped_and_taken_back(
    visit, server, bricks, page_name, options
):
    visitor = visit(hurried=True, **options)
    name = f"game-{page_name}-{len(options)}"
    begin(visitor, name, page_name)
    visitor.stop()
    saved(visitor)
    page = visitor.page
    assert "topped" in visitor.text("#outcome")
    assert page.is_visible("#chips :text('clumsy')")
    assert not page.is_visible("#chips :text('lane')")
    page.click("#mistake")
    page.wait_for_selector("body:is([data-state=playing], [data-state=riding])")
    visitor.stop()
    saved(visitor)
    page.click("#chips :text('clumsy')")
    button = "#next" if page_name == "review" else "#again"
    assert visitor.text(button) == "Next game"
    wide = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert wide
    visitor.wait_for(f"{button}:not([disabled])")
    page.click(button)
    page.wait_for_selector("body:is([data-state=playing], [data-state=riding])")
    with StudyStore.open(server.db) as store:
        mine = [s for s in store.showings("bricks") if s.supervisor.name == name]
        (review,) = [s.review for s in mine if s.review]
        assert review.stopped and review.reason == "clumsy"
        taken_back = store.mistakes("bricks")
        assert sum(len(taken_back[s.id]) for s in mine if s.id in taken_back) == 1


def test_pages_speak_of_games_and_nobody_drives(visit, bricks):
    visitor = visit()
    visitor.join("reader", study="bricks")
    visitor.page.wait_for_selector("body[data-ready]")
    words = visitor.text("body")
    assert "An agent plays and you watch" in words and "games reviewed" in words
    assert "break bricks, keep the ball in play" in words
    assert "Backseat" not in words and "warm-up" not in words.lower()
    links = visitor.page.locator("header nav a:visible").all_inner_texts()
    assert links == ["Watch", "Review", "Results"]
    for path, arrives in (("/drive", "/ride"), ("/warmup", "/review")):
        visitor.page.goto(f"{visitor.server.url}{path}")
        visitor.page.wait_for_url(f"**{arrives}")
        visitor.page.wait_for_selector("body[data-ready]")


def test_everything_judged_is_on_results(visit, visit_admin, bricks):
    visitor = visit(hurried=True, **PHONE)
    begin(visitor, "judge")
    visitor.stop()
    saved(visitor)
    page = visitor.page
    visitor.open("/review?speed=20")
    page.click("#start")
    while True:
        visitor.wait_for("body:is([data-state=ended], [data-state=done])")
        if page.get_attribute("body", "data-state") == "done":
            break
        visitor.wait_for("#start:not([disabled])")
        page.click("#start")
        page.wait_for_selector("body:not([data-state=ended])")
    assert page.is_visible("#over-title:has-text('All done')")
    visitor.open("/results")
    page.wait_for_selector("#stops .stop-mine")
    assert page.locator("#stops .stop-mine").count() == 1
    words = visitor.text("#content")
    assert "games reviewed" in words and "the game was over in the end" in words
    assert "Median reaction" not in words and page.locator("#bothers").count() == 0
    visit_admin.open("/results?study=bricks")
    assert "judge" in visit_admin.text("#content")
    visit_admin.page.click("button.strip >> nth=0")
    canvas = visit_admin.page.wait_for_selector(".screen.film canvas")
    box = canvas.bounding_box()
    assert box["width"] == pytest.approx(box["height"], rel=0.02)  # a square board


@pytest.mark.parametrize(
    "env, driver",
    [
        ("breakout", random_driver("breakout")),
        ("recommender", "pg"),
        ("notifier", "pg"),
    ],
    ids=["breakout", "recommender", "notifier"],
)
def test_the_browser_draws_what_the_renderer_draws(visit, server, env, driver):
    if isinstance(driver, str):
        driver = shipped_driver(f"{env}/{driver}", env)
    ride = record(driver, 2, 12)
    drawing = replay(ride).drawing(len(ride) - 1)
    visitor = visit()
    visitor.page.goto(server.url)
    size = [round(40 * drawing.width), round(40 * drawing.height)]
    found = visitor.page.evaluate(
        """async ([ride, moment, [width, height]]) => {
          const { Film, Screen } = await import("/static/film.js");
          const box = document.createElement("div");
          const canvas = document.createElement("canvas");
          box.append(canvas);
          Object.defineProperty(canvas, "clientWidth", { value: width });
          Object.defineProperty(canvas, "clientHeight", { value: height });
          new Screen(canvas, null).draw(new Film(ride), moment);
          return canvas.toDataURL("image/png");
        }""",
        [film_data(ride), len(ride) - 0.5, size],
    )
    difference = difference_of_pixels(found, drawing)
    # Edges are smoothed and letters drawn differently.
    assert np.mean(difference > 40) < 0.05
    assert difference.mean() < 6
