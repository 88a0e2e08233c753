"""The recommender's shop: a fixed list of items and what they are like."""

from typing import Any

import numpy as np
from flax import struct


@struct.dataclass
class Items:
    """Constants of the shop, one row per item.

    Attributes:
        value: `[items]`, what the shop earns when the item is taken.
        appeal: `[items]`, added to the logit of taking it, whatever the user's taste.
        irritation: `[items]`, how much it annoys to be shown it once.
        tastes: `[items, taste_size]`, the taste it suits; its length says how much.
        categories: `[items, categories]`, one-hot.
    """

    value: Any
    appeal: Any
    irritation: Any
    tastes: Any
    categories: Any


MOST = 4096  # items, categories or dimensions of a taste


def make_items(
    num_items: int = 16, num_categories: int = 4, taste_size: int = 2, seed: int = 0
) -> Items:
    """A shop in which item 0 is the top seller.

    Value, appeal and irritation fall from the first item to the last, with some noise:
    what earns most also annoys most. Tastes point in any direction. The better an item
    sells, the less it suits any particular taste.
    """
    for name, number, least in (
        ("num_items", num_items, 2),
        ("num_categories", num_categories, 1),
        ("taste_size", taste_size, 1),
    ):
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if not is_whole or not least <= number <= MOST:
            raise ValueError(
                f"expected {name} to be a whole number from {least} to {MOST}, got "
                f"{number!r}"
            )
    if not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ValueError(
            f"expected seed to be a whole number of at least 0, got {seed!r}"
        )
    random = np.random.default_rng(seed)
    rank = np.linspace(1.0, 0.0, num_items)
    noise = random.uniform(-0.5, 0.5, (3, num_items))
    noise[:, 0] = 0.5
    tastes = random.normal(size=(num_items, taste_size))
    tastes /= np.linalg.norm(tastes, axis=1, keepdims=True)
    tastes *= 1.0 - 0.6 * rank[:, None]
    category = np.arange(num_items) % num_categories
    items = Items(
        value=0.4 + 0.5 * rank + 0.2 * noise[0],
        appeal=-0.6 + 1.2 * rank + 0.4 * noise[1],
        irritation=0.02 + 0.05 * rank**2 + 0.02 * noise[2],
        tastes=tastes,
        categories=category[:, None] == np.arange(num_categories),
    )
    return Items(**{name: np.asarray(x, np.float32) for name, x in vars(items).items()})
