"""Many iterations, many runs, one compiled program.

Runs (methods × seeds) are the leading axis of everything: `vmap` makes one program of
them, and `lax.scan` runs a chunk of iterations without coming back to Python.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from termdp.agents import ppo
from termdp.agents.actor_critic import (
    ActorCritic,
    PolicyInput,
    RecurrentActorCritic,
    make_torso,
)
from termdp.agents.distributions import Discrete, for_action_space
from termdp.agents.methods import Method, MethodSwitches
from termdp.agents.update import Learner, PolicyState, PolicyUpdate
from termdp.cost_network import ActionSpec
from termdp.costs import buffer as cost_buffer
from termdp.costs import ensemble
from termdp.training import rollout
from termdp.training.config import TrainConfig
from termdp.training.cost_features import NUM_FEATURES
from termdp.training.iteration import Program, train_iteration
from termdp.training.metrics import Metrics
from termdp.training.rollout import World
from termdp.training.types import TrainState

RUNS = "runs"  # the axis that devices share


@dataclasses.dataclass(frozen=True)
class Job:
    """Runs that share a program: one environment, several (method, seed) pairs.

    Attributes:
        env: an observed environment.
        params: its parameters.
        methods: one method per run.
        seeds: one seed per run.
        config: sizes and rates.
        num_iterations: how long the runs are.
        policy_update: the policy-gradient algorithm (ALG-PG); None for PPO.
        run_params: parameters of each run, where their observers differ in numbers;
            None if `params` serve all.
    """

    env: Any
    params: Any
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    config: TrainConfig
    num_iterations: int
    policy_update: PolicyUpdate | None = None
    run_params: tuple[Any, ...] | None = None

    @property
    def windows(self) -> tuple[int, ...]:
        """How far each run's learner may look back, were it not mistaken."""
        each = self.run_params or (self.params,) * len(self.methods)
        return tuple(self._window(params.observer) for params in each)

    def _window(self, observer: Any) -> int:
        """What the observer remembers; half a segment if that is unbounded."""
        if observer.leak is not None or observer.window is None:
            return self.config.costs.segment_length // 2
        return int(observer.window)

    @property
    def max_window(self) -> int:
        """The longest learner's window among the methods."""
        pairs = zip(self.methods, self.windows, strict=True)
        return max(method.learner_window(window) for method, window in pairs)

    def switches(self) -> MethodSwitches:
        """The methods as numbers, stacked over runs."""
        pairs = zip(self.methods, self.windows, strict=True)
        return _stacked([method.switches(window) for method, window in pairs])


def make_program(job: Job) -> Program:
    """Put together what is fixed when training is compiled."""
    config = job.config
    recurrent = {method.recurrent for method in job.methods}
    if len(recurrent) > 1:
        raise ValueError(
            "expected methods that are all recurrent or all feed-forward in one job, "
            "got both: run them as two jobs"
        )
    distribution = for_action_space(job.env.action_space(job.params))
    torso = make_torso(config.network, config.filters, config.hidden, config.precision)
    is_recurrent = recurrent.pop()
    network = (
        RecurrentActorCritic(torso, distribution.num_outputs, config.lstm_size)
        if is_recurrent
        else ActorCritic(torso, distribution.num_outputs)
    )
    learns_costs = any(method.learns_costs for method in job.methods)
    if learns_costs:
        config.costs.check_window(job.max_window)
    return Program(
        world=World(job.env, job.params),
        learner=Learner(network, distribution, make_optimiser(job), is_recurrent),
        policy_update=job.policy_update or partial(ppo.update, config=config.ppo),
        config=config,
        learns_costs=learns_costs,
    )


def make_optimiser(job: Job) -> optax.GradientTransformation:
    """Adam, with a bound on the gradient and a falling rate where asked for."""
    config = job.config
    rate: Any = config.learning_rate
    if config.anneal:
        updates = config.ppo.num_epochs * config.ppo.num_minibatches
        rate = optax.linear_schedule(rate, 0.0, job.num_iterations * updates)
    adam = optax.adam(rate, eps=config.adam_eps)
    if config.max_grad_norm is None:
        return adam
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), adam)


def initial_state(program: Program, key: jax.Array, max_window: int) -> TrainState:
    """The state of one run before its first iteration."""
    config, world, learner = program.config, program.world, program.learner
    key, key_scene, key_policy, key_costs = jax.random.split(key, 4)
    memory = None
    if program.learns_costs:
        channels = config.costs.members + 1
        memory = jnp.zeros((max_window, channels, config.num_envs))
    scene = rollout.initial_scene(world, learner, key_scene, config.num_envs, memory)
    seen = PolicyInput(scene.observations, jnp.zeros((config.num_envs, NUM_FEATURES)))
    params = learner.network.init(key_policy, scene.carry, seen)
    policy = PolicyState(
        params, learner.optimiser.init(params), jnp.float32(config.kl_coef)
    )
    costs = buffer = None
    if program.learns_costs:
        actions = action_spec(learner.distribution)
        example = scene.observations[0]
        costs = ensemble.init(key_costs, example, actions, config.costs)
        buffer = cost_buffer.init(
            example, actions, config.num_envs, config.rollout_steps, config.costs
        )
    return TrainState(key, jnp.int32(0), scene, policy, costs, buffer)


