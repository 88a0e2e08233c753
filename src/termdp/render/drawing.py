"""A drawing is a short list of shapes: the same list feeds videos and the browser.

Shapes are plain dictionaries, so a drawing is already JSON. Coordinates are in the
drawing's own units, x to the right and y downwards; later shapes cover earlier ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Shape = dict[str, Any]

# Pillow draws without anti-aliasing: draw larger, then shrink.
_SUPERSAMPLING = 3


@dataclass
class Drawing:
    """A canvas of `width` × `height` units and the shapes on it, back to front."""

    width: float
    height: float
    background: str = "#000000"
    shapes: list[Shape] = field(default_factory=list)

    def rect(
        self, x: float, y: float, w: float, h: float, fill: str, radius: float = 0.0
    ) -> None:
        """Add a filled rectangle, its corners rounded by `radius`."""
        self.shapes.append(
            {"kind": "rect", "x": x, "y": y, "w": w, "h": h, "fill": fill, "r": radius}
        )

    def circle(self, x: float, y: float, radius: float, fill: str) -> None:
        """Add a filled circle around (x, y)."""
        self.shapes.append(
            {"kind": "circle", "x": x, "y": y, "r": radius, "fill": fill}
        )

    def polygon(self, points: Sequence[tuple[float, float]], fill: str) -> None:
        """Add a filled polygon."""
        self.shapes.append(
            {"kind": "polygon", "points": [list(p) for p in points], "fill": fill}
        )

    def text(self, x: float, y: float, words: str, height: float, fill: str) -> None:
        """Add words whose first letter is below and right of (x, y)."""
        self.shapes.append(
            {"kind": "text", "x": x, "y": y, "h": height, "words": words, "fill": fill}
        )

    def as_json(self) -> dict[str, Any]:
        """The drawing as the browser receives it."""
        return {
            "width": self.width,
            "height": self.height,
            "background": self.background,
            "shapes": self.shapes,
        }


# From a game's state and observation (unbatched) to a drawing, or to pixels.
Draw = Callable[[Any, Any], Drawing | np.ndarray]

PICTURE_HEIGHT = 320


def picture(drawing: Drawing | np.ndarray, height: int = PICTURE_HEIGHT) -> np.ndarray:
    """A drawing as pixels of a given height; pixels are returned unchanged."""
    if isinstance(drawing, np.ndarray):
        return drawing
    return to_pixels(drawing, height / drawing.height)


def to_pixels(drawing: Drawing, scale: float) -> np.ndarray:
    """Rasterise a drawing to `uint8 [height·scale, width·scale, 3]`."""
    size = (round(drawing.width * scale), round(drawing.height * scale))
    big = (size[0] * _SUPERSAMPLING, size[1] * _SUPERSAMPLING)
    image = Image.new("RGB", big, drawing.background)
    canvas = ImageDraw.Draw(image, "RGBA")  # blends #rrggbbaa colours
    for shape in drawing.shapes:
        _paint(canvas, shape, scale * _SUPERSAMPLING)
    return np.asarray(image.resize(size, Image.Resampling.BOX))


def _paint(canvas: ImageDraw.ImageDraw, shape: Shape, k: float) -> None:
    match shape["kind"]:
        case "rect":
            x0, y0 = shape["x"] * k, shape["y"] * k
            # Pillow includes the last pixel; we mean half-open intervals.
            x1, y1 = x0 + shape["w"] * k - 1, y0 + shape["h"] * k - 1
            if x1 >= x0 and y1 >= y0:
                canvas.rounded_rectangle(
                    (x0, y0, x1, y1), shape["r"] * k, fill=shape["fill"]
                )
        case "circle":
            x, y, r = shape["x"] * k, shape["y"] * k, shape["r"] * k
            canvas.ellipse((x - r, y - r, x + r, y + r), fill=shape["fill"])
        case "polygon":
            points = [(x * k, y * k) for x, y in shape["points"]]
            canvas.polygon(points, fill=shape["fill"])
        case "text":
            place = shape["x"] * k, shape["y"] * k
            font = ImageFont.load_default(shape["h"] * k)
            canvas.text(place, shape["words"], shape["fill"], font)
        case kind:
            raise ValueError(
                f"expected a shape of kind rect, circle, polygon or text, got {kind!r}"
            )
