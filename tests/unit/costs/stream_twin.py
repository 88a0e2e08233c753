"""A slow twin of buffer and sampling: it keeps episodes and handles them one by one."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class TwinStep:
    """One step with everything a learner may know about it.

    `place` is its row, counted from the very first step, and its environment.
    """

    place: tuple[int, int]
    cost: float
    label: int | None
    episode: int
    number: int


@dataclass
class Twin:
    """Episodes of all environments, in the order in which they were played."""

    episodes: list[list[TwinStep]] = field(default_factory=list)
    going_on: dict[int, int] = field(default_factory=dict)
    rows: int = 0

    def add(self, costs, starts, stopped, game_over):
        length, num_envs = costs.shape
        for t in range(length):
            for env in range(num_envs):
                if starts[t, env]:
                    self.going_on[env] = len(self.episodes)
                    self.episodes.append([])
                label = int(stopped[t, env])
                if game_over[t, env]:
                    label = None
                index = self.going_on[env]
                self.episodes[index].append(
                    TwinStep(
                        place=(self.rows + t, env),
                        cost=float(costs[t, env]),
                        label=label,
                        episode=index,
                        number=len(self.episodes[index]),
                    )
                )
        self.rows += length

    def first_usable_row(self, num_rows, max_episodes):
        """Forget row after row from the oldest until both limits hold."""
        first_steps = [episode[0].place[0] for episode in self.episodes]
        oldest = max(0, self.rows - num_rows)
        while (
            sum(row >= oldest for row in first_steps) > max_episodes
            and oldest < self.rows - 1
        ):
            oldest += 1
        return oldest

    def examples(self, window, oldest):
        """Place → (window sum, label) of every step that may be learned from."""
        found = {}
        for episode in self.episodes:
            for step in episode:
                history = episode[max(0, step.number - window + 1) : step.number + 1]
                if step.label is None or history[0].place[0] < oldest:
                    continue
                found[step.place] = (sum(s.cost for s in history), step.label)
        return found


def random_stream(rng, rows, num_envs, end_rate):
    """Costs, starts and ends of streams that begin with an episode's first step."""
    costs = rng.normal(size=(rows, num_envs)).astype(np.float32)
    kind = rng.integers(3, size=(rows, num_envs))
    ended = rng.random((rows, num_envs)) < end_rate
    starts = np.concatenate([np.ones((1, num_envs), bool), ended[:-1]])
    return costs, starts, ended & (kind == 0), ended & (kind == 1)
