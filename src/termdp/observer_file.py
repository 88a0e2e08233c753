"""Fitted observers on disk: one safetensors file with a JSON manifest in its header.

Two kinds: passengers of Backseat Driver (`termdp studies fit`), and observers fitted to
the columns of a log (`termdp fit`) or of another game that people watched, whose manifest
has a field `kind`.
"""

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from termdp import array_files
from termdp.arrays import bytes_of, named_arrays, restore
from termdp.boards import num_board_columns
from termdp.cost_network import CostNetwork
from termdp.envs.backseat_road import Road
from termdp.envs.passenger_cost import ACTIONS, PERCEPT_NAMES, SIZE, PassengerCost
from termdp.log_costs import Columns, LinearCost, NetworkCost
from termdp.observer import MOST_DELAY, MOST_WINDOW, Observer
from termdp.reading import Count, Name, Size, from_plain

FORMAT = "termdp observer"
VERSION = 1
MANIFEST = "termdp_observer"
SHIPPED = "simulated_passengers.safetensors"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The manifest of an observer: all possible fields, with their ranges.

    Attributes:
        window: steps that it remembers.
        reaction_delay: steps between a decision and the key press, removed by the fit.
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


class LogManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The manifest of an observer fitted to a log (`termdp fit`).

    Attributes:
        kind: whether costs are linear in features, or a mean of networks.
        observations: names of the columns, as in `Columns`, and so on.
        hidden: units of the networks; 0 for linear costs.
        members: networks; 0 for linear costs.
        window: steps that it remembers; none with a leak.
        leak: share of the accumulated cost that is kept from step to step.
        delay: steps between a decision and the stop.
        sessions: of the log, and so on.
        board: shape of the boards that the columns are seen on, if they are.
        study: of people's stops (`termdp studies fit`), and so on as in `Manifest`.
    """

    format: str
    version: int
    kind: Literal["linear", "network"]
    observations: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100_000)]
    actions: Annotated[list[Name], msgspec.Meta(max_length=10_000)]
    num_actions: Annotated[int, msgspec.Meta(ge=0, le=1000)]
    usual: Annotated[int, msgspec.Meta(ge=0, lt=1000)]
    bins: Annotated[
        list[Annotated[list[float], msgspec.Meta(max_length=100)]],
        msgspec.Meta(max_length=100_000),
    ]
    interactions: Annotated[
        list[Annotated[list[Count], msgspec.Meta(min_length=2, max_length=2)]],
        msgspec.Meta(max_length=1000),
    ]
    bias: float
    window: Annotated[int, msgspec.Meta(ge=1, le=MOST_WINDOW)] | None = None
    leak: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    delay: Annotated[int, msgspec.Meta(ge=0, le=MOST_DELAY)] = 0
    hidden: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0
    members: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    sessions: Count = 0
    steps: Count = 0
    stops: Count = 0
    board: Annotated[list[Size], msgspec.Meta(max_length=3)] = []
    study: Name = ""
    supervisor: Name = ""
    reaction_delay: Count = 0
    reviews: Count = 0

    def columns(self) -> Columns:
        """The columns of observations and actions; a `ValueError` if they are invalid."""
        known = len(self.observations) + len(self.actions)
        sound = (
            (not self.bins or len(self.bins) == len(self.observations))
            and all(list(e) == sorted(set(e)) for e in self.bins)
            and all(math.isfinite(edge) for edges in self.bins for edge in edges)
            and all(place < known for pair in self.interactions for place in pair)
            and (not self.num_actions or len(self.actions) == 1)
            and self.num_actions != 1
            and self.usual < max(self.num_actions, 1)
            and (not self.board or self._fits_board())
        )
        if not sound:
            raise ValueError("its columns contradict each other")
        return Columns(
            observations=tuple(self.observations),
            actions=tuple(self.actions),
            num_actions=self.num_actions,
            usual=self.usual,
            bins=tuple(map(tuple, self.bins)),
            interactions=tuple((one, other) for one, other in self.interactions),
            board=tuple(self.board),
        )

    def _fits_board(self) -> bool:
        return len(self.board) == 3 and len(self.observations) == num_board_columns(
            self.board
        )


def save_observer(path: Path, observer: Observer, facts: dict[str, Any]) -> None:
    """Write a fitted observer; a failure leaves no file.

    Args:
        path: the file, usually `*.safetensors`.
        observer: one whose cost was fitted: a `PassengerCost` (`termdp studies fit`), a
            `LinearCost` or a `NetworkCost` (`termdp fit`, studies of other games).
        facts: other fields of the manifest, about its origin.
    """
    cost = observer.cost
    if isinstance(cost, LinearCost | NetworkCost):
        arrays, log_manifest = _log_parts(observer, cost)
        from_plain(log_manifest | facts, LogManifest)
        array_files.write_arrays(path, arrays, MANIFEST, log_manifest | facts)
        return
    if not isinstance(cost, PassengerCost) or observer.window is None:
        raise ValueError(
            "expected an observer with fitted costs (what `termdp fit` and `termdp "
            f"studies fit` make), got {observer!r}"
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
    """The manifest of an observer's file, without the weights."""
    path = Path(path)
    with _told_of(path):
        found: dict[str, Any] = array_files.read_manifest(path, MANIFEST)
        _check_kind(found)
        return found


def load_observer(path: str | Path) -> Observer:
    """A fitted observer from its file.

    Examples:
        >>> import termdp
        >>> from termdp.observer_file import shipped_path
        >>> with shipped_path() as path:
        ...     observer = termdp.load_observer(path)
        >>> env, params = termdp.make("backseat", observer=observer)
    """
    path = Path(path)
    with _told_of(path):
        content, arrays = array_files.read_with_manifest(path, MANIFEST, _room)
        manifest = _checked(content)
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("some of its numbers are not finite")
        if isinstance(manifest, LogManifest):
            return _rebuilt_of_log(manifest, arrays)
        return _rebuilt(manifest, arrays)


