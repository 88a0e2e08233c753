"""A ride as data: environment, seed, driver, actions. `rides` records and replays them.

Any environment that can be drawn has rides: a game of Breakout is a ride whose driver is
whoever plays. People drive themselves on the roads of Backseat Driver only.
"""

import dataclasses

import numpy as np

from termdp.registry import REGISTRY, EnvironmentEntry

MAX_STEPS = 10_000
MAX_SEED = 2**31 - 1
BACKSEAT = "backseat"
# Backseat Driver, whoever watches: the browser knows its road and its rules.
ROADS = (BACKSEAT, "backseat_passenger")
# An action is a character in files and answers.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclasses.dataclass(frozen=True)
class Ride:
    """One ride: the game's own numbers, no observer.

    A ride whose last action ends the game ended by `game_over`, on a road by a crash; any
    other was cut off after its last action (`truncated`).

    Attributes:
        seed: of the road, or of all that is random in another game, 0 … 2³¹ − 1.
        driver: who drove, in a few words; never shown to those who review it.
        actions: `[T] uint8`; on a road 0 stay, 1 left, 2 right.
        env: id of the environment.
    """

    seed: int
    driver: str
    actions: np.ndarray
    env: str = BACKSEAT

    def __post_init__(self) -> None:
        """Check every field: rides also come from files."""
        check_seed(self.seed)
        actions = np.asarray(self.actions)
        if actions.ndim != 1 or not 1 <= len(actions) <= MAX_STEPS:
            raise ValueError(
                f"expected a ride of 1 to {MAX_STEPS} steps, got actions of "
                f"shape {actions.shape}"
            )
        last = studied(self.env).num_actions - 1
        if actions.dtype.kind not in "iu" or actions.min() < 0 or actions.max() > last:
            raise ValueError(
                f"expected actions of {self.env}, whole numbers from 0 to {last}, got "
                f"{actions.min()} to {actions.max()}"
            )
        object.__setattr__(self, "actions", actions.astype(np.uint8))

    def __len__(self) -> int:
        """Steps."""
        return len(self.actions)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Ride)
            and (self.seed, self.driver, self.env)
            == (other.seed, other.driver, other.env)
            and np.array_equal(self.actions, other.actions)
        )

    __hash__ = None  # type: ignore[assignment]  # holds an array

    @property
    def digits(self) -> str:
        """The actions, a character each."""
        return "".join(DIGITS[action] for action in self.actions)


def from_digits(text: str) -> np.ndarray:
    """Actions from `Ride.digits`, `[T] uint8`."""
    return np.array([DIGITS.index(digit) for digit in text], np.uint8)


def studied(env: str) -> EnvironmentEntry:
    """The entry of an environment that a study can show; others are refused."""
    for entry in all_studied():
        if entry.id == env:
            return entry
    known = ", ".join(entry.id for entry in all_studied())
    raise ValueError(
        f"expected an environment that can be drawn ({known}), got {env!r}"
    )


def all_studied() -> list[EnvironmentEntry]:
    """The environments that a study can show."""
    return [
        entry
        for entry in REGISTRY.values()
        if entry.renderer is not None and entry.num_actions <= len(DIGITS)
    ]


def check_seed(seed: int) -> None:
    """Refuse seeds that do not fit into a database's integer or a JavaScript number."""
    if not 0 <= seed <= MAX_SEED:
        raise ValueError(f"expected a seed from 0 to {MAX_SEED}, got {seed}")


def check_steps(steps: int) -> None:
    """Refuse a maximum length that no ride may have."""
    if not 1 <= steps <= MAX_STEPS:
        raise ValueError(f"expected 1 to {MAX_STEPS} steps per ride, got {steps}")
