"""Warnings during a run about observers that no agent can please."""

import math
import warnings
from typing import Any

import numpy as np

from termdp.runs.metrics import Reports

ENOUGH_EPISODES = 100
# Steps of a run by which the first stop should have come; of a run that is over, and may
# have been meant to be short.
PATIENCE = 100_000
PATIENCE_AT_THE_END = 1_000
PAGE = "see docs/choosing_an_observer.md"


class ObserverWarning(UserWarning):
    """Something about the observer or the rewards makes learning pointless."""


class Adviser:
    """Reads the reports between chunks and gives each warning once."""

    def __init__(self, params: Any):
        observer = params.observer
        self.base_rate = base_rate(float(observer.bias), float(observer.background))
        self.said: set[str] = set()

    def look(self, reports: Reports) -> None:
        """Give the warnings that the newest reports `[R, iterations, ...]` call for."""
        sums = {name: float(np.sum(values)) for name, values in reports.items()}
        if sums["episodes"] < ENOUGH_EPISODES:
            return
        for about, sentence in (
            ("base rate", self._base_rate(sums)),
            ("constant cost", _constant_cost(sums)),
            ("relief", _relief(sums)),
        ):
            if sentence and about not in self.said:
                self.said.add(about)
                warnings.warn(f"{sentence}; {PAGE}", ObserverWarning, stacklevel=2)

    def look_for_stops(self, reports: Reports, is_over: bool) -> None:
        """Warn once if the environment has reported no stop.

        Args:
            reports: all reports so far, `[R, iterations, ...]`.
            is_over: whether the run has ended.
        """
        steps = float(np.sum(reports["steps"])) / len(reports["steps"])
        patience = PATIENCE_AT_THE_END if is_over else PATIENCE
        if "no stops" in self.said or steps < patience:
            return
        self.said.add("no stops")
        if np.sum(reports["stops"]) == 0:
            warnings.warn(
                f"nobody stopped the agent in the first {steps:,.0f} steps, so there is "
                "nothing to learn costs from: a stop is info['stopped'] = True, which "
                "termdp.gym.ObserverWrapper sets",
                ObserverWarning,
                stacklevel=2,
            )

    def _base_rate(self, sums: dict[str, float]) -> str:
        """Many stops at no cost: the base rate times the steps of an episode."""
        share = self.base_rate * sums["length_sum"] / sums["episodes"]
        if share <= 0.5:
            return ""
        return (
            f"with this bias the observer stops {self.base_rate:.1%} of steps even at no "
            f"cost, which ends about {min(share, 1.0):.0%} of episodes: a larger bias "
            "makes it more patient"
        )


def base_rate(bias: float, background: float = 0.0) -> float:
    """Probability of a stop at no cost: ρ(−b) and the background together."""
    logistic = 1.0 / (1.0 + math.exp(min(bias, 700.0)))
    return logistic + background * (1.0 - logistic)


def _constant_cost(sums: dict[str, float]) -> str:
    """Nearly all episodes are stopped, and no step is better than another."""
    if "true_cost" not in sums or sums["stops"] < 0.95 * sums["episodes"]:
        return ""
    mean = sums["true_cost"] / sums["steps"]
    variance = max(sums["true_cost_sq"] / sums["steps"] - mean**2, 0.0)
    if mean <= 0 or math.sqrt(variance) > 0.1 * mean:
        return ""
    return (
        f"{sums['stops'] / sums['episodes']:.0%} of episodes are stopped and all steps "
        f"cost about the same ({mean:.3g}): no agent can avoid these stops"
    )


def _relief(sums: dict[str, float]) -> str:
    """Rewards are negative: an early stop loses less."""
    stops = sums["stops"] / sums["episodes"]
    if sums["reward_sum"] >= 0 or stops < 0.05:
        return ""
    mean = sums["reward_sum"] / sums["steps"]
    return (
        f"rewards are negative (mean {mean:.3g} a step), so an agent gains by being "
        "stopped and may seek it: add a constant to the rewards, or use stop_penalty"
    )
