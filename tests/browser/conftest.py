"""One Chromium for all browser tests, and a server with short rides."""

import pytest
from playwright.sync_api import sync_playwright

from people_server import fill, serving
from services import chromium
from termdp.people.driving.drivers import scripted_driver
from termdp.people.driving.rides import record_many

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
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


class Visitor:
    """A person with a browser of their own; remembers what went wrong on the page."""

    def __init__(self, browser, server, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.server = server
        self.errors = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._listen)
        self.page.set_default_timeout(60_000)

    def _listen(self, message):
        # Servers are killed on purpose, and refusals are part of the tests.
        expected = ("ERR_CONNECTION", "ERR_FAILED", "Failed to load resource")
        if message.type == "error" and not any(e in message.text for e in expected):
            self.errors.append(message.text)

    def join(self, name, study="comfort"):
        admin = self.server.admin()
        invite = admin.invite(study, [name])[name]
        admin.close()
        self.page.goto(f"{self.server.url}/join#{invite}")
        self.page.check("#agree")
        self.page.click("#join")
        self.page.wait_for_selector("#progress-card")
        return invite

    def open(self, path):
        self.page.goto(f"{self.server.url}{path}")
        self.page.wait_for_selector("body[data-ready]")

    def stop(self):
        """Press Space as soon as presses count."""
        self.page.wait_for_selector("#stop[data-armed]")
        self.page.keyboard.press("Space")

    def text(self, selector):
        return self.page.inner_text(selector)


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