@cache
def shipped_observer() -> Observer:
    """The observer of `backseat_passenger`: fitted to five SIMULATED passengers."""
    with shipped_path() as path:
        return load_observer(path)


def shipped_path() -> Any:
    """A context manager that gives the path of the file in the package."""
    return as_file(files("termdp.envs") / "data" / SHIPPED)


@contextlib.contextmanager
def _told_of(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"expected an observer of `termdp fit` or `termdp studies fit`, got {path}: "
            f"{error}"
        ) from error


def _room(content: Any) -> int:
    """Bytes of the weights that a manifest describes."""
    manifest = _checked(content)
    if isinstance(manifest, LogManifest):
        return bytes_of(_log_template(manifest)[1])
    return bytes_of(_template(manifest)[1])


def _checked(content: Any) -> Manifest | LogManifest:
    _check_kind(content)
    if "kind" in content:
        found: LogManifest = from_plain(content, LogManifest)
        if not math.isfinite(found.bias):
            raise ValueError("some of its numbers are not finite")
        if (found.window is None) == (found.leak is None):
            raise ValueError("it needs a window or a leak, and has none or both")
        found.columns()
        return found
    manifest: Manifest = from_plain(content, Manifest)
    if manifest.percepts != list(PERCEPT_NAMES):
        raise ValueError("its percepts are not those of this version of termdp")
    if not all(map(math.isfinite, (manifest.scale, manifest.bias))):
        raise ValueError("some of its numbers are not finite")
    return manifest


def _check_kind(content: Any) -> None:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError("it is a safetensors file of another kind")
    if content.get("version") != VERSION:
        raise ValueError(
            f"expected format version {VERSION}, got version "
            f"{str(content.get('version'))[:20]}: use the termdp that wrote it"
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
    scale = jnp.float32(manifest.scale)
    cost = PassengerCost(weights, scale, network, manifest.road)
    return Observer(cost, window=manifest.window, bias=manifest.bias)


def _log_parts(
    observer: Observer, cost: LinearCost | NetworkCost
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and manifest of an observer fitted to a log."""
    columns = cost.columns
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": "linear" if isinstance(cost, LinearCost) else "network",
        "observations": list(columns.observations),
        "actions": list(columns.actions),
        "num_actions": columns.num_actions,
        "usual": columns.usual,
        "bins": [list(edges) for edges in columns.bins],
        "interactions": [list(pair) for pair in columns.interactions],
        "bias": float(observer.bias),
        "delay": int(observer.delay),
    }
    if columns.board:
        manifest["board"] = list(columns.board)
    if observer.leak is None:
        manifest["window"] = None if observer.window is None else int(observer.window)
    else:
        manifest["leak"] = float(observer.leak)
    if isinstance(cost, NetworkCost):
        manifest["hidden"] = cost.network.hidden
        manifest["members"] = len(jax.tree.leaves(cost.weights)[0])
    arrays = {
        name: np.asarray(array, np.float32)
        for name, array in named_arrays(_numbers_of(cost)).items()
    }
    return arrays, manifest


def _numbers_of(cost: LinearCost | NetworkCost) -> dict[str, Any]:
    """The arrays of a cost by name, for the file."""
    return {
        field.name: getattr(cost, field.name)
        for field in dataclasses.fields(cost)
        if field.metadata.get("pytree_node", True)
    }


def _log_template(manifest: LogManifest) -> tuple[CostNetwork | None, Any]:
    """The network if there is one, and the shapes of the arrays."""
    columns = manifest.columns()

    def vector(size: int) -> Any:
        return jax.ShapeDtypeStruct((size,), jnp.float32)

    number = jax.ShapeDtypeStruct((), jnp.float32)
    if manifest.kind == "linear":
        size = columns.num_features
        return None, {"weights": vector(size), "centre": vector(size), "base": number}
    if manifest.hidden < 1 or manifest.members < 1 or manifest.bins:
        raise ValueError("its networks contradict each other")
    network = CostNetwork(columns.action_spec, kind="vector", hidden=manifest.hidden)
    size = len(columns.observations)
    if not columns.num_actions:
        size += len(columns.actions)
    observation = jnp.zeros(len(columns.observations))
    action = jnp.int32(0) if columns.num_actions else jnp.zeros(len(columns.actions))

    def weights() -> Any:
        keys = jax.random.split(jax.random.key(0), manifest.members)
        return jax.vmap(lambda key: network.init(key, observation, action)["params"])(
            keys
        )

    shapes = {
        "weights": jax.eval_shape(weights),
        "scale": number,
        "centre": vector(size),
        "spread": vector(size),
    }
    return network, shapes


def _rebuilt_of_log(manifest: LogManifest, arrays: dict[str, np.ndarray]) -> Observer:
    network, template = _log_template(manifest)
    numbers = restore(template, arrays)
    columns = manifest.columns()
    cost: LinearCost | NetworkCost
    if network is None:
        # NumPy, so that Gymnasium environments need no device for a few products.
        cost = LinearCost(**jax.tree.map(np.asarray, numbers), columns=columns)
    else:
        if not np.all(np.asarray(numbers["spread"]) > 0):
            raise ValueError("the standard deviations of its columns are not positive")
        cost = NetworkCost(**numbers, network=network, columns=columns)
    return Observer(
        cost,
        window=manifest.window,
        bias=manifest.bias,
        leak=manifest.leak,
        delay=manifest.delay,
    )
