"""An agent as one ONNX graph, from observation and state to action and next state.

The graph is translated from `termdp.runs.agent.act`, so both decide alike.
docs/export.md names the inputs and outputs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec

from termdp.agents.distributions import Discrete, Distribution
from termdp.costs import ensemble
from termdp.extras import needs
from termdp.files import draft_of, told_in_words
from termdp.provenance import version_of
from termdp.runs import cost_features
from termdp.runs.agent import Agent, AgentState, act

MANIFEST = "termdp"
MEMORY = ("state_c", "state_h")
COSTS = "state_costs"
Arrays = Mapping[str, jax.Array]


def check_out(path: Path) -> None:
    """Refuse a path that cannot be written, before any work."""
    if path.suffix != ".onnx":
        raise ValueError(f"expected a file name ending in .onnx, got {path.name!r}")
    if path.exists():
        raise ValueError(
            f"expected a file that does not exist, got {path}: remove it, or name "
            "another"
        )


@needs("onnx", "onnx")
def write_onnx(agent: Agent, path: Path) -> None:
    """Write the graph and its manifest into one file; a failure leaves no file."""
    import onnx

    from termdp.onnx_graph import graph_of

    agent = _in_float32(agent)
    name = f"{agent.card.spec.method_name} on {agent.card.spec.env}"
    model = graph_of(lambda inputs: one_step(agent, inputs), inputs_of(agent), name)
    onnx.helper.set_model_props(model, {MANIFEST: json.dumps(manifest_of(agent))})
    with told_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        draft.write_bytes(model.SerializeToString())


def manifest_of(agent: Agent) -> dict[str, Any]:
    """The manifest in the file's metadata."""
    card = agent.card
    actions: dict[str, Any] = {"choices": card.num_actions}
    if card.num_actions is None:
        actions = {"low": card.action_low, "high": card.action_high}
    encoded = {}
    if card.encoding is not None:
        encoded = {"encoding": msgspec.to_builtins(card.encoding)}
    return {
        "version": version_of("termdp"),
        "env": card.spec.env,
        "method": card.spec.method_name,
        "seed": card.spec.seed,
        "window": card.method.learner_window(card.window),
        "observation_shape": card.observation_shape,
        "observation_dtype": card.observation_dtype,
        "actions": actions,
        **encoded,
    }


def inputs_of(agent: Agent) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Names of the inputs, with the shape of one row."""
    distribution, state = agent.card.distribution, agent.initial_state(1)
    width = distribution.action_spec().size
    shapes = {"observation": agent.card.observation_shape, "noise": (width,)}
    shapes |= {name: one.shape for name, one in _from_state(state).items()}
    for name in shapes.keys() - {"observation", "noise"}:
        shapes[name] = shapes[name][1:]
    return {name: (shape, jnp.float32) for name, shape in shapes.items()}


def one_step(agent: Agent, inputs: Arrays) -> dict[str, jax.Array]:
    """The graph's outputs, by name."""
    drawn: Any = _Drawn(agent.card.distribution)
    actor = replace(agent.actor, distribution=drawn)
    seen = agent.seen(inputs["observation"])
    action, after = act(actor, agent.mind, _to_state(inputs), seen, inputs["noise"])
    if agent.card.num_actions and agent.card.encoding is not None:
        action = action + agent.card.encoding.action_start
    found = {"action": action, **drawn.described}
    if agent.card.method.learns_costs:
        costs, numbers = agent.mind.costs, agent.mind.method_params
        felt = cost_features.so_far(numbers, costs, after.recent_costs)
        bias = jnp.mean(ensemble.biases(costs))
        found["stop_probability"] = jax.nn.sigmoid(felt.mean - bias)
    return found | {f"next_{k}": v for k, v in _from_state(after).items()}


@dataclass
class _Drawn:
    """A distribution that samples with given noise, and records its parameters.

    Noise 0 gives the most probable action. Gumbel noise (discrete) or normal noise
    (continuous) gives a sample from the distribution.
    """

    of: Distribution
    described: dict[str, jax.Array] = field(default_factory=dict)

    def mode(self, parameters: jax.Array) -> jax.Array:
        return self.of.mode(parameters)

    def sample(self, noise: Any, parameters: jax.Array) -> jax.Array:
        if isinstance(self.of, Discrete):
            self.described["probabilities"] = jax.nn.softmax(parameters)
            return self.of.mode(parameters + noise).astype(jnp.int32)
        mean, deviation = self.of.moments(parameters)
        self.described |= {"mean": mean, "deviation": deviation}
        return mean + deviation * noise

    def executed(self, actions: jax.Array) -> jax.Array:
        return self.of.executed(actions)


def _from_state(state: AgentState) -> dict[str, jax.Array]:
    """The state's arrays by name, the batch first."""
    named = dict(zip(MEMORY, state.carry, strict=False))
    if state.recent_costs is not None:
        named[COSTS] = jnp.moveaxis(state.recent_costs, -1, 0)
    return named


def _to_state(named: Arrays) -> AgentState:
    carry = tuple(named[name] for name in MEMORY if name in named)
    recent = named.get(COSTS)
    return AgentState(carry, None if recent is None else jnp.moveaxis(recent, 0, -1))


def _in_float32(agent: Agent) -> Agent:
    """The same agent in float32, whatever precision is fastest on this machine."""
    card = replace(
        agent.card,
        torso=(*agent.card.torso[:3], "float32"),
        costs=replace(agent.card.costs, precision="float32"),
    )
    costs = agent.mind.costs
    if costs is not None:
        network = ensemble.make_network(card.distribution.action_spec(), card.costs)
        costs = replace(costs, network=network)
    return Agent(card, agent.mind.weights, costs, scale=agent.scale)
