"""A strip of curves under a game: what the observer felt, drawn as the episode goes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_BACKGROUND = (16, 18, 27)
_GRID = (44, 48, 62)
_TEXT = (200, 204, 214)
_MARGIN = 8
_LABEL_HEIGHT = 14


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
        title: what is drawn.
        curves: the lines, back to front.
        level: a horizontal line worth knowing (b, say).
        top: upper end of the axis; None fits the values.
    """

    title: str
    curves: Sequence[Curve]
    level: float | None = None
    top: float | None = None
    height: int = 56
    limits: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        values = np.concatenate([np.asarray(c.values, float) for c in self.curves])
        extra = [] if self.level is None else [self.level]
        low = min(0.0, float(values.min(initial=0.0)))
        high = max([float(values.max(initial=0.0)), *extra, 1e-3])
        high = self.top if self.top is not None else high * 1.1
        object.__setattr__(self, "limits", (low, high))


def film(frames: Sequence[np.ndarray], panels: Sequence[Panel]) -> list[np.ndarray]:
    """Each frame with the panels under it, drawn up to that frame's step.

    Args:
        frames: pictures `uint8 [height, width, 3]`, one per step.
        panels: what to draw; every curve has as many values as there are frames.
    """
    return [
        np.vstack([frame, strip(panels, frame.shape[1], step + 1)])
        for step, frame in enumerate(frames)
    ]


def strip(panels: Sequence[Panel], width: int, steps: int) -> np.ndarray:
    """The panels side by side in time, with the first `steps` steps drawn."""
    height = sum(panel.height + _LABEL_HEIGHT for panel in panels) + _MARGIN
    image = Image.new("RGB", (width, height), _BACKGROUND)
    canvas = ImageDraw.Draw(image)
    y = 0
    for panel in panels:
        _draw_panel(canvas, panel, (_MARGIN, y, width - _MARGIN), steps)
        y += panel.height + _LABEL_HEIGHT
    return np.asarray(image)


def _draw_panel(
    canvas: ImageDraw.ImageDraw, panel: Panel, place: tuple[int, int, int], steps: int
) -> None:
    left, top, right = place
    font = ImageFont.load_default(10)
    canvas.text((left, top + 2), panel.title, fill=_TEXT, font=font)
    x = right
    for curve in reversed([c for c in panel.curves if c.name]):
        x -= int(canvas.textlength(curve.name, font=font))
        canvas.text((x, top + 2), curve.name, fill=curve.colour, font=font)
        x -= 10
    upper, lower = top + _LABEL_HEIGHT, top + _LABEL_HEIGHT + panel.height - 6
    low, high = panel.limits

    def place_y(value: float) -> float:
        return lower - (np.clip(value, low, high) - low) / (high - low) * (
            lower - upper
        )

    canvas.rectangle((left, upper, right, lower), outline=_GRID)
    if panel.level is not None:
        for start in range(left, right, 8):
            y = place_y(panel.level)
            canvas.line((start, y, start + 4, y), fill=_TEXT)
    for curve in panel.curves:
        total = max(len(curve.values), 2)
        shown = np.asarray(curve.values, float)[:steps]
        points = [
            (left + (right - left) * i / (total - 1), place_y(v))
            for i, v in enumerate(shown)
        ]
        if curve.bars:
            for px, py in points:
                canvas.line((px, place_y(0.0), px, py), fill=curve.colour)
        elif len(points) > 1:
            canvas.line(points, fill=curve.colour, width=2)


def save_gif(path: str, frames: Sequence[np.ndarray], fps: float) -> None:
    """Write frames as an endless GIF."""
    images = [Image.fromarray(frame) for frame in frames]
    # One palette for all frames: colours do not flicker and the file stays small.
    palette = images[len(images) // 2].quantize(colors=128)
    images = [
        image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images
    ]
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=round(1000 / fps),
        loop=0,
        optimize=True,
    )
