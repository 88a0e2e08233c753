"""Every method, the paper's and ours, as data.

PG stands for policy gradient (here PPO), RS for reward shaping (−p on a stop). A method
is a handful of numbers. `MethodParams` traces them, so that all feed-forward methods of
one environment run in one compiled program. Nothing here imports JAX.
"""

import dataclasses
import math
from typing import Any

from termdp.costs.config import COST_MEMORIES, OPTIMISMS, UNCERTAINTIES
from termdp.registry import REGISTRY, find
from termdp.settings import check, nearest, number, numbers_of

END_HANDLINGS = ("expected", "cut", "ignored")


@dataclasses.dataclass(frozen=True)
class Method:
    """A method, in readable terms.

    Attributes:
        description: one line for `termdp methods`.
        learns_costs: fits cost networks and shows the accumulated cost to the policy.
        knows_costs: uses the true accumulated cost and the true stop probability.
        dynamic_discount: multiply the discount by the chance of not being stopped.
        recurrent: a policy with memory.
        drops_rewards: the task's rewards do not count, only what a stop costs.
        minmax_penalty: on a stop the reward is replaced by ROSARL's penalty.
        constrained: a Lagrange multiplier prices the learned probability of stops.
        cost_memory: what learned costs remember of an episode: `window` (the last
            steps), `sum` (all of them, added up) or `gru` (a network's memory).
    """

    description: str = ""
    learns_costs: bool = False
    knows_costs: bool = False
    dynamic_discount: bool = False
    recurrent: bool = False
    drops_rewards: bool = False
    minmax_penalty: bool = False
    constrained: bool = False
    cost_memory: str = "window"
    discount: float | None = number(
        0.99,
        "Discount of each step; TermPG multiplies it by 1 − ρ(C − b). None: the constant "
        "that TermPG's discount averages to on the environment.",
        least=0,
        most=1,
    )
    end_handling: str | None = number(
        None,
        "What a stop means for the values. expected: bootstrap from the state that would "
        "have followed; cut: a stop is an end; ignored: nothing is an end, not even game "
        "over. None: expected with the dynamic discount, cut without.",
        choices=END_HANDLINGS,
    )
    stop_weight: float = number(
        0.0,
        "β in discount × ((1 − β)·(1 − ρ) + β·[not stopped]): how much a stop counts as "
        "an end, beside the learned probability. For costs that are hard to learn.",
        least=0,
        most=1,
    )
    stop_penalty: float = number(0.0, "p, subtracted from the reward on a stop.")
    cost_penalty: float = number(0.0, "α in r − α·C, where C is the accumulated cost.")
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
        1.0, "The learner's window, as a multiple of the observer's.", above=0
    )
    stop_rate_target: float = number(
        0.1,
        "Share of episodes that may be stopped, for the multiplier.",
        above=0,
        below=1,
    )
    multiplier_rate: float = number(
        0.1, "η in λ ← max(0, λ + η·(cost per episode − limit)).", above=0
    )
    kl_penalty: float = number(
        0.0,
        "β in r − β·KL(π ‖ π₀); π₀ is the policy at the end of the unobserved phase.",
        least=0,
    )
    unobserved_share: float = number(
        0.0,
        "Share of the steps that come first, without the observer.",
        least=0,
        below=1,
    )

    def __post_init__(self) -> None:
        """Refuse methods that cannot work."""
        check(self)
        if self.dynamic_discount and not (self.learns_costs or self.knows_costs):
            raise ValueError(
                "expected dynamic_discount only with learns_costs or knows_costs, got "
                "neither: there are no costs to compute it from"
            )
        if self.cost_memory not in COST_MEMORIES:
            raise ValueError(
                f"expected cost_memory to be one of {', '.join(COST_MEMORIES)}, got "
                f"{self.cost_memory!r}"
            )
        if not self.learns_costs and (self.constrained or self.cost_memory != "window"):
            raise ValueError(
                "expected constrained and cost_memory only with learns_costs, got a "
                "method that learns none"
            )
        if self.recurrent and self.has_reference:
            raise ValueError(
                "expected kl_penalty and unobserved_share only with a policy without "
                "memory, got a recurrent one"
            )

    @property
    def has_reference(self) -> bool:
        """Whether there is an unobserved phase, or an earlier policy to keep."""
        return self.kl_penalty > 0 or self.unobserved_share > 0

    @property
    def compares_networks(self) -> bool:
        """Whether it matters that cost networks differ from each other."""
        return self.learns_costs and (self.optimism != "mean" or self.bonus != 0)

    @property
    def program(self) -> str:
        """Equal for methods that can share a compiled program; empty for most."""
        words = {
            "recurrent": self.recurrent,
            "reference": self.has_reference,
            self.cost_memory: self.cost_memory != "window",
        }
        return " ".join(word for word, holds in words.items() if holds)

    @property
    def handles_ends(self) -> str:
        """`end_handling` with its default filled in."""
        default = "expected" if self.dynamic_discount else "cut"
        return self.end_handling or default

    def for_environment(self, env: str) -> "Method":
        """The method with its discount filled in from the environment's entry."""
        if self.discount is not None:
            return self
        matched = find(env).matched_discount if env in REGISTRY else None
        if matched is None:
            raise ValueError(
                f"expected an environment with a matched discount, got {env!r}: give "
                "the discount"
            )
        return dataclasses.replace(self, discount=matched)

    def learner_window(self, window: int) -> int:
        """max(1, floor(factor · w))."""
        return max(1, math.floor(self.window_factor * window))


