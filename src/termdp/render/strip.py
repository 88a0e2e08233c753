"""Curves below a game: costs and stop probabilities as the episode goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw, ImageFont

BACKGROUND = (16, 18, 27)
TEXT = (222, 225, 232)
STOP = (255, 82, 82)
_GRID = (50, 55, 70)
_FINER = 2  # lines are drawn larger and shrunk, because Pillow's are jagged


@dataclass(frozen=True)
class Curve:
    """One line of a panel: its values over the steps, its colour, its name."""

    values: np.ndarray
    colour: str
    name: str = ""
    bars: bool = False


@dataclass(frozen=True)
class Panel:
    """Some curves that share an axis.

    Attributes:
        title: the quantity.
        curves: the lines, back to front.
        level: a dashed line, such as b; the axis shows its number.
        percent: whether the axis goes from 0 to 100%; otherwise it fits the values.
        height: in pixels, of the curves alone.
    """

    title: str
    curves: Sequence[Curve]
    level: float | None = None
    percent: bool = False
    height: int = 76
    limits: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        values = np.concatenate([np.asarray(c.values, float) for c in self.curves])
        extra = [] if self.level is None else [self.level]
        low = min(0.0, float(values.min(initial=0.0)))
        high = 1.1 * max([float(values.max(initial=0.0)), *extra, 1e-3])
        limits = (0.0, 1.0) if self.percent else (low, high)
        object.__setattr__(self, "limits", limits)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Positions on the axis with their numbers."""
        if self.percent:
            return [(0.0, "0%"), (0.5, "50%"), (1.0, "100%")]
        high = _round_number(self.limits[1]) if self.level is None else self.level
        return [(0.0, "0"), (high, f"{high:g}")]


def _round_number(most: float) -> float:
    """The largest of 1, 2, 5, 10, … that is at most `most`."""
    size = 10.0 ** np.floor(np.log10(most))
    return float(max(part * size for part in (1, 2, 5) if part * size <= most))


@dataclass(frozen=True)
class Time:
    """The time axis of a strip.

    Attributes:
        now: how many steps are drawn.
        steps: how long the axis is.
        stop: after how many steps the observer stopped the agent; None if it has not.
    """

    now: int
    steps: int
    stop: int | None = None


def strip(
    panels: Sequence[Panel], width: int, time: Time, font_size: int
) -> np.ndarray:
    """The panels one below the other, above a common time axis."""
    line = _line(font_size)
    size = (width, sum(panel.height + line for panel in panels) + line)
    image = Image.new("RGB", (size[0] * _FINER, size[1] * _FINER), BACKGROUND)
    pen = _Pen(image, font_size)
    y = 0
    for panel in panels:
        pen.panel(panel, y, time)
        y += panel.height + line
    pen.time_axis(y, time)
    return np.asarray(image.resize(size, Image.Resampling.BOX))


def _line(font_size: int) -> int:
    return round(2.1 * font_size)


class _Pen:
    """Draws panels on an enlarged picture; all positions are in enlarged pixels."""

    def __init__(self, image: Image.Image, font_size: int):
        self.canvas = ImageDraw.Draw(image)
        self.font = ImageFont.load_default(font_size * _FINER)
        self.line = _line(font_size) * _FINER
        self.gap = 6 * _FINER
        self.left = round(self.canvas.textlength("100%", font=self.font)) + 2 * self.gap
        self.right = image.width - 2 * self.gap

    def panel(self, panel: Panel, y: int, time: Time) -> None:
        top = y * _FINER
        self._heading(panel, top)
        upper = top + self.line
        lower = upper + panel.height * _FINER - self.gap
        low, high = panel.limits

        def height_of(value: float) -> float:
            share = (np.clip(value, low, high) - low) / (high - low)
            return float(lower - share * (lower - upper))

        for value, words in panel.ticks:
            at = height_of(value)
            self.canvas.line((self.left, at, self.right, at), _GRID, _FINER)
            place = (self.left - self.gap, at)
            self.canvas.text(place, words, TEXT, self.font, anchor="rm")
        for curve in panel.curves:
            places = [
                (self._across(step, time), height_of(value))
                for step, value in enumerate(curve.values[: time.now], start=1)
            ]
            self._curve(curve, places, height_of(0.0))
        if panel.level is not None:
            self._dashes(height_of(panel.level))
        if time.stop is not None:
            x = self._across(time.stop, time)
            self.canvas.line((x, upper, x, lower), STOP, 2 * _FINER)
            tip = 5 * _FINER
            self.canvas.polygon(
                [(x - tip, upper), (x + tip, upper), (x, upper + tip)], STOP
            )

    def time_axis(self, y: int, time: Time) -> None:
        """Labels of the time axis at its two ends."""
        top = y * _FINER + self.gap / 2
        self.canvas.text((self.left, top), "start", TEXT, self.font)
        words = f"{time.steps} steps" if time.steps != 1 else "1 step"
        self.canvas.text((self.right, top), words, TEXT, self.font, anchor="ra")

    def _heading(self, panel: Panel, top: float) -> None:
        place = (self.gap, top + self.gap)
        self.canvas.text(place, panel.title, TEXT, self.font)
        taken = self.gap + self.canvas.textlength(panel.title, font=self.font)
        x = float(self.right)
        for curve in reversed([c for c in panel.curves if c.name]):
            x -= self.canvas.textlength(curve.name, font=self.font)
            if x > taken + self.gap:
                place = (round(x), place[1])
                self.canvas.text(place, curve.name, curve.colour, self.font)
            x -= 2 * self.gap

    def _dashes(self, y: float) -> None:
        for start in range(self.left, self.right, 8 * _FINER):
            self.canvas.line((start, y, start + 4 * _FINER, y), TEXT, _FINER)

    def _curve(
        self, curve: Curve, places: list[tuple[float, float]], floor: float
    ) -> None:
        if curve.bars:
            for x, y in places:
                self.canvas.line((x, floor, x, y), curve.colour, 2 * _FINER)
        elif len(places) > 1:
            self.canvas.line(places, curve.colour, 2 * _FINER, joint="curve")

    def _across(self, step: int, time: Time) -> float:
        return self.left + (self.right - self.left) * step / max(time.steps, 1)
