"""Training for environments that are not JAX: the host steps them, the device learns.

States, reports and `improve` are those of `termdp.runs.program`. Runs take turns: while
the device improves one of them, the host plays the next.

The environments themselves cannot be saved. After a resume they begin new episodes.
Networks, optimiser, learned costs and their data, observation scale, random keys and
counts continue unchanged.
"""

import dataclasses
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.agents.method_params import MethodParams
from termdp.gym.copies import Copies
from termdp.gym.source import GymnasiumSource
from termdp.runs import host_collect
from termdp.runs.collect import Mind, RolloutState
from termdp.runs.host_collect import Fixed, Heard, Notes, Present
from termdp.runs.improve import TrainState, improve
from termdp.runs.metrics import Reports, pack, unpack
from termdp.runs.observation_scale import initial_scale, scaled
from termdp.runs.program import Job, initial_memory, make_recipe, state_at


@dataclasses.dataclass
class Standing:
    """The state of one run's copies, on the host.

    Attributes:
        observations: what the agent sees next, encoded.
        ended: which episodes ended in the last step.
        returns: reward so far.
        lengths: steps so far.
    """

    observations: np.ndarray
    ended: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray


class HostProgram:
    """A job on a Gymnasium environment, with the interface of `TrainProgram`."""

    def __init__(self, job: Job):
        self.job = job
        self.source: GymnasiumSource = job.env
        self.recipe = make_recipe(job)
        self.compile_seconds = 0.0
        config = job.config
        self.source.check_counts(config.num_envs, len(job.seeds))
        self.method_params = numbers = job.method_params()
        runs = range(len(job.seeds))
        self._methods = [jax.tree.map(lambda x, r=run: x[r], numbers) for run in runs]
        self._standing: dict[int, Standing] = {}
        self._has_truth = self.source.observer is not None
        self._counts = self.source.encoding.scaling == "running"
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._init = jax.jit(jax.vmap(self._start_run))
        self._begin = jax.jit(self._begin_rollout)
        step = partial(host_collect.step, self.recipe.learner, self._counts)
        self._step = jax.jit(step, donate_argnums=1)  # the notes
        self._improve = jax.jit(self._improve_run, donate_argnums=0)
        self._apart = jax.jit(
            lambda states: [jax.tree.map(lambda x, r=run: x[r], states) for run in runs]
        )
        self._together = jax.jit(
            lambda states: jax.tree.map(lambda *x: jnp.stack(x), *states)
        )

    def init(self) -> TrainState:
        """States of all runs, `[R, ...]`."""
        keys = jnp.stack([jax.random.key(seed) for seed in self.job.seeds])
        states: TrainState = self._init(keys)
        return states

    def shapes(self) -> Any:
        """Shapes of the states that `init` makes."""
        return jax.eval_shape(self.init)

    def _start_run(self, key: jax.Array) -> TrainState:
        config, encoding = self.job.config, self.source.encoding
        batch = (config.num_envs, *encoding.shape)
        scale = initial_scale(encoding.scaling, encoding.shape)
        rollout_state = RolloutState(
            env_states=(),
            observations=scaled(scale, jnp.zeros(batch, encoding.dtype)),
            starts=jnp.ones(config.num_envs, bool),
            carry=self.recipe.learner.network.initial_carry((config.num_envs,)),
            recent_costs=initial_memory(self.recipe, self.job.max_window),
            true_window_cost=jnp.zeros(config.num_envs),
            episode_returns=jnp.zeros(config.num_envs),
            episode_lengths=jnp.zeros(config.num_envs, jnp.int32),
        )
        keys = jax.random.split(key, 3)
        state = state_at(self.recipe, rollout_state, tuple(keys), self.job.max_window)
        return dataclasses.replace(state, observation_scale=scale)

    def compile_all(self, most_iterations: int) -> None:
        """Compile all parts by running each once on a throw-away state."""
        began = time.perf_counter()
        state = self._apart(self.init())[0]
        config, encoding = self.job.config, self.source.encoding
        observations = np.zeros((config.num_envs, *encoding.shape), encoding.dtype)
        heard = self._blank(observations)
        fixed, notes, present = self._begin(state, self._methods[0])
        no = np.zeros(config.num_envs, bool)
        _, notes, present = self._step(fixed, notes, present, observations, no)
        jax.block_until_ready(
            self._improve(
                state, self._methods[0], fixed.first_cost, notes, present, heard
            )
        )
        self.compile_seconds += time.perf_counter() - began

    def advance(
        self, states: TrainState, num_iterations: int
    ) -> tuple[TrainState, np.ndarray]:
        """Some iterations of all runs.

        Returns:
            The new states and the reports, packed: see `unpack`.
        """
        each = self._apart(states)
        rows: list[list[Any]] = [[] for _ in each]
        for _ in range(num_iterations):
            for run, state in enumerate(each):
                each[run], report = self._iterate(run, state)
                rows[run].append(report)
        reports = np.stack([np.stack(jax.device_get(some)) for some in rows])
        return self._together(each), reports

    def unpack(self, reports: Any) -> Reports:
        """Reports of `advance` by name: `[R, num_iterations, ...]`."""
        return unpack(np.asarray(reports), self._shapes)

    def close(self) -> None:
        """Close the environments that this program made."""
        self.source.close()
        self._standing = {}

    def _iterate(self, run: int, state: TrainState) -> tuple[TrainState, jax.Array]:
        """One iteration of Algorithm 2, arXiv:2205.15376: collect, then improve."""
        fixed, notes, present, heard = self.collect(run, state)
        found: tuple[TrainState, jax.Array] = self._improve(
            state, self._methods[run], fixed.first_cost, notes, present, heard
        )
        return found

    def collect(
        self, run: int, state: TrainState
    ) -> tuple[Fixed, Notes, Present, Heard]:
        """Play a rollout: what the device kept of it, and what the host recorded."""
        copies = self.source.copies(run, self.job.config.num_envs)
        if run not in self._standing:
            iteration = int(state.iteration)
            self._standing[run] = stand(copies, self.job.seeds[run], iteration)
        fixed, notes, present = self._begin(state, self._methods[run])
        heard = self._blank(self._standing[run].observations)
        for at in range(self.job.config.rollout_steps):
            now = self._standing[run]
            actions, notes, present = self._step(
                fixed, notes, present, now.observations, now.ended
            )
            self._standing[run] = play(copies, np.asarray(actions), now, heard, at)
        heard = heard._replace(observations=self._standing[run].observations)
        return fixed, notes, present, heard

    def _blank(self, observations: np.ndarray) -> Heard:
        config = self.job.config
        return host_collect.blank(
            config.rollout_steps, config.num_envs, observations, self._has_truth
        )

    # ---- on the device ---------------------------------------------------------------

    def _begin_rollout(
        self, state: TrainState, method: MethodParams
    ) -> tuple[Fixed, Notes, Present]:
        _, key_collect, _ = jax.random.split(state.key, 3)
        return host_collect.begin(
            self.recipe.learner,
            Mind(state.policy.params, state.costs, method),
            state.rollout_state,
            state.observation_scale,
            key_collect,
            self.job.config.rollout_steps,
        )

    def _improve_run(
        self,
        state: TrainState,
        method: MethodParams,
        first_cost: jax.Array,
        notes: Notes,
        present: Present,
        heard: Heard,
    ) -> tuple[TrainState, jax.Array]:
        key, _, key_improve = jax.random.split(state.key, 3)
        rollout_state, rollout = host_collect.finish(
            self.recipe.learner,
            Mind(state.policy.params, state.costs, method),
            first_cost,
            notes,
            present,
            state.rollout_state.carry,
            heard,
        )
        state = dataclasses.replace(state, key=key, observation_scale=present.scale)
        state, report = improve(
            self.recipe, method, state, rollout, rollout_state, key_improve
        )
        self._shapes = {name: np.shape(value) for name, value in report.items()}
        return state, pack(report)


