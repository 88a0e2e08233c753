"""Notifier as a drawing: a phone, the user's interest, and what was sent recently."""

from typing import Any

import numpy as np

from termdp.render.drawing import Drawing

_BACKGROUND = "#eef1f6"
_PHONE = "#2e3440"
_SCREEN = "#ffffff"
_PALE = "#d8dee9"
_INTEREST = "#3c7dd9"
_OPENED = "#2e9e5b"
_UNOPENED = "#d64545"
_WIDTH, _HEIGHT = 6.4, 4.0
_LEFT = 2.7


def draw(state: Any, params: Any) -> Drawing:
    """Draw one (unbatched) `NotifierState`."""
    drawing = Drawing(_WIDTH, _HEIGHT, background=_BACKGROUND)
    interest = 1.0 / (1.0 + np.exp(-float(params.swing) * float(state.mood)))
    history = np.asarray(state.history)
    drawing.rect(0.5, 0.3, 1.7, 3.4, _PHONE, 0.25)
    drawing.rect(0.6, 0.5, 1.5, 3.0, _SCREEN, 0.15)
    if history[-1]:
        _message(drawing, 0.7, 0.65, 1.3, opened=bool(history[-1] == 2))
    # The user's face: wide awake when interested.
    drawing.circle(1.35, 2.3, 0.5, _PALE)
    for x in (1.17, 1.53):
        drawing.circle(x, 2.2, 0.03 + 0.07 * interest, _PHONE)
    drawing.rect(1.17, 2.48, 0.36, 0.04 + 0.08 * interest, _PHONE, 0.02)
    width = _WIDTH - _LEFT - 0.4
    drawing.text(_LEFT, 0.36, "interest", 0.24, _PHONE)
    drawing.rect(_LEFT, 0.7, width, 0.4, _PALE, 0.2)
    drawing.rect(_LEFT, 0.7, width * interest, 0.4, _INTEREST, 0.2)
    # One bar per step, the newest on the right.
    drawing.text(_LEFT, 1.46, "sent of late:", 0.24, _PHONE)
    drawing.text(_LEFT + 1.5, 1.46, "opened", 0.24, _OPENED)
    drawing.text(_LEFT + 2.45, 1.46, "ignored", 0.24, _UNOPENED)
    pitch = width / len(history)
    for index, seen in enumerate(history):
        x = _LEFT + index * pitch
        if seen:
            colour = _OPENED if seen == 2 else _UNOPENED
            drawing.rect(x, 1.8, 0.8 * pitch, 1.2, colour, 0.02)
        else:
            drawing.rect(x, 2.9, 0.8 * pitch, 0.1, _PALE, 0.02)
    return drawing


def _message(drawing: Drawing, x: float, y: float, width: float, opened: bool) -> None:
    colour = _OPENED if opened else _UNOPENED
    drawing.rect(x, y, width, 0.5, colour, 0.1)
    drawing.rect(x + 0.12, y + 0.13, width - 0.5, 0.08, _SCREEN, 0.04)
    drawing.rect(x + 0.12, y + 0.29, width - 0.3, 0.08, _SCREEN, 0.04)
