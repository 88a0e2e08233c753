"""Costs learned from recorded stops alone, while an agent acts at random.

python benchmarks/recorded_costs.py backseat [--next] [--set network=columns channels=3]

Records until there are 10,000 stops, learns from all of them (`keep = "stops"`), and
prints the correlation of the learned cost with the true one on fresh steps.
"""

import argparse
import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import termdp
from termdp.cost_network import ActionSpec
from termdp.costs import ensemble, experience, fit
from termdp.costs.buffer import step_labels
from termdp.costs.config import CostConfig
from termdp.runs.config import make_config

ROLLOUT = 32


@dataclass(frozen=True)
class Recorder:
    """Plays an environment without learning.

    Attributes:
        env: an observed environment.
        params: its parameters.
        num_envs: how many are played together.
        repeat: the chance that the last action is taken again.
        with_next: append the next observation to this one: c(s, a, s′).
    """

    env: Any
    params: Any
    num_envs: int = 256
    repeat: float = 0.0
    with_next: bool = False

    @property
    def num_actions(self) -> int:
        """Of the environment."""
        return int(self.env.action_space(self.params).n)

    def start(self, key: jax.Array) -> Any:
        """Environments at the start of an episode."""
        keys = jax.random.split(key, self.num_envs)
        obs, state = jax.vmap(self.env.reset, (0, None))(keys, self.params)
        nothing = jnp.zeros(self.num_envs, jnp.int32)
        return obs, state, jnp.ones(self.num_envs, bool), nothing

    def play(self, carry: Any, key: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        """One rollout, `[T, B, ...]` each."""

        def step(carry: Any, key: jax.Array) -> Any:
            obs, state, starts, before = carry
            key_act, key_repeat, key_env = jax.random.split(key, 3)
            drawn = jax.random.randint(key_act, before.shape, 0, self.num_actions)
            again = jax.random.uniform(key_repeat, before.shape) < self.repeat
            action = jnp.where(again & ~starts, before, drawn)
            keys = jax.random.split(key_env, self.num_envs)
            seen, state, _, _, truncated, info = jax.vmap(
                self.env.step, (0, 0, 0, None)
            )(keys, state, action, self.params)
            ended = info["game_over"] | info["stopped"] | truncated
            shown = obs
            if self.with_next:
                shown = jnp.concatenate([obs, info["final_observation"]], axis=-1)
            row = {
                "obs": shown,
                "actions": action,
                "starts": starts,
                "stopped": info["stopped"],
                "labels": step_labels(info["stopped"], info["game_over"]),
                "costs": info["cost"],
            }
            return (seen, state, ended, action), row

        return jax.lax.scan(step, carry, jax.random.split(key, ROLLOUT))


@dataclass(frozen=True)
class Learned:
    """What was learned from a record.

    Attributes:
        stops: how many were recorded.
        correlation: of the mean learned cost with the true one, on fresh steps.
        bias: mean over members.
        state: the ensemble.
    """

    stops: int
    correlation: float
    bias: float
    state: ensemble.CostState


def learn(
    recorder: Recorder,
    config: CostConfig,
    window: int,
    stops: int,
    num_steps: int,
    seed: int = 0,
    most_rollouts: int = 2000,
) -> Learned:
    """Record until there are enough stops, learn, and compare on fresh steps."""
    keys = jax.random.split(jax.random.key(seed), 5)
    carry = recorder.start(keys[0])
    actions = ActionSpec(recorder.num_actions)
    sizes = (recorder.num_envs, ROLLOUT)
    example = jax.eval_shape(recorder.play, carry, keys[0])[1]["obs"]
    kept = experience.init(
        jnp.zeros(example.shape[2:], example.dtype), actions, sizes, window, config
    )

    @partial(jax.jit, donate_argnums=1)
    def record(carry: Any, kept: Any, key: jax.Array) -> Any:
        key_play, key_add = jax.random.split(key)
        carry, rows = recorder.play(carry, key_play)
        labels = rows["labels"]
        added = (rows["obs"], rows["actions"], rows["starts"], labels)
        counts = jnp.stack([jnp.sum(rows["stopped"]), jnp.sum(labels >= 0)])
        return carry, experience.add(key_add, kept, *added, config), counts

    total, rollouts = np.zeros(2, int), 0
    while total[0] < stops and rollouts < most_rollouts:
        key = jax.random.fold_in(keys[1], rollouts)
        carry, kept, counts = record(carry, kept, key)
        total, rollouts = total + np.asarray(counts), rollouts + 1
    state = ensemble.init(keys[2], jnp.zeros(example.shape[2:]), actions, config)
    state = ensemble.with_initial_bias(state, *jnp.asarray(total, float), config)
    config = replace(config, num_steps=num_steps)
    state, _ = jax.jit(partial(fit.update, config=config))(
        keys[3], state, kept, jnp.int32(window)
    )
    _, rows = jax.jit(recorder.play)(carry, keys[4])
    guess = ensemble.member_costs(state, rows["obs"], rows["actions"]).mean(axis=0)
    corr = np.corrcoef(np.ravel(guess), np.ravel(rows["costs"]))[0, 1]
    bias = float(ensemble.biases(state).mean())
    return Learned(int(total[0]), float(corr), bias, state)


def main() -> None:
    """Read the command line, record, learn, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env", nargs="?", default="backseat")
    parser.add_argument("--stops", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=4_000, help="of the optimiser")
    parser.add_argument("--next", action="store_true", help="c(s, a, s′)")
    parser.add_argument(
        "--set", nargs="*", default=[], help="name=number of CostConfig"
    )
    args = parser.parse_args()
    env, params = termdp.make(args.env)
    window = int(params.observer.window)
    fast = make_config("fast", env.observation_space(params).shape, window).costs
    numbers = dict(pair.split("=") for pair in args.set)
    numbers = {n: json.loads(v) if v[0].isdigit() else v for n, v in numbers.items()}
    usual = {"keep": "stops", "learning_rate": 1e-3, "members": 3}
    config = replace(fast, **(usual | numbers))
    recorder = Recorder(env, params, with_next=args.next)
    found = learn(recorder, config, window, args.stops, args.steps)
    print(
        f"{args.env}: {found.stops} stops, correlation {found.correlation:.3f}, "
        f"bias {found.bias:.2f}"
    )


if __name__ == "__main__":
    main()
