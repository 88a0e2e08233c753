"""One Chromium for all browser tests, and a server with short rides."""

import pytest
from playwright.sync_api import sync_playwright

from browser_visitor import Visitor
from people_server import fill, serving
from services import chromium
from termdp.people.driving.drivers import scripted_driver
from termdp.people.driving.rides import record_many

# Pop-ups of the address bar, which nobody sees here: two hidden pages for each window,
# half of the time that a new visitor takes.
POPUPS = "WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={POPUPS}",
]


@pytest.fixture(scope="session")
def browser():
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Ten rides of 40 steps, one shown twice; each step takes 50 ms. One for all tests:
    whoever counts has a study or names of their own."""
    db = tmp_path_factory.mktemp("browser") / "people.db"
    rides = record_many(scripted_driver("calm"), list(range(10)), 40)
    fill(db, rides=rides, step_ms=50, repeat_share=0.1, title="Comfort")
    with serving(db, "--steps", "60") as server:
        yield server


@pytest.fixture
def visit(browser, server):
    """Make visitors; at the end none of their pages may have failed."""
    visitors = []

    def make(**options):
        visitors.append(Visitor(browser, server, **options))
        return visitors[-1]

    yield make
    for visitor in visitors:
        visitor.context.close()
        assert visitor.errors == []
