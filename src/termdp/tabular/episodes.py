"""Episodes: vectorised simulation, and the flat form that the cost fit works on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from termdp.tabular.model import Array, IntArray, TerMDP, survival
from termdp.tabular.policies import as_policy

Episode = tuple[IntArray, IntArray, bool]


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Many episodes, padded to the horizon.

    Attributes:
        states: `[N, H]`, −1 after the end.
        actions: `[N, H]`, −1 after the end.
        rewards: `[N, H]`, 0 after the end.
        lengths: steps played, `[N]`.
        stopped: whether the observer ended the episode, `[N]`. At step H the episode
            ends anyway, so this is false there.
    """

    states: IntArray
    actions: IntArray
    rewards: Array
    lengths: IntArray
    stopped: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[Episode]:
        """Episodes as `fit_costs` takes them: `(states, actions, stopped)`."""
        for row, length in enumerate(self.lengths):
            yield (
                self.states[row, :length],
                self.actions[row, :length],
                bool(self.stopped[row]),
            )

    def first(self, num: int) -> "Rollouts":
        """The first `num` episodes."""
        return Rollouts(
            self.states[:num],
            self.actions[:num],
            self.rewards[:num],
            self.lengths[:num],
            self.stopped[:num],
        )

    @property
    def returns(self) -> Array:
        """Sum of rewards of each episode, `[N]`."""
        return self.rewards.sum(axis=1)


def generator_from(key: jax.Array | int) -> np.random.Generator:
    """A NumPy generator seeded by a JAX key (or by a whole number)."""
    if isinstance(key, int | np.integer):
        return np.random.default_rng(int(key))
    data = key if not jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key) else None
    words = jax.random.key_data(key) if data is None else data
    return np.random.default_rng(np.asarray(words).ravel().tolist())


def simulate(
    model: TerMDP,
    policy: object,
    episodes: int,
    key: jax.Array | int | np.random.Generator,
    random_rewards: bool = True,
) -> Rollouts:
    """Play many episodes at once.

    Args:
        model: the TerMDP.
        policy: a plan, a policy, an array of actions `[H, S]` or probabilities
            `[H, S, A]`, or a function `(h, state, accumulated) -> action`.
        episodes: how many.
        key: a JAX key or a whole number (or a NumPy generator, which advances).
        random_rewards: draw each reward from {0, 1} with the model's mean; otherwise
            the reward is the mean itself.

    Examples:
        >>> import numpy as np
        >>> from termdp import tabular
        >>> model = tabular.chain()
        >>> always_first = np.zeros((model.horizon, model.num_states), int)
        >>> len(tabular.simulate(model, always_first, 10, 0))
        10
    """
    random = key if isinstance(key, np.random.Generator) else generator_from(key)
    acting = as_policy(model, policy)
    shape = (episodes, model.horizon)
    states, actions = np.full(shape, -1), np.full(shape, -1)
    rewards, lengths = np.zeros(shape), np.zeros(episodes, np.int64)
    stopped = np.zeros(episodes, bool)
    playing = np.arange(episodes)
    state = _draw(np.broadcast_to(model.initial, (episodes, model.num_states)), random)
    costs_so_far, memory = model.start_memory(episodes), acting.start(episodes)
    for h in range(1, model.horizon + 1):
        action = _draw(acting.probabilities(h, state, memory), random)
        states[playing, h - 1], actions[playing, h - 1] = state, action
        mean = model.rewards[h - 1, state, action]
        paid = random.random(len(playing)) < mean if random_rewards else mean
        rewards[playing, h - 1] = paid
        lengths[playing] = h
        if h == model.horizon:
            break
        cost = model.costs[h - 1, state, action]
        window_cost, costs_so_far = model.advance(costs_so_far, cost)
        memory = acting.advance(h, state, action, memory)
        goes_on = random.random(len(playing)) < survival(window_cost, model.bias)
        stopped[playing[~goes_on]] = True
        following = model.transitions[h - 1, state[goes_on], action[goes_on]]
        state, playing = _draw(following, random), playing[goes_on]
        costs_so_far, memory = costs_so_far[goes_on], memory[goes_on]
    return Rollouts(states, actions, rewards, lengths, stopped)


def _draw(probabilities: Array, random: np.random.Generator) -> IntArray:
    """One index per row, by inverting the cumulative distribution."""
    below = np.cumsum(probabilities, axis=1)[:, :-1]
    return (random.random((len(probabilities), 1)) >= below).sum(axis=1)


