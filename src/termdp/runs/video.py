"""Films of an episode: the game, and below it costs and stop probabilities."""

from pathlib import Path
from typing import Any

import numpy as np

from termdp.registry import find
from termdp.render.film import HOLD_SECONDS, Film, Scene, save_gif
from termdp.render.strip import Curve, Panel
from termdp.runs.evaluate import Watched

COST, TRUE, LEARNED = "#f6c453", "#ff6b6b", "#5ab0ff"
SUFFIXES = (".gif", ".mp4")
MOST_BIAS = 1000.0  # larger biases count as never stopping


def check_suffix(path: Path) -> None:
    """Refuse formats that cannot be written."""
    if path.suffix not in SUFFIXES:
        raise ValueError(
            f"expected a file name ending in .gif or .mp4, got {path.name!r}"
        )


def episode_scene(
    watched: Watched, env_id: str, game: Any, title: str, per_step: int | None = None
) -> Scene:
    """An episode of one of the package's games, with what happens between steps.

    Args:
        watched: the episode.
        env_id: of the game.
        game: the game.
        title: the agent's name.
        per_step: pictures per step; None for all.
    """
    entry = find(env_id)
    draw = entry.drawer(game)
    pictures: list[Any] = []
    moves: list[Any] = []
    for state, observation, action in zip(
        watched.states, watched.observations, watched.actions, strict=True
    ):
        pictures.append(draw(state, observation))
        if entry.moves is not None:
            moves = entry.moves(game, state, action)
            every = len(moves) // (per_step or len(moves))
            moves = moves[every - 1 :: every]
            pictures += moves[:-1]
    return _scene(watched, [*pictures, *moves[-1:]], title, max(len(moves), 1))


def gymnasium_scene(watched: Watched, title: str) -> Scene:
    """An episode of an environment that renders its own pictures."""
    return _scene(watched, watched.states, title, 1)


def _scene(watched: Watched, pictures: list[Any], title: str, per_step: int) -> Scene:
    returns = np.cumsum(watched.rewards)
    return Scene(title, pictures, per_step, returns, panels(watched), watched.end)


def panels(watched: Watched) -> list[Panel]:
    """Curves of costs (with b) and stop probabilities, as far as known."""
    if watched.bias is not None and watched.bias > MOST_BIAS:
        return []
    accumulated = _curves(watched.learned_window_costs, watched.window_costs)
    chance = _curves(watched.learned_stop_probabilities, watched.stop_probabilities)
    found = []
    if accumulated:
        title = "accumulated cost"
        bars = []
        if watched.costs is not None:
            title = "accumulated cost (bars: each step)"
            bars = [Curve(watched.costs, COST, bars=True)]
        found.append(Panel(title, [*bars, *accumulated], watched.bias))
    if chance:
        found.append(Panel("stop probability", chance, percent=True))
    return found


def _curves(learned: np.ndarray | None, true: np.ndarray | None) -> list[Curve]:
    found = [] if learned is None else [Curve(learned, LEARNED, "learned")]
    return found if true is None else [*found, Curve(true, TRUE, "true")]


def save_video(path: Path, film: Film, fps: float) -> None:
    """Write a GIF, or an MP4 where ffmpeg is installed; `fps` counts pictures."""
    check_suffix(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gif":
        save_gif(path, film, fps)
        return
    from matplotlib import animation

    if not animation.writers.is_available("ffmpeg"):
        raise ValueError(
            "expected ffmpeg on this machine for an .mp4, but it is not installed: "
            "install it, or ask for a .gif"
        )
    _save_mp4(path, film, fps)


def _save_mp4(path: Path, film: Film, fps: float) -> None:
    import matplotlib.pyplot as plt
    from matplotlib import animation

    first = film.frame(0)
    height, width = first.shape[:2]
    figure = plt.figure(figsize=(width / 100, height / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    image = axes.imshow(first, interpolation="nearest")
    even = "pad=ceil(iw/2)*2:ceil(ih/2)*2"  # the format needs even sizes
    writer = animation.FFMpegWriter(
        fps=round(fps), extra_args=["-pix_fmt", "yuv420p", "-vf", even]
    )
    rest = round(fps * HOLD_SECONDS)
    with writer.saving(figure, str(path), dpi=100):
        for number in range(len(film) + rest):
            if number < len(film):
                image.set_data(film.frame(number))
            writer.grab_frame()
    plt.close(figure)
