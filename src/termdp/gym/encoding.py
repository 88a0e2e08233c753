"""Gymnasium's observations and actions as arrays for networks.

An `Encoding` is plain data, made from the spaces. It is saved with an agent, so that the
agent takes observations as the environment gives them.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import gymnasium
import msgspec
import numpy as np
from gymnasium import spaces

from termdp.reading import Name, Size

Shape = Annotated[tuple[Size, ...], msgspec.Meta(max_length=8)]
LARGEST_IMAGE = 42
SCALINGS = ("none", "running", "pixels")
_ACTION_TYPES = ("float32", "float64", "float16")
_UNBOUNDED = 1e30  # a bound beyond this means no bound


@dataclass(frozen=True)
class Part:
    """One space inside an observation.

    Attributes:
        path: keys that lead to it through `Dict` spaces; empty without `Dict` spaces.
        shape: of one element.
        choices: size of a `Discrete` space, which becomes one-hot; 0 for numbers.
        start: the smallest choice.
    """

    path: tuple[Name, ...]
    shape: Shape
    choices: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    start: int = 0

    @property
    def size(self) -> int:
        """How many numbers it becomes."""
        return self.choices or math.prod(self.shape)


@dataclass(frozen=True)
class Encoding:
    """How observations become arrays, and how a policy's choices become actions.

    Attributes:
        parts: of an observation, in order.
        shape: of the array.
        scaling: of its numbers: `none`, `running` (running mean and deviation,
            `termdp.runs.observation_scale`) or `pixels` (divided by 255).
        action_start: the smallest discrete action.
        action_dtype: of continuous actions.
    """

    parts: Annotated[tuple[Part, ...], msgspec.Meta(min_length=1, max_length=1000)]
    shape: Shape
    scaling: str = "none"
    action_start: int = 0
    action_dtype: str = "float32"

    def check(self) -> None:
        """Refuse impossible encodings; for those read from disk."""
        sizes = sum(part.size for part in self.parts)
        known = self.scaling in SCALINGS and self.action_dtype in _ACTION_TYPES
        if not known or sizes != math.prod(self.shape):
            raise ValueError(
                f"expected an encoding with {math.prod(self.shape)} numbers, a scaling "
                f"of {', '.join(SCALINGS)} and actions of {', '.join(_ACTION_TYPES)}, "
                f"got {sizes}, {self.scaling!r:.40} and {self.action_dtype!r:.40}"
            )

    @property
    def dtype(self) -> np.dtype:
        """Type of the encoded numbers."""
        return np.dtype(np.uint8 if self.scaling == "pixels" else np.float32)

    def is_single(self, observation: Any) -> bool:
        """Whether this is one observation, and not a batch of them."""
        part = self.parts[0]
        return np.ndim(_found(observation, part)) == len(part.shape)

    def encode(self, observations: Any, is_single: bool = False) -> np.ndarray:
        """One observation or a batch, as the environment gives it, as `[B, *shape]`."""
        values = []
        for part in self.parts:
            found = np.asarray(_found(observations, part))
            found = found[None] if is_single else found
            if found.shape[1:] != part.shape:
                raise ValueError(
                    f"expected an observation{_where(part)} of shape {part.shape}, as in "
                    f"training, or a batch of them, got {found.shape[is_single:]}"
                )
            values.append(found)
        if len(self.parts) == 1 and not self.parts[0].choices:
            numbers = values[0].astype(self.dtype, copy=False)
            return numbers.reshape(-1, *self.shape)
        pairs = zip(values, self.parts, strict=True)
        return np.concatenate([_columns(*pair) for pair in pairs], axis=1)


def _where(part: Part) -> str:
    return f" {'.'.join(part.path)!r}" if part.path else ""


def _found(observation: Any, part: Part) -> Any:
    for name in part.path:
        if not isinstance(observation, Mapping) or name not in observation:
            raise ValueError(
                f"expected an observation with{_where(part)}, as in training"
            )
        observation = observation[name]
    return observation


def _columns(values: np.ndarray, part: Part) -> np.ndarray:
    if not part.choices:
        return values.astype(np.float32).reshape(-1, part.size)
    places = np.arange(part.start, part.start + part.choices)
    return (values[:, None] == places).astype(np.float32)


def encoding_of(
    observation_space: spaces.Space, action_space: spaces.Space, any_size: bool = False
) -> Encoding:
    """The encoding of an environment's spaces; an error for unsupported ones.

    Args:
        observation_space: of one copy.
        action_space: of one copy.
        any_size: accept images of any size; large ones need much memory.
    """
    check_actions(action_space)
    start = int(getattr(action_space, "start", 0))
    space = observation_space
    dtype = "float32" if action_space.dtype is None else action_space.dtype.name
    dtype = dtype if dtype in _ACTION_TYPES else "float32"
    if isinstance(space, spaces.Box) and _is_picture(space):
        return dataclasses.replace(
            _of_picture(space, start, any_size), action_dtype=dtype
        )
    parts = tuple(_parts(space, ()))
    if not parts:
        raise ValueError(f"expected observations that are not empty, got {space}")
    size = sum(part.size for part in parts)
    binary = all(part.choices for part in parts) or isinstance(
        space, spaces.MultiBinary
    )
    return Encoding(parts, (size,), "none" if binary else "running", start, dtype)


def _is_picture(space: spaces.Box) -> bool:
    if len(space.shape) == 3:
        return True
    return len(space.shape) == 2 and space.dtype == np.uint8


def _of_picture(space: spaces.Box, start: int, any_size: bool) -> Encoding:
    shape = tuple(space.shape)
    height, width = shape[:2]
    whole = (*shape, 1)[:3]
    if max(height, width) > LARGEST_IMAGE and not any_size:
        raise ValueError(
            f"expected pictures [height, width, channels] of at most {LARGEST_IMAGE}×"
            f"{LARGEST_IMAGE}, got {shape}: wrap the environment with "
            f"gymnasium.wrappers.ResizeObservation(env, ({LARGEST_IMAGE}, "
            f"{LARGEST_IMAGE})), or ask for network=grid, which takes any size"
        )
    if min(height, width) < 3:
        raise ValueError(
            "expected pictures [height, width, channels] of at least 3×3, got "
            f"{shape}: move the channels to the end, or flatten it with "
            "gymnasium.wrappers.FlattenObservation"
        )
    scaling = "pixels" if space.dtype == np.uint8 else "none"
    return Encoding((Part((), shape),), whole, scaling, start)


def _parts(space: spaces.Space, path: tuple[str, ...]) -> list[Part]:
    if isinstance(space, spaces.Dict):
        return [
            part
            for name, inside in space.spaces.items()
            for part in _parts(inside, (*path, str(name)))
        ]
    if isinstance(space, spaces.Discrete):
        return [Part(path, (), int(space.n), int(space.start))]
    if isinstance(space, spaces.Box | spaces.MultiBinary) and 0 not in space.shape:
        return [Part(path, tuple(space.shape))]
    where = f" at {'.'.join(path)!r}" if path else ""
    raise ValueError(
        "expected observations that are Box, Discrete, MultiBinary or a Dict of these, "
        f"got {space}{where}: gymnasium.wrappers.FlattenObservation or "
        "TransformObservation can make a Box of it"
    )


def check_actions(space: spaces.Space) -> None:
    """Refuse actions that our policies cannot give."""
    if isinstance(space, spaces.Discrete):
        return
    if not isinstance(space, spaces.Box) or len(space.shape) != 1:
        raise ValueError(
            f"expected actions that are Discrete or a Box of one dimension, got {space}:"
            " gymnasium.wrappers.TransformAction can make one of it"
        )
    bounds = np.concatenate([space.low, space.high]).astype(float)
    if not (np.abs(bounds) < _UNBOUNDED).all():
        raise ValueError(
            f"expected actions with finite bounds, got {space}: add bounds with "
            "gymnasium.wrappers.TransformAction(env, lambda action: 10 * action, "
            f"gymnasium.spaces.Box(-1, 1, {space.shape}))"
        )


def spaces_of(env: Any) -> tuple[spaces.Space, spaces.Space]:
    """The spaces of one copy, of an environment or a vector environment."""
    if isinstance(env, gymnasium.vector.VectorEnv):
        return env.single_observation_space, env.single_action_space
    return env.observation_space, env.action_space
