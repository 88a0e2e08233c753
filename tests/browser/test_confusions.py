"""What once confused people on the pages does so no more; in a real Chromium."""

from people_server import ADMIN


def test_a_failing_server_is_said_and_does_not_keep_one_waiting(visit):
    visitor = visit(hurried=True)
    visitor.sign_in("unlucky")
    visitor.open("/ride")
    page = visitor.page
    page.route("**/api/live", lambda route: route.fulfill(status=500, json={}))
    page.click("#start")
    page.wait_for_selector(".banner:has-text('The server has a problem')")
    visitor.wait_for("#over-title:has-text('No ride right now')")
    assert "try again in a minute" in visitor.text("#over-text")
    page.unroute("**/api/live")
    page.click("#start")
    page.wait_for_selector("body[data-state=riding]")


def test_no_light_flash_in_the_dark(visit):
    """The page is dark although no module has been loaded yet."""
    visitor = visit(color_scheme="dark")
    visitor.page.route("**/static/page.js", lambda route: None)
    visitor.page.goto(visitor.server.url, wait_until="commit")
    visitor.page.wait_for_selector("main", state="attached")
    colour = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(17, 20, 26)"


def test_a_chosen_film_and_its_strip_are_in_sight(visit, server):
    rider = visit(hurried=True)
    rider.sign_in("filmed")
    rider.open("/review?speed=0.25")
    rider.page.click("#start")
    rider.stop()
    rider.page.wait_for_selector("#status:has-text('Saved')")
    visitor = visit(viewport={"width": 1280, "height": 800})
    page = visitor.page
    visitor.open(f"/admin#{ADMIN}")
    visitor.open("/results?study=comfort")
    page.click(".strip >> nth=0")
    page.wait_for_selector(".below .cursor", state="attached")
    for part in (".card .screen", ".below"):
        box = page.locator(part).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 800, part
