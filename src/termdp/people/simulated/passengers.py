"""Five SIMULATED passengers: programs with unwritten rules and human flaws.

No human data exists in this project. These passengers stand in for supervisors, so that
the whole way from rides to a fitted observer can be tested against a known truth. Each
has its own idea of discomfort (a cost per step), patience, memory, reaction time and
lapses of attention:

    P(wants to stop) = ρ(strictness · (Σ of noticed discomfort − patience)),

where the sum runs over the last `memory` steps. The stop comes one reaction time later,
if the ride has not ended by then. While attention is elsewhere, nothing is noticed and
no stop is wanted. Now and then a finger slips.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from termdp.people.simulated.sight import Sight

Rule = Callable[[Sight], np.ndarray]

# How far one looks for a reason to change lanes, in rows ahead.
_REASON = 8
# Free rows that feel too few: half a car's length.
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
    """How much one minds each thing."""

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
class Passenger:
    """A simulated passenger.

    Attributes:
        name: contains the word "simulated".
        rules: how much it minds each thing.
        patience: discomfort within the memory at which a stop is as likely as not.
        strictness: how sharply the chance of a stop rises around its patience.
        memory: steps that it remembers.
        reaction_ms: median time from wanting a stop to pressing.
        reaction_spread: standard deviation of the logarithm of that time.
        distraction: probability per step that attention wanders off.
        distraction_length: mean length of such a lapse, in steps.
        slips: probability per step of a stop for no reason.
        talkative: share of stops after which it says why.
    """

    name: str
    rules: Rules
    patience: float = 5.0
    strictness: float = 2.5
    memory: int = 35
    reaction_ms: float = 450.0
    reaction_spread: float = 0.15
    distraction: float = 0.001
    distraction_length: float = 6.0
    slips: float = 0.0002
    talkative: float = 0.5

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


class Reaction(NamedTuple):
    """What a passenger did with a ride.

    Attributes:
        step: the step during which it pressed stop; None if it did not.
        latency_ms: from wanting the stop to pressing; None likewise.
        reason: what it says; None if nothing.
    """

    step: int | None
    latency_ms: float | None
    reason: str | None


def react(
    passenger: Passenger, ride: Sight, rng: np.random.Generator, step_ms: float
) -> Reaction:
    """Watch a ride and stop it, or not.

    Args:
        passenger: who watches.
        ride: what is to be seen.
        rng: all that is random in the passenger.
        step_ms: how long a step is on the screen.
    """
    length = len(ride)
    attentive = _attention(passenger, length, rng)
    noticed = np.where(attentive, passenger.discomfort(ride), 0.0)
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


def _attention(
    passenger: Passenger, length: int, rng: np.random.Generator
) -> np.ndarray:
    """Whether it looks at each step, `[T]`."""
    attentive = np.ones(length, bool)
    begins = np.flatnonzero(rng.random(length) < passenger.distraction)
    lengths = rng.geometric(1.0 / passenger.distraction_length, size=len(begins))
    for first, away in zip(begins, lengths, strict=True):
        attentive[first : first + away] = False
    return attentive


PASSENGERS = (
    Passenger("simulated-ada", Rules(weaving=1.0), patience=6.5, memory=35),
    Passenger(
        "simulated-ben",
        Rules(close_gaps=1.0),
        patience=4.0,
        memory=33,
        reaction_ms=600.0,
    ),
    Passenger(
        "simulated-cleo", Rules(coins=1.0), patience=6.0, memory=37, distraction=0.002
    ),
    Passenger(
        "simulated-dov", Rules(jerks=1.0), patience=8.0, memory=36, reaction_ms=350.0
    ),
    Passenger(
        "simulated-eve",
        Rules(weaving=0.6, close_gaps=0.6, coins=0.4, jerks=0.3),
        patience=7.5,
        memory=34,
        slips=0.0005,
    ),
)
