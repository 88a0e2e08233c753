"""Films: how large, in step with one another, and clear about how an episode ended."""

import numpy as np
import pytest
from PIL import Image

from termdp.render.drawing import Drawing
from termdp.render.film import HOLD_SECONDS, Film, Scene, save_gif
from termdp.render.strip import STOP, Curve, Panel, Time, strip


def scene(steps, end="stopped", per_step=1):
    chance = Panel("stop probability", [Curve(np.linspace(0, 1, steps), "#0000ff")])
    pictures = [Drawing(2, 4, "#336633") for _ in range(steps * per_step)]
    return Scene("PPO", pictures, per_step, np.arange(steps), [chance], end)


def is_red(frame):
    """Where the colour of stops is."""
    return (np.abs(frame.astype(int) - STOP) < 40).all(axis=-1)


def test_a_film_is_wide_and_its_last_picture_stays(tmp_path):
    save_gif(tmp_path / "film.gif", Film([scene(3)]), fps=10)
    with Image.open(tmp_path / "film.gif") as image:
        assert image.width >= 480
        durations = []
        for number in range(image.n_frames):
            image.seek(number)
            durations.append(image.info["duration"])
    assert durations == [100, 100, 1000 * HOLD_SECONDS]


@pytest.mark.parametrize("end", ["stopped", "game_over", "truncated", "cut short"])
def test_only_a_stop_is_stamped_and_marked_in_red_at_the_end(end):
    frames = [Film([scene(4, end)]).frame(number) for number in range(4)]
    assert not any(is_red(frame).any() for frame in frames[:-1])
    assert is_red(frames[-1]).any() == (end == "stopped")
    game = slice(36, 456)  # below the heading, above the curves
    assert (frames[-1][game] != frames[-2][game]).any()


def test_films_side_by_side_keep_step_and_the_one_that_ended_waits():
    both = Film([scene(2), scene(4, "game_over")])
    assert len(both) == 4
    left = [both.frame(number)[:, :480] for number in range(4)]
    right = [both.frame(number)[:, 480:] for number in range(4)]
    assert (left[1] == left[3]).all() and is_red(left[1]).any()
    assert (right[1] != right[3]).any()


def test_a_step_of_several_pictures_ends_with_the_last_of_them():
    film = Film([scene(2, "cut short", per_step=4)])
    first, third, fourth = (film.frame(number) for number in (0, 2, 3))
    assert (first == third).all()
    assert (third != fourth).any()


def test_the_probability_has_an_axis_from_0_to_100_percent():
    panel = Panel("", [Curve(np.array([0.2]), "#0000ff")], percent=True)
    assert panel.limits == (0, 1)
    assert [words for _, words in panel.ticks] == ["0%", "50%", "100%"]
    unmarked = strip([panel], 480, Time(1, 4), 16)
    marked = strip([panel], 480, Time(1, 4, stop=1), 16)
    columns = np.flatnonzero(is_red(marked).any(axis=0))
    assert not is_red(unmarked).any()
    # A quarter of the way from the axis to the right edge.
    assert 150 < columns.mean() < 175
