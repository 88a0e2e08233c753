"""Every method of the paper, and of ours, as data.

PG stands for policy gradient (here PPO), RS for reward shaping (−p on a stop). A method
is a handful of numbers. `MethodParams` traces them, so that all feed-forward methods of
one environment run in one compiled program. Nothing here imports JAX.
"""

import dataclasses
import math
from typing import Any

from termdp.costs.config import OPTIMISMS, UNCERTAINTIES
from termdp.registry import find
from termdp.settings import check, nearest, number

END_HANDLINGS = ("expected", "cut", "ignored")


@dataclasses.dataclass(frozen=True)
class Method:
    """What a method does, as a person would say it.

    Attributes:
        description: one line for `termdp methods`.
        learns_costs: fits cost networks and shows the accumulated cost to the policy.
        knows_costs: uses the true accumulated cost and the true stop probability.
        dynamic_discount: multiply the discount by the chance of not being stopped.
        recurrent: a policy with memory.
    """

    description: str = ""
    learns_costs: bool = False
    knows_costs: bool = False
    dynamic_discount: bool = False
    recurrent: bool = False
    discount: float | None = number(
        0.99,
        "Discount of each step; TermPG multiplies it by 1 − ρ(C − b). None: the constant "
        "that TermPG's discount averages to on the environment.",
        least=0,
        most=1,
    )
    end_handling: str | None = number(
        None,
        "What a stop is for the values. expected: a stopped step goes on to the state "
        "that would have followed; cut: a stop is an end; ignored: no end of any kind is "
        "an end. None: expected with the dynamic discount, cut without.",
        choices=END_HANDLINGS,
    )
    stop_penalty: float = number(0.0, "p, taken from the reward on a stop.")
    cost_penalty: float = number(0.0, "α in r − α·C, C the accumulated cost.")
    bonus: float = number(0.0, "α in r + α·U(C), a bonus for uncertain costs.")
    optimism: str = number(
        "mean",
        "How the cost networks become one: min (the paper's, per step), std (mean − "
        "α·std), mean, or logit (the smallest C − b).",
        choices=OPTIMISMS,
    )
    std_factor: float = number(1.0, "α in mean − α·std, for the optimism std.")
    uncertainty: str = number(
        "range",
        "U as range (max − min) or std over the cost networks.",
        choices=UNCERTAINTIES,
    )
    window_factor: float = number(
        1.0, "The learner's window over the observer's.", above=0
    )

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        check(self)
        if self.dynamic_discount and not (self.learns_costs or self.knows_costs):
            raise ValueError(
                "expected dynamic_discount only with learns_costs or knows_costs, got "
                "neither: there are no costs to make it of"
            )

    @property
    def handles_ends(self) -> str:
        """`end_handling` with its default filled in."""
        default = "expected" if self.dynamic_discount else "cut"
        return self.end_handling or default

    def for_environment(self, env: str) -> "Method":
        """The method with its discount filled in from the environment's entry."""
        if self.discount is not None:
            return self
        matched = find(env).matched_discount
        if matched is None:
            raise ValueError(
                f"expected an environment with a matched discount, got {env!r}: give "
                "the discount"
            )
        return dataclasses.replace(self, discount=matched)

    def learner_window(self, window: int) -> int:
        """max(1, floor(factor · w))."""
        return max(1, math.floor(self.window_factor * window))


_PG = Method("PG: PPO that knows nothing of costs; a stop is an end")
_TERMPG = Method(
    "TermPG: learned costs in the state, discount × chance of no stop",
    learns_costs=True,
    dynamic_discount=True,
)
_ORACLE = Method(
    "PPO that is told the true costs and bias: a reference line",
    knows_costs=True,
    dynamic_discount=True,
)


def _vary(base: Method, description: str, **changes: Any) -> Method:
    return dataclasses.replace(base, description=description, **changes)


METHODS: dict[str, Method] = {
    "pg": _PG,
    "pg_naive": _vary(
        _PG, "PG as the paper's code ran it: no end is an end", end_handling="ignored"
    ),
    "pg_recurrent": _vary(_PG, "PG with an LSTM policy", recurrent=True),
    "pg_rs": _vary(_PG, "PG with reward shaping: −p on a stop", stop_penalty=1.0),
    "pg_0.97": _vary(_PG, "PG with discount 0.97", discount=0.97),
    "pg_0.999": _vary(_PG, "PG with discount 0.999", discount=0.999),
    "pg_matched": _vary(
        _PG, "PG with the constant TermPG's discount averages to", discount=None
    ),
    "termpg": _TERMPG,
    "termpg_paper": _vary(
        _TERMPG, "the paper's TermPG: discount 1, minimum", discount=1.0, optimism="min"
    ),
    "termpg_rs": _vary(
        _TERMPG, "TermPG with reward shaping: −p on a stop", stop_penalty=1.0
    ),
    "termpg_penalty": _vary(_TERMPG, "TermPG, r − α·C", cost_penalty=0.1),
    "termpg_std": _vary(_TERMPG, "TermPG, optimism mean − α·std", optimism="std"),
    "termpg_mean": _vary(_TERMPG, "TermPG without optimism", optimism="mean"),
    "termpg_logit": _vary(
        _TERMPG, "TermPG, the smallest C − b of the networks", optimism="logit"
    ),
    "termpg_fixed_discount": _vary(
        _TERMPG, "TermPG, costs in the state only", dynamic_discount=False
    ),
    "termpg_half_window": _vary(
        _TERMPG, "TermPG, learner's window × ½", window_factor=0.5
    ),
    "termpg_double_window": _vary(
        _TERMPG, "TermPG, learner's window × 2", window_factor=2.0
    ),
    "termpg_bonus_0.1": _vary(_TERMPG, "TermPG, r + 0.1·U(C)", bonus=0.1),
    "termpg_bonus_1": _vary(_TERMPG, "TermPG, r + U(C)", bonus=1.0),
    "oracle": _ORACLE,
}

# Numbers that mean nothing to a method without learned costs.
OF_COSTS = (
    *("optimism", "std_factor", "uncertainty", "window_factor"),
    *("cost_penalty", "bonus"),
)


def find_method(name: str, **changes: Any) -> Method:
    """A method by name, with some of its numbers changed."""
    if name not in METHODS:
        raise ValueError(
            f"expected a method (`termdp methods` lists them), got {name!r}: "
            f"{nearest(name, METHODS)}"
        )
    return changed_method(METHODS[name], name, **changes)


def changed_method(method: Method, name: str, **changes: Any) -> Method:
    """A method with some numbers changed; those it does not use are refused."""
    for changed in changes:
        if changed in OF_COSTS and not method.learns_costs:
            raise ValueError(
                f"expected only numbers that {name} uses, got {changed}: it learns no "
                "costs"
            )
    return dataclasses.replace(method, **changes)
