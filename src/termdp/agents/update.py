"""What all policy-gradient updates share: their data, state and interface.

The paper leaves the policy-gradient algorithm open (ALG-PG, Algorithm 2 of
arXiv:2205.15376). Here it is an `Algorithm`: settings that know their optimiser and how
to improve a policy.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import optax
from flax import struct

from termdp.agents.actor_critic import Actor, PolicyInput
from termdp.agents.value_scale import (
    ValueScale,
    initial_scale,
    rescaled,
    to_outputs,
    updated_scale,
)
from termdp.settings import check, number


@dataclass(frozen=True)
class Learner(Actor):
    """An actor and its optimiser: the fixed parts of learning."""

    optimiser: optax.GradientTransformation


@struct.dataclass
class PolicyState:
    """The parts of an agent that learning changes.

    Attributes:
        params: of the network.
        optimiser: Adam's moments.
        extra: other state of the algorithm, a pytree (PPO: its KL coefficient).
        value_scale: the scale of the network's values.
    """

    params: Any
    optimiser: Any
    extra: Any = ()
    value_scale: ValueScale = struct.field(default_factory=initial_scale)


@struct.dataclass
class Examples:
    """A rollout with everything an update needs, time-major `[T, B, ...]`.

    Attributes:
        inputs: what the agent saw, including the C that it acted on.
        starts: first steps of episodes.
        carry: the network's memory before the first row, `[B, ...]`.
        actions: what it did.
        dist_params: parameters of the action distribution at that time.
        values: V(s_t) at that time.
        advantages: A_t.
        targets: A_t + V(s_t).
    """

    inputs: PolicyInput
    starts: jax.Array
    carry: Any
    actions: jax.Array
    dist_params: jax.Array
    values: jax.Array
    advantages: jax.Array
    targets: jax.Array


Metrics = dict[str, jax.Array]


class Algorithm(Protocol):
    """ALG-PG: hashable settings and their functions.

    The optimiser counts updates, so a falling rate reaches its end with the last update,
    however many updates an iteration has.
    """

    def updates(self) -> int:
        """Steps of the optimiser per iteration."""

    def make_optimiser(self, num_iterations: int) -> optax.GradientTransformation:
        """The optimiser for a run of this many iterations."""

    def initial_extra(self) -> Any:
        """The first value of `PolicyState.extra`."""

    def update(
        self, learner: Learner, state: PolicyState, examples: Examples, key: jax.Array
    ) -> tuple[PolicyState, Metrics]:
        """Improve the policy on one rollout."""


@dataclass(frozen=True)
class AdamSettings:
    """What the algorithms share: Adam, and how its step size falls over a run."""

    learning_rate: float = number(
        2e-3, "Adam's step size, for policy and value.", above=0
    )
    anneal: bool = number(True, "Let the step size fall linearly to zero over the run.")
    adam_eps: float = number(1e-5, "Adam's ε.", above=0)
    max_grad_norm: float | None = number(
        0.5, "Bound on the gradient's norm; none for no bound.", above=0
    )
    value_scale_rate: float | None = number(
        0.03,
        "Weight of the newest rollout in the mean and deviation that scale the values; "
        "none learns unscaled values.",
        above=0,
        most=1,
    )
    value_scale_floor: float = number(
        1.0,
        "Smallest deviation to divide by, so that small values are not blown up.",
        above=0,
    )

    def __post_init__(self) -> None:
        """Refuse impossible values."""
        check(self)

    def updates(self) -> int:
        """Steps of the optimiser per iteration."""
        return 1

    def make_optimiser(self, num_iterations: int) -> optax.GradientTransformation:
        """Adam with a bound on the gradient, its rate at zero after the last update."""
        rate: Any = self.learning_rate
        if self.anneal:
            rate = optax.linear_schedule(rate, 0.0, num_iterations * self.updates())
        optimiser = optax.adam(rate, eps=self.adam_eps)
        if self.max_grad_norm is None:
            return optimiser
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), optimiser)


def on_own_scale(
    state: PolicyState, examples: Examples, settings: AdamSettings
) -> tuple[PolicyState, Examples]:
    """Values and targets on the network's scale, first updated with the targets."""
    if settings.value_scale_rate is None:
        return state, examples
    before = state.value_scale
    after = updated_scale(
        before, examples.targets, settings.value_scale_rate, settings.value_scale_floor
    )
    params = rescaled(state.params, before, after)
    return replace(state, params=params, value_scale=after), replace(
        examples,
        values=to_outputs(after, examples.values),
        targets=to_outputs(after, examples.targets),
    )


def forward(learner: Learner, params: Any, batch: Examples) -> tuple[Any, Any]:
    """Distribution parameters and values for a minibatch made by `split`."""
    if not learner.is_recurrent:
        return learner.network.apply(
            params, (), batch.inputs, batch.starts, method="unroll"
        )
    # Recurrent minibatches come as [sequences, T, ...]; networks unroll time first.
    inputs, starts = jax.tree.map(
        lambda x: jnp.swapaxes(x, 0, 1), (batch.inputs, batch.starts)
    )
    outputs = learner.network.apply(
        params, batch.carry, inputs, starts, method="unroll"
    )
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), outputs)


# Kernels with fewer weights than this may be rounded at every use: it costs nothing.
_MANY = 4096


def cast_kernels(learner: Learner, params: Any) -> dict[str, jax.Array]:
    """The trunk's large kernels in the precision that it multiplies in, by their path.

    Gradients are taken with respect to these, and the pass that updates the parameters
    writes them too. Otherwise every minibatch would begin with a pass over all weights
    to round them. Empty if the trunk has the precision of its parameters.
    """
    precision = getattr(learner.network.torso, "precision", "float32")
    return {
        jax.tree_util.keystr(path): leaf.astype(precision)
        for path, leaf in jax.tree_util.tree_leaves_with_path(params["params"]["trunk"])
        if leaf.size >= _MANY and leaf.dtype != jnp.dtype(precision)
    }


def with_cast_kernels(params: Any, kernels: dict[str, jax.Array]) -> Any:
    """Parameters in which the kernels of `cast_kernels` replace the originals."""
    trunk = jax.tree_util.tree_map_with_path(
        lambda path, leaf: kernels.get(jax.tree_util.keystr(path), leaf),
        params["params"]["trunk"],
    )
    return {**params, "params": {**params["params"], "trunk": trunk}}


def split(
    learner: Learner, examples: Examples, key: jax.Array, num_minibatches: int
) -> Examples:
    """Shuffle a rollout and cut it: every leaf becomes `[minibatches, units, ...]`.

    The units are single steps, or whole sequences if the policy has a memory (then at
    most as many minibatches as sequences).
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
            f"{num_minibatches} minibatches: choose a number that divides {count}"
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
