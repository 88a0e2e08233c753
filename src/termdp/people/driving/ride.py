"""A ride as data: seed, driver, actions. `rides` records and replays them."""

import dataclasses

import numpy as np

MAX_STEPS = 10_000
MAX_SEED = 2**31 - 1
NUM_ACTIONS = 3


@dataclasses.dataclass(frozen=True)
class Ride:
    """One ride of Backseat Driver; the game's own numbers, no observer.

    A ride whose last action crashes ended by `game_over`; any other was cut off after
    its last action (`truncated`).

    Attributes:
        seed: of the road, 0 … 2³¹ − 1.
        driver: who drove, in a few words; never shown to those who review it.
        actions: `[T] uint8`, 0 stay, 1 left, 2 right.
    """

    seed: int
    driver: str
    actions: np.ndarray

    def __post_init__(self) -> None:
        """Check every field: rides also come from files."""
        check_seed(self.seed)
        actions = np.asarray(self.actions)
        if actions.ndim != 1 or not 1 <= len(actions) <= MAX_STEPS:
            raise ValueError(
                f"expected a ride of 1 to {MAX_STEPS} steps, got actions of "
                f"shape {actions.shape}"
            )
        if actions.dtype.kind not in "iu" or actions.min() < 0:
            raise ValueError("expected actions that are 0, 1 or 2")
        if actions.max() >= NUM_ACTIONS:
            raise ValueError(f"expected actions 0, 1 or 2, got {actions.max()}")
        object.__setattr__(self, "actions", actions.astype(np.uint8))

    def __len__(self) -> int:
        """Steps."""
        return len(self.actions)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Ride)
            and (self.seed, self.driver) == (other.seed, other.driver)
            and np.array_equal(self.actions, other.actions)
        )

    __hash__ = None  # type: ignore[assignment]  # holds an array


def check_seed(seed: int) -> None:
    """Seeds fit into any database's integer and any JavaScript number."""
    if not 0 <= seed <= MAX_SEED:
        raise ValueError(f"expected a seed within 0 and {MAX_SEED}, got {seed}")


def check_steps(steps: int) -> None:
    """A ride has a first step, and an end."""
    if not 1 <= steps <= MAX_STEPS:
        raise ValueError(f"expected 1 to {MAX_STEPS} steps a ride, got {steps}")
