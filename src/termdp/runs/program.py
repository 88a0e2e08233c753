"""Many iterations, many runs, one compiled program.

Runs (methods × seeds) are the leading axis of everything. On an accelerator, `vmap` runs
them in parallel. On the CPU, they follow one another in one program (`lax.map`), so that
a run's bits do not depend on the other runs. A loop on the device runs a chunk of
iterations without returning to Python.
"""

import dataclasses
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from termdp.agents.actor_critic import PolicyInput, make_actor
from termdp.agents.distributions import Distribution, for_action_space
from termdp.agents.method_params import MethodParams, method_params
from termdp.agents.methods import Method
from termdp.agents.update import Learner, PolicyState
from termdp.costs import ensemble, experience
from termdp.runs import shaping
from termdp.runs.collect import (
    Mind,
    RolloutState,
    collect,
    initial_rollout_state,
)
from termdp.runs.config import TrainConfig, remembered_steps
from termdp.runs.cost_features import NUM_FEATURES, empty_memory
from termdp.runs.improve import Recipe, TrainState, improve
from termdp.runs.metrics import Metrics, Reports, pack, unpack

RUNS = "runs"  # the axis that is split over devices


@dataclasses.dataclass(frozen=True)
class Job:
    """Runs that share a program: one environment, several (method, seed) pairs.

    Attributes:
        env: an observed environment.
        params: its parameters.
        methods: one method per run.
        seeds: one seed per run.
        config: sizes and rates.
        num_iterations: length of the runs.
        run_params: parameters of each run, if their observers differ in numbers; None
            if all use `params`.
    """

    env: Any
    params: Any
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    config: TrainConfig
    num_iterations: int
    run_params: tuple[Any, ...] | None = None

    @property
    def distribution(self) -> Distribution:
        """Distribution of the actions."""
        return for_action_space(self.env.action_space(self.params))

    @property
    def windows(self) -> tuple[int, ...]:
        """How many steps the observer of each run remembers."""
        each = self.run_params or (self.params,) * len(self.methods)
        return tuple(remembered_steps(params.observer) for params in each)

    @property
    def max_window(self) -> int:
        """The longest window of the methods' cost learners."""
        pairs = zip(self.methods, self.windows, strict=True)
        return max(method.learner_window(window) for method, window in pairs)

    def method_params(self) -> MethodParams:
        """The methods as numbers, stacked over runs."""
        pairs = zip(self.methods, self.windows, strict=True)
        return _stacked([method_params(method, window) for method, window in pairs])


def make_recipe(job: Job) -> Recipe:
    """What is fixed when training is compiled."""
    kinds = {method.program for method in job.methods}
    if len(kinds) > 1:
        words = ", ".join(sorted(kind or "plain" for kind in kinds))
        raise ValueError(
            f"expected methods of one kind of program in one job, got {words}: run them "
            "as several jobs"
        )
    job.config.check_method(job.methods[0])
    learns_costs = any(method.learns_costs for method in job.methods)
    if learns_costs:
        job.config.costs.check_window(job.max_window)
    distribution = job.distribution
    config, method = job.config, job.methods[0]
    actor = make_actor(
        distribution,
        method.recurrent,
        (config.network, config.filters, config.hidden, config.precision),
        config.lstm_size,
    )
    optimiser = job.config.algorithm.make_optimiser(job.num_iterations)
    learner = Learner(actor.network, distribution, actor.is_recurrent, optimiser)
    return Recipe(
        learner, job.config, learns_costs, job.num_iterations, method.has_reference
    )


def initial_state(
    recipe: Recipe, env: Any, params: Any, key: jax.Array, max_window: int
) -> TrainState:
    """The state of one run before its first iteration."""
    key, key_envs, *keys = jax.random.split(key, 4)
    recent = initial_memory(recipe, max_window)
    rollout_state = initial_rollout_state(
        recipe.learner, env, params, key_envs, recipe.config.num_envs, recent
    )
    return state_at(recipe, rollout_state, (key, *keys), max_window)


def initial_memory(recipe: Recipe, max_window: int) -> jax.Array | None:
    """The empty memory of learned costs; None if no costs are learned."""
    if not recipe.learns_costs:
        return None
    return empty_memory(recipe.config.costs, max_window, recipe.config.num_envs)


