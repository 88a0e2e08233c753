"""An agent that acts without its environment and observer."""

import dataclasses
import functools
import math
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from flax import struct

from termdp.agents.actor_critic import Actor, PolicyInput, forget, make_actor
from termdp.agents.distributions import Continuous, Discrete, Distribution
from termdp.agents.method_params import method_params
from termdp.agents.methods import Method
from termdp.array_files import read_with_manifest, write_arrays
from termdp.arrays import bytes_of, named_arrays, restore
from termdp.costs import ensemble
from termdp.costs.config import CostConfig
from termdp.gym.encoding import Encoding
from termdp.observer import MOST_WINDOW
from termdp.reading import Size, from_plain
from termdp.runs import cost_features
from termdp.runs.collect import Mind
from termdp.runs.config import NETWORKS
from termdp.runs.observation_scale import ObservationScale, initial_scale, scaled
from termdp.runs.program import Job
from termdp.runs.spec import RunSpec
from termdp.settings import PRECISIONS

OBSERVATION_TYPES = ("float32", "float16", "bool", "uint8", "int8", "int32", "int16")
MOST_NUMBERS = 10_000_000
FORMAT = "termdp agent"
VERSION = 1
MANIFEST = "termdp_agent"


@dataclasses.dataclass(frozen=True)
class AgentCard:
    """An agent's description as plain data: enough to build its networks.

    Attributes:
        spec: the run that it comes from; `seed` is the agent's own.
        method: all numbers of its method.
        window: steps that the observer was assumed to remember.
        observation_shape: of one observation.
        observation_dtype: of one observation.
        num_actions: of a discrete action; None for a continuous one.
        action_low: bounds of a continuous action.
        action_high: likewise.
        torso: kind, filters, width and precision of the policy's trunk.
        lstm_size: memory of a recurrent policy.
        costs: settings of the cost networks.
        return_mean: over the last tenth of training; None if unknown.
        encoding: how a Gymnasium environment's observations become arrays; None if they
            are arrays already.
    """

    spec: RunSpec
    method: Method
    window: Annotated[int, msgspec.Meta(ge=1, le=MOST_WINDOW)]
    observation_shape: Annotated[
        tuple[Size, ...], msgspec.Meta(min_length=1, max_length=3)
    ]
    observation_dtype: str
    num_actions: Size | None
    action_low: Annotated[tuple[float, ...], msgspec.Meta(max_length=10_000)]
    action_high: Annotated[tuple[float, ...], msgspec.Meta(max_length=10_000)]
    torso: tuple[str, Size, Size, str]
    lstm_size: Size
    costs: CostConfig
    return_mean: float | None = None
    encoding: Encoding | None = None

    def of_seed(self, seed: int, return_mean: float | None) -> "AgentCard":
        """The card of one of the run's seeds."""
        spec = dataclasses.replace(self.spec, seed=seed, seeds=1)
        return dataclasses.replace(self, spec=spec, return_mean=return_mean)

    def to_plain(self) -> dict[str, Any]:
        """The card as plain data, for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def check(self) -> None:
        """Refuse impossible cards; for those read from disk."""
        kind, _, _, precision = self.torso
        if kind not in NETWORKS or precision not in PRECISIONS:
            raise ValueError(
                f"expected a torso of kind {', '.join(NETWORKS)} and precision "
                f"{', '.join(PRECISIONS)}, got {kind!r:.40} and {precision!r:.40}"
            )
        if self.observation_dtype not in OBSERVATION_TYPES:
            raise ValueError(
                f"expected observations of type {', '.join(OBSERVATION_TYPES)}, got "
                f"{self.observation_dtype!r:.40}"
            )
        if math.prod(self.observation_shape) > MOST_NUMBERS:
            raise ValueError(
                f"expected at most {MOST_NUMBERS} numbers in an observation, got "
                f"{self.observation_shape}"
            )
        bounds = (*self.action_low, *self.action_high)
        paired = len(self.action_low) == len(self.action_high)
        if not paired or (self.num_actions is None) != bool(bounds):
            raise ValueError(
                "expected num_actions, or a lower and an upper bound for each number of "
                f"an action, got num_actions {self.num_actions}, "
                f"{len(self.action_low)} lower and {len(self.action_high)} upper bounds"
            )
        if self.encoding is not None:
            self.encoding.check()
            if self.encoding.shape != self.observation_shape:
                raise ValueError(
                    f"expected an encoding to shape {self.observation_shape}, that of "
                    f"the observations, got {self.encoding.shape}"
                )

    def initial_scale(self) -> ObservationScale | None:
        """The scale of observations before any were seen; None for no scaling."""
        if self.encoding is None:
            return None
        return initial_scale(self.encoding.scaling, self.observation_shape)

    @property
    def distribution(self) -> Distribution:
        """Distribution of the actions."""
        if self.num_actions is not None:
            return Discrete(self.num_actions)
        return Continuous(len(self.action_low), self.action_low, self.action_high)


def card_from_plain(content: Any) -> AgentCard:
    """Undo `AgentCard.to_plain`."""
    try:
        card: AgentCard = from_plain(content, AgentCard)
        card.check()
        return card
    except ValueError as error:
        raise ValueError(f"expected the description of an agent: {error}") from error


def make_card(spec: RunSpec, job: Job, run: int = 0) -> AgentCard:
    """The card of a run's agent, and of the agents that differ from it in seed only."""
    space = job.env.observation_space(job.params)
    distribution, config = job.distribution, job.config
    num_actions: int | None = None
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    if isinstance(distribution, Discrete):
        num_actions = distribution.num_actions
    else:
        low, high = distribution.low, distribution.high
    return AgentCard(
        spec=spec,
        method=job.methods[run],
        window=job.windows[run],
        observation_shape=tuple(space.shape),
        observation_dtype=np.dtype(space.dtype).name,
        num_actions=num_actions,
        action_low=low,
        action_high=high,
        torso=(config.network, config.filters, config.hidden, config.precision),
        lstm_size=config.lstm_size,
        costs=config.costs,
        encoding=getattr(job.env, "encoding", None),
    )