_PG = Method("PG: PPO that knows nothing about costs; a stop is an end")
# The constant that the chance of no stop is multiplied by. On nine columns, seeds 0 to 4,
# it is never far from the best of 0.99, 0.995 and 0.999 (docs/values_costs.md).
_DYNAMIC = 0.995
_TERMPG = Method(
    "TermPG: learned costs in the state, discount × chance of no stop",
    learns_costs=True,
    dynamic_discount=True,
    discount=_DYNAMIC,
)
_ORACLE = Method(
    "PPO that is told the true costs and bias: an upper bound",
    knows_costs=True,
    dynamic_discount=True,
    discount=_DYNAMIC,
)
_CONSTRAINED = Method(learns_costs=True, constrained=True)


def _vary(base: Method, description: str, **changes: Any) -> Method:
    return dataclasses.replace(base, description=description, **changes)


METHODS: dict[str, Method] = {
    "pg": _PG,
    "pg_naive": _vary(
        _PG, "PG as in the paper's code: nothing is an end", end_handling="ignored"
    ),
    "pg_recurrent": _vary(_PG, "PG with an LSTM policy", recurrent=True),
    "pg_rs": _vary(_PG, "PG with reward shaping: −p on a stop", stop_penalty=1.0),
    "pg_0.97": _vary(_PG, "PG with discount 0.97", discount=0.97),
    "pg_0.995": _vary(_PG, "PG with discount 0.995", discount=0.995),
    "pg_0.999": _vary(_PG, "PG with discount 0.999", discount=0.999),
    "pg_matched": _vary(_PG, "PG with the mean of TermPG's discount", discount=None),
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
    # Rivals: docs/rivals.md has their sources and our assumptions.
    "rosarl": _vary(
        _PG,
        "ROSARL: a stop's reward is the learned minmax penalty",
        minmax_penalty=True,
    ),
    "rlif": _vary(
        _PG, "RLIF: −1 on a stop, no other reward", drops_rewards=True, stop_penalty=1.0
    ),
    "rlif_task": _vary(
        _PG, "RLIF with the task's reward: r − k·stop", stop_penalty=1.0
    ),
    "rift": _vary(
        _PG,
        "RIFT: unobserved PG first, then r − k·stop − β·KL to it",
        stop_penalty=1.0,
        kl_penalty=0.01,
        unobserved_share=0.25,
    ),
    "ppo_lagrangian": _vary(
        _CONSTRAINED,
        "PPO-Lagrangian, TermPG's −log(1 − ρ) as the cost",
        stop_rate_target=0.5,
    ),
    "ct": _vary(
        _TERMPG, "TermPG, costs of the whole episode (no window)", cost_memory="sum"
    ),
    "traces": _vary(
        _TERMPG, "TraCeS: a GRU's survival per step as discount", cost_memory="gru"
    ),
    "traces_lagrangian": _vary(
        _CONSTRAINED,
        "TraCeS: PPO-Lagrangian on the GRU's survival",
        cost_memory="gru",
        stop_rate_target=0.7,
    ),
}

# Properties of methods, besides their numbers: no flag changes them.
IDENTITY = tuple(
    field.name
    for field in dataclasses.fields(Method)
    if field.name not in numbers_of(Method) and field.name != "description"
)
OF_COSTS = (
    *("optimism", "std_factor", "uncertainty", "window_factor"),
    *("cost_penalty", "bonus"),
)
OF_CONSTRAINTS = ("stop_rate_target", "multiplier_rate")


def unused_numbers(method: Method) -> dict[str, str]:
    """Numbers that a method does not use, each with the reason."""
    unused: dict[str, str] = {}
    if not method.learns_costs:
        unused |= dict.fromkeys(OF_COSTS, "it learns no costs")
    if method.cost_memory != "window":
        alone = ("optimism", "std_factor", "uncertainty", "bonus")
        unused |= dict.fromkeys(alone, "it has one cost network only")
    if not method.constrained:
        unused |= dict.fromkeys(OF_CONSTRAINTS, "it has no multiplier")
    if not method.dynamic_discount:
        unused["stop_weight"] = "its discount is constant"
    return unused


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
    unused = unused_numbers(method)
    for changed in changes:
        if changed in unused:
            raise ValueError(
                f"expected only numbers that {name} uses, got {changed}: "
                f"{unused[changed]}"
            )
    return dataclasses.replace(method, **changes)
