"""The observer: its cost, what it remembers, when it stops the agent.

An `Observer` is data. The same object serves JAX environments (`termdp.observe`), where
its numbers are traced and may change without recompiling, and Gymnasium environments
(`termdp.gym.ObserverWrapper`), where everything is NumPy. Both run the one function
`watch` below; only the array module differs.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from termdp.termination import Number, stop_probability

Cost = Callable[[Any, Any], Any]

_NOBODY_WAITING = -1
# A window takes memory for every environment; an observer without one takes none.
MOST_WINDOW = 100_000
MOST_DELAY = 1_000_000


class ObserverMemory(NamedTuple):
    """What the observer remembers from step to step within an episode.

    Attributes:
        recent: the last costs `[..., capacity]`, a ring buffer: the cost of the
            episode's step t is at t mod capacity; older entries are ignored. Without a
            window it is one number, the accumulated cost, `[..., 1]`.
        steps: steps of the episode so far.
        countdown: steps until a stop that is already decided; −1 if none is.
    """

    recent: Any
    steps: Any
    countdown: Any


class ObserverStep(NamedTuple):
    """The observer's judgement of one step.

    Attributes:
        window_cost: C_t, the accumulated cost including this step's.
        stop_probability: 1 − (1 − background)(1 − ρ(C_t − b)).
        stop: the observer stops the agent now (unless the game has just ended).
    """

    window_cost: Any
    stop_probability: Any
    stop: Any


@dataclasses.dataclass(frozen=True)
class Observer:
    """Somebody who watches, accumulates costs and may stop the agent.

    P(stop at t) = 1 − (1 − background)(1 − ρ(C_t − bias)), see section 2 of
    arXiv:2205.15376; C_t is the sum of the last `window` costs including the present.

    Attributes:
        cost: `cost(observation, action) -> float`, for one unbatched pair: the
            observation the agent acted on and its action. In JAX environments it is
            traced, so write it with `jax.numpy`; in Gymnasium it may be plain Python.
            The parameters of a callable that is a JAX pytree (such as a
            `flax.struct.dataclass`) are traced too.
        window: how many steps the observer remembers; None means the whole episode.
        bias: b; the larger, the more patient.
        background: probability of a stop at any step for no reason, in [0, 1).
        delay: reaction time in steps: a stop decided at t happens at t + delay. No new
            decision is made meanwhile. If the game ends first, there is no stop.
        leak: in (0, 1]; if given, C_t = leak·C_{t−1} + c_t replaces the window.

    Examples:
        >>> observer = Observer(lambda observation, action: 1.0 * (action == 2), bias=4.0)
        >>> observer.replace(window=10).window
        10
    """

    cost: Cost
    window: int | Number | None = 30
    bias: Number = 6.0
    background: Number = 0.0
    delay: int | Number = 0
    leak: Number | None = None
    # Size of the memory: smaller windows do not recompile.
    capacity: int = dataclasses.field(default=0, repr=False)

    def __post_init__(self) -> None:
        """Check what can be checked now: traced values are taken as they are."""
        if not callable(self.cost):
            raise ValueError(
                "expected cost to be a function (observation, action) -> float, got "
                f"{self.cost!r}"
            )
        _check_arguments(self.cost)
        words = f"a whole number from 1 to {MOST_WINDOW} or None (the whole episode)"
        _check("window", self.window, words, _is_window)
        _check("bias", self.bias, "a finite number", np.isfinite)
        _check(
            "background", self.background, "a number in [0, 1)", _between(0, 1, "[)")
        )
        words = f"a whole number from 0 to {MOST_DELAY}"
        _check("delay", self.delay, words, _is_delay)
        _check("leak", self.leak, "a number in (0, 1] or None", _between(0, 1, "(]"))
        object.__setattr__(self, "capacity", self._needed_capacity())

    def _needed_capacity(self) -> int:
        if self.leak is not None or self.window is None:
            return 1
        if isinstance(self.window, jax.core.Tracer):
            return max(self.capacity, 1)
        return max(self.capacity, int(np.max(np.asarray(self.window))))

    def replace(self, **changes: Any) -> "Observer":
        """A copy with some attributes changed; unknown names are an error."""
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise ValueError(
                    f"expected an attribute of Observer ({', '.join(known)}), "
                    f"got {name!r}"
                )
        return dataclasses.replace(self, **changes)

    def initial_memory(
        self, batch_shape: tuple[int, ...] = (), xp: ModuleType = jnp
    ) -> ObserverMemory:
        """The memory at the start of an episode, without any cost."""
        return ObserverMemory(
            recent=xp.zeros((*batch_shape, self.capacity), np.float32),
            steps=xp.zeros(batch_shape, np.int32),
            countdown=xp.full(batch_shape, _NOBODY_WAITING, np.int32),
        )


def watch(
    observer: Observer,
    memory: ObserverMemory,
    cost: Any,
    uniform: Any,
    xp: ModuleType = jnp,
) -> tuple[ObserverMemory, ObserverStep]:
    """The observer sees one step: it adds the cost and decides.

    Args:
        observer: whose window, bias and so on count.
        memory: what it remembers of this episode before the step.
        cost: c_t, `[...]`.
        uniform: draws from [0, 1), `[...]`; the observer stops where they fall below
            the stop probability.
        xp: `jax.numpy`, or `numpy` for environments outside JAX.

    Returns:
        The memory after the step, and the observer's judgement of it.
    """
    recent, window_cost = _accumulate(observer, memory, cost, xp)
    logistic = (
        stop_probability(window_cost, observer.bias)
        if xp is jnp
        else expit(window_cost - np.float32(observer.bias))
    )
    probability = logistic + observer.background * (1.0 - logistic)
    waiting = memory.countdown >= 0
    decided = ~waiting & (uniform < probability)
    countdown = xp.where(
        waiting,
        memory.countdown - 1,
        xp.where(decided, observer.delay, _NOBODY_WAITING),
    ).astype(np.int32)
    observed = ObserverStep(window_cost, probability, countdown == 0)
    return ObserverMemory(recent, memory.steps + 1, countdown), observed


def forget(memory: ObserverMemory, ended: Any, xp: ModuleType = jnp) -> ObserverMemory:
    """The memory, emptied where an episode ended.

    The costs may stay: those older than the episode are ignored.
    """
    steps = xp.where(ended, np.int32(0), memory.steps)
    countdown = xp.where(ended, np.int32(_NOBODY_WAITING), memory.countdown)
    return ObserverMemory(memory.recent, steps, countdown)


def _accumulate(
    observer: Observer, memory: ObserverMemory, cost: Any, xp: ModuleType
) -> tuple[Any, Any]:
    """Memory and accumulated cost C_t after one more cost."""
    newest = xp.asarray(cost, np.float32)[..., None]
    seen = xp.asarray(memory.steps)[..., None]
    if observer.leak is not None or observer.window is None:
        kept = 1.0 if observer.leak is None else observer.leak
        before = xp.where(seen == 0, np.float32(0), memory.recent)
        accumulated = (before * kept + newest).astype(np.float32)
        return accumulated, accumulated[..., 0]
    capacity = memory.recent.shape[-1]
    if capacity < observer.capacity:
        raise ValueError(
            f"expected a state that remembers {observer.capacity} steps, got one that "
            f"remembers {capacity}: reset the environment after enlarging the window"
        )
    places = xp.arange(capacity, dtype=np.int32)
    present = seen % capacity
    recent = xp.where(places == present, newest, memory.recent)
    age = xp.where(places <= present, present - places, present - places + capacity)
    inside = age < xp.minimum(observer.window, seen + 1)
    return recent, xp.sum(xp.where(inside, recent, np.float32(0)), axis=-1)


def _check_arguments(cost: Cost) -> None:
    try:
        signature = inspect.signature(cost)
    except ValueError:  # some functions written in C have none
        return
    try:
        signature.bind("observation", "action")
    except TypeError:
        raise ValueError(
            "expected cost to be a function of two arguments (observation, action), got "
            f"one of {signature}: use both, as lambda observation, action: …"
        ) from None


def _check(name: str, value: Any, expected: str, holds: Callable[[Any], Any]) -> None:
    if (value is None and "None" in expected) or isinstance(value, jax.core.Tracer):
        return
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf" or not np.all(holds(numbers)):
        raise ValueError(f"expected {name} to be {expected}, got {value!r}")


def _is_delay(numbers: np.ndarray) -> Any:
    return (numbers >= 0) & (numbers == np.floor(numbers)) & (numbers <= MOST_DELAY)


def _is_window(numbers: np.ndarray) -> Any:
    return (numbers >= 1) & (numbers == np.floor(numbers)) & (numbers <= MOST_WINDOW)


def _between(low: float, high: float, ends: str) -> Callable[[np.ndarray], Any]:
    low_open, high_open = ends[0] == "(", ends[1] == ")"

    def holds(numbers: np.ndarray) -> Any:
        above = numbers > low if low_open else numbers >= low
        below = numbers < high if high_open else numbers <= high
        return above & below

    return holds


def checked_cost(observer: Observer, observation: Any, action: Any) -> float:
    """The cost of one pair as a float; an error if it is not one finite number."""
    found = observer.cost(observation, action)
    value = np.asarray(found)
    if value.shape != () or value.dtype.kind not in "biuf":
        is_array = isinstance(found, np.ndarray | jax.Array)
        raise expected_one_number(
            f"{value.dtype}{list(value.shape)}" if is_array else repr(found)
        )
    if not math.isfinite(value):
        raise ValueError(
            f"expected cost(observation, action) to be finite, got {value.item()} for "
            f"action {action}"
        )
    return float(value)


def check_fits(observer: Observer, observation_shape: Any, action_space: Any) -> None:
    """Refuse an environment that does not match the columns of a fitted cost.

    Args:
        observer: whose cost may have a `check_spaces`.
        observation_shape: of one observation; None if it is no single array.
        action_space: Gymnasium's, gymnax's or ours.
    """
    check = getattr(observer.cost, "check_spaces", None)
    if check is None:
        return
    if observation_shape is None:
        raise ValueError(
            "expected observations that are one array, which this observer was fitted "
            "to, got several parts: flatten them (gymnasium.wrappers.FlattenObservation)"
        )
    check(observation_shape, action_space)


def expected_one_number(got: str) -> ValueError:
    """The error for a cost that is not one number."""
    return ValueError(
        "expected cost(observation, action) to return one number for one pair, got "
        f"{got}: return one scalar, as .sum() or [0] does"
    )


_TRACED = ("window", "bias", "background", "delay", "leak")


def _flatten(observer: Observer) -> tuple[tuple, tuple]:
    # A plain function is no pytree: it travels as static data.
    plain = jax.tree_util.all_leaves([observer.cost])
    numbers = tuple(getattr(observer, name) for name in _TRACED)
    children = (*numbers, None if plain else observer.cost)
    return children, (observer.capacity, observer.cost if plain else None)


def _unflatten(static: tuple, children: tuple) -> Observer:
    # Bypasses __init__: JAX rebuilds pytrees with tracers and placeholders inside.
    observer = object.__new__(Observer)
    capacity, plain_cost = static
    *numbers, pytree_cost = children
    for name, value in zip(_TRACED, numbers, strict=True):
        object.__setattr__(observer, name, value)
    cost = pytree_cost if plain_cost is None else plain_cost
    object.__setattr__(observer, "cost", cost)
    object.__setattr__(observer, "capacity", capacity)
    return observer


jax.tree_util.register_pytree_node(Observer, _flatten, _unflatten)