@struct.dataclass
class AgentState:
    """What an agent remembers of its episodes; pass it from one `predict` to the next.

    Attributes:
        carry: the memory of a recurrent policy, `[B, ...]`.
        recent_costs: recent learned costs, `[..., B]`; None if no costs are learned.
    """

    carry: Any
    recent_costs: Any


class Agent:
    """A trained policy, and what it learned about the observer.

    Made by `termdp.load` and `result.agent()`. It needs neither the environment nor the
    observer that it was trained with.

    Examples:
        >>> import termdp
        >>> agent = termdp.train("recommender", "pg", steps=2048).agent()
        >>> import numpy as np
        >>> observation = np.zeros(agent.card.observation_shape, np.float32)
        >>> action, state = agent.predict(observation, deterministic=True)
    """

    def __init__(
        self,
        card: AgentCard,
        weights: Any,
        costs: Any,
        seed: int = 0,
        scale: ObservationScale | None = None,
    ):
        self.card = card
        self.scale = scale
        self.actor = _actor_of(card)
        self.mind = Mind(weights, costs, method_params(card.method, card.window))
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Set the seed for sampling actions."""
        self._key, self._draws = jax.random.key(seed), 0

    def __repr__(self) -> str:
        card = self.card
        shape = "×".join(map(str, card.observation_shape))
        actions = card.num_actions or f"{len(card.action_low)} real"
        score = "" if card.return_mean is None else f", return {card.return_mean:.4g}"
        return (
            f"Agent({card.spec.method_name} on {card.spec.env}, seed {card.spec.seed}"
            f"{score}; "
            f"observations {shape}, {actions} actions)"
        )

    def initial_state(self, num_envs: int = 1) -> AgentState:
        """The memory at the start of a number of episodes."""
        return initial_memory(self.card, self.actor, num_envs)

    def predict(
        self,
        observation: Any,
        state: AgentState | None = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, AgentState]:
        """Choose actions; called like Stable-Baselines3's `predict`.

        Args:
            observation: one observation, or a batch `[B, ...]`.
            state: what the previous call returned; None at the start of episodes.
            episode_start: `[B]`, true where an episode has just begun; the memory of
                the previous one is cleared there.
            deterministic: take the most probable action instead of sampling.

        Returns:
            The action (or actions `[B]`), and the state for the next call.
        """
        batch, is_single = self._batch(observation)
        self._check_can_act()
        count = len(batch)
        state = self.initial_state(count) if state is None else state
        starts = np.zeros(count, bool)
        if episode_start is not None:
            starts |= np.atleast_1d(np.asarray(episode_start, bool))
        self._draws += 1
        actions, state = _act(
            self.actor,
            self.mind,
            state,
            self.seen(batch),
            starts,
            jax.random.fold_in(self._key, self._draws),
            bool(deterministic),
        )
        actions = np.asarray(actions)
        if self.card.encoding is not None:
            actions = self._as_given(self.card.encoding, actions)
        if is_single:
            first = actions[0]
            return (int(first) if self.card.num_actions else first), state
        return actions, state

    def stop_probability(
        self, observation: Any, action: Any, state: AgentState | None = None
    ) -> Any:
        """The learned probability that the observer stops the agent after this action.

        Args:
            observation: one observation, or a batch.
            action: the action taken there.
            state: what `predict` returned for the previous step; None at the start.

        Returns:
            A probability (or `[B]`); None for methods that learn no costs.
        """
        if not self.card.method.learns_costs:
            return None
        batch, is_single = self._batch(observation)
        actions = jnp.asarray(action)[None] if is_single else jnp.asarray(action)
        if self.card.encoding is not None and self.card.num_actions:
            actions = actions - self.card.encoding.action_start
        state = self.initial_state(len(batch)) if state is None else state
        seen = self.seen(batch)
        found = np.asarray(_stop_probability(self.mind, state, seen, actions))
        return float(found[0]) if is_single else found

    def save(self, path: str | Path, half: bool = False) -> Path:
        """Write the agent into one safetensors file that `termdp.load` reads.

        Args:
            path: the file.
            half: 16-bit numbers instead of 32: half the size; probabilities differ in
                the third or fourth digit.
        """
        path = Path(path)
        average = None if self.mind.costs is None else self.mind.costs.average
        arrays = named_arrays(
            {"policy": self.mind.weights, "costs": average, "scale": self.scale}
        )
        if half:
            arrays = _as_type(np.float16, np.float32, arrays)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "agent": self.card.to_plain(),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, arrays, MANIFEST, manifest)
        return path

    def seen(self, observations: Any) -> Any:
        """Observations `[B, ...]` as the networks see them: scaled as in training."""
        return scaled(self.scale, observations)

    def _as_given(self, encoding: Encoding, actions: np.ndarray) -> np.ndarray:
        """Actions as the environment expects them: shifted to its start, or clipped."""
        if self.card.num_actions:
            return actions + encoding.action_start
        return np.clip(actions, self.card.action_low, self.card.action_high).astype(
            encoding.action_dtype
        )

    def to_onnx(self, path: str | Path) -> Path:
        """Write the agent as one ONNX graph that computes one step (docs/export.md)."""
        from termdp.runs.export import write_onnx

        self._check_can_act()
        write_onnx(self, Path(path))
        return Path(path)

    def _batch(self, observation: Any) -> tuple[np.ndarray, bool]:
        """Observations `[B, ...]`, and whether a single one was given."""
        encoding = self.card.encoding
        if encoding is not None:
            is_single = encoding.is_single(observation)
            return encoding.encode(observation, is_single), is_single
        given = np.asarray(observation)
        expected = self.card.observation_shape
        if given.shape == expected:
            return given[None], True
        if given.shape[1:] == expected and len(given):
            return given, False
        raise ValueError(
            f"expected an observation of shape {expected} or a batch of them, got "
            f"{given.shape}"
        )

    def _check_can_act(self) -> None:
        if self.card.method.knows_costs:
            name = self.card.spec.method_name
            raise ValueError(
                f"expected an agent that acts without its observer, got {name}: it needs "
                "the observer's true costs. Use termdp.evaluate or termdp eval"
            )


def initial_memory(card: AgentCard, actor: Actor, num_envs: int) -> AgentState:
    """An agent's memory at the start of a number of episodes."""
    recent = None
    if card.method.learns_costs:
        window = card.method.learner_window(card.window)
        recent = cost_features.empty_memory(card.costs, window, num_envs)
    return AgentState(actor.network.initial_carry((num_envs,)), recent)


