"""The settings of a round, for the command line and for programs."""

import dataclasses

from termdp.agents.methods import find_method
from termdp.people.driving.ride import MAX_SEED, check_steps

_LONGEST_WINDOW = 200
_MOST_STEPS = 10**9


@dataclasses.dataclass(frozen=True)
class RoundSettings:
    """The settings of a round.

    Attributes:
        driver: a run of the study's environment to begin with; None trains one,
            unobserved.
        method: how drivers are trained under the fitted observer. `oracle` is told the
            observer's costs: the observer is a model, so nothing has to be guessed.
        steps: of training, in each round.
        start_steps: of the first driver's training.
        rides: that are added in each round, half of them by the new driver.
        ride_steps: longest ride.
        window: steps that the observer remembers.
        delay: reaction delay in steps; None chooses it.
        gradient_steps: of the observer's fit.
        seed: of everything that is drawn.
    """

    driver: str | None = None
    method: str = "oracle"
    steps: int = 40_960
    start_steps: int = 163_840
    rides: int = 40
    ride_steps: int = 200
    window: int = 35
    delay: int | None = None
    gradient_steps: int = 400
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before anything is done."""
        for name, least, most in (
            ("steps", 1, _MOST_STEPS),
            ("start_steps", 1, _MOST_STEPS),
            ("rides", 2, 100_000),
            ("window", 1, _LONGEST_WINDOW),
            ("gradient_steps", 1, 1_000_000),
            ("seed", 0, MAX_SEED),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                flag = name.replace("_", "-")
                raise ValueError(
                    f"expected --{flag} from {least} to {most}, got {value}"
                )
        if self.delay is not None and not 0 <= self.delay < self.window:
            raise ValueError(
                f"expected --delay from 0 to below the window of {self.window}, got "
                f"{self.delay}"
            )
        check_steps(self.ride_steps)
        if find_method(self.method).recurrent:
            raise ValueError(
                f"expected a method without memory, got {self.method}: each driver "
                "continues with the networks of the one before"
            )
