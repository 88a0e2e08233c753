"""The data for learning costs: the newest steps, alone or with every past stop.

Only the channels that the cost networks see are kept.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from termdp.cost_network import ActionSpec, first_channels
from termdp.costs import buffer as newest_steps
from termdp.costs import kept_stops
from termdp.costs.buffer import NO_LABEL, STOPPED, Buffer
from termdp.costs.config import CostConfig
from termdp.costs.kept_stops import KeptStops
from termdp.costs.sampling import Segments, count_pieces, sample

Experience = Buffer | KeptStops


def init(
    example_obs: jax.Array,
    action_spec: ActionSpec,
    sizes: tuple[int, int],
    max_window: int,
    config: CostConfig,
) -> Experience:
    """Empty experience.

    Args:
        example_obs: one observation; only its shape and type matter.
        action_spec: shape and type of actions.
        sizes: environments that run in parallel, and rows of a rollout.
        max_window: the longest window of the cost learners.
        config: settings; `keep` chooses.
    """
    example_obs = first_channels(example_obs, config.channels)
    if config.keep == "recent":
        return newest_steps.init(example_obs, action_spec, *sizes, config)
    return kept_stops.init(example_obs, action_spec, *sizes, max_window, config)


def add(
    key: jax.Array,
    experience: Experience,
    obs: jax.Array,
    actions: jax.Array,
    starts: jax.Array,
    labels: jax.Array,
    config: CostConfig,
) -> Experience:
    """The experience with one more rollout; arguments as for `buffer.add`."""
    rollout = (first_channels(obs, config.channels), actions, starts, labels, config)
    if isinstance(experience, KeptStops):
        return kept_stops.add(key, experience, *rollout)
    return newest_steps.add(key, experience, *rollout)


def way_to_draw(
    experience: Experience, window: jax.Array, config: CostConfig
) -> tuple[Callable[[jax.Array], Segments], jax.Array]:
    """A function that draws segments for a gradient step, and their share of stops."""
    if isinstance(experience, KeptStops):
        kept = experience
        share = kept_stops.stop_share(kept, window, config)
        return lambda key: kept_stops.sample(key, kept, window, config), share
    rows = experience
    # Counted here and not at every step: it reads the whole buffer.
    by_trajectory = config.draw == "trajectories"
    pieces = count_pieces(rows, window, config) if by_trajectory else None
    return lambda key: sample(key, rows, window, config, pieces), stop_rate(rows)


def form_of(experience: Experience) -> tuple[tuple[int, ...], str]:
    """Shape and type of one observation."""
    rows = experience.recent if isinstance(experience, KeptStops) else experience
    return rows.obs_shape, rows.obs_dtype


def stop_rate(buffer: Buffer) -> jax.Array:
    """Share of stops among the labelled steps of the buffer, strictly between 0 and 1."""
    stops = (buffer.labels == STOPPED).sum()
    steps = (buffer.labels != NO_LABEL).sum()
    return (stops + 1.0) / (steps + 2.0)


def members_with_stops(experience: Experience) -> jax.Array:
    """Which members have a stop in their bootstrap, `[M]`."""
    if isinstance(experience, KeptStops):
        # Rows without a stop have weight 0.
        return jnp.any(experience.stops.weights > 0, axis=0)
    stopped = (experience.labels == STOPPED)[..., None]
    return jnp.any(stopped & (experience.weights > 0), axis=(0, 1))