def state_at(
    recipe: Recipe, rollout_state: RolloutState, keys: Any, max_window: int
) -> TrainState:
    """The state of one run, given the state of its environments.

    Args:
        recipe: networks, optimiser, sizes.
        rollout_state: of its environments.
        keys: random keys: for training, for the policy, for the cost networks.
        max_window: the longest window of the cost learners.
    """
    config, learner = recipe.config, recipe.learner
    key, key_policy, key_costs = keys
    costs_seen = jnp.zeros((config.num_envs, NUM_FEATURES))
    inputs = PolicyInput(rollout_state.observations, costs_seen)
    weights = learner.network.init(key_policy, rollout_state.carry, inputs)
    policy = PolicyState(
        weights, learner.optimiser.init(weights), config.algorithm.initial_extra()
    )
    costs = played = None
    if recipe.learns_costs:
        actions = learner.distribution.action_spec()
        example = rollout_state.observations[0]
        costs = ensemble.init(key_costs, example, actions, config.costs)
        played = experience.init(
            example,
            actions,
            (config.num_envs, config.rollout_steps),
            max_window,
            config.costs,
        )
    shaped = shaping.initial(weights if recipe.has_reference else None)
    return TrainState(key, jnp.int32(0), rollout_state, policy, costs, played, shaped)


def train_iteration(
    recipe: Recipe, env: Any, params: Any, method: MethodParams, state: TrainState
) -> tuple[TrainState, Metrics]:
    """One iteration of Algorithm 2, arXiv:2205.15376: collect, then improve."""
    key, key_collect, key_improve = jax.random.split(state.key, 3)
    if recipe.has_reference:
        shaped = shaping.begin_iteration(
            method,
            state.shaping,
            state.policy.params,
            state.iteration,
            recipe.num_iterations,
        )
        state = dataclasses.replace(state, shaping=shaped)
        params = shaping.watched(shaped, params)
    mind = Mind(state.policy.params, state.costs, method)
    rollout_state, rollout = collect(
        recipe.learner,
        mind,
        env,
        params,
        state.rollout_state,
        key_collect,
        recipe.config.rollout_steps,
    )
    state = dataclasses.replace(state, key=key)
    return improve(recipe, method, state, rollout, rollout_state, key_improve)


