"""Moving pictures of an episode: the game, and under it what the observer felt."""

from pathlib import Path
from typing import Any

import numpy as np

from termdp.registry import find
from termdp.render.drawing import picture
from termdp.render.strip import Curve, Panel, film, save_gif
from termdp.runs.evaluate import Watched

COST, TRUE, LEARNED = "#f6c453", "#ff6b6b", "#5ab0ff"
SUFFIXES = (".gif", ".mp4")


def check_suffix(path: Path) -> None:
    """Only what can be written."""
    if path.suffix not in SUFFIXES:
        raise ValueError(
            f"expected a file name ending in .gif or .mp4, got {path.name!r}"
        )


def episode_frames(watched: Watched, env_id: str, game: Any) -> list[np.ndarray]:
    """One picture per step, with the curves so far under it."""
    draw = find(env_id).drawer(game)
    frames = [
        picture(draw(state, observation))
        for state, observation in zip(watched.states, watched.observations, strict=True)
    ]
    return film(frames, panels(watched))


def gymnasium_frames(watched: Watched) -> list[np.ndarray]:
    """A film of an environment that drew itself."""
    known = panels(watched)
    return film(watched.states, known) if known else watched.states


def panels(watched: Watched) -> list[Panel]:
    """Cost, accumulated cost (with b) and stop probability: what is known of them."""
    accumulated = _curves(watched.learned_window_costs, watched.window_costs)
    chance = _curves(watched.learned_stop_probabilities, watched.stop_probabilities)
    found = []
    if watched.costs is not None:
        found.append(Panel("cost", [Curve(watched.costs, COST, bars=True)], height=34))
    if accumulated:
        dashed = "" if watched.bias is None else " (dashed: b)"
        title = f"accumulated cost{dashed}"
        found.append(Panel(title, accumulated, level=watched.bias))
    if chance:
        found.append(Panel("stop probability", chance, top=1.0))
    return found


def _curves(learned: np.ndarray | None, true: np.ndarray | None) -> list[Curve]:
    found = [] if learned is None else [Curve(learned, LEARNED, "learned")]
    return found if true is None else [*found, Curve(true, TRUE, "true")]


def save_video(path: Path, frames: list[np.ndarray], fps: float) -> None:
    """Write a GIF, or an MP4 where ffmpeg is installed."""
    check_suffix(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gif":
        save_gif(str(path), frames, fps)
        return
    from matplotlib import animation

    if not animation.writers.is_available("ffmpeg"):
        raise ValueError(
            "expected ffmpeg on this machine for an .mp4, but it is not installed: "
            "install it, or ask for a .gif"
        )
    _save_mp4(path, frames, fps)


def _save_mp4(path: Path, frames: list[np.ndarray], fps: float) -> None:
    import matplotlib.pyplot as plt
    from matplotlib import animation

    height, width = frames[0].shape[:2]
    figure = plt.figure(figsize=(width / 100, height / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    image = axes.imshow(frames[0], interpolation="nearest")
    writer = animation.FFMpegWriter(fps=round(fps), extra_args=["-pix_fmt", "yuv420p"])
    with writer.saving(figure, str(path), dpi=100):
        for frame in frames:
            image.set_data(frame)
            writer.grab_frame()
    plt.close(figure)