def act(
    actor: Actor,
    mind: Mind,
    memory: AgentState,
    observations: Any,
    key: jax.Array,
    deterministic: bool = False,
    true_window_cost: Any = 0.0,
    bias: Any = 0.0,
) -> tuple[jax.Array, AgentState]:
    """One step of an agent: a pure function that can be compiled.

    `termdp.runs.collect` does the same in a loop, with the same parts.

    Args:
        actor: how the agent acts.
        mind: what it acts with.
        memory: of the episodes so far.
        observations: `[B, ...]`.
        key: random key.
        deterministic: the most probable actions.
        true_window_cost: C so far, `[B]`, for the method that knows it.
        bias: the observer's b, for the same method.

    Returns:
        The actions for the environment, `[B]`, and the memory after them.
    """
    num_envs = jnp.shape(observations)[0]
    true = jnp.broadcast_to(jnp.asarray(true_window_cost, jnp.float32), (num_envs,))
    cost = cost_features.visible_costs(
        mind.method_params, mind.costs, memory.recent_costs, true, bias
    )
    carry, (dist_params, _) = actor.network.apply(
        mind.weights, memory.carry, PolicyInput(observations, cost)
    )
    choose = actor.distribution
    actions = choose.mode(dist_params)
    if not deterministic:
        actions = choose.sample(key, dist_params)
    actions = choose.executed(actions)
    recent = memory.recent_costs
    if recent is not None:
        recent = cost_features.after_step(
            mind.method_params, mind.costs, recent, observations, actions
        )
    return actions, AgentState(carry, recent)


