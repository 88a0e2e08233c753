"""Costs from recorded episodes, without any training of an agent."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from termdp.cost_network import ActionSpec
from termdp.costs import ensemble
from termdp.costs.buffer import NO_LABEL, STOPPED, Buffer
from termdp.costs.config import CostConfig
from termdp.costs.fit import CostMetrics, update


def fit_buffer(
    key: jax.Array,
    buffer: Buffer,
    action_spec: ActionSpec,
    window: jax.Array | int,
    config: CostConfig,
    num_steps: int,
) -> tuple[ensemble.CostState, CostMetrics]:
    """A new ensemble after `num_steps` gradient steps on a filled buffer.

    Args:
        key: random key.
        buffer: for example of `from_episodes`.
        action_spec: what actions look like.
        window: w, static or traced.
        config: settings; its `num_steps` does not count here.
        num_steps: gradient steps.
    """
    key_init, key_fit = jax.random.split(key)
    example = jnp.zeros(buffer.obs_shape, buffer.obs_dtype)
    state = ensemble.init(key_init, example, action_spec, config)
    stops = (buffer.labels == STOPPED).sum()
    steps = (buffer.labels != NO_LABEL).sum()
    state = ensemble.with_initial_bias(state, stops, steps, config)
    return update(key_fit, state, buffer, window, replace(config, num_steps=num_steps))
