"""Settings of the cost learner: sizes that fix the compiled program, and rates."""

from dataclasses import dataclass

from termdp.layers import PRECISIONS

NETWORKS = ("grid", "image", "vector")
DRAWS = ("segments", "trajectories")


@dataclass(frozen=True)
class CostConfig:
    """How costs are learned from stops; hashable, so that it can be static under jit.

    The window is no setting: methods differ in it, so it is an argument (traced).

    Attributes:
        members: number M of independent cost networks, each with its own bias.
        learning_rate: Adam's step size (appendix D, arXiv:2205.15376).
        rate_decay_steps: gradient steps after which the step size has fallen to 1 / √2 of
            that, and on like 1 / √steps; None keeps it constant.
        bias_rate_factor: how many times faster the biases learn.
        weight_decay: share of the networks' weights (not of their offsets or biases)
            taken away per step, relative to the learning rate: against learning by
            heart, as stops are rare and networks large.
        sparsity: strength of the prior that most steps are harmless, in nats per stop
            and unit of mean absolute cost; it settles what stops alone hardly tell,
            whether a bit more cost everywhere or a bit less bias.
        averaging: decay of the running mean of parameters that predictions use.
        num_steps: gradient steps per iteration.
        segments_per_step: stretches of experience per member and gradient step.
        segment_length: rows of a stretch; the first window − 1 are only history.
        draw: `segments` (any stretch, all equally likely) or `trajectories` (as the
            paper: whole trajectories, those longer than a stretch in pieces).
        buffer_steps: rows × environments that the FIFO buffer keeps at most.
        buffer_episodes: episodes that the FIFO buffer keeps at most.
        network: `grid` (small grids), `image` (the paper's 42×42 net) or `vector`.
        filters: 3×3 filters of the grid network.
        hidden: units of the hidden layer of the grid and vector networks.
        nonnegative: whether costs pass through a softplus; linear output by default,
            because costs may be negative and a clipped output dies.
        precision: of the hidden layers on grids and images; `auto` is bfloat16 on GPUs,
            where the learner waits for memory, and float32 on CPUs. Weights, costs
            and sums are float32 everywhere.
        bias_offset: what is added to −logit(base rate) for the first bias.
    """

    members: int = 3
    learning_rate: float = 1e-3
    rate_decay_steps: int | None = None
    bias_rate_factor: float = 10.0
    weight_decay: float = 1.0
    sparsity: float = 0.5
    averaging: float = 0.99
    num_steps: int = 4
    segments_per_step: int = 8
    segment_length: int = 128
    draw: str = "segments"
    buffer_steps: int = 131_072
    buffer_episodes: int = 1000
    network: str = "grid"
    filters: int = 8
    hidden: int = 32
    nonnegative: bool = False
    precision: str = "float32"
    bias_offset: float = 1.5

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        for name in (
            "members",
            "num_steps",
            "segments_per_step",
            "segment_length",
            "buffer_steps",
            "buffer_episodes",
            "filters",
            "hidden",
        ):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"expected {name} of at least 1, got {getattr(self, name)}"
                )
        for name in ("learning_rate", "bias_rate_factor"):
            if not getattr(self, name) > 0:
                raise ValueError(f"expected {name} above 0, got {getattr(self, name)}")
        if self.rate_decay_steps is not None and self.rate_decay_steps < 1:
            raise ValueError(
                "expected rate_decay_steps of at least 1, or None for a constant rate, "
                f"got {self.rate_decay_steps}"
            )
        for name in ("weight_decay", "sparsity"):
            if not getattr(self, name) >= 0:
                raise ValueError(
                    f"expected {name} of at least 0, got {getattr(self, name)}"
                )
        if not 0 <= self.averaging < 1:
            raise ValueError(
                f"expected averaging of at least 0 and below 1, got {self.averaging}"
            )
        self._check_choices()

    def _check_choices(self) -> None:
        if self.network not in NETWORKS:
            raise ValueError(
                f"expected network to be one of {NETWORKS}, got {self.network!r}"
            )
        if self.draw not in DRAWS:
            raise ValueError(f"expected draw to be one of {DRAWS}, got {self.draw!r}")
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"expected precision to be one of {PRECISIONS}, got {self.precision!r}"
            )
        if self.segment_length > self.buffer_steps:
            raise ValueError(
                f"expected segment_length ({self.segment_length}) to be at most "
                f"buffer_steps ({self.buffer_steps})"
            )

    def buffer_rows(self, num_envs: int, rollout_length: int) -> int:
        """Steps of each environment that the buffer keeps: whole rollouts."""
        return self.buffer_steps // num_envs // rollout_length * rollout_length

    def check_window(self, window: int) -> None:
        """Raise a ValueError if a window of this many steps cannot be learned from."""
        if window < 1:
            raise ValueError(f"expected a window of at least 1 step, got {window}")
        if window > self.segment_length:
            raise ValueError(
                f"expected a window of at most segment_length = {self.segment_length} "
                f"steps, got {window}; use a shorter window or longer segments"
            )
