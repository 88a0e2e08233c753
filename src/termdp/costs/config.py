"""Settings of the cost learner: sizes that fix the compiled program, and rates."""

from dataclasses import dataclass

from termdp.settings import PRECISIONS, check, number

# Prefix that the numbers below have among all numbers of a run.
COST_PREFIX = "cost_"
NETWORKS = ("grid", "columns", "image", "vector")
KEEPS = ("stops", "recent")
DRAWS = ("segments", "trajectories")
OPTIMISMS = ("min", "std", "mean", "logit")
UNCERTAINTIES = ("range", "std")
COST_MEMORIES = ("window", "sum", "gru")


@dataclass(frozen=True)
class CostConfig:
    """How costs are learned from stops; hashable, so that it can be static under jit.

    The window is not a setting: methods differ in it, so it is a traced argument.

    Attributes:
        memory: what costs remember of an episode; set by the `Method`.
    """

    members: int = number(3, "Cost networks, each with its own bias.", least=1)
    learning_rate: float = number(
        1e-3, "Adam's step size (appendix D, arXiv:2205.15376).", above=0
    )
    rate_decay_steps: int | None = number(
        None,
        "Gradient steps until the step size has fallen to 1/√2; it falls like "
        "1/√steps. None keeps it constant.",
        least=1,
    )
    bias_rate_factor: float = number(
        10.0, "How many times faster the biases learn.", above=0
    )
    weight_decay: float = number(
        1.0,
        "Weight decay of the networks per step, relative to the step size. It prevents "
        "overfitting, as stops are rare and networks large.",
        least=0,
    )
    sparsity: float = number(
        0.5,
        "Strength of the prior that most steps are harmless, in nats per stop and unit "
        "of mean absolute cost. It settles what stops alone hardly show: whether every "
        "step costs a little more or the bias is a little lower.",
        least=0,
    )
    averaging: float = number(
        0.99,
        "Decay of the running mean of parameters that predictions use.",
        least=0,
        below=1,
    )
    num_steps: int = number(4, "Gradient steps per iteration.", least=1)
    segments_per_step: int = number(
        8, "Segments of experience per network and gradient step.", least=1
    )
    segment_length: int = number(
        128,
        "Rows of a segment; the first window − 1 are only history. At least twice the "
        "window is taken.",
        least=1,
    )
    keep: str = number(
        "recent",
        "Data to learn from. recent: the newest steps, first in, first out, as in the "
        "paper; stops: these, every past stop, and a sample of the rest.",
        choices=KEEPS,
    )
    stop_capacity: int = number(
        16_384,
        "Most stops to keep, each with its window; of more, a uniform sample.",
        least=1,
        most=10**8,
    )
    stops_per_step: int = number(
        8, "Stops per network and gradient step, if stops are kept.", least=1
    )
    draw: str = number(
        "segments",
        "Samples of the newest steps: any segments, or whole trajectories as in the "
        "paper (long ones in pieces).",
        choices=DRAWS,
    )
    buffer_steps: int = number(
        131_072,
        "Most steps to keep, besides stops and their windows.",
        least=1,
        most=10**9,
    )
    buffer_episodes: int = number(
        1000,
        "Most episodes among the newest steps to keep.",
        least=1,
        most=2**31 - 1,
    )
    network: str = number(
        "grid",
        "Cost network: grid (small grids), columns (grids whose columns are all alike, "
        "as the lanes of a road), image (the paper's 42×42 net) or vector.",
        choices=NETWORKS,
    )
    channels: int | None = number(
        None,
        "How many channels the cost networks see, the first ones; None: all. The newest "
        "frame comes first where an environment stacks frames (Backseat Driver: 3).",
        least=1,
    )
    filters: int = number(8, "3×3 filters of the grid network.", least=1)
    hidden: int = number(
        32, "Units of the hidden layer of all but the image network.", least=1
    )
    nonnegative: bool = number(
        False,
        "Pass costs through a softplus. The output is linear by default: costs may be "
        "negative, and a clipped output dies.",
    )
    precision: str = number(
        "float32",
        "Precision of the hidden layers on grids and images; auto is bfloat16 on GPUs.",
        choices=PRECISIONS,
    )
    bias_offset: float = number(1.5, "Added to −logit(base rate) for the first bias.")
    memory: str = "window"

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        check(self, COST_PREFIX)
        if self.segment_length > self.buffer_steps:
            raise ValueError(
                f"expected segment_length ({self.segment_length}) to be at most "
                f"buffer_steps ({self.buffer_steps})"
            )

    def buffer_rows(self, num_envs: int, rollout_length: int) -> int:
        """Steps of each environment that the buffer keeps: whole rollouts."""
        return self.buffer_steps // num_envs // rollout_length * rollout_length

    @property
    def segments_kept(self) -> int:
        """Segments of ordinary experience, if stops are kept."""
        return max(1, self.buffer_steps // self.segment_length)

    def check_window(self, window: int) -> None:
        """Raise a ValueError if a window of this many steps cannot be learned from."""
        if window < 1:
            raise ValueError(f"expected a window of at least 1 step, got {window}")
        if window > self.segment_length:
            raise ValueError(
                f"expected a window of at most segment_length = {self.segment_length} "
                f"steps, got {window}; use a shorter window or longer segments"
            )
