"""Fitted observers on disk: one safetensors file with a JSON manifest in its header."""

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from termdp import array_files
from termdp.arrays import bytes_of, named_arrays, restore
from termdp.cost_network import CostNetwork
from termdp.envs.backseat_road import Road
from termdp.envs.passenger_cost import ACTIONS, PERCEPT_NAMES, SIZE, PassengerCost
from termdp.observer import MOST_WINDOW, Observer
from termdp.reading import Count, Name, Size, from_plain

FORMAT = "termdp observer"
VERSION = 1
MANIFEST = "termdp_observer"
SHIPPED = "simulated_passengers.safetensors"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file says of its observer: all fields there may be, with their ranges.

    Attributes:
        window: steps that it remembers.
        reaction_delay: steps between a decision and the key, taken out by the fit.
        rides: reviews, in files of older versions.
    """

    format: str
    version: int
    game: str
    road: Road
    percepts: Annotated[list[Name], msgspec.Meta(max_length=100)]
    hidden: Size
    members: Annotated[int, msgspec.Meta(ge=1, le=1000)]
    scale: float
    window: Annotated[int, msgspec.Meta(ge=1, le=MOST_WINDOW)]
    bias: float
    study: Name = ""
    supervisor: Name = ""
    reaction_delay: Count = 0
    stops: Count = 0
    reviews: Count = 0
    rides: Count = 0


def save_observer(path: Path, observer: Observer, facts: dict[str, Any]) -> None:
    """Write a fitted passenger; the file appears whole or not at all.

    Args:
        path: the file, usually `*.safetensors`.
        observer: one whose cost is a `PassengerCost`.
        facts: further fields of the manifest: where it comes from.
    """
    cost = observer.cost
    if not isinstance(cost, PassengerCost) or observer.window is None:
        raise ValueError(
            "expected an observer with a window whose cost is a PassengerCost (what "
            f"`termdp studies fit` makes), got {observer!r}"
        )
    weights = named_arrays(cost.weights)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "game": "BackseatDriver",
        "road": dataclasses.asdict(cost.road),
        "percepts": list(PERCEPT_NAMES),
        "hidden": cost.network.hidden,
        "members": len(next(iter(weights.values()))),
        "scale": float(cost.scale),
        "window": int(observer.window),
        "bias": float(observer.bias),
        **facts,
    }
    from_plain(manifest, Manifest)
    array_files.write_arrays(path, weights, MANIFEST, manifest)


def read_manifest(path: str | Path) -> dict[str, Any]:
    """What a file says of its observer, without its weights."""
    path = Path(path)
    with _told_of(path):
        found: dict[str, Any] = array_files.read_manifest(path, MANIFEST)
        _check_kind(found)
        return found


def load_observer(path: str | Path) -> Observer:
    """A fitted observer from its file.

    Example:
        >>> import termdp
        >>> from termdp.observer_file import shipped_path
        >>> with shipped_path() as path:
        ...     observer = termdp.load_observer(path)
        >>> env, params = termdp.make("backseat", observer=observer)
    """
    path = Path(path)
    with _told_of(path):
        content, arrays = array_files.read_with_manifest(path, MANIFEST, _room)
        return _rebuilt(_checked(content), arrays)


@cache
def shipped_observer() -> Observer:
    """The observer of `backseat_passenger`: fitted to five SIMULATED passengers."""
    with shipped_path() as path:
        return load_observer(path)


def shipped_path() -> Any:
    """A context with the path of the file that comes with the package."""
    return as_file(files("termdp.envs") / "data" / SHIPPED)


@contextlib.contextmanager
def _told_of(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"expected an observer of `termdp studies fit`, got {path}: {error}"
        ) from error


def _room(content: Any) -> int:
    """Bytes of the weights that a manifest speaks of."""
    return bytes_of(_template(_checked(content))[1])


def _checked(content: Any) -> Manifest:
    _check_kind(content)
    manifest: Manifest = from_plain(content, Manifest)
    if manifest.percepts != list(PERCEPT_NAMES):
        raise ValueError("it notices other things than this version of termdp knows")
    if not all(map(math.isfinite, (manifest.scale, manifest.bias))):
        raise ValueError("some of its numbers are not finite")
    return manifest


def _check_kind(content: Any) -> None:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError("it is a safetensors file of another kind")
    if content.get("version") != VERSION:
        raise ValueError(
            f"expected format version {VERSION}, got version "
            f"{content.get('version')!r}: use the termdp that wrote it"
        )


def _template(manifest: Manifest) -> tuple[CostNetwork, Any]:
    """The network, and the shapes of its weights."""
    network = CostNetwork(ACTIONS, kind="vector", hidden=manifest.hidden)
    nothing = jnp.zeros(SIZE), jnp.int32(0)

    def weights() -> Any:
        keys = jax.random.split(jax.random.key(0), manifest.members)
        return jax.vmap(lambda key: network.init(key, *nothing)["params"])(keys)

    return network, jax.eval_shape(weights)


def _rebuilt(manifest: Manifest, arrays: dict[str, np.ndarray]) -> Observer:
    network, template = _template(manifest)
    weights = restore(template, arrays)
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("some of its numbers are not finite")
    scale = jnp.float32(manifest.scale)
    cost = PassengerCost(weights, scale, network, manifest.road)
    return Observer(cost, window=manifest.window, bias=manifest.bias)