@dataclass(frozen=True, eq=False)
class StopData:
    """Steps of all episodes end to end: the cost that each adds, and whether it stopped.

    Attributes:
        index: number of the cost (parameter) that the step adds, `[T]`.
        stop: 1.0 where the observer stopped, `[T]`.
        first: first step of the window that ends here, `[T]`.
        last: last step of the episode whose window still holds this one, `[T]`.
        weight: how many identical episodes the step stands for, `[T]`.
        dimension: number of costs.
    """

    index: IntArray
    stop: Array
    first: IntArray
    last: IntArray
    weight: Array
    dimension: int

    def sums(self, costs: Array) -> Array:
        """Σ of the costs in the window of every step, as a difference of prefix sums."""
        sums = prefix_sums(costs[self.index])
        return sums[1:] - sums[self.first]

    def spread_back(self, per_step: Array) -> Array:
        """For each cost, Σ of `per_step` over the steps whose window holds it, `[d]`."""
        sums = prefix_sums(per_step)
        received = sums[self.last + 1] - sums[:-1]
        return np.bincount(self.index, received, self.dimension)

    def gram(self, weights: Array, columns: Array) -> Array:
        """Σ w x xᵀ over all steps, on some of the costs, as a dense matrix."""
        sums, size = prefix_sums(weights), len(columns)
        place = np.full(self.dimension, -1)
        place[columns] = np.arange(size)
        number = place[self.index]
        matrix = np.zeros(size * size)
        for lag in range(self.longest_lag() + 1):
            one = np.flatnonzero(self.last >= np.arange(len(self.last)) + lag)
            both = sums[self.last[one] + 1] - sums[one + lag]
            cell = number[one] * size + number[one + lag]
            matrix += np.bincount(cell, both, size * size)
            if lag:
                cell = number[one + lag] * size + number[one]
                matrix += np.bincount(cell, both, size * size)
        return matrix.reshape(size, size)

    def longest_lag(self) -> int:
        """The largest distance between two steps of one window."""
        return int((self.last - np.arange(len(self.last))).max(initial=0))


def prefix_sums(values: Array) -> Array:
    """0, then the sums of the first 1, 2, … values."""
    sums = np.zeros(len(values) + 1)
    np.cumsum(values, out=sums[1:])
    return sums


def flatten(
    rollouts: Rollouts,
    num_states: int,
    num_actions: int,
    window: int | None,
    stationary: bool,
    weights: Array | None = None,
) -> StopData:
    """Put all informative steps end to end.

    These are steps 1 … H − 1; at step H the episode ends with or without a stop.
    """
    horizon = rollouts.states.shape[1]
    used = np.minimum(rollouts.lengths, horizon - 1)
    steps = np.arange(horizon)
    mask = steps < used[:, None]
    index = rollouts.states * num_actions + rollouts.actions
    if not stationary:
        index = index + steps * (num_states * num_actions)
    stop = np.zeros(mask.shape)
    ended = np.flatnonzero(rollouts.stopped & (rollouts.lengths < horizon))
    stop[ended, rollouts.lengths[ended] - 1] = 1.0
    ends = np.cumsum(used)
    begin, end = np.repeat(ends - used, used), np.repeat(ends, used)
    place = np.arange(len(begin))
    reach = window or horizon
    weight = np.ones(len(used)) if weights is None else weights
    groups = 1 if stationary else horizon
    return StopData(
        index=index[mask],
        stop=stop[mask],
        first=np.maximum(begin, place - reach + 1),
        last=np.minimum(end - 1, place + reach - 1),
        weight=np.repeat(weight, used),
        dimension=groups * num_states * num_actions,
    )


def merge_identical(rollouts: Rollouts, weights: Array) -> tuple[Rollouts, Array]:
    """Keep one of each set of identical episodes, with the sum of their weights.

    The likelihood of the costs does not depend on the rewards; those of one are kept.
    """
    rows = np.column_stack([rollouts.states, rollouts.actions, rollouts.stopped])
    packed = np.ascontiguousarray(rows.astype(np.int32))
    whole = packed.view(np.dtype((np.void, packed.dtype.itemsize * packed.shape[1])))
    _, kept, inverse = np.unique(whole.ravel(), return_index=True, return_inverse=True)
    merged = Rollouts(
        rollouts.states[kept],
        rollouts.actions[kept],
        rollouts.rewards[kept],
        rollouts.lengths[kept],
        rollouts.stopped[kept],
    )
    return merged, np.bincount(inverse, weights)


def concatenate(parts: Sequence[Rollouts]) -> Rollouts:
    """Several sets of episodes as one."""
    return Rollouts(
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.actions for part in parts]),
        np.concatenate([part.rewards for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.stopped for part in parts]),
    )


def rollouts_from(episodes: Sequence[Episode], shape: tuple[int, int, int]) -> Rollouts:
    """Pad a list of `(states, actions, stopped)` to the horizon, with checks.

    Args:
        episodes: arrays up to and including the last step played. An episode that is
            shorter than the horizon and was not stopped was cut off by something else;
            the observer stopped none of its steps.
        shape: (H, S, A).
    """
    horizon, num_states, num_actions = shape
    given = list(episodes)
    lengths = np.array([len(states) for states, _, _ in given], np.int64)
    if any(len(e[0]) != len(e[1]) for e in given):
        raise ValueError("expected as many actions as states in every episode")
    if len(given) and (lengths.min() < 1 or lengths.max() > horizon):
        raise ValueError(
            f"expected episodes of 1 to {horizon} steps, got {lengths.min()} to "
            f"{lengths.max()}"
        )
    mask = np.arange(horizon) < lengths[:, None]
    padded = []
    for name, place, limit in (("states", 0, num_states), ("actions", 1, num_actions)):
        table = np.full(mask.shape, -1)
        parts = [np.asarray(episode[place]) for episode in given]
        flat = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        if flat.size and (flat.min() < 0 or flat.max() >= limit):
            raise ValueError(
                f"expected {name} from 0 to {limit - 1}, got "
                f"{flat.min()} to {flat.max()}"
            )
        table[mask] = flat.astype(np.int64)
        padded.append(table)
    stopped = np.array([bool(flag) for _, _, flag in given], bool)
    states, actions = padded
    return Rollouts(states, actions, np.zeros(mask.shape), lengths, stopped)
