"""Sizes and rates of a run, the presets, and the flat names that users give them.

Every number has one name: as flag, as keyword, in a config file and in a run's folder.
Those of the cost learner begin with `cost_`. Presets use the same names.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from termdp.agents.a2c import A2CConfig
from termdp.agents.methods import Method
from termdp.agents.ppo import PPOConfig
from termdp.costs.config import COST_PREFIX, CostConfig
from termdp.settings import PRECISIONS, check, nearest, number, numbers_of

ALGORITHMS: dict[str, type] = {"ppo": PPOConfig, "a2c": A2CConfig}
NETWORKS = ("auto", "grid", "image", "vector")
# The learner's window if the observer has none.
UNBOUNDED_WINDOW = 64
# Segments are this many times longer if costs add up over whole episodes.
_LONGER = 4


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """Sizes and rates of one run, without its method and environment.

    Attributes:
        algorithm: how the policy is improved (ALG-PG), with its own settings.
        costs: settings of the cost learner.
    """

    num_envs: int = number(
        64, "Environments stepped together.", least=1, most=1_000_000
    )
    rollout_steps: int = number(
        32, "Steps of each environment per iteration.", least=1, most=1_000_000
    )
    gae_lambda: float = number(0.95, "λ of the advantage estimates.", least=0, most=1)
    time_limit_rate: float | None = number(
        None,
        "Weight of the newest rollout in τ, the share of steps that reach a time limit. "
        "Discounts are multiplied by 1 − τ, because the agent does not see the clock; "
        "none leaves them as they are.",
        above=0,
        most=1,
    )
    network: str = number(
        "auto",
        "Policy network: grid, image (42×42) or vector; auto looks at the observations.",
        choices=NETWORKS,
    )
    filters: int = number(16, "Filters of the grid network's convolution.", least=1)
    hidden: int = number(256, "Width of the dense layers.", least=1, most=100_000)
    precision: str = number(
        "float32",
        "Precision of the trunk on grids and images; auto is bfloat16 on GPUs.",
        choices=PRECISIONS,
    )
    lstm_size: int = number(256, "Memory of recurrent policies.", least=1, most=100_000)
    algorithm: Any = PPOConfig()
    costs: CostConfig = CostConfig()

    def __post_init__(self) -> None:
        """Refuse impossible values."""
        check(self)

    @property
    def rollout_size(self) -> int:
        """Steps per iteration, of all environments."""
        return self.num_envs * self.rollout_steps

    def num_iterations(self, steps: int) -> int:
        """Whole iterations in a budget of steps."""
        if steps < self.rollout_size:
            raise ValueError(
                f"expected steps to be at least one rollout ({self.rollout_size} "
                f"steps: {self.num_envs} environments × {self.rollout_steps}), got "
                f"{steps}"
            )
        iterations = steps // self.rollout_size
        if iterations * self.algorithm.updates() >= 2**31:
            most = (2**31 - 1) // self.algorithm.updates() * self.rollout_size
            raise ValueError(
                f"expected steps to be at most {most:,}, since updates are counted in 32 "
                f"bits, got {steps}"
            )
        return iterations

    def for_method(self, method: Method) -> "TrainConfig":
        """The config with the cost learner that a method needs.

        A scorer of whole episodes has one network, and learns from the newest steps in
        order: a kept stop has its window, not its episode. Its sums begin with the
        episode or the segment, so segments are long.
        """
        costs = self.costs
        if not method.learns_costs or costs.memory == method.cost_memory:
            return self
        changes: dict[str, Any] = {"memory": method.cost_memory, "members": 1}
        if costs.keep == "stops":
            changes |= {"keep": "recent", "buffer_episodes": costs.buffer_steps}
        if method.cost_memory == "sum":
            rows = costs.buffer_rows(self.num_envs, self.rollout_steps)
            most = max(1, min(_LONGER, rows // costs.segment_length))
            changes["segment_length"] = most * costs.segment_length
            changes["segments_per_step"] = max(1, costs.segments_per_step // most)
        return dataclasses.replace(self, costs=dataclasses.replace(costs, **changes))

    def check_method(self, method: Method) -> None:
        """Refuse a method that needs another cost learner."""
        if method.learns_costs and method.cost_memory != self.costs.memory:
            raise ValueError(
                f"expected the settings of a cost memory {method.cost_memory!r}, got "
                f"{self.costs.memory!r}: use TrainConfig.for_method"
            )


# Chosen on seeds 0 to 9 with `benchmarks/tuning.py` (docs/values.md has the figures).
# λ = 0.8 is smaller than usual, which helps both PG and TermPG. Costs are regularised
# less than a fixed data set would need, which is used many times. Fewer gradient steps
# on costs would be faster and earn less. A mean of several networks would be slower, and
# no difference was shown (docs/values_networks.md). A game may want other numbers
# (`Environment.fast_numbers`).
FAST: dict[str, Any] = {
    "precision": "auto",
    "gae_lambda": 0.8,
    "time_limit_rate": 0.03,
    "value_coef": 0.5,
    "cost_learning_rate": 3e-3,
    "cost_sparsity": 0.0,
    "cost_weight_decay": 0.1,
    "cost_members": 1,
    "cost_num_steps": 16,
    "cost_keep": "stops",
    "cost_precision": "auto",
}
# On vectors the cost learner's steps must become smaller: otherwise policies exploit the
# errors that the last segments left. More segments take little time there. Chosen on the
# recommender, seeds 100 to 102.
FAST_ON_VECTORS: dict[str, Any] = {
    "hidden": 64,
    "cost_rate_decay_steps": 300,
    "cost_segments_per_step": 16,
}
# For methods whose optimism or bonus compares cost networks: as many as in the paper.
FAST_ON_ENSEMBLES: dict[str, Any] = {"cost_members": 3}
# For methods that score whole episodes. Chosen on seeds 0 to 3 (docs/rivals.md).
FAST_ON_EPISODES: dict[str, Any] = {"cost_learning_rate": 1e-3}
# For policies with a memory, whose minibatches are whole sequences: with 4 of them each,
# gradients are too noisy for an LSTM. Chosen on seeds 0 to 3 (docs/results_ablations.md).
FAST_ON_SEQUENCES: dict[str, Any] = {"num_minibatches": 4}
# Appendix D, arXiv:2205.15376, and RLlib 1.12's defaults where it is silent.
PAPER: dict[str, Any] = {
    "num_envs": 8,
    "rollout_steps": 128,
    "gae_lambda": 1.0,
    "learning_rate": 5e-5,
    "anneal": False,
    "adam_eps": 1e-8,
    "max_grad_norm": None,
    "value_scale_rate": None,
    "value_clip": 10.0,
    "num_epochs": 3,
    "num_minibatches": 32,
    "kl_target": 0.01,
    "cost_num_steps": 30,
    "cost_segments_per_step": 1,
    "cost_draw": "trajectories",
    "cost_weight_decay": 0.0,
    "cost_sparsity": 0.0,
    "cost_averaging": 0.0,
    "cost_precision": "auto",
}
PAPER_ON_VECTORS: dict[str, Any] = {"hidden": 64}
PRESETS = {"fast": (FAST, FAST_ON_VECTORS), "paper": (PAPER, PAPER_ON_VECTORS)}


def make_config(
    preset: str,
    observation_shape: tuple[int, ...],
    window: int | None = None,
    algorithm: Any = "ppo",
    numbers: Mapping[str, Any] | None = None,
) -> TrainConfig:
    """The settings that follow from a preset, an environment and a user's numbers.

    Args:
        preset: `fast` or `paper`.
        observation_shape: chooses the networks.
        window: the longest window of the cost learner; None if no costs are learned.
        algorithm: a name of `ALGORITHMS`, or an `Algorithm`.
        numbers: those that differ from the preset, by flat name; numbers of methods are
            ignored here.
    """
    given = dict(numbers or {})
    kind = network_kind(observation_shape)
    for_all, for_vectors = PRESETS[find_preset(preset)]
    chosen = {**for_all, **(for_vectors if kind == "vector" else {}), **given}
    if chosen.get("network", "auto") == "auto":
        chosen["network"] = "image" if preset == "paper" and kind == "grid" else kind
    chosen.setdefault(COST_PREFIX + "network", chosen["network"])
    sizes = TrainConfig(**_of(TrainConfig, chosen))
    config = dataclasses.replace(
        sizes,
        algorithm=_make_algorithm(algorithm, chosen, given),
        costs=CostConfig(**_of(CostConfig, chosen, COST_PREFIX)),
    )
    return config if window is None else _with_room_for(window, config)


def find_preset(preset: str) -> str:
    """The preset's name, if there is one."""
    if preset not in PRESETS:
        raise ValueError(f"expected a preset ({', '.join(PRESETS)}), got {preset!r}")
    return preset


