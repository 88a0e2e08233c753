"""Fit the window classifier to people's stops, many windows in one program.

Appendix D ("Human Termination Data"), arXiv:2205.15376: P(stop) = ρ(Σ over the last w
steps of c(s, a) − b), for different windows w. The networks, the loss and its priors
are those of `termdp.costs`; the window is a traced number, so all windows and all folds
of the cross-validation are one vmapped program.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.cost_network import ActionSpec
from termdp.costs import ensemble
from termdp.costs.buffer import NO_LABEL, STOPPED
from termdp.costs.config import CostConfig
from termdp.costs.fit import gradient_step
from termdp.costs.sampling import Segments
from termdp.termination import window_sums

_NEWTON_STEPS = 25

# Few stops: a small network, and priors strong enough to prevent overfitting;
# calibration (below) then undoes their shrinkage.
FIT = CostConfig(
    members=1,
    network="vector",
    hidden=4,
    learning_rate=1e-2,
    num_steps=400,
    segments_per_step=4,
    weight_decay=0.3,
    sparsity=0.5,
)


@struct.dataclass
class FitData:
    """Sessions on the device, in rows of equal length; time first.

    Attributes:
        obs: `[T, N, K]`, observations.
        actions: `[T, N]` whole numbers, or `[T, N, M]` real ones.
        starts: `[T, N]`, first steps of sessions.
        owner: `[T, N]`, index of the session, −1 where there is none.
        spec: shape and type of actions (static).
    """

    obs: jax.Array
    actions: jax.Array
    starts: jax.Array
    owner: jax.Array
    spec: ActionSpec = struct.field(pytree_node=False, default=ActionSpec(1))


@struct.dataclass
class Task:
    """One model to fit; a leading axis makes it many.

    Attributes:
        window: w.
        labels: `[T, N]`, STOPPED, NOT_STOPPED or NO_LABEL.
        weights: `[R, M]`, how often each session counts for each member; 0 leaves it out.
    """

    window: jax.Array
    labels: jax.Array
    weights: jax.Array


@struct.dataclass
class Fitted:
    """A fitted model: P(stop) = ρ(scale · Σ over the window of mean_m c_m − bias).

    Attributes:
        costs: the networks.
        scale: factor on their costs.
        bias: b.
        logits: `[T, N]` at every step.
        log_likelihoods: `[R]` of every session, including those left out.
    """

    costs: ensemble.CostState
    scale: jax.Array
    bias: jax.Array
    logits: jax.Array
    log_likelihoods: jax.Array


@partial(jax.jit, static_argnames=("config", "num_sessions"))
def fit_many(
    key: jax.Array, data: FitData, tasks: Task, config: CostConfig, num_sessions: int
) -> Fitted:
    """Fit tasks `[J, ...]` in parallel; they share initial weights and draws.

    Args:
        key: random key.
        data: the sessions.
        tasks: what to fit.
        config: sizes and rates; `num_steps` gradient steps.
        num_sessions: R.
    """

    def one(task: Task) -> Fitted:
        costs = _fit(key, data, task, config)
        sums = window_sums(
            mean_costs(costs, data.obs, data.actions), task.window, data.starts
        )
        weights = _weights(data, task).mean(axis=-1)
        start = ensemble.biases(costs).mean()
        scale, bias = calibrate(sums, task.labels, weights, start)
        logits = scale * sums - bias
        likelihoods = session_log_likelihoods(
            logits, task.labels, data.owner, num_sessions
        )
        return Fitted(costs, scale, bias, logits, likelihoods)

    return jax.vmap(one)(tasks)


def _fit(
    key: jax.Array, data: FitData, task: Task, config: CostConfig
) -> ensemble.CostState:
    key_init, key_draw = jax.random.split(key)
    state = ensemble.init(key_init, data.obs[0, 0], data.spec, config)
    weights = _weights(data, task)  # computed once: a lookup in every step is slow
    used = (task.labels != NO_LABEL) & (weights.sum(axis=-1) > 0)
    stops = (used & (task.labels == STOPPED)).sum()
    state = ensemble.with_initial_bias(state, stops, used.sum(), config)
    # A step's share of stops, as in `termdp.costs.fit`: the prior is per stop.
    sparsity = config.sparsity * (stops + 1.0) / (used.sum() + 2.0)

    def step(state: ensemble.CostState, key: jax.Array) -> Any:
        segments = _draw(key, data, task.labels, weights, config)
        state, metrics = gradient_step(state, segments, task.window, sparsity, config)
        return state, metrics.loss

    keys = jax.random.split(key_draw, config.num_steps)
    return jax.lax.scan(step, state, keys)[0]


def _weights(data: FitData, task: Task) -> jax.Array:
    """The weight of each step's session for each member, `[T, N, M]`."""
    return jnp.where(data.owner[..., None] < 0, 0.0, task.weights[data.owner])


