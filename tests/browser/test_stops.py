"""No stop that nobody meant, and every way to stop works; in a real Chromium."""

import pytest

from browser_visitor import DEAD_MS
from people_server import ADMIN
from termdp.people.records.study_store import StudyStore

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
UNDO_MS = 3000


def reviews_of(server, name):
    with StudyStore.open(server.db) as store:
        shown = store.showings("comfort")
        return [s.review for s in shown if s.supervisor.name == name and s.review]


def mistakes_of(server, name):
    with StudyStore.open(server.db) as store:
        mine = {s.id for s in store.showings("comfort") if s.supervisor.name == name}
        found = store.mistakes("comfort")
        return [m for showing, rows in found.items() if showing in mine for m in rows]


def begin(visit, page_name, name, hurried=True, **options):
    """Somebody whose slow ride has just begun."""
    visitor = visit(hurried=hurried, **options)
    visitor.sign_in(name)
    visitor.open(f"/{page_name}?speed=0.25")
    visitor.page.click("#start")
    playing(visitor)
    return visitor


def playing(visitor):
    visitor.page.wait_for_selector("body:is([data-state=playing], [data-state=riding])")


def saved(visitor):
    visitor.page.wait_for_selector("#status:has-text('Saved')")


def is_still_riding(visitor):
    return visitor.page.get_attribute("body", "data-state") in ("playing", "riding")


@pytest.mark.parametrize("page_name", ["ride", "review"])
def test_a_double_click_on_start_is_no_stop(visit, server, page_name):
    visitor = visit()
    visitor.sign_in(f"double-{page_name}")
    visitor.open(f"/{page_name}?speed=0.25")
    # As early as can be: presses of STOP and of Space as soon as the ride begins.
    visitor.page.evaluate(
        """() => new MutationObserver(() => {
          if (!["playing", "riding"].includes(document.body.dataset.state)) return;
          const press = new KeyboardEvent("keydown", { key: " ", bubbles: true });
          setTimeout(() => document.querySelector("#stop").click());
          setTimeout(() => document.body.dispatchEvent(press));
        }).observe(document.body, { attributes: true })"""
    )
    visitor.page.dblclick("#start")
    playing(visitor)
    visitor.past_dead_time()
    assert is_still_riding(visitor)
    assert reviews_of(server, f"double-{page_name}") == []


@pytest.mark.parametrize("page_name", ["ride", "review"])
@pytest.mark.parametrize("way", ["pointer", "click", "enter", "space", "page"])
def test_every_way_to_stop(visit, server, page_name, way):
    """By pointer, by a click without one (voice, switches), by key on it or anywhere."""
    name = f"{way}-{page_name}"
    visitor = begin(visit, page_name, name, hurried=way != "pointer")
    visitor.past_dead_time()
    page = visitor.page
    if way == "pointer":
        page.click("#stop")
    elif way == "click":
        page.evaluate("document.querySelector('#stop').click()")
    elif way == "enter":
        page.press("#stop", "Enter")
    elif way == "space":
        page.press("#stop", "Space")
    else:
        page.keyboard.press("Space")
    saved(visitor)
    (review,) = reviews_of(server, name)
    assert review.stopped


@pytest.mark.parametrize("page_name", ["ride", "review"])
def test_a_second_press_where_stop_was_does_nothing(visit, server, page_name):
    visitor = begin(visit, page_name, f"twice-{page_name}")
    visitor.past_dead_time()
    page = visitor.page
    box = page.locator("#stop").bounding_box()
    x, y = box["x"] + box["width"] * 0.85, box["y"] + box["height"] / 2
    for _ in range(3):
        page.mouse.click(x, y)
        saved(visitor)
        visitor.wait(200)
    page.keyboard.press("Space")
    saved(visitor)
    visitor.wait(600)
    assert page.is_visible("#after") and "topped" in visitor.text("#outcome")
    after = page.locator("#after").bounding_box()
    assert after["y"] >= box["y"] + box["height"]  # nothing is where STOP was
    assert len(reviews_of(server, f"twice-{page_name}")) == 1


@pytest.mark.parametrize("page_name", ["ride", "review"])
def test_a_mistake_is_taken_back_and_never_counted(visit, server, page_name):
    name = f"mistaken-{page_name}"
    visitor = begin(visit, page_name, name, hurried=page_name == "ride")
    visitor.past_dead_time()
    visitor.page.keyboard.press("Space")
    visitor.page.click("#mistake")
    playing(visitor)
    visitor.page.wait_for_function("document.querySelector('#after').hidden")
    visitor.past_dead_time()
    (mistake,) = mistakes_of(server, name)
    assert reviews_of(server, name) == []
    visitor.page.keyboard.press("Space")
    saved(visitor)
    (review,) = reviews_of(server, name)
    assert review.step >= mistake.step
    if visitor.hurried:
        assert visitor.page.is_visible("#mistake")
        visitor.wait(UNDO_MS)
    visitor.page.wait_for_selector("#mistake", state="hidden", timeout=4000)
    assert len(mistakes_of(server, name)) == 1