@functools.partial(jax.jit, static_argnames=("actor", "deterministic"))
def _act(
    actor: Actor,
    mind: Mind,
    memory: AgentState,
    observations: Any,
    starts: Any,
    key: jax.Array,
    deterministic: bool,
) -> tuple[jax.Array, AgentState]:
    recent = memory.recent_costs
    memory = AgentState(
        forget(memory.carry, starts),
        None if recent is None else jnp.where(starts, 0.0, recent),
    )
    return act(actor, mind, memory, observations, key, deterministic)


@jax.jit
def _stop_probability(
    mind: Mind, memory: AgentState, observations: Any, actions: jax.Array
) -> jax.Array:
    """ρ(C − b̄) after the step, by the ensemble's mean."""
    after = accumulated_after(mind, memory.recent_costs, observations, actions)
    bias = jnp.mean(ensemble.biases(mind.costs))
    return jax.nn.sigmoid(after.mean - bias)


def accumulated_after(
    mind: Mind, recent: Any, observations: Any, actions: jax.Array
) -> cost_features.Accumulated:
    """The learned accumulated cost after one more step, `[B]` each."""
    numbers = mind.method_params
    recent = cost_features.after_step(
        numbers, mind.costs, recent, observations, actions
    )
    return cost_features.so_far(numbers, mind.costs, recent)


def _actor_of(card: AgentCard) -> Actor:
    return make_actor(
        card.distribution, card.method.recurrent, card.torso, card.lstm_size
    )


def weight_templates(card: AgentCard) -> tuple[Any, Any]:
    """Shapes of a policy's weights and of its cost ensemble (None if it has none)."""
    actor = _actor_of(card)
    example = jax.ShapeDtypeStruct(card.observation_shape, card.observation_dtype)

    def policy() -> Any:
        observation = jnp.zeros((1, *example.shape), example.dtype)
        inputs = PolicyInput(observation, jnp.zeros((1, cost_features.NUM_FEATURES)))
        carry = actor.network.initial_carry((1,))
        return actor.network.init(jax.random.key(0), carry, inputs)

    def costs() -> Any:
        observation = jnp.zeros(example.shape, example.dtype)
        spec = card.distribution.action_spec()
        return ensemble.init(jax.random.key(0), observation, spec, card.costs)

    learned = jax.eval_shape(costs) if card.method.learns_costs else None
    return jax.eval_shape(policy), learned


def agent_from_arrays(
    card: AgentCard,
    policy: dict[str, np.ndarray],
    costs: dict[str, np.ndarray],
    scale: dict[str, np.ndarray],
) -> Agent:
    """An agent from named arrays.

    Args:
        card: its description.
        policy: the policy's weights.
        costs: weights of the averaged cost networks; empty if there are none.
        scale: the scale of observations; empty if there is none.
    """
    weights, learned = weight_templates(card)
    if learned is not None:
        learned = learned_costs(learned, restore(learned.average, costs))
    counted = restore(card.initial_scale(), scale)
    return Agent(card, restore(weights, policy), learned, scale=counted)


def learned_costs(template: Any, average: Any) -> Any:
    """A cost ensemble that predicts with these parameters and no longer learns."""
    ready = jnp.ones((), bool)
    return dataclasses.replace(
        template, params=average, average=average, optimiser=(), has_bias=ready
    )


def read_agent(path: Path) -> Agent:
    """An agent from a file of `Agent.save`."""

    def card_of(manifest: Any) -> AgentCard:
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError("it is a safetensors file of another kind")
        found = manifest.get("version")
        if found != VERSION:
            raise ValueError(
                f"expected format version {VERSION}, got {found!r:.40}: use the termdp "
                "that wrote it"
            )
        return card_from_plain(manifest.get("agent"))

    def room(manifest: Any) -> int:
        card = card_of(manifest)
        weights, learned = weight_templates(card)
        average = None if learned is None else learned.average
        return bytes_of((weights, average, card.initial_scale()))

    try:
        manifest, arrays = read_with_manifest(path, MANIFEST, room)
        arrays = _as_type(np.float32, np.float16, arrays)
        return agent_from_arrays(
            card_of(manifest),
            named_under("['policy']", arrays),
            named_under("['costs']", arrays),
            named_under("['scale']", arrays),
        )
    except ValueError as error:
        raise ValueError(
            f"expected an agent's file (written by agent.save), got {path}: {error}"
        ) from error


def _as_type(
    wanted: type, given: type, arrays: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Convert the arrays of one type to another; leave the others alone."""
    return {
        name: array.astype(wanted) if array.dtype == given else array
        for name, array in arrays.items()
    }


def named_under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of one part of a tree, by their names within it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
