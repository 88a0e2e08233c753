"""A person in a real browser, and what they see, for the tests of the web pages."""

import base64
import io
import time
from contextlib import closing

import numpy as np
from PIL import Image

from termdp.people.server.client import Client
from termdp.render.drawing import to_pixels

# The page ignores presses for so long after something has appeared.
DEAD_MS = 400


def difference_of_pixels(data_url, drawing):
    """How far a page's canvas is from our own drawing, `[H, W]`; 40 pixels per unit."""
    picture = Image.open(io.BytesIO(base64.b64decode(data_url.partition(",")[2])))
    here = np.asarray(picture.convert("RGB"), float)
    there = to_pixels(drawing, 40).astype(float)
    assert here.shape == there.shape
    return np.abs(here - there).mean(axis=2)


class Visitor:
    """A person with a browser of their own; remembers what went wrong on the page.

    `hurried` gives the pages a clock of their own. It goes as usual and can also be put
    forward: what the pages wait for then takes no time.
    """

    def __init__(self, browser, server, hurried=False, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.hurried = hurried
        if hurried:
            self.page.clock.install()
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

    def invited(self, name, study):
        with closing(self.server.admin()) as admin:
            return admin.invite(study, [name])[name]

    def sign_in(self, name, study="comfort"):
        """Like `join`, without the two pages that people see then."""
        invite = self.invited(name, study)
        with closing(Client(self.server.url)) as client:
            token = client.join(invite)
        self.page.goto(f"{self.server.url}/static/icon.svg")
        self.page.evaluate(
            "token => localStorage.setItem('termdp.token', token)", token
        )
        return invite

    def join(self, name, study="comfort"):
        """As people do."""
        invite = self.invited(name, study)
        self.page.goto(f"{self.server.url}/join#{invite}")
        self.page.check("#agree")
        self.page.click("#join")
        self.page.wait_for_selector("#progress-card")
        return invite

    def open(self, path):
        self.page.goto(f"{self.server.url}{path}")
        self.page.wait_for_selector("body[data-ready]")

    def wait(self, ms):
        """So much of the page's time passes, at once if it is hurried."""
        if self.hurried:
            self.page.clock.run_for(ms)
        else:
            self.page.wait_for_timeout(ms)

    def wait_for(self, selector, **options):
        """Wait for an element, however much of the page's time it takes."""
        until = time.monotonic() + 60
        while self.hurried and time.monotonic() < until:
            if self.page.is_visible(selector):
                break
            self.wait(100)
        self.page.wait_for_selector(selector, **options)

    def past_dead_time(self):
        """Until presses count."""
        self.page.wait_for_selector("#stop:enabled")
        if self.hurried:
            self.wait(DEAD_MS)
        self.page.wait_for_selector("#stop[data-armed]")

    def stop(self):
        """Press Space as soon as presses count."""
        self.past_dead_time()
        self.page.keyboard.press("Space")

    def text(self, selector):
        return self.page.inner_text(selector)