def test_keys_respect_what_is_focused_and_modifiers(visit, server):
    visitor = begin(visit, "review", "keys")
    visitor.past_dead_time()
    page = visitor.page
    page.press("#pause", "Space")
    page.wait_for_selector("body[data-state=paused]")
    page.press("#pause", "Space")
    page.wait_for_selector("body[data-state=playing]")
    prevented = page.evaluate(
        """() => ["r", "p", " "].map((key) => {
          const event = new KeyboardEvent("keydown",
            { key, ctrlKey: true, bubbles: true, cancelable: true });
          return !document.body.dispatchEvent(event);
        })"""
    )
    assert prevented == [False, False, False]
    assert is_still_riding(visitor)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    saved(visitor)
    visitor.wait(DEAD_MS)
    page.press("#chips button:has-text('jerky')", "Space")
    page.press("#chips button:has-text('coins')", "Enter")
    pressed = page.locator("#chips [aria-pressed=true]").all_inner_texts()
    assert sorted(pressed) == ["coins", "jerky"]
    page.press("nav a[href='/results']", "Enter")
    page.wait_for_url("**/results")
    (review,) = reviews_of(server, "keys")
    assert sorted(review.reason.split("; ")) == ["coins", "jerky"]


def test_keys_in_drive_respect_modifiers(visit, server):
    visitor = visit()
    visitor.sign_in("alt")
    visitor.open("/drive")
    prevented = visitor.page.evaluate(
        """() => !document.body.dispatchEvent(new KeyboardEvent("keydown",
             { key: "ArrowLeft", altKey: true, bubbles: true, cancelable: true }))"""
    )
    assert not prevented
    visitor.page.press("nav a[href='/results']", "Enter")
    visitor.page.wait_for_url("**/results")


def test_a_typed_reason_survives_a_reload(visit, server):
    visitor = begin(visit, "review", "typed")
    visitor.past_dead_time()
    visitor.page.keyboard.press("Space")
    saved(visitor)
    visitor.page.fill("#reason", "it swerved")
    visitor.page.reload()
    visitor.page.wait_for_selector("body[data-ready]")
    (review,) = reviews_of(server, "typed")
    assert review.reason == "it swerved"


def test_sliding_away_from_stop_lets_the_ride_go_on(visit, server):
    visitor = begin(visit, "review", "slides", **PHONE)
    visitor.past_dead_time()
    page = visitor.page
    box = page.locator("#stop").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = visitor.context.new_cdp_session(page)
    point = {"x": x, "y": y}
    touch.send(
        "Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]}
    )
    for step in range(1, 9):
        point = {"x": x, "y": y - 40 * step}
        touch.send(
            "Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]}
        )
        page.wait_for_timeout(20)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    visitor.wait(500)
    assert is_still_riding(visitor)
    before = visitor.text("#clock")
    visitor.wait(500)
    assert visitor.text("#clock") != before
    assert reviews_of(server, "slides") == []
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.screen')).touchAction")
        != "none"
    )


def test_two_tabs_tell_the_truth(visit, server):
    visitor = begin(visit, "review", "tabs")
    other = visitor.context.new_page()
    other.goto(f"{server.url}/review?speed=0.25")
    other.click("#start")
    other.wait_for_selector("body[data-state=playing]")
    visitor.wait(DEAD_MS)  # of both pages
    other.wait_for_selector("#stop[data-armed]")
    visitor.past_dead_time()
    visitor.page.keyboard.press("Space")
    saved(visitor)
    other.keyboard.press("Space")
    other.wait_for_selector("#status:has-text('another tab')")
    assert "crashed" not in other.inner_text("main")
    assert len(reviews_of(server, "tabs")) == 1


def test_the_admins_choice_stays_where_it_was_put(visit, server):
    admin = visit()
    admin.page.goto(f"{server.url}/admin#{ADMIN}")
    admin.page.wait_for_selector("#invite-study option", state="attached")
    admin.page.select_option("#invite-study", "comfort")
    admin.page.fill("#invite-names", "Jörg 李雷 हिन्दी")
    admin.page.press("#invite-names", "Enter")
    admin.page.wait_for_selector("[data-link='李雷']")
    assert admin.page.input_value("#invite-study") == "comfort"
    guest = visit()
    guest.page.goto(admin.text("[data-link='Jörg']"))
    guest.page.check("#agree")
    guest.page.click("#join")
    guest.page.wait_for_selector("#progress-card")
    assert "Jörg" in guest.text("#who")


def test_a_used_link_says_so_before_the_consent(visit, server):
    first = visit()
    invite = first.sign_in("first")
    thief = visit()
    thief.page.goto(f"{server.url}/join#{invite}")
    thief.page.wait_for_selector("#problem:has-text('already been used')")
    assert not thief.page.is_visible("#consent")
    broken = visit()
    broken.page.goto(f"{server.url}/join#abc")
    broken.page.wait_for_selector("#problem:has-text('copy the whole link')")


def test_a_wrong_address_gets_a_page(visit, server):
    visitor = visit()
    answer = visitor.page.goto(f"{server.url}/no-such-page")
    assert answer.status == 404
    assert "Page not found" in visitor.text("main")
