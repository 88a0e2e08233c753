"""Agents with random weights: no training, and every weight makes a difference."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import termdp
from termdp.runs.agent import learned_costs, make_card, weight_templates
from termdp.runs.spec import make_job, make_spec


def random_agent(env, method, continuous=0, **others):
    """An agent as a run would leave it; `continuous` is how many real actions it has."""
    spec = make_spec(env, method, steps=10**6, **others)
    card = make_card(spec, make_job(spec))
    if continuous:
        bounds = {
            "action_low": (-1.0,) * continuous,
            "action_high": (1.0,) * continuous,
        }
        card = dataclasses.replace(card, num_actions=None, **bounds)
    rng = np.random.default_rng(0)

    def draw(leaf):
        # The scale keeps hidden units and outputs near 1, whatever the widths.
        fan_in = leaf.shape[-2] if len(leaf.shape) > 1 else 10
        numbers = rng.normal(size=leaf.shape) / np.sqrt(fan_in)
        return jnp.asarray(numbers, jnp.float32)

    policy, costs = weight_templates(card)
    if costs is not None:
        costs = learned_costs(costs, jax.tree.map(draw, costs.average))
    return termdp.Agent(card, jax.tree.map(draw, policy), costs)
