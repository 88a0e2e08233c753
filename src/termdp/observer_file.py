"""Fitted observers on disk: one safetensors file with a JSON manifest in its header.

Nothing in the file can execute code when read.
"""

import dataclasses
import json
import math
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from termdp.arrays import named_arrays, restore
from termdp.cost_network import CostNetwork
from termdp.envs.backseat_road import Road
from termdp.envs.passenger_cost import ACTIONS, PERCEPT_NAMES, SIZE, PassengerCost
from termdp.files import draft_of
from termdp.observer import Observer

FORMAT = "termdp observer"
VERSION = 1
MANIFEST = "termdp_observer"
SHIPPED = "simulated_passengers.safetensors"


def save_observer(path: Path, observer: Observer, facts: dict[str, Any]) -> None:
    """Write a fitted passenger; the file appears whole or not at all.

    Args:
        path: the file, usually `*.safetensors`.
        observer: one whose cost is a `PassengerCost`.
        facts: further plain data for the manifest: where it comes from.
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
    with draft_of(path) as draft:
        save_file(weights, draft, {MANIFEST: json.dumps(manifest, sort_keys=True)})


def read_manifest(path: str | Path) -> dict[str, Any]:
    """What a file says of its observer, without its weights."""
    return _read(Path(path))[0]


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
    manifest, arrays = _read(path)
    try:
        return _rebuilt(manifest, arrays)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"expected an observer of `termdp studies fit`, but {path} is damaged "
            f"({error})"
        ) from error


@cache
def shipped_observer() -> Observer:
    """The observer of `backseat_passenger`: fitted to five SIMULATED passengers."""
    with shipped_path() as path:
        return load_observer(path)


def shipped_path() -> Any:
    """A context with the path of the file that comes with the package."""
    return as_file(files("termdp.envs") / "data" / SHIPPED)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with safe_open(path, framework="np") as file:
            content = (file.metadata() or {}).get(MANIFEST)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        missing = not path.exists()
        reason = "no such file" if missing else "it is no safetensors file"
        raise ValueError(
            f"expected an observer's file, got {path}: {reason}"
        ) from error
    try:
        manifest = json.loads(content or "{}")
    except json.JSONDecodeError:
        manifest = {}
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(
            f"expected an observer of `termdp studies fit`, got {path}: a safetensors "
            "file of another kind"
        )
    if manifest.get("version") != VERSION:
        raise ValueError(
            f"expected an observer of format version {VERSION}, got version "
            f"{manifest.get('version')!r} in {path}: use the termdp that wrote it"
        )
    return manifest, arrays


def _rebuilt(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Observer:
    if manifest["percepts"] != list(PERCEPT_NAMES):
        raise ValueError("it notices other things than this version of termdp knows")
    network = CostNetwork(ACTIONS, kind="vector", hidden=manifest["hidden"])
    keys = jax.random.split(jax.random.key(0), manifest["members"])
    nothing = jnp.zeros(SIZE), jnp.int32(0)
    template = jax.eval_shape(
        jax.vmap(lambda key: network.init(key, *nothing)["params"]), keys
    )
    weights = restore(template, arrays)
    numbers = [manifest["scale"], manifest["bias"]]
    finite = all(np.isfinite(array).all() for array in arrays.values())
    if not finite or not all(math.isfinite(number) for number in numbers):
        raise ValueError("some of its numbers are not finite")
    cost = PassengerCost(
        weights, jnp.float32(manifest["scale"]), network, Road(**manifest["road"])
    )
    return Observer(cost, window=manifest["window"], bias=manifest["bias"])
