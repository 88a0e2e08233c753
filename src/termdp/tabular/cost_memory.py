"""A learner's memory of its episodes, for repeated fits of the observer's costs."""

import numpy as np

from termdp.tabular.episodes import (
    Rollouts,
    StopData,
    concatenate,
    flatten,
    merge_identical,
)
from termdp.tabular.estimation import CostEstimate, summarise
from termdp.tabular.likelihood import Parameters, maximise


class CostMemory:
    """All episodes so far, identical ones merged, and the last fit as a warm start.

    Attributes:
        best: the last fit, −b absorbed in the costs of step 1.
        data: the steps it was fitted to.
    """

    def __init__(
        self, shape: tuple[int, int, int], ridge: float, radius: float
    ) -> None:
        self.shape, self.ridge, self.radius = shape, ridge, radius
        self.best = Parameters(np.zeros(int(np.prod(shape))), 0.0)
        nothing = np.zeros((0, shape[0]), np.int64)
        self.episodes = Rollouts(
            nothing, nothing, nothing * 0.0, nothing[:, 0], nothing[:, 0] > 0
        )
        self.weights = np.zeros(0)
        self.data = self._flat()

    def add(self, batch: Rollouts) -> None:
        """Remember a batch of episodes."""
        weights = np.concatenate([self.weights, np.ones(len(batch))])
        whole = concatenate([self.episodes, batch])
        self.episodes, self.weights = merge_identical(whole, weights)

    def fit(self, with_errors: bool) -> CostEstimate:
        """Line 9 of Algorithm 1, with the bias absorbed in the costs."""
        self.data = self._flat()
        # Algorithm 1, line 9, arXiv:2205.15376
        self.best = maximise(self.data, self.ridge, self.radius, 0.0, self.best)
        return summarise(
            self.data, self.best, self.ridge, self.shape, with_errors=with_errors
        )

    def _flat(self) -> StopData:
        _, num_states, num_actions = self.shape
        return flatten(
            self.episodes, num_states, num_actions, None, False, self.weights
        )
