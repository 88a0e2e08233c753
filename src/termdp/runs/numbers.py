"""The numbers of a run as typed keywords, for editors and type checkers.

A copy of the names and types that `termdp.runs.config` collects from the settings; a
test compares the two.
"""

from typing import TypedDict


class Numbers(TypedDict, total=False):
    """Numbers of method, algorithm, sizes and cost learner, and of any observer."""

    window: int | None
    bias: float
    background: float
    delay: int
    leak: float | None
    discount: float | None
    end_handling: str | None
    stop_weight: float
    stop_penalty: float
    cost_penalty: float
    bonus: float
    optimism: str
    std_factor: float
    uncertainty: str
    window_factor: float
    stop_rate_target: float
    multiplier_rate: float
    kl_penalty: float
    unobserved_share: float
    learning_rate: float
    anneal: bool
    adam_eps: float
    max_grad_norm: float | None
    value_scale_rate: float | None
    value_scale_floor: float
    value_coef: float
    entropy_coef: float
    num_epochs: int
    num_minibatches: int
    clip: float
    value_clip: float | None
    kl_coef: float
    kl_target: float
    num_envs: int
    rollout_steps: int
    gae_lambda: float
    time_limit_rate: float | None
    network: str
    filters: int
    hidden: int
    precision: str
    lstm_size: int
    cost_members: int
    cost_learning_rate: float
    cost_rate_decay_steps: int | None
    cost_bias_rate_factor: float
    cost_weight_decay: float
    cost_sparsity: float
    cost_averaging: float
    cost_num_steps: int
    cost_segments_per_step: int
    cost_segment_length: int
    cost_keep: str
    cost_stop_capacity: int
    cost_stops_per_step: int
    cost_draw: str
    cost_buffer_steps: int
    cost_buffer_episodes: int
    cost_network: str
    cost_channels: int | None
    cost_filters: int
    cost_hidden: int
    cost_nonnegative: bool
    cost_precision: str
    cost_bias_offset: float
