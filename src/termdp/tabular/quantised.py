"""Approximate planning on a lattice of accumulated costs.

Appendix G of arXiv:2205.15376: every cost is rounded *down* to a multiple of Δ, so the
accumulated cost walks on the lattice {…, −Δ, 0, Δ, …} and backward induction runs over
(step, state, bin). Rounding down makes stops rarer, hence V_q ≥ V. The bias b is never
rounded; with non-negative costs Σc − b is clipped at C* (the sum at b + C*).

The stop at the end of step h depends only on the bin, not on the state. So one step of
backward induction is one dense product P · (γ V) over all bins at once, and then a shift
of each row (s, a) by its cost in bins. It runs in JAX, on any device, in double
precision: `jax.enable_x64` is on only during the call, so that users' own programs keep
their precision.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from termdp.tabular.bounds import (
    clip_level,
    clipped_error,
    clipped_resolution,
    signed_error,
    signed_resolution,
)
from termdp.tabular.model import Array, IntArray, TerMDP, survival
from termdp.tabular.policies import Policy

MAX_BYTES = 1_000_000_000
# 0.3 / 0.1 is 2.9999999999999996; it must fall into bin 3.
_FLOOR_SLACK = 1e-9
# Beyond this logit the chance of no stop is 4e-18: clipping loses nothing.
_CERTAIN_STOP = 40.0
# Up to here planning is so fast that twice as many bins do not matter.
_SMALL = 16_384


@dataclass(frozen=True)
class Lattice:
    """Costs in units of Δ, and the bins that sums of them can reach.

    Attributes:
        resolution: Δ.
        shift: ⌊c / Δ⌋, `[H, S, A]`.
        low: lattice number of the lowest bin.
        num_bins: how many bins there are.
        clip: accumulated costs above this share a bin (infinite without clipping).
    """

    resolution: float
    shift: IntArray
    low: int
    num_bins: int
    clip: float = np.inf

    @property
    def sums(self) -> Array:
        """Accumulated cost of every bin, `[num_bins]`."""
        numbers = self.low + np.arange(self.num_bins)
        return np.minimum(numbers * self.resolution, self.clip)

    def bin_of(self, accumulated: float) -> int:
        """Bin of an accumulated cost, rounded down; the outermost bin beyond."""
        number = int(np.floor(accumulated / self.resolution + _FLOOR_SLACK))
        return int(np.clip(number - self.low, 0, self.num_bins - 1))


def floor_to_lattice(costs: Array, resolution: float) -> IntArray:
    """⌊c / Δ⌋: costs in whole units of Δ, rounded down."""
    # Appendix G, quantised cost c_q = ⌊c / Δc⌋ Δc, arXiv:2205.15376
    return np.floor(costs / resolution + _FLOOR_SLACK).astype(np.int64)


def make_lattice(costs: Array, resolution: float, clip: float = np.inf) -> Lattice:
    """The bins that the costs of steps 1 … H − 1 can reach.

    Args:
        costs: `[H, S, A]`.
        resolution: Δ > 0.
        clip: b + C*, allowed only with non-negative costs.
    """
    shift = floor_to_lattice(costs, resolution)
    before_last = shift[:-1].reshape(len(shift) - 1, shift[0].size)
    lowest = np.cumsum(before_last.min(axis=1)) if len(before_last) else np.zeros(1)
    highest = np.cumsum(before_last.max(axis=1)) if len(before_last) else np.zeros(1)
    low, high = min(0, int(lowest.min())), max(0, int(highest.max()))
    if np.isfinite(clip):
        high = min(high, max(0, int(np.ceil(clip / resolution - _FLOOR_SLACK))))
    return Lattice(resolution, shift, low, high - low + 1, clip)


def plan_bytes(num_states: int, num_actions: int, horizon: int, num_bins: int) -> int:
    """Memory that one quantised plan takes, in bytes; linear in the number of bins."""
    stored = horizon * num_states * (8 + 1)  # values and actions of every step
    working = num_states * (3 * 8 * num_actions + 4 * num_actions + 2 * 8)
    return (stored + working) * num_bins


def backward_induction(
    transition: Array, reward: Array, lattice: Lattice, bias: float, cap: Array
) -> tuple[Array, IntArray]:
    """Values and best actions of every (step, state, bin).

    Q_h(s, C, a) = r_h(s, a) + (1 − ρ(C′ − b)) Σ_{s′} P_h(s′ | s, a) V_{h+1}(s′, C′)
    with C′ = C + c_q(s, a), and V_h = min(max_a Q_h, cap_h).

    Args:
        transition: `[S, A, S]` or `[H, S, A, S]`.
        reward: `[H, S, A]`, of any size.
        lattice: costs in bins.
        bias: b.
        cap: greatest value of each step, `[H]` (infinite for none).

    Returns:
        Values `[H, S, N]` and actions `[H, S, N]` with N = `lattice.num_bins`.
    """
    horizon, num_states, num_actions = reward.shape
    _check_size(num_states, num_actions, horizon, lattice)
    padded = _few_sizes(lattice.num_bins)
    discount = np.zeros(padded)
    discount[: lattice.num_bins] = survival(lattice.sums, bias)
    with jax.enable_x64(True):
        values, actions = _induction(
            jnp.asarray(transition.reshape(-1, num_states * num_actions, num_states)),
            jnp.asarray(reward),
            jnp.asarray(lattice.shift, jnp.int32),
            jnp.asarray(discount),
            jnp.asarray(lattice.num_bins - 1, jnp.int32),
            jnp.asarray(cap, jnp.float64),
            wide_actions=num_actions > 256,
        )
        kept = slice(0, lattice.num_bins)
        return np.asarray(values)[..., kept], np.asarray(actions)[..., kept]


@partial(jax.jit, static_argnames="wide_actions")
def _induction(
    transition: jax.Array,
    reward: jax.Array,
    shift: jax.Array,
    discount: jax.Array,
    last_bin: jax.Array,
    cap: jax.Array,
    wide_actions: bool,
) -> tuple[jax.Array, jax.Array]:
    horizon, num_states, num_actions = reward.shape
    num_bins = len(discount)
    bins = jnp.arange(num_bins, dtype=jnp.int32)
    action_type = jnp.int32 if wide_actions else jnp.uint8

    def step(
        following: jax.Array, h: jax.Array
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        probability = transition[jnp.minimum(h, len(transition) - 1)]
        # Termination Bellman equation (appendix C), arXiv:2205.15376
        expected = jnp.matmul(
            probability, discount * following, precision=jax.lax.Precision.HIGHEST
        )
        target = jnp.clip(bins + shift[h].reshape(-1, 1), 0, last_bin)
        expected = jnp.take_along_axis(expected, target, axis=1)
        action_values = reward[h][..., None] + expected.reshape(
            num_states, num_actions, num_bins
        )
        values = jnp.minimum(action_values.max(axis=1), cap[h])
        return values, (values, action_values.argmax(axis=1).astype(action_type))

    nothing = jnp.zeros((num_states, num_bins), reward.dtype)
    steps = jnp.arange(horizon, dtype=jnp.int32)
    _, (values, actions) = jax.lax.scan(step, nothing, steps, reverse=True)
    return values, actions


class QuantisedPlan(Policy):
    """The optimal policy of the quantised TerMDP.

    Its memory is the bin: the sum of *its own* rounded costs along the episode, which
    `advance` keeps. The paper's bounds are about this policy.

    Attributes:
        value: value in the quantised model, from the initial distribution; V_q ≥ V*.
        error_bound: V_q − V of any policy, and the loss of this one, are at most this.
        lattice: costs in bins.
        values: `[H, S, N]`.
        actions: `[H, S, N]`.
    """

    def __init__(
        self,
        lattice: Lattice,
        solution: tuple[Array, IntArray],
        initial: Array,
        num_actions: int,
        error_bound: float,
    ) -> None:
        self.lattice = lattice
        self.values, self.actions = solution
        self.error_bound = error_bound
        self._num_actions = num_actions
        self.value = float(initial @ self.values[0, :, lattice.bin_of(0.0)])

    def value_at(self, h: int, s: int, accumulated: float = 0.0) -> float:
        """Value of step h (from 1 to H) in state s, `accumulated` before the step."""
        self._check_step(h)
        return float(self.values[h - 1, s, self.lattice.bin_of(accumulated)])

    def act(self, h: int, s: int, accumulated: float = 0.0) -> int:
        """Best action; the accumulated cost is rounded down to the lattice."""
        self._check_step(h)
        return int(self.actions[h - 1, s, self.lattice.bin_of(accumulated)])

    def _check_step(self, h: int) -> None:
        if not 1 <= h <= len(self.values):
            raise ValueError(
                f"expected a step from 1 to {len(self.values)}, got {h} (steps count "
                "from 1)"
            )

    def start(self, num: int) -> Array:
        """The bin of cost 0."""
        return np.full((num, 1), float(self.lattice.bin_of(0.0)))

    def probabilities(self, h: int, states: IntArray, memory: Array) -> Array:
        """Probability 1 for the best action in this bin."""
        bins = memory[:, 0].astype(np.int64)
        return np.eye(self._num_actions)[self.actions[h - 1, states, bins]]

    def advance(
        self, h: int, states: IntArray, actions: IntArray, memory: Array
    ) -> Array:
        """Shift the bin by the rounded cost."""
        moved = memory + self.lattice.shift[h - 1, states, actions][:, None]
        return np.clip(moved, 0, self.lattice.num_bins - 1)


def quantised_plan(
    model: TerMDP, resolution: float | None = None, epsilon: float | None = None
) -> QuantisedPlan:
    """Plan on a lattice of given resolution, or on one that guarantees ε.

    Non-negative costs take the paper's second regime (clipping at C*), others the
    first. With `resolution`, costs are clipped where a stop is certain in double
    precision.
    """
    if model.window is not None:
        raise ValueError(
            "quantised planning needs the sum of all costs to be a sufficient "
            f"statistic; with a window of {model.window} steps use plan(model, "
            "exact=True)"
        )
    given = resolution if resolution is not None else epsilon
    if given is None or not 0 < given < np.inf:
        raise ValueError(f"expected a resolution or an epsilon > 0, got {given!r}")
    horizon, is_signed = model.horizon, bool(model.costs.min() < 0)
    level = np.inf if is_signed else _CERTAIN_STOP
    if epsilon is not None and is_signed:
        resolution, error = signed_resolution(epsilon, horizon), epsilon
    elif epsilon is not None:
        resolution, error = clipped_resolution(epsilon, horizon), epsilon
        level = clip_level(epsilon, horizon)
    else:
        assert resolution is not None
        error = signed_error(resolution, horizon)
        if not is_signed:
            error = clipped_error(resolution, level, horizon)
    lattice = make_lattice(model.costs, resolution, model.bias + level)
    solution = backward_induction(
        model.transition, model.rewards, lattice, model.bias, np.full(horizon, np.inf)
    )
    return QuantisedPlan(lattice, solution, model.initial, model.num_actions, error)


def _check_size(
    num_states: int, num_actions: int, horizon: int, lattice: Lattice
) -> None:
    needed = plan_bytes(num_states, num_actions, horizon, lattice.num_bins)
    if needed > MAX_BYTES:
        fitting = lattice.resolution * needed / MAX_BYTES
        raise ValueError(
            f"a resolution of {lattice.resolution:.3g} needs {lattice.num_bins} "
            f"bins of accumulated cost and {needed / 1e9:.1f} GB, more than 1 "
            f"GB; a resolution of about {fitting:.2g} fits (ε grows in the same "
            "proportion)"
        )


def _few_sizes(num_bins: int) -> int:
    """Round up so that few shapes are compiled: powers of two, later 4 leading bits."""
    leading_bits = 1 if num_bins <= _SMALL else 4
    unit = 1 << max(0, (num_bins - 1).bit_length() - leading_bits)
    return -(-num_bins // unit) * unit
