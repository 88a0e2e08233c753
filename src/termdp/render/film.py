"""An episode as a film: a heading, the game, curves below it, and how it ended."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from termdp.render.drawing import Drawing, to_pixels
from termdp.render.strip import (
    BACKGROUND,
    STOP,
    TEXT,
    Panel,
    Time,
    strip,
)

HOLD_SECONDS = 2.0  # how long the last picture stays
_MOST_COLOURS = 256
_GREY = (150, 156, 170)
# How an episode ended: a stamp's words and its colour.
_STAMPS = {
    "stopped": ("STOPPED", "by the observer", STOP),
    "game_over": ("GAME OVER", "the game itself ended", _GREY),
    "truncated": ("TIME IS UP", "the time limit was reached", _GREY),
    "cut short": ("CUT", "the film ends here", _GREY),
}


@dataclass(frozen=True)
class Look:
    """Sizes in pixels: a film's width, its game's greatest height, its letters."""

    width: int = 480
    game_height: int = 420
    font_size: int = 16


@dataclass(frozen=True)
class Scene:
    """One episode, ready to be filmed.

    Attributes:
        title: the agent's name.
        pictures: of the game, in order; drawings become pixels when they are shown.
        per_step: pictures of one step. One more at the end shows the state after the
            last step, if it can be drawn.
        returns: sum of rewards after each step.
        panels: curves, with as many values as there are steps.
        end: `stopped`, `game_over`, `truncated` or `cut short`.
    """

    title: str
    pictures: Sequence[Drawing | np.ndarray]
    per_step: int
    returns: np.ndarray
    panels: Sequence[Panel]
    end: str

    @property
    def steps(self) -> int:
        """How many steps it has."""
        return len(self.returns)


@dataclass(frozen=True)
class Film:
    """Episodes side by side; one that has ended waits for the others.

    Attributes:
        scenes: one or more.
        look: sizes.
        frames: how many frames, if more than the longest scene has, to match another
            film.
        steps: length of the time axis, to match another film.
    """

    scenes: Sequence[Scene]
    look: Look = Look()
    frames: int = 0
    steps: int = 0

    def __len__(self) -> int:
        """How many frames there are."""
        return max(self.frames, *(len(scene.pictures) for scene in self.scenes))

    def frame(self, number: int) -> np.ndarray:
        """Frame `number`, counted from 0, as `uint8 [height, width, 3]`."""
        steps = max(self.steps, *(scene.steps for scene in self.scenes))
        return np.hstack(
            _equally_high([_frame(s, number, steps, self.look) for s in self.scenes])
        )


def _frame(scene: Scene, number: int, steps: int, look: Look) -> np.ndarray:
    """A frame of one scene; the last one says how it ended."""
    number = min(number, len(scene.pictures) - 1)
    game = _fitted(scene.pictures[number], look)
    width = max(look.width, game.shape[1])
    game = _centred(game, width)
    done, stop = (number + 1) // scene.per_step, None
    if number == len(scene.pictures) - 1:
        done = scene.steps
        stop = done if scene.end == "stopped" else None
        game = _stamped(game, *_STAMPS[scene.end])
    parts = [_heading(scene, done, width, look.font_size), game]
    if scene.panels:
        time = Time(done, steps, stop)
        parts.append(strip(scene.panels, width, time, look.font_size))
    return np.vstack(parts)


def _equally_high(frames: list[np.ndarray]) -> list[np.ndarray]:
    height = max(frame.shape[0] for frame in frames)
    found = []
    for frame in frames:
        wide = np.empty((height, frame.shape[1], 3), np.uint8)
        wide[:] = BACKGROUND
        wide[: frame.shape[0]] = frame
        found.append(wide)
    return found


def _fitted(picture: Drawing | np.ndarray, look: Look) -> np.ndarray:
    """Pixels: drawings as large as the space allows, small pictures enlarged."""
    if isinstance(picture, Drawing):
        scale = min(look.width / picture.width, look.game_height / picture.height)
        return to_pixels(picture, scale)
    height, width = picture.shape[:2]
    times = math.floor(min(look.width / width, look.game_height / height))
    return picture.repeat(times, 0).repeat(times, 1) if times > 1 else picture


def _centred(game: np.ndarray, width: int) -> np.ndarray:
    wide = np.empty((game.shape[0], width, 3), np.uint8)
    wide[:] = BACKGROUND
    left = (width - game.shape[1]) // 2
    wide[:, left : left + game.shape[1]] = game
    return wide


def _heading(scene: Scene, done: int, width: int, font_size: int) -> np.ndarray:
    """The agent's name, the step, and the return so far."""
    height = 2 * font_size + 4
    image = Image.new("RGB", (width, height), BACKGROUND)
    canvas = ImageDraw.Draw(image)
    large = ImageFont.load_default(font_size + 4)
    font = ImageFont.load_default(font_size)
    middle = height // 2
    canvas.text((10, middle), scene.title, TEXT, large, anchor="lm", stroke_width=0.4)
    total = scene.returns[done - 1] if done else 0.0
    words = f"step {done}   return {total:.1f}"
    canvas.text((width - 10, middle), words, TEXT, font, anchor="rm")
    return np.asarray(image)


def _stamped(
    game: np.ndarray, words: str, below: str, colour: tuple[int, int, int]
) -> np.ndarray:
    """A picture with a stamp in its middle, slightly askew."""
    size = game.shape[1] / 9
    font, small = (ImageFont.load_default(part * size) for part in (1.0, 0.45))
    width = round(max(font.getlength(words), small.getlength(below)) + size)
    height = round(2.1 * size)
    stamp = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    pen = ImageDraw.Draw(stamp)
    frame = (2, 2, width - 3, height - 3)
    pen.rounded_rectangle(frame, size / 5, (16, 18, 27, 225), colour, round(size / 10))
    place = (width / 2, 0.42 * height)
    pen.text(place, words, colour, font, anchor="mm", stroke_width=size / 40)
    pen.text((width / 2, 0.8 * height), below, TEXT, small, anchor="mm")
    stamp = stamp.rotate(5, Image.Resampling.BICUBIC, expand=True)
    image = Image.fromarray(game)
    corner = (image.width - stamp.width) // 2, (image.height - stamp.height) // 2
    image.paste(stamp, corner, stamp)
    return np.asarray(image)


def save_gif(path: Path, film: Film, fps: float) -> None:
    """Write an endless GIF that pauses at its end."""
    palette = _palette(film)
    images = [_with_palette(film, palette, number) for number in range(len(film))]
    # GIFs count hundredths of a second; browsers slow down below two of them.
    each = max(20, 10 * round(100 / fps))
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=[each] * (len(images) - 1) + [round(1000 * HOLD_SECONDS)],
        loop=0,
    )


def _with_palette(film: Film, palette: Image.Image, number: int) -> Image.Image:
    image = Image.fromarray(film.frame(number))
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def _palette(film: Film) -> Image.Image:
    """One palette for all frames: colours do not flicker and the file stays small."""
    chosen = (0, len(film) // 2, len(film) - 1)
    together = np.vstack([film.frame(number) for number in chosen])
    return Image.fromarray(together).quantize(colors=_MOST_COLOURS)