class TrainProgram:
    """A compiled job: call `init`, then `advance` chunk by chunk.

    Args:
        job: what to train.
        devices: where; the runs are split evenly among several devices. None for
            JAX's default device.
    """

    def __init__(self, job: Job, devices: Sequence[Any] | None = None):
        self.job = job
        self.recipe = make_recipe(job)
        self._mesh = _mesh_of(devices, len(job.seeds))
        first = (devices or jax.devices())[0]
        # On a CPU, vmap gains nothing, and sums would depend on the number of runs.
        self._one_by_one = first.platform == "cpu"
        self.method_params = self._spread(job.method_params())
        # None if all runs have the same parameters: then these are constants.
        self.params = self._spread(job.run_params and _stacked(job.run_params))
        self._compiled: dict[int, Any] = {}
        self._start: Any = jax.jit(self._over_runs(self._start_run))
        self._compiled_start: Any = None
        self.compile_seconds = 0.0
        self._shapes: dict[str, tuple[int, ...]] = {}

    def init(self) -> TrainState:
        """States of all runs, `[R, ...]`."""
        keys = self._keys()
        # `jax.eval_shape` traces this too.
        traced = self._compiled_start is None or isinstance(keys, jax.core.Tracer)
        start = self._start if traced else self._compiled_start
        states: TrainState = start(keys, self.params)
        return states

    def shapes(self) -> Any:
        """Shapes of the states that `init` makes."""
        return jax.eval_shape(self.init)

    def compile_all(self, most_iterations: int) -> None:
        """Compile `init` and the chunk at the same time."""
        began = time.perf_counter()
        if self._compiled_start is None:
            with ThreadPoolExecutor(1) as beside:
                start = beside.submit(self._compile_init)
                self.compile(most_iterations)
                start.result()
        else:
            self.compile(most_iterations)
        self.compile_seconds += time.perf_counter() - began

    def close(self) -> None:
        """Nothing to close."""

    def _compile_init(self) -> None:
        self._compiled_start = self._start.lower(self._keys(), self.params).compile()

    def _start_run(self, key: jax.Array, params: Any) -> TrainState:
        params = self.job.params if params is None else params
        return initial_state(
            self.recipe, self.job.env, params, key, self.job.max_window
        )

    def _keys(self) -> jax.Array:
        keys = jnp.stack([jax.random.key(seed) for seed in self.job.seeds])
        return self._spread(keys)

    def advance(
        self, states: TrainState, num_iterations: int
    ) -> tuple[TrainState, jax.Array]:
        """Run a chunk of iterations of all runs in one call to the device.

        A program compiled for more iterations also runs fewer.

        Returns:
            The new states and the reports, packed: see `unpack`.
        """
        fitting = [room for room in self._compiled if room >= num_iterations]
        room = min(fitting, default=num_iterations)
        count = jnp.asarray(num_iterations, jnp.int32)
        states, reports = self.compile(room)(
            states, self.method_params, self.params, count
        )
        if num_iterations < room:
            reports = reports[:, :num_iterations]
        return states, reports

    def unpack(self, reports: Any) -> Reports:
        """Reports of `advance` on the host, by name: `[R, num_iterations, ...]`."""
        return unpack(np.asarray(reports), self._shapes)

    def compile(self, most_iterations: int) -> Any:
        """The compiled chunk; compiled ahead of use, so that compilation can be timed."""
        if most_iterations not in self._compiled:
            placed: dict[str, Any] = {}
            if self._mesh is not None:
                everywhere = NamedSharding(self._mesh, PartitionSpec())
                placed["in_shardings"] = (*[self._sharding] * 3, everywhere)
            advance = jax.jit(
                partial(self._advance_runs, most_iterations=most_iterations),
                donate_argnums=0,
                **placed,
            )
            shapes = self.shapes()
            count = jax.ShapeDtypeStruct((), jnp.int32)
            self._compiled[most_iterations] = advance.lower(
                shapes, self.method_params, self.params, count
            ).compile()
        return self._compiled[most_iterations]

    def _advance_runs(
        self,
        states: TrainState,
        method: MethodParams,
        params: Any,
        count: jax.Array,
        most_iterations: int,
    ) -> tuple[TrainState, jax.Array]:
        def run(
            state: TrainState, method: MethodParams, params: Any, count: jax.Array
        ) -> Any:
            # Traced once: the loop below reuses the trace made for the shapes.
            @jax.jit
            def one(state: TrainState, method: MethodParams, params: Any) -> Any:
                params = self.job.params if params is None else params
                return train_iteration(self.recipe, self.job.env, params, method, state)

            def step(at: jax.Array, carry: Any) -> tuple[TrainState, jax.Array]:
                state, rows = carry
                state, report = one(state, method, params)
                write = jax.lax.dynamic_update_index_in_dim
                return state, write(rows, pack(report), at, 0)

            _, shapes = jax.eval_shape(one, state, method, params)
            self._shapes = {name: report.shape for name, report in shapes.items()}
            width = sum(math.prod(shape) for shape in self._shapes.values())
            rows = jnp.zeros((most_iterations, width))
            return jax.lax.fori_loop(0, count, step, (state, rows))

        return self._over_runs(run, shared=1)(states, method, params, count)

    def _over_runs(self, function: Any, shared: int = 0) -> Any:
        """A function of one run, for all runs: each device maps over its own share.

        Its last `shared` arguments are the same for all runs.
        """

        def mapped(*args: Any) -> Any:
            each, all_alike = args[: len(args) - shared], args[len(args) - shared :]
            if self._one_by_one:
                return jax.lax.map(lambda one: function(*one, *all_alike), each)
            return jax.vmap(lambda *one: function(*one, *all_alike))(*each)

        if self._mesh is None:
            return mapped

        def split(*args: Any) -> Any:
            runs, everywhere = PartitionSpec(RUNS), PartitionSpec()
            specs = [runs] * (len(args) - shared) + [everywhere] * shared
            return jax.shard_map(
                mapped,
                mesh=self._mesh,
                in_specs=tuple(specs),
                out_specs=runs,
                check_vma=False,
            )(*args)

        return split

    @property
    def _sharding(self) -> NamedSharding:
        assert self._mesh is not None
        return NamedSharding(self._mesh, PartitionSpec(RUNS))

    def _spread(self, tree: Any) -> Any:
        """Arrays `[R, ...]` on the devices that work on them."""
        return tree if self._mesh is None else jax.device_put(tree, self._sharding)


def _stacked(rows: Sequence[Any]) -> Any:
    """Trees of one structure stacked into one, the runs first."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def _mesh_of(devices: Sequence[Any] | None, num_runs: int) -> Mesh | None:
    if devices is None or len(devices) < 2:
        return None
    if num_runs % len(devices):
        raise ValueError(
            f"expected runs that divide evenly among {len(devices)} devices, got "
            f"{num_runs}: change the number of seeds or of devices"
        )
    return Mesh(np.asarray(devices), (RUNS,))
