"""What every policy-gradient update shares: its examples, its state, its contract.

The paper leaves the policy-gradient algorithm open (ALG-PG, Algorithm 2 of
arXiv:2205.15376). Here it is a function: `update(learner, state, examples, key)`
returns the improved state and what there is to say about it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from termdp.agents.actor_critic import PolicyInput
from termdp.agents.distributions import Distribution


class Learner(NamedTuple):
    """The parts of an agent that never change while it learns."""

    network: Any
    distribution: Distribution
    optimiser: optax.GradientTransformation
    is_recurrent: bool


@struct.dataclass
class PolicyState:
    """What learning changes in an agent.

    Attributes:
        params: of the network.
        optimiser: Adam's moments.
        kl_coef: coefficient of PPO's KL penalty, adapted after every update.
    """

    params: Any
    optimiser: Any
    kl_coef: jax.Array


@struct.dataclass
class Examples:
    """A rollout with everything an update needs, time-major `[T, B, ...]`.

    Attributes:
        seen: what the agent saw, C as it was acted on included.
        starts: first steps of episodes.
        carry: the network's memory before the first row, `[B, ...]`.
        actions: what it did.
        policy: distribution parameters it acted by.
        values: V(s_t) at that time.
        advantages: A_t.
        targets: A_t + V(s_t).
    """

    seen: PolicyInput
    starts: jax.Array
    carry: Any
    actions: jax.Array
    policy: jax.Array
    values: jax.Array
    advantages: jax.Array
    targets: jax.Array


Metrics = dict[str, jax.Array]
PolicyUpdate = Callable[
    [Learner, PolicyState, Examples, jax.Array], tuple[PolicyState, Metrics]
]


def forward(learner: Learner, params: Any, batch: Examples) -> tuple[Any, Any]:
    """Distribution parameters and values for a minibatch made by `split`."""
    if not learner.is_recurrent:
        return learner.network.apply(
            params, (), batch.seen, batch.starts, method="unroll"
        )
    # Recurrent minibatches come as [sequences, T, ...]; networks unroll time first.
    seen, starts = jax.tree.map(
        lambda x: jnp.swapaxes(x, 0, 1), (batch.seen, batch.starts)
    )
    outputs = learner.network.apply(params, batch.carry, seen, starts, method="unroll")
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), outputs)


# To round fewer weights than these at every use costs nothing.
_MANY = 4096


def rounded(learner: Learner, params: Any) -> dict[str, jax.Array]:
    """The trunk's large kernels in the precision that it multiplies in, by their path.

    Carried along and differentiated in place of the parameters: so the optimiser's pass
    over those writes both, instead of every minibatch beginning with one that rounds.
    Nothing where the trunk is as precise as its parameters.
    """
    precision = getattr(learner.network.torso, "precision", "float32")
    return {
        jax.tree_util.keystr(path): leaf.astype(precision)
        for path, leaf in jax.tree_util.tree_leaves_with_path(params["params"]["trunk"])
        if leaf.size >= _MANY and leaf.dtype != jnp.dtype(precision)
    }


def with_rounded(params: Any, kernels: dict[str, jax.Array]) -> Any:
    """Parameters with `rounded` kernels in their place."""
    trunk = jax.tree_util.tree_map_with_path(
        lambda path, leaf: kernels.get(jax.tree_util.keystr(path), leaf),
        params["params"]["trunk"],
    )
    return {**params, "params": {**params["params"], "trunk": trunk}}


def split(
    learner: Learner, examples: Examples, key: jax.Array, num_minibatches: int
) -> Examples:
    """Shuffle a rollout and cut it: every leaf becomes `[minibatches, units, ...]`.

    The units are single steps, or whole sequences where the policy has a memory (at
    most as many minibatches as there are sequences).
    """
    if learner.is_recurrent:
        over_time = replace(examples, carry=())
        sequences = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), over_time)
        units = replace(sequences, carry=examples.carry)
    else:
        units = jax.tree.map(
            lambda x: x.reshape(-1, *x.shape[2:]), replace(examples, carry=())
        )
    count = units.starts.shape[0]
    if learner.is_recurrent:
        num_minibatches = min(num_minibatches, count)
    if count % num_minibatches:
        kind = "sequences" if learner.is_recurrent else "steps"
        raise ValueError(
            f"expected a rollout of {count} {kind} to fall into equal minibatches, got "
            f"{num_minibatches} minibatches"
        )
    order = jax.random.permutation(key, count)
    # Without the barrier XLA fuses this gather into the networks' patch extraction,
    # which is several times slower on a GPU.
    shuffled = jax.lax.optimization_barrier(
        jax.tree.map(lambda x: jnp.take(x, order, axis=0), units)
    )
    return jax.tree.map(
        lambda x: x.reshape(num_minibatches, count // num_minibatches, *x.shape[1:]),
        shuffled,
    )


def standardise(advantages: jax.Array) -> jax.Array:
    """Mean 0 and standard deviation 1 over the whole rollout."""
    deviation = jnp.maximum(jnp.std(advantages), 1e-4)
    return (advantages - jnp.mean(advantages)) / deviation