def action_spec(distribution: Any) -> ActionSpec:
    """What actions look like to the cost networks."""
    if isinstance(distribution, Discrete):
        return ActionSpec(distribution.num_actions)
    return ActionSpec(distribution.size, discrete=False)


class Trainer:
    """A job, compiled: `init` its runs, then `advance` them chunk by chunk.

    Args:
        job: what to train.
        devices: where; the runs are split evenly among several devices. None for
            JAX's default device.
    """

    def __init__(self, job: Job, devices: Sequence[Any] | None = None):
        self.job = job
        self.program = make_program(job)
        self._mesh = _mesh_of(devices, len(job.seeds))
        self.switches = self._spread(job.switches())
        # None where all runs see the same: then the parameters are constants.
        self.params = self._spread(job.run_params and _stacked(job.run_params))
        self._compiled: dict[int, Any] = {}
        self._start: Any = jax.jit(self._over_runs(self._start_run))
        self._compiled_start: Any = None
        # Compiled once for all runs: what differs between them is an argument.
        self.play = jax.jit(
            partial(rollout.collect, self.program.world, self.program.learner),
            static_argnames=("num_steps",),
        )

    def init(self) -> TrainState:
        """States of all runs, `[R, ...]`."""
        keys = self._keys()
        # Whoever asks for the shapes alone (`jax.eval_shape`) traces.
        traced = self._compiled_start is None or isinstance(keys, jax.core.Tracer)
        start = self._start if traced else self._compiled_start
        states: TrainState = start(keys, self.params)
        return states

    def compile_init(self) -> None:
        """Compile `init` ahead of use, for instance in another thread."""
        self._compiled_start = self._start.lower(self._keys(), self.params).compile()

    def _start_run(self, key: jax.Array, params: Any) -> TrainState:
        return initial_state(self._seeing(params), key, self.job.max_window)

    def _seeing(self, params: Any) -> Program:
        """The program in the world of one run."""
        if params is None:
            return self.program
        return self.program._replace(world=World(self.job.env, params))

    def _keys(self) -> jax.Array:
        keys = jnp.stack([jax.random.key(seed) for seed in self.job.seeds])
        return self._spread(keys)

    def advance(
        self, states: TrainState, num_iterations: int
    ) -> tuple[TrainState, Metrics]:
        """Run a chunk of iterations of all runs in one call to the device.

        A program that was compiled for more iterations serves for fewer.

        Returns:
            The new states and the reports, `[R, num_iterations, ...]`.
        """
        fitting = [room for room in self._compiled if room >= num_iterations]
        room = min(fitting, default=num_iterations)
        count = jnp.asarray(num_iterations, jnp.int32)
        states, reports = self.compile(room)(states, self.switches, self.params, count)
        if num_iterations < room:
            reports = jax.tree.map(lambda rows: rows[:, :num_iterations], reports)
        return states, reports

    def compile(self, most_iterations: int) -> Any:
        """The compiled chunk; ahead of use, so that compilation can be timed apart."""
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
            shapes = jax.eval_shape(self.init)
            count = jax.ShapeDtypeStruct((), jnp.int32)
            self._compiled[most_iterations] = advance.lower(
                shapes, self.switches, self.params, count
            ).compile()
        return self._compiled[most_iterations]

    def _advance_runs(
        self,
        states: TrainState,
        switches: MethodSwitches,
        params: Any,
        count: jax.Array,
        most_iterations: int,
    ) -> tuple[TrainState, Metrics]:
        def run(
            state: TrainState, switches: MethodSwitches, params: Any, count: jax.Array
        ) -> Any:
            # Traced once: the loop below finds what asking for the shapes has traced.
            @jax.jit
            def one(state: TrainState, switches: MethodSwitches, params: Any) -> Any:
                return train_iteration(self._seeing(params), switches, state)

            def step(at: jax.Array, carry: Any) -> tuple[TrainState, Metrics]:
                state, reports = carry
                state, report = one(state, switches, params)
                write = jax.lax.dynamic_update_index_in_dim
                return state, jax.tree.map(
                    lambda rows, row: write(rows, row, at, 0), reports, report
                )

            _, shapes = jax.eval_shape(one, state, switches, params)
            reports = jax.tree.map(
                lambda x: jnp.zeros((most_iterations, *x.shape), x.dtype), shapes
            )
            return jax.lax.fori_loop(0, count, step, (state, reports))

        return self._over_runs(run, shared=1)(states, switches, params, count)

    def _over_runs(self, function: Any, shared: int = 0) -> Any:
        """The function of one run, for all: each device maps over its own share.

        Its last `shared` arguments are the same for all runs.
        """

        def mapped(*args: Any) -> Any:
            axes = [0] * (len(args) - shared) + [None] * shared
            return jax.vmap(function, in_axes=tuple(axes))(*args)

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
    """Trees of one structure as one, the runs first."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def _mesh_of(devices: Sequence[Any] | None, num_runs: int) -> Mesh | None:
    if devices is None or len(devices) < 2:
        return None
    if num_runs % len(devices):
        raise ValueError(
            f"expected runs that divide evenly among {len(devices)} devices, got "
            f"{num_runs}"
        )
    return Mesh(np.asarray(devices), (RUNS,))