def stand(copies: Copies, seed: int, iteration: int) -> Standing:
    """All copies at the start of new episodes.

    Their seed depends on the run's seed and its progress, so that a resumed run does not
    repeat its first episodes.
    """
    drawn = np.random.SeedSequence([seed, iteration]).generate_state(1)[0]
    observations = copies.reset(int(drawn) % (2**31 - copies.num_envs))
    count = copies.num_envs
    return Standing(
        observations,
        ended=np.ones(count, bool),
        returns=np.zeros(count, np.float32),
        lengths=np.zeros(count, np.int32),
    )


def play(
    copies: Copies, actions: np.ndarray, now: Standing, heard: Heard, at: int
) -> Standing:
    """One step of all copies; records go into row `at`."""
    played = copies.step(actions)
    ended = played.ended
    returns = np.where(now.ended, 0.0, now.returns) + played.rewards
    lengths = np.where(now.ended, 0, now.lengths) + 1
    heard.starts[at] = now.ended
    heard.rewards[at] = played.rewards
    heard.game_over[at] = played.game_over
    heard.stopped[at] = played.stopped
    heard.truncated[at] = played.truncated
    heard.episode_returns[at] = returns
    heard.episode_lengths[at] = lengths
    if heard.truth is not None:
        heard.truth[at] = played.truth()
    if ended.any():
        heard.finals[at] = played.finals
    return Standing(played.observations, ended, returns, lengths)