def _draw(
    key: jax.Array,
    data: FitData,
    labels: jax.Array,
    weights: jax.Array,
    config: CostConfig,
) -> Segments:
    """Rows of whole sessions for every member."""
    shape = (config.members, config.segments_per_step)
    rows = jax.random.randint(key, shape, 0, data.owner.shape[1])
    labels = jnp.moveaxis(labels[:, rows], 0, 1)
    weights = jax.vmap(lambda row, w: w[:, row], in_axes=(0, 2))(rows, weights)
    size = data.owner.shape[0] * config.segments_per_step
    return Segments(
        obs=jnp.moveaxis(data.obs[:, rows], 0, 1),  # [M, T, S, K]
        actions=jnp.moveaxis(data.actions[:, rows], 0, 1),
        starts=jnp.moveaxis(data.starts[:, rows], 0, 1),
        labels=(labels == STOPPED).astype(jnp.float32),
        weights=jnp.where(labels == NO_LABEL, 0.0, weights),
        expected_steps=jnp.asarray(size, jnp.float32),
    )


def mean_costs(
    state: ensemble.CostState, obs: jax.Array, actions: jax.Array
) -> jax.Array:
    """The cost `[...]` of steps: mean over members."""
    return ensemble.member_costs(state, obs, actions).mean(axis=0)


def session_log_likelihoods(
    logits: jax.Array, labels: jax.Array, owner: jax.Array, num_sessions: int
) -> jax.Array:
    """Log P(what happened) of each session, `[R]`: the sum over its labelled steps."""
    signed = jnp.where(labels == STOPPED, logits, -logits)
    each = jnp.where(labels == NO_LABEL, 0.0, jax.nn.log_sigmoid(signed))
    # Steps of no session have no label: they add 0 to the first one.
    place = jnp.maximum(owner, 0).reshape(-1)
    return jax.ops.segment_sum(each.reshape(-1), place, num_sessions)


def calibrate(
    sums: jax.Array, labels: jax.Array, weights: jax.Array, bias: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Scale and bias that fit best: P(stop) = ρ(scale · C − bias).

    Gradient steps are slow in one direction: larger costs together with a larger bias.
    With the networks' costs fixed, this is a logistic regression in two numbers, which
    Newton's method solves.

    Args:
        sums: C, accumulated costs of the networks.
        labels: STOPPED, NOT_STOPPED or NO_LABEL.
        weights: how much each step counts.
        bias: first guess of the bias.
    """
    used = jnp.where(labels == NO_LABEL, 0.0, weights)
    target = (labels == STOPPED).astype(jnp.float32)

    def newton(numbers: jax.Array, _: None) -> tuple[jax.Array, None]:
        chance = jax.nn.sigmoid(numbers[0] * sums - numbers[1])
        error = used * (chance - target)
        slope = jnp.stack([jnp.sum(error * sums), -jnp.sum(error)])
        spread = used * chance * (1.0 - chance)
        both = -jnp.sum(spread * sums)
        bend = jnp.array([[jnp.sum(spread * sums**2), both], [both, jnp.sum(spread)]])
        step = jnp.linalg.solve(bend + 1e-3 * jnp.eye(2), slope)
        # Newton's steps may overshoot where hardly any stop is expected.
        size = jnp.maximum(jnp.abs(step) / jnp.array([0.5, 3.0]), 1.0).max()
        return numbers - step / size, None

    start = jnp.stack([jnp.ones(()), bias])
    (scale, bias), _ = jax.lax.scan(newton, start, length=_NEWTON_STEPS)
    return scale, bias
