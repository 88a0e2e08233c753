"""What a round learns: one observer of all supervisors, and a driver trained under it."""

import dataclasses
from collections.abc import Mapping, Sequence

from termdp.observer import Observer
from termdp.people.driving.rides import game
from termdp.people.models.fitting import POOLED, final_observers, pooled_settings
from termdp.people.models.showing_data import ShowingData
from termdp.people.models.window_choice import FitSettings, compare, make_group

DELAYS = (0, 1, 2, 3, 4)


def round_observers(
    showings: Mapping[str, Sequence[ShowingData]],
    window: int,
    delay: int,
    seed: int,
    gradient_steps: int = 400,
) -> dict[str, Observer]:
    """One observer for each study, of all its supervisors together.

    Args:
        showings: all showings of each study, by its name.
        window: steps that the observers remember.
        delay: reaction delay in steps; see `models.showing_data`.
        seed: of the draws.
        gradient_steps: of each network.
    """
    settings = _settings(gradient_steps, seed)
    road = game().road
    groups = [
        make_group(road, name, list(mine), settings) for name, mine in showings.items()
    ]
    return final_observers(road, groups, window, delay, pooled_settings(settings))


def chosen_delay(showings: Sequence[ShowingData], window: int, seed: int) -> int:
    """The reaction delay that explains held-out rides best."""
    settings = _settings(150, seed)
    pooled = make_group(game().road, POOLED, list(showings), settings)
    pairs = [(window, delay) for delay in DELAYS]
    return int(compare([pooled], pairs, DELAYS, pooled_settings(settings)).best)


def _settings(gradient_steps: int, seed: int) -> FitSettings:
    plain = FitSettings(num_folds=2, seed=seed)
    config = dataclasses.replace(plain.config, num_steps=gradient_steps)
    return dataclasses.replace(plain, config=config)
