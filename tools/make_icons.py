"""Draw the web app's icons from the game's own shapes: icon.svg and two PNGs."""

from pathlib import Path

import numpy as np
from PIL import Image

from termdp.render.backseat import sprites
from termdp.render.drawing import Drawing, to_pixels

WEB = Path(__file__).parent.parent / "src" / "termdp" / "people" / "web"
SIZE = 2.4


def icon() -> Drawing:
    """The agent's car between two lines, a coin ahead."""
    found = sprites()
    drawing = Drawing(SIZE, SIZE, background="#3b3f4a")
    for x in (0.42, SIZE - 0.5):
        for y in (-0.5, 0.75, 2.0):
            drawing.rect(x, y, 0.08, 0.85, "#c9ccd4", radius=0.04)
    drawing.shapes += moved(found["coins"][5], SIZE / 2, 0.5, 1.25)
    drawing.shapes += moved(found["agent"], SIZE / 2, 0.9, 1.3)
    return drawing


def moved(shapes: list, x: float, y: float, scale: float) -> list:
    """Shapes placed elsewhere and enlarged."""
    result = []
    for shape in shapes:
        new = dict(shape)
        if shape["kind"] == "polygon":
            new["points"] = [(x + a * scale, y + b * scale) for a, b in shape["points"]]
        else:
            new["x"], new["y"] = x + shape["x"] * scale, y + shape["y"] * scale
            for name in {"w", "h", "r"} & set(shape):
                new[name] = shape[name] * scale
        result.append(new)
    return result


def svg(drawing: Drawing) -> str:
    """The drawing as SVG, its corners rounded."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}">',
        f'<clipPath id="c"><rect width="{SIZE}" height="{SIZE}" rx="0.5"/></clipPath>',
        '<g clip-path="url(#c)">',
        f'<rect width="{SIZE}" height="{SIZE}" fill="{drawing.background}"/>',
    ]
    for shape in drawing.shapes:
        fill = f'fill="{shape["fill"]}"'
        if shape["kind"] == "rect":
            place = " ".join(
                f'{name}="{shape[key]:.3f}"'
                for name, key in zip(
                    ("x", "y", "width", "height", "rx"), "xywhr", strict=True
                )
            )
            lines.append(f"<rect {place} {fill}/>")
        elif shape["kind"] == "circle":
            x, y, r = shape["x"], shape["y"], shape["r"]
            lines.append(f'<circle cx="{x:.3f}" cy="{y:.3f}" r="{r:.3f}" {fill}/>')
        else:
            points = " ".join(f"{a:.3f},{b:.3f}" for a, b in shape["points"])
            lines.append(f'<polygon points="{points}" {fill}/>')
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def main() -> None:
    """Write the three files."""
    drawing = icon()
    (WEB / "icon.svg").write_text(svg(drawing))
    for size in (192, 512):
        pixels = np.asarray(to_pixels(drawing, size / SIZE))
        Image.fromarray(pixels).save(WEB / f"icon-{size}.png", optimize=True)


if __name__ == "__main__":
    main()
