"""A person in a real browser, and what they see, for the tests of the web pages."""

import base64
import io

import numpy as np
from PIL import Image

from termdp.render.drawing import to_pixels


def difference_of_pixels(data_url, drawing):
    """How far a page's canvas is from our own drawing, `[H, W]`; 40 pixels per unit."""
    picture = Image.open(io.BytesIO(base64.b64decode(data_url.partition(",")[2])))
    here = np.asarray(picture.convert("RGB"), float)
    there = to_pixels(drawing, 40).astype(float)
    assert here.shape == there.shape
    return np.abs(here - there).mean(axis=2)


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
