"""Driving oneself: how fast the car answers, and on which screens; in a real Chromium."""

import json
from statistics import median

LANDSCAPE = {
    "viewport": {"width": 844, "height": 390},
    "has_touch": True,
    "is_mobile": True,
}
# Where the red of the own car is, in the rows around it, picture by picture.
WATCH = """() => {
  const canvas = document.querySelector("#canvas");
  const context = canvas.getContext("2d");
  const [top, height] = [0.6, 0.2].map((share) => Math.round(canvas.height * share));
  window.presses = [];
  window.seen = [];
  addEventListener("keydown", (event) => presses.push(event.timeStamp), true);
  addEventListener("pointerdown", (event) => presses.push(event.timeStamp), true);
  const look = () => {
    const { data } = context.getImageData(0, top, canvas.width, height);
    let [sum, count] = [0, 0];
    for (let i = 0; i < data.length; i += 4) {
      if (data[i] < 200 || data[i + 1] > 90 || data[i + 2] > 90) continue;
      sum += (i / 4) % canvas.width;
      count += 1;
    }
    seen.push([performance.now(), sum / count]);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def free_road(route):
    """A road without cars: nothing interrupts the measurement."""
    answer = route.fetch()
    route.fulfill(response=answer, json={**answer.json(), "cars": [], "coins": []})


def driving(visit, name, path="/drive", **options):
    visitor = visit(**options)
    visitor.sign_in(name)
    visitor.page.route("**/api/road", free_road)
    visitor.open(path)
    return visitor


def answer_times(page):
    """Milliseconds from each press to the first picture in which the car has moved."""
    presses, seen = page.evaluate("[presses, seen]")
    found = []
    for press in presses:
        before = [place for time, place in seen if time < press][-1]
        moved = [t for t, place in seen if t > press and abs(place - before) > 0.5]
        found.append(moved[0] - press)
    return found


def test_the_car_answers_at_once(visit):
    visitor = driving(visit, "quick")
    page = visitor.page
    page.keyboard.press("Space")
    page.wait_for_selector("body[data-state=driving]")
    page.evaluate(WATCH)
    page.wait_for_timeout(300)
    for number in range(10):
        page.keyboard.press("ArrowLeft" if number % 2 else "ArrowRight")
        page.wait_for_timeout(331)  # at other moments of the step each time
    times = answer_times(page)
    assert len(times) == 10
    assert median(times) <= 50, times


def test_a_crash_whole_points_and_a_personal_best(visit):
    visitor = visit()
    visitor.sign_in("racer")
    visitor.open("/drive?speed=4")
    page = visitor.page
    assert visitor.text("#sound") == "Sound off"
    page.keyboard.press("Space")
    page.wait_for_selector("#screen.crashing")
    assert not page.is_visible("#over")
    page.wait_for_selector("body[data-outcome]")
    score = json.loads(page.get_attribute("body", "data-outcome"))["here"]["score"]
    points = round(10 * score)
    assert visitor.text("#score") == str(points)
    assert f"{points} points: your best!" in visitor.text("#over-title")
    assert float(visitor.text("#clock")) > 0
    visitor.open("/drive")
    assert visitor.text("#best") == f"Your best: {points} points"
    own = page.locator("#scores tr:has-text('racer') td.n")  # others drive here, too
    assert own.first.inner_text() == str(points)


def test_from_the_back_seat(visit):
    visitor = driving(visit, "behind")
    page = visitor.page
    page.click("#views button:has-text('back seat')")
    page.keyboard.press("Space")
    page.wait_for_selector("body[data-state=driving]")
    pixel = """() => [...document.querySelector("#canvas").getContext("2d")
      .getImageData(20, 150, 1, 1).data.slice(0, 3)]"""
    red, _, blue = page.evaluate(pixel)
    assert blue > red + 10  # the sky
    visitor.open("/drive")  # the choice is remembered
    assert "seat" in page.get_attribute("#screen", "class")


def test_a_phone_on_its_side(visit):
    visitor = driving(visit, "sideways", **LANDSCAPE)
    page = visitor.page
    page.tap("#start")
    page.wait_for_selector("body[data-state=driving]")
    page.evaluate(WATCH)
    page.wait_for_timeout(200)
    picture = page.locator("#canvas").bounding_box()
    assert picture["height"] > 300
    for name in ("#left", "#right"):
        box = page.locator(name).bounding_box()
        assert box["width"] >= 120 and box["y"] + box["height"] <= 390
        page.tap(name)
        page.wait_for_timeout(400)
    assert max(answer_times(page)) < 300
    assert page.evaluate("document.documentElement.scrollWidth") <= 844


def test_nothing_overflows_a_narrow_screen(visit):
    visitor = visit(viewport={"width": 320, "height": 568})
    visitor.sign_in("narrow")
    wide = """() => [...document.querySelectorAll("body *")]
      .filter((e) => e.getBoundingClientRect().right > 320.5).map((e) => e.outerHTML)"""
    for path in ("/", "/drive", "/ride", "/review", "/results", "/warmup"):
        visitor.open(path)
        assert visitor.page.evaluate(wide) == [], path


def test_who_wants_no_motion_gets_none(visit):
    visitor = visit(reduced_motion="reduce")
    visitor.sign_in("still")
    visitor.open("/drive?speed=4")
    visitor.page.evaluate(
        """() => new MutationObserver(() => (window.shook = true))
          .observe(document.querySelector("#screen"), { attributes: true })"""
    )
    visitor.page.keyboard.press("Space")
    visitor.page.wait_for_selector("body[data-outcome]")
    assert not visitor.page.evaluate("window.shook")
    assert "Crash!" in visitor.text("#over-title")
