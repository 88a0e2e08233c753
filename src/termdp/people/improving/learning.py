"""What a round learns about a study's supervisors: one observer that stands for all.

A single model of everybody (`pooled`) blurs their differences: what alarms one does not
bother another. So each supervisor with enough stops gets their own model, and a driver
is trained under the sum (`together`), as if all of them sat in the car.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.observer import Observer
from termdp.people.driving.ride import BACKSEAT
from termdp.people.models.fitting import POOLED, final_observers, pooled_settings
from termdp.people.models.senses import senses_of
from termdp.people.models.showing_data import ShowingData
from termdp.people.models.window_choice import (
    FitSettings,
    compare,
    make_group,
    personal_groups,
)

DELAYS = (0, 1, 2, 3, 4)
# Costs are divided by their supervisor's bias. A smaller bias counts as this one, because
# a fitted bias may be near zero or negative.
_LEAST_BIAS = 1.0
# The layers whose outputs are added to give the cost: scaling them scales the cost.
_OUTPUTS = ("Dense_0", "Dense_1")


def round_observers(
    showings: Mapping[str, Sequence[ShowingData]],
    window: int,
    delay: int,
    seed: int,
    gradient_steps: int = 400,
    personal: bool = True,
    env: str = BACKSEAT,
) -> dict[str, Observer]:
    """One observer for each study; all fits are one program.

    Args:
        showings: all showings of each study, by its name.
        window: steps that the observers remember.
        delay: reaction delay in steps; see `models.showing_data`.
        seed: of the draws.
        gradient_steps: of each network.
        personal: whether supervisors with enough stops get models of their own.
        env: the environment of all these studies.
    """
    settings = _settings(gradient_steps, seed)
    everything = [showing for mine in showings.values() for showing in mine]
    senses = senses_of(env, everything)
    groups, members = [], {}
    for study, mine in showings.items():
        own = personal_groups(senses, mine, settings) if personal else []
        if not own:
            own = [make_group(senses, POOLED, list(mine), settings)]
        named = [dataclasses.replace(g, name=f"{study}/{g.name}") for g in own]
        members[study] = [group.name for group in named]
        groups += named
    fitted = final_observers(groups, window, delay, pooled_settings(settings))
    return {
        study: together([fitted[name] for name in names])
        for study, names in members.items()
    }


def together(observers: Sequence[Observer]) -> Observer:
    """The sum of all supervisors' costs, each divided by the supervisor's bias.

    A sum of networks is an ensemble of networks again.
    """
    if len(observers) == 1:
        return observers[0]
    biases = [max(float(observer.bias), _LEAST_BIAS) for observer in observers]
    bias = float(np.mean(biases))
    parts = []
    for observer, own_bias in zip(observers, biases, strict=True):
        cost: Any = observer.cost  # a passenger's or an onlooker's: both are networks
        share = len(observers) * float(cost.scale) * bias / own_bias
        parts.append(_scaled(cost, share))
    weights = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
    first: Any = observers[0].cost
    summed = first.replace(weights=weights, scale=jnp.float32(1.0))
    return observers[0].replace(cost=summed, bias=bias)


def _scaled(cost: Any, factor: float) -> dict:
    """Weights of networks whose costs are `factor` times as large."""
    return {
        name: jax.tree.map(lambda x: x * factor, layer) if name in _OUTPUTS else layer
        for name, layer in cost.weights.items()
    }


def chosen_delay(
    showings: Sequence[ShowingData], window: int, seed: int, env: str = BACKSEAT
) -> int:
    """The reaction delay that explains held-out rides best."""
    settings = _settings(150, seed)
    senses = senses_of(env, showings)
    pooled = make_group(senses, POOLED, list(showings), settings)
    pairs = [(window, delay) for delay in DELAYS]
    return int(compare([pooled], pairs, DELAYS, pooled_settings(settings)).best)


def _settings(gradient_steps: int, seed: int) -> FitSettings:
    plain = FitSettings(num_folds=2, seed=seed)
    config = dataclasses.replace(plain.config, num_steps=gradient_steps)
    return dataclasses.replace(plain, config=config)