def network_kind(shape: tuple[int, ...]) -> str:
    """The network that fits observations of a shape."""
    if len(shape) == 1:
        return "vector"
    if len(shape) == 3:
        return "image" if shape[:2] == (42, 42) else "grid"
    raise ValueError(
        "expected observations that are vectors [D] or grids [height, width, "
        f"channels], got shape {tuple(shape)}"
    )


def _make_algorithm(algorithm: Any, chosen: dict[str, Any], given: Any) -> Any:
    if not isinstance(algorithm, str):
        return algorithm
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"expected an algorithm ({', '.join(ALGORITHMS)}), got {algorithm!r}"
        )
    settings = ALGORITHMS[algorithm]
    known = numbers_of(settings)
    for name in given:
        if name in ALGORITHM_NUMBERS and name not in known:
            raise ValueError(
                f"expected numbers of {algorithm}, got {name}, which it does not have: "
                "leave it out, or choose another algorithm"
            )
    return settings(**_of(settings, chosen))


def _of(settings: type, numbers: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The given numbers that belong to a settings class."""
    return {
        name: numbers[prefix + name]
        for name in numbers_of(settings)
        if prefix + name in numbers
    }


def _with_room_for(window: int, config: TrainConfig) -> TrainConfig:
    """Lengthen the segments to hold at least twice the longest window."""
    costs = config.costs
    rows = costs.buffer_rows(config.num_envs, config.rollout_steps)
    if 2 * window > rows:
        raise ValueError(
            f"expected a window of at most {rows // 2} steps, half of what the buffer "
            f"keeps of an environment, got {window}: enlarge cost_buffer_steps"
        )
    length = costs.segment_length
    while length < 2 * window:
        length = min(2 * length, rows)
    return dataclasses.replace(
        config, costs=dataclasses.replace(costs, segment_length=length)
    )


def remembered_steps(observer: Any) -> int:
    """The window that a learner needs to cover the observer's memory."""
    if observer.leak is not None or observer.window is None:
        return UNBOUNDED_WINDOW
    return int(observer.window)


# ---- flat names -------------------------------------------------------------------

METHOD_NUMBERS = numbers_of(Method)
SIZE_NUMBERS = numbers_of(TrainConfig)
ALGORITHM_NUMBERS = {
    name: field
    for settings in reversed(ALGORITHMS.values())
    for name, field in numbers_of(settings).items()
}
COST_NUMBERS = {
    COST_PREFIX + name: field for name, field in numbers_of(CostConfig).items()
}
GROUPS = {
    "method": METHOD_NUMBERS,
    "algorithm": ALGORITHM_NUMBERS,
    "sizes": SIZE_NUMBERS,
    "cost learner": COST_NUMBERS,
}
NUMBERS: dict[str, dataclasses.Field] = {
    name: field for group in GROUPS.values() for name, field in group.items()
}
# Older names, which still work.
ALIASES = {"stop_handling": "end_handling"}


def split_numbers(
    numbers: Mapping[str, Any], environment_names: Iterable[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Numbers of the run, and those of the environment; others are refused.

    Args:
        numbers: by flat name, as a user gave them.
        environment_names: names of the environment's numbers.
    """
    known = set(environment_names)
    of_run, of_env = {}, {}
    for given, value in numbers.items():
        name = ALIASES.get(given, given)
        if name in NUMBERS:
            of_run[name] = value
        elif name in known:
            of_env[name] = value
        else:
            raise ValueError(
                f"expected a number of the run or of its environment, got {given!r}: "
                f"{nearest(name, [*NUMBERS, *known])} `termdp train --print-config` "
                "lists those of the run"
            )
    return of_run, of_env


def flat_numbers(method: Method, config: TrainConfig) -> dict[str, Any]:
    """All numbers of a run by flat name."""
    parts = (("", method), ("", config.algorithm), ("", config))
    flat = {
        prefix + name: getattr(part, name)
        for prefix, part in (*parts, (COST_PREFIX, config.costs))
        if dataclasses.is_dataclass(part)
        for name in numbers_of(part)
    }
    return flat | {"end_handling": method.handles_ends}
