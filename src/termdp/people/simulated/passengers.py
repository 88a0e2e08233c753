"""SIMULATED people: programs with unwritten rules and human flaws.

No human data exists in this project. These programs stand in for supervisors, so that
the whole way from rides to a fitted observer can be tested against a known truth: five
passengers on the road, five spectators of any other game. Each has its own idea of
discomfort (a cost per step), patience, memory, reaction time and lapses of attention:

    P(wants to stop) = ρ(strictness · (Σ of noticed discomfort − patience)),

where the sum runs over the last `memory` steps. The stop comes one reaction time later,
if the ride has not ended by then. While attention is elsewhere, nothing is noticed and
no stop is wanted. Now and then a finger slips.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.special import expit

from termdp.people.driving.ride import studied
from termdp.people.simulated.sight import Sight

Seen = TypeVar("Seen")
Rule = Callable[[Sight], np.ndarray]

# How many rows ahead a passenger looks for a reason to change lanes.
_REASON = 8
# So few free rows, half a car's length, feel too close.
_CLOSE = 1


def weaving(ride: Sight) -> np.ndarray:
    """Lane changes back and forth: 1 for one that undoes another without any need."""
    needless = (ride.moves != 0) & (ride.free_ahead > _REASON)
    back = np.zeros(len(ride), bool)
    for age in (1, 2):
        back[age:] |= ride.moves[age:] * ride.moves[:-age] < 0
    return (needless & back).astype(float)


def close_gaps(ride: Sight) -> np.ndarray:
    """Driving up close to a car ahead, or cutting in right in front of one."""
    close = (ride.gap_ahead <= _CLOSE) | (ride.gap_behind <= _CLOSE)
    return close.astype(float)


def coins(ride: Sight) -> np.ndarray:
    """Chasing coins: 1 for a lane change that takes one."""
    return ((ride.coins > 0) & (ride.moves != 0)).astype(float)


def jerks(ride: Sight) -> np.ndarray:
    """Hectic sequences: 1 for the third lane change within four steps."""
    changes = (ride.moves != 0).astype(float)
    recent = changes.copy()
    for age in (1, 2, 3):
        recent[age:] += changes[:-age]
    return ((changes > 0) & (recent >= 3)).astype(float)


class Rules(NamedTuple):
    """How much a passenger minds each thing."""

    weaving: float = 0.0
    close_gaps: float = 0.0
    coins: float = 0.0
    jerks: float = 0.0


RULES: dict[str, Rule] = {
    "weaving": weaving,
    "close_gaps": close_gaps,
    "coins": coins,
    "jerks": jerks,
}
REASONS = {
    "weaving": "kept changing lanes for nothing",
    "close_gaps": "far too close to other cars",
    "coins": "it chases coins",
    "jerks": "jerky driving",
}


@dataclasses.dataclass(frozen=True)
class Watcher(abc.ABC, Generic[Seen]):
    """A simulated person who watches.

    Attributes:
        name: contains the word "simulated".
        patience: discomfort within the memory at which a stop is as likely as not.
        strictness: how sharply the chance of a stop rises around the patience.
        memory: steps that it remembers.
        reaction_ms: median time from wanting a stop to pressing.
        reaction_spread: standard deviation of the logarithm of that time.
        distraction: probability per step that attention wanders off.
        distraction_length: mean length of such a lapse, in steps.
        slips: probability per step of a stop for no reason.
        talkative: share of stops after which it says why.
    """

    name: str
    patience: float = 5.0
    strictness: float = 2.5
    memory: int = 35
    reaction_ms: float = 450.0
    reaction_spread: float = 0.15
    distraction: float = 0.001
    distraction_length: float = 6.0
    slips: float = 0.0002
    talkative: float = 0.5

    @abc.abstractmethod
    def discomfort(self, ride: Seen) -> np.ndarray:
        """What each step adds to its discomfort, `[T]`."""

    @abc.abstractmethod
    def reason(self, ride: Seen, step: int) -> str:
        """The reason it gives for a stop that it wanted at a step."""


@dataclasses.dataclass(frozen=True)
class Passenger(Watcher[Sight]):
    """A simulated passenger on the road.

    Attributes:
        rules: how much it minds each thing.
    """

    rules: Rules = Rules()

    def discomfort(self, ride: Sight) -> np.ndarray:
        """What each step adds to its discomfort, `[T]`."""
        total = np.zeros(len(ride))
        for name, weight in self.rules._asdict().items():
            if weight:
                total += weight * RULES[name](ride)
        return total

    def reason(self, ride: Sight, step: int) -> str:
        """What weighed most within its memory."""
        first = max(0, step + 1 - self.memory)
        weighed = {
            name: weight * RULES[name](ride)[first : step + 1].sum()
            for name, weight in self.rules._asdict().items()
            if weight
        }
        return REASONS[max(weighed, key=lambda name: weighed[name])]


@dataclasses.dataclass(frozen=True)
class Spectator(Watcher[np.ndarray]):
    """A simulated spectator of a game, who minds what the game's own observer minds.

    It sees only the true cost of each step, `[T]`: outside Backseat Driver we have no
    other rule for what people may mind.

    Attributes:
        words: what costs, in words.
    """

    words: str = ""

    def discomfort(self, ride: np.ndarray) -> np.ndarray:
        """The costs themselves."""
        return np.asarray(ride, float)

    def reason(self, ride: np.ndarray, step: int) -> str:
        """What costs."""
        return self.words


def spectators(env: str) -> tuple[Spectator, ...]:
    """Five of them, less patient than the registered observer, each in its own way."""
    entry = studied(env)
    return tuple(
        Spectator(
            f"simulated-{name}",
            patience=patience * entry.bias,
            strictness=4.0,
            memory=max(2, round(memory * entry.window)),
            words=entry.cost,
        )
        for name, patience, memory in (
            ("ada", 0.45, 0.8),
            ("ben", 0.5, 0.9),
            ("cleo", 0.6, 1.0),
            ("dov", 0.75, 1.1),
            ("eve", 0.95, 1.2),
        )
    )


class Reaction(NamedTuple):
    """What a simulated person did with a ride.

    Attributes:
        step: the step during which it pressed stop; None if it did not.
        latency_ms: from wanting the stop to pressing; None likewise.
        reason: what it says; None if nothing.
    """

    step: int | None
    latency_ms: float | None
    reason: str | None


def react(
    passenger: Watcher[Seen], ride: Seen, rng: np.random.Generator, step_ms: float
) -> Reaction:
    """Watch a ride and stop it, or not.

    Args:
        passenger: who watches.
        ride: what the passenger can see of it.
        rng: all that is random in the passenger.
        step_ms: how long a step is on the screen.
    """
    felt = passenger.discomfort(ride)
    length = len(felt)
    attentive = _attention(passenger, length, rng)
    noticed = np.where(attentive, felt, 0.0)
    total = np.concatenate([np.zeros(passenger.memory), np.cumsum(noticed)])
    remembered = total[passenger.memory :] - total[: -passenger.memory]
    uneasy = expit(passenger.strictness * (remembered - passenger.patience))
    wants = attentive & (rng.random(length) < uneasy)
    wants |= rng.random(length) < passenger.slips
    latency = passenger.reaction_ms * float(
        np.exp(passenger.reaction_spread * rng.standard_normal())
    )
    speaks = rng.random() < passenger.talkative
    if not wants.any():
        return Reaction(None, None, None)
    made_up = int(np.argmax(wants))
    pressed = made_up + round(latency / step_ms)
    if pressed >= length:
        return Reaction(None, None, None)
    reason = passenger.reason(ride, made_up) if speaks else None
    return Reaction(pressed, latency, reason)


def _attention(passenger: Watcher, length: int, rng: np.random.Generator) -> np.ndarray:
    """Whether it looks at each step, `[T]`."""
    attentive = np.ones(length, bool)
    begins = np.flatnonzero(rng.random(length) < passenger.distraction)
    lengths = rng.geometric(1.0 / passenger.distraction_length, size=len(begins))
    for first, away in zip(begins, lengths, strict=True):
        attentive[first : first + away] = False
    return attentive


PASSENGERS = (
    Passenger("simulated-ada", rules=Rules(weaving=1.0), patience=6.5, memory=35),
    Passenger(
        "simulated-ben",
        rules=Rules(close_gaps=1.0),
        patience=4.0,
        memory=33,
        reaction_ms=600.0,
    ),
    Passenger(
        "simulated-cleo",
        rules=Rules(coins=1.0),
        patience=6.0,
        memory=37,
        distraction=0.002,
    ),
    Passenger(
        "simulated-dov",
        rules=Rules(jerks=1.0),
        patience=8.0,
        memory=36,
        reaction_ms=350.0,
    ),
    Passenger(
        "simulated-eve",
        rules=Rules(weaving=0.6, close_gaps=0.6, coins=0.4, jerks=0.3),
        patience=7.5,
        memory=34,
        slips=0.0005,
    ),
)
