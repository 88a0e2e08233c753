"""What actions and observations look like: `Discrete` and `Box`.

Only plain attributes are read from a space (`n`; `shape`, `dtype`, `low`, `high`), so
gymnax's spaces work too.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Discrete:
    """The whole numbers 0 … n − 1.

    Attributes:
        n: how many there are.
    """

    n: int

    def __post_init__(self) -> None:
        """Refuse an empty space."""
        if self.n < 1:
            raise ValueError(f"expected a space of at least 1 action, got {self.n}")

    @property
    def shape(self) -> tuple[int, ...]:
        """A scalar's shape."""
        return ()

    @property
    def dtype(self) -> Any:
        """The type of an element."""
        return jnp.dtype(jnp.int32)

    def sample(self, key: jax.Array) -> jax.Array:
        """A random element; all are equally likely."""
        return jax.random.randint(key, (), 0, self.n, self.dtype)

    def contains(self, element: Any) -> jax.Array:
        """Whether `element` is in the space, a boolean scalar."""
        element = jnp.asarray(element)
        return (element >= 0) & (element < self.n)


@dataclass(frozen=True, eq=False)
class Box:
    """Arrays of one shape, with bounds.

    Attributes:
        low: the least value, a number or an array of `shape`.
        high: the greatest value, likewise.
        shape: the shape of an element.
        dtype: the type of an element.
    """

    low: Any
    high: Any
    shape: tuple[int, ...]
    dtype: Any = jnp.float32

    def sample(self, key: jax.Array) -> jax.Array:
        """A random element, uniform between the bounds."""
        if self.dtype == jnp.bool_:
            return jax.random.bernoulli(key, shape=self.shape)
        uniform = jax.random.uniform(key, self.shape, minval=self.low, maxval=self.high)
        return uniform.astype(self.dtype)

    def contains(self, element: Any) -> jax.Array:
        """Whether `element` is within the bounds, a boolean scalar."""
        element = jnp.asarray(element)
        if element.shape != self.shape:
            return jnp.array(False)
        return jnp.all((element >= self.low) & (element <= self.high))
