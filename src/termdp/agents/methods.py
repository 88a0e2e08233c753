"""Every method of the paper, and of ours, as data.

A method is a handful of numbers. They are traced, so that all feed-forward methods of
one environment run in one compiled, vmapped program; only a policy with memory needs a
program of its own.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from termdp.agents.matched_discounts import MATCHED_DISCOUNTS
from termdp.costs.optimism import KINDS, UNCERTAINTIES, Optimism, make_optimism

STOP_HANDLINGS = ("expected", "cut", "ignored")


def _one_of(name: str, value: Any, known: tuple) -> None:
    if value not in known:
        words = ", ".join(str(k) for k in known if k is not None)
        raise ValueError(f"expected {name} to be one of {words}, got {value!r}")


@dataclasses.dataclass(frozen=True)
class Method:
    """What a method does, as a person would say it.

    Attributes:
        description: one line for `termdp methods`.
        learns_costs: fits cost networks and shows the accumulated cost to the policy.
        knows_costs: uses the true accumulated cost and the true stop probability.
        dynamic_discount: γ_t = 1 − ρ(z_t) instead of the constant.
        discount: the constant discount of the others; None for the constant that
            TermPG's discount averages to on the environment (`for_environment`).
        horizon: constant that the dynamic discount is multiplied by; 1 as in the paper.
            Where stops are rare the dynamic discount alone looks very far ahead, which
            makes advantages noisy.
        stop_handling: `expected`: a stopped step bootstraps from the state that would
            have followed; `cut`: a stop is an end; `ignored`: no ending of any kind is
            an end for the values. None takes `expected` with the dynamic discount and
            `cut` without.
        stop_penalty: p, taken from the reward on a stop.
        cost_penalty: α in r − α·C_optimistic.
        bonus: α in r + α·U(C).
        optimism: how members become one cost: `min` (the paper), `std`, `mean` or
            `logit`; how they compare is in docs/training.md.
        std_factor: α in mean − α·std, for the optimism `std`.
        uncertainty: U as `range` (max − min) or `std` over the members.
        window_factor: the learner's window over the observer's.
        recurrent: a policy with memory.
    """

    description: str = ""
    learns_costs: bool = False
    knows_costs: bool = False
    dynamic_discount: bool = False
    discount: float | None = 0.99
    horizon: float = 1.0
    stop_handling: str | None = None
    stop_penalty: float = 0.0
    cost_penalty: float = 0.0
    bonus: float = 0.0
    optimism: str = "logit"
    std_factor: float = 1.0
    uncertainty: str = "range"
    window_factor: float = 1.0
    recurrent: bool = False

    def __post_init__(self) -> None:
        """Check the words and ranges."""
        _one_of("stop_handling", self.stop_handling, (None, *STOP_HANDLINGS))
        _one_of("optimism", self.optimism, KINDS)
        _one_of("uncertainty", self.uncertainty, UNCERTAINTIES)
        if self.dynamic_discount and not (self.learns_costs or self.knows_costs):
            raise ValueError(
                "expected dynamic_discount only with learns_costs or knows_costs, got "
                "neither: there are no costs to make it of"
            )
        if self.discount is not None and not 0.0 <= self.discount <= 1.0:
            raise ValueError(
                f"expected discount to be a number in [0, 1], got {self.discount}"
            )
        if not 0.0 <= self.horizon <= 1.0:
            raise ValueError(
                f"expected horizon to be a number in [0, 1], got {self.horizon}"
            )
        if not (np.isfinite(self.window_factor) and self.window_factor > 0):
            raise ValueError(
                f"expected window_factor to be a number > 0, got {self.window_factor}"
            )
        for name in ("stop_penalty", "cost_penalty", "bonus", "std_factor"):
            if not np.isfinite(getattr(self, name)):
                raise ValueError(
                    f"expected {name} to be a finite number, got {getattr(self, name)}"
                )

    @property
    def handles_stops(self) -> str:
        """`stop_handling` with its default filled in."""
        default = "expected" if self.dynamic_discount else "cut"
        return self.stop_handling or default

    def for_environment(self, env_id: str) -> "Method":
        """The method with its discount filled in from the table of matched ones."""
        if self.discount is not None:
            return self
        if env_id not in MATCHED_DISCOUNTS:
            raise ValueError(
                "expected an environment with a matched discount "
                f"({', '.join(MATCHED_DISCOUNTS)}), got {env_id!r}: pass --discount"
            )
        return dataclasses.replace(self, discount=MATCHED_DISCOUNTS[env_id])

    def learner_window(self, window: int) -> int:
        """max(1, floor(factor · w))."""
        return max(1, int(np.floor(self.window_factor * window)))

    def switches(self, window: int) -> "MethodSwitches":
        """The method as numbers for the compiled program.

        Args:
            window: how many steps the observer remembers.
        """
        if self.discount is None:
            raise ValueError(
                "expected a discount, got a method that takes it from the environment: "
                "call for_environment first, or give the number"
            )
        optimism = make_optimism(self.optimism, self.std_factor, self.uncertainty)
        return MethodSwitches(
            sees_costs=jnp.float32(self.learns_costs or self.knows_costs),
            knows_costs=jnp.float32(self.knows_costs),
            dynamic_discount=jnp.float32(self.dynamic_discount),
            discount=jnp.float32(self.discount),
            horizon=jnp.float32(self.horizon),
            stop_bootstraps=jnp.float32(self.handles_stops != "cut"),
            game_over_bootstraps=jnp.float32(self.handles_stops == "ignored"),
            stop_penalty=jnp.float32(self.stop_penalty),
            cost_penalty=jnp.float32(self.cost_penalty),
            bonus=jnp.float32(self.bonus),
            optimism=jax.tree.map(jnp.float32, optimism),
            window=jnp.int32(self.learner_window(window)),
        )


@struct.dataclass
class MethodSwitches:
    """A `Method` for the compiled program: numbers only, all traced."""

    sees_costs: jax.Array
    knows_costs: jax.Array
    dynamic_discount: jax.Array
    discount: jax.Array
    horizon: jax.Array
    stop_bootstraps: jax.Array
    game_over_bootstraps: jax.Array
    stop_penalty: jax.Array
    cost_penalty: jax.Array
    bonus: jax.Array
    optimism: Optimism
    window: jax.Array


_PG = Method("PPO, γ = 0.99; a stop is simply an end")
_TERMPG = Method(
    "TermPG: learned optimistic costs in the state, dynamic discount",
    learns_costs=True,
    dynamic_discount=True,
)


def _vary(base: Method, description: str, **changes: Any) -> Method:
    return dataclasses.replace(base, description=description, **changes)


METHODS: dict[str, Method] = {
    "pg": _PG,
    "pg_naive": _vary(
        _PG, "PPO as published: no ending is an end", stop_handling="ignored"
    ),
    "pg_recurrent": _vary(_PG, "PPO with an LSTM policy", recurrent=True),
    "pg_rs": _vary(_PG, "PPO, −p on a stop", stop_penalty=1.0),
    "termpg": _TERMPG,
    "termpg_rs": _vary(_TERMPG, "TermPG, −p on a stop", stop_penalty=1.0),
    "termpg_penalty": _vary(_TERMPG, "TermPG, r − α·C", cost_penalty=0.1),
    "termpg_min": _vary(_TERMPG, "TermPG, the paper's optimism", optimism="min"),
    "termpg_std": _vary(_TERMPG, "TermPG, optimism mean − α·std", optimism="std"),
    "termpg_mean": _vary(_TERMPG, "TermPG without optimism", optimism="mean"),
    "termpg_fixed_discount": _vary(
        _TERMPG, "TermPG with γ = 0.99", dynamic_discount=False
    ),
    "termpg_horizon": _vary(_TERMPG, "TermPG, dynamic discount × 0.97", horizon=0.97),
    "termpg_half_window": _vary(
        _TERMPG, "TermPG, learner's window × ½", window_factor=0.5
    ),
    "termpg_double_window": _vary(
        _TERMPG, "TermPG, learner's window × 2", window_factor=2.0
    ),
    "termpg_bonus_0.1": _vary(_TERMPG, "TermPG, r + 0.1·U(C)", bonus=0.1),
    "termpg_bonus_1": _vary(_TERMPG, "TermPG, r + U(C)", bonus=1.0),
    "oracle": Method(
        "PPO that knows the true costs and bias: a reference line",
        knows_costs=True,
        dynamic_discount=True,
    ),
    "oracle_horizon": Method(
        "the oracle, dynamic discount × 0.97",
        knows_costs=True,
        dynamic_discount=True,
        horizon=0.97,
    ),
    "pg_0.953": _vary(
        _PG, "PPO with the published discount's constant", discount=0.953
    ),
    "pg_matched": _vary(
        _PG, "PPO with the constant TermPG's discount averages to", discount=None
    ),
}


def find_method(name: str, **changes: Any) -> Method:
    """A method by name, with some of its numbers changed."""
    if name not in METHODS:
        raise ValueError(f"expected a method ({', '.join(METHODS)}), got {name!r}")
    given = {key: value for key, value in changes.items() if value is not None}
    return dataclasses.replace(METHODS[name], **given)
