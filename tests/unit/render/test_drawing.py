"""Drawings: what is described is what is painted."""

import json

import numpy as np
import pytest

from termdp.render.drawing import Drawing, to_pixels


def test_shapes_fill_their_places_in_order():
    drawing = Drawing(4, 3, background="#0000ff")
    drawing.rect(0, 0, 2, 1, "#ff0000")
    drawing.rect(1, 0, 1, 1, "#00ff00")
    drawing.circle(3, 2, 0.5, "#ffffff")
    drawing.polygon([(0, 2), (1, 2), (1, 3), (0, 3)], "#000000")
    pixels = to_pixels(drawing, 10)
    assert pixels.shape == (30, 40, 3) and pixels.dtype == np.uint8
    assert pixels[5, 5].tolist() == [255, 0, 0]
    assert pixels[5, 15].tolist() == [0, 255, 0]
    assert pixels[5, 25].tolist() == [0, 0, 255]
    assert pixels[20, 30].tolist() == [255, 255, 255]
    assert pixels[25, 5].tolist() == [0, 0, 0]


def test_colours_with_alpha_blend():
    drawing = Drawing(1, 1, background="#ffffff")
    drawing.rect(0, 0, 1, 1, "#00000080")
    assert to_pixels(drawing, 4)[2, 2].tolist() == pytest.approx([127] * 3, abs=1)


def test_rounded_corners_leave_the_background():
    drawing = Drawing(1, 1, background="#ffffff")
    drawing.rect(0, 0, 1, 1, "#000000", radius=0.5)
    pixels = to_pixels(drawing, 20)
    assert pixels[0, 0].tolist() == [255] * 3 and pixels[10, 10].tolist() == [0] * 3


def test_a_drawing_is_json():
    drawing = Drawing(2, 1)
    drawing.polygon([(0, 0), (1, 0), (0, 1)], "#123456")
    drawing.circle(1, 1, 0.5, "#abcdef")
    back = json.loads(json.dumps(drawing.as_json()))
    assert back["width"] == 2 and [s["kind"] for s in back["shapes"]] == [
        "polygon",
        "circle",
    ]


def test_unknown_shapes_are_refused():
    drawing = Drawing(1, 1, shapes=[{"kind": "spiral"}])
    with pytest.raises(ValueError, match="got 'spiral'"):
        to_pixels(drawing, 1)
