"""TermPG in one file: learn an observer's costs from its stops, and earn more for it.

    python examples/termpg_single_file.py             # 9 s; return 8.8 ± 0.3
    python examples/termpg_single_file.py --plain     # PPO without costs: 3.0 ± 0.2

Returns: means of seeds 1000 to 1004, 95% intervals. Algorithm 2 of "Reinforcement
Learning with a Terminator" (arXiv:2205.15376), to be read from top to bottom. Only the
game comes from the package: the Notifier, with an observer around it. All that the agent
is told of the observer is `stopped`.

Left out, compared with `termdp.train`: old stops, other methods, convolutions,
recurrence, values on their own scale, what keeps the cost network's weights small and
steady, files, many runs at once.

Shapes: T steps, B copies of the game, W steps of memory, A actions.
"""

import argparse
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

import termdp


class Settings(NamedTuple):
    """Every number: the preset `fast` for vectors, except `kl_coef` and the buffer."""

    num_envs: int = 64  # B
    rollout_steps: int = 32  # T
    window: int = 10  # W: steps that the observer is taken to remember
    discount: float = 0.995
    gae_lambda: float = 0.8
    learning_rate: float = 2e-3  # of the policy
    epochs: int = 4
    minibatches: int = 16
    clip: float = 0.3
    kl_coef: float = 0.0  # the package adapts it; here it would soon be next to nothing
    value_coef: float = 0.5
    cost_rate: float = 3e-3
    cost_steps: int = 16
    segments: int = 16  # pieces of experience per gradient step
    segment_length: int = 128
    buffer_rows: int = 256  # newest steps of each copy: some 1,000 episodes
    learns_costs: bool = True  # False: plain PPO, for which a stop is an end


def init_mlp(key, sizes, last_scale):
    """Weights of a network with tanh units."""
    layers = []
    for place, (rows, columns) in enumerate(pairwise(sizes)):
        key, key_layer = jax.random.split(key)
        scale = last_scale if place == len(sizes) - 2 else 2**0.5
        weights = jax.nn.initializers.orthogonal(scale)(key_layer, (rows, columns))
        layers.append((weights, jnp.zeros(columns)))
    return layers


def mlp(layers, x):
    """The outputs of a network with these weights."""
    for weights, offset in layers[:-1]:
        x = jnp.tanh(x @ weights + offset)
    weights, offset = layers[-1]
    return x @ weights + offset


def policy_and_value(params, observation, accumulated, bias):
    """Logits `[..., A]` and values `[...]`. C is part of the state (section 4)."""
    felt = jnp.stack([accumulated / 5, jax.nn.sigmoid(accumulated - bias)], axis=-1)
    seen = jnp.concatenate([observation, felt], axis=-1)
    return mlp(params["policy"], seen), mlp(params["value"], seen)[..., 0]


def cost_of(costs, observation, action):
    """c(s, a): one output per action, linear."""
    outputs = mlp(costs["layers"], observation)
    return jnp.sum(outputs * jax.nn.one_hot(action, outputs.shape[-1]), axis=-1)


def window_sums(costs, starts, window):
    """C_t: the last `window` costs of the episode, the present included, `[T, B]`."""
    steps = jnp.arange(costs.shape[0])[:, None]
    began = jax.lax.cummax(jnp.where(starts, steps, 0), axis=0)
    total = jnp.zeros_like(costs)
    for back in range(window):
        shifted = jnp.roll(costs, back, axis=0)
        total += jnp.where(steps - back >= began, shifted, 0.0)
    return total


def gae(rewards, values, next_values, discounts, ended, lam):
    """Generalised advantages with a discount for each step, `[T, B]`."""
    deltas = rewards + discounts * next_values - values

    def backwards(later, row):
        delta, discount, end = row
        advantage = delta + jnp.where(end, 0.0, discount * lam) * later
        return advantage, advantage

    rows = (deltas, discounts, ended)
    return jax.lax.scan(backwards, jnp.zeros_like(deltas[0]), rows, reverse=True)[1]


def ppo_loss(logits, values, batch, settings):
    """Clipped surrogate, penalty on the change of the policy, error of the values."""
    now, before = jax.nn.log_softmax(logits), jax.nn.log_softmax(batch["logits"])
    taken = jax.nn.one_hot(batch["action"], logits.shape[-1])
    ratio = jnp.exp(jnp.sum((now - before) * taken, axis=-1))
    near = jnp.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    surrogate = jnp.minimum(ratio * batch["advantage"], near * batch["advantage"])
    kl = jnp.sum(jnp.exp(before) * (before - now), axis=-1)
    policy_loss = -jnp.mean(surrogate) + settings.kl_coef * jnp.mean(kl)
    return policy_loss + settings.value_coef * jnp.mean((values - batch["target"]) ** 2)


def cost_loss(costs, bias, starts, labels, weights, window):
    """Cross entropy of ρ(C_t − b) and stops, per step; costs `[T, S]` (section 4.1)."""
    logits = window_sums(costs, starts, window) - bias
    entropy = optax.sigmoid_binary_cross_entropy(logits, labels)
    return jnp.sum(weights * entropy) / ((costs.shape[0] - window + 1) * costs.shape[1])


def collect(env, env_params, settings, params, costs, place, key):
    """Line 4: play T steps of B games; nothing is learned here."""
    bias = costs["bias"]

    def step(place, key):
        env_state, observation, starts, recent = place
        key_act, key_env = jax.random.split(key)
        accumulated = recent.sum(axis=1)  # before acting: 0 at the start
        logits, values = policy_and_value(params, observation, accumulated, bias)
        action = jax.random.categorical(key_act, logits)
        keys = jax.random.split(key_env, settings.num_envs)
        next_observation, env_state, reward, _, truncated, info = jax.vmap(
            env.step, in_axes=(0, 0, 0, None)
        )(keys, env_state, action, env_params)
        cost = cost_of(costs, observation, action) * settings.learns_costs
        after = jnp.concatenate([recent[:, 1:], cost[:, None]], axis=1)
        # The value of what followed, before any reset: a stopped game would have gone on.
        final = (info["final_observation"], after.sum(axis=1), bias)
        _, next_values = policy_and_value(params, *final)
        ended = info["game_over"] | info["stopped"] | truncated
        row = {"observation": observation, "accumulated": accumulated, "action": action}
        row |= {"logits": logits, "value": values, "next_value": next_values}
        row |= {"game_over": info["game_over"], "stopped": info["stopped"]}
        row |= {"reward": reward, "starts": starts, "ended": ended}
        after = jnp.where(ended[:, None], 0.0, after)
        return (env_state, next_observation, ended, after), row

    return jax.lax.scan(step, place, jax.random.split(key, settings.rollout_steps))


def add_to_buffer(buffer, rollout):
    """Lines 5 and 6: label the steps, keep the newest rows."""
    # A step on which the game itself ended has no label: it could not have been a stop.
    new = {name: rollout[name] for name in ("observation", "action", "starts")}
    new["label"] = jnp.where(rollout["game_over"], -1, rollout["stopped"])
    rows = rollout["reward"].shape[0]
    return {name: jnp.concatenate([buffer[name][rows:], new[name]]) for name in buffer}


def learn_costs(settings, buffer, filled, costs, optimiser, moments, key):
    """Lines 7 to 9: gradient steps on pieces of experience, drawn at random."""
    length = settings.segment_length
    last = settings.buffer_rows - length
    oldest = jnp.clip(settings.buffer_rows - filled, 0, last)

    def draw(key):
        key_row, key_env = jax.random.split(key)
        count = (settings.segments,)
        first = jax.random.randint(key_row, count, oldest, last + 1)
        env = jax.random.randint(key_env, count, 0, settings.num_envs)
        rows = first + jnp.arange(length)[:, None]
        piece = {name: values[rows, env] for name, values in buffer.items()}
        # A window that reaches back before the piece is not used.
        began = jnp.cumsum(piece["starts"], axis=0) > 0
        whole = began | (jnp.arange(length)[:, None] >= settings.window - 1)
        return piece, jnp.where(whole & (piece["label"] >= 0), 1.0, 0.0)

    def loss(costs, piece, weights):
        found = cost_of(costs, piece["observation"], piece["action"])
        labels = jnp.maximum(piece["label"], 0)
        starts, window = piece["starts"], settings.window
        return cost_loss(found, costs["bias"], starts, labels, weights, window)

    def step(carry, key):
        costs, moments = carry
        changes, moments = optimiser.update(jax.grad(loss)(costs, *draw(key)), moments)
        changes["bias"] *= 10  # the bias has far to go
        return (optax.apply_updates(costs, changes), moments), None

    keys = jax.random.split(key, settings.cost_steps)
    return jax.lax.scan(step, (costs, moments), keys)[0]


def advantages_of(settings, rollout, costs, recent):
    """Line 10: costs by the fresh networks, the dynamic discount, advantages.

    γ_t = discount · (1 − ρ(C_t − b)). The probability of a stop is part of it, so the
    values go on after a stop; after the game's own end nothing follows.
    """
    if settings.learns_costs:
        newest = cost_of(costs, rollout["observation"], rollout["action"])
        history = recent.T  # [W, B], zeros before the episode's start
        stream = jnp.concatenate([history, newest])
        starts = jnp.concatenate([jnp.zeros(history.shape, bool), rollout["starts"]])
        sums = window_sums(stream, starts, settings.window)[len(history) :]
        survival = 1 - jax.nn.sigmoid(sums - costs["bias"])
        follows = ~rollout["game_over"]
    else:
        survival = jnp.ones_like(rollout["reward"])
        follows = ~(rollout["game_over"] | rollout["stopped"])
    discounts = settings.discount * survival * follows
    rewards, values = rollout["reward"], rollout["value"]
    lam, ended = settings.gae_lambda, rollout["ended"]
    found = gae(rewards, values, rollout["next_value"], discounts, ended, lam)
    return found, found + values


def improve_policy(settings, rollout, bias, params, optimiser, moments, key):
    """Line 11: PPO, several passes over the rollout in shuffled minibatches."""
    names = ("observation", "accumulated", "action", "logits", "advantage", "target")
    steps = {name: rollout[name] for name in names}
    steps = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps)
    advantage = steps["advantage"]
    steps["advantage"] = (advantage - advantage.mean()) / (advantage.std() + 1e-4)

    def loss(params, batch):
        inputs = (batch["observation"], batch["accumulated"], bias)
        return ppo_loss(*policy_and_value(params, *inputs), batch, settings)

    def on_minibatch(carry, batch):
        params, moments = carry
        changes, moments = optimiser.update(jax.grad(loss)(params, batch), moments)
        return (optax.apply_updates(params, changes), moments), None

    def epoch(carry, key):
        order = jax.random.permutation(key, steps["action"].shape[0])
        order = order.reshape(settings.minibatches, -1)
        return jax.lax.scan(
            on_minibatch, carry, jax.tree.map(lambda x: x[order], steps)
        )

    carry, keys = (params, moments), jax.random.split(key, settings.epochs)
    return jax.lax.scan(epoch, carry, keys)[0]


def begin(env, env_params, settings, optimisers, key):
    """Everything that training changes, before the first step."""
    key_reset, key_policy, key_value, key_costs = jax.random.split(key, 4)
    keys = jax.random.split(key_reset, num_envs := settings.num_envs)
    observation, env_state = jax.vmap(env.reset, (0, None))(keys, env_params)
    size, num_actions = observation.shape[-1], env.action_space(env_params).n
    params = {
        "policy": init_mlp(key_policy, (size + 2, 64, 64, num_actions), 0.01),
        "value": init_mlp(key_value, (size + 2, 64, 64, 1), 1.0),
    }
    layers = init_mlp(key_costs, (size, 32, 32, num_actions), 0.01)
    costs = {"layers": layers, "bias": jnp.zeros(())}
    shape = (settings.buffer_rows, num_envs)
    buffer = {"observation": jnp.zeros((*shape, size)), "label": jnp.full(shape, -1)}
    buffer |= {"action": jnp.zeros(shape, jnp.int32), "starts": jnp.ones(shape, bool)}
    recent = jnp.zeros((num_envs, settings.window))
    place = (env_state, observation, jnp.ones(num_envs, bool), recent)
    moments = (optimisers[0].init(params), optimisers[1].init(costs))
    return params, costs, moments, buffer, place


def iterate(env, env_params, settings, optimisers, number, state, key):
    """One iteration: play, learn costs, improve the policy."""
    params, costs, (policy_moments, cost_moments), buffer, place = state
    key_play, key_costs, key_policy = jax.random.split(key, 3)
    recent, acted_on = place[3], costs["bias"]
    place, rollout = collect(env, env_params, settings, params, costs, place, key_play)
    if settings.learns_costs:
        buffer = add_to_buffer(buffer, rollout)
        # The bias begins a little above what explains the first stops without costs.
        stops, played = rollout["stopped"].sum(), (~rollout["game_over"]).sum()
        rate = (stops + 1) / (played + 2)
        first = jnp.log((1 - rate) / rate) + 1.5
        costs = costs | {"bias": jnp.where(number == 0, first, costs["bias"])}
        filled = (number + 1) * settings.rollout_steps
        costs, cost_moments = learn_costs(
            settings, buffer, filled, costs, optimisers[1], cost_moments, key_costs
        )
    advantages, targets = advantages_of(settings, rollout, costs, recent)
    rollout |= {"advantage": advantages, "target": targets}
    params, policy_moments = improve_policy(
        settings, rollout, acted_on, params, optimisers[0], policy_moments, key_policy
    )
    report = {name: rollout[name].sum() for name in ("reward", "ended", "stopped")}
    return (params, costs, (policy_moments, cost_moments), buffer, place), report


def train(steps=150_000, seed=0, settings=None, every=10, say=print):
    """Train; return the mean return over the last tenth, and the learned costs."""
    settings = settings or Settings()
    env, env_params = termdp.make("notifier")
    per_iteration = settings.num_envs * settings.rollout_steps
    iterations = max(1, steps // per_iteration)
    updates = iterations * settings.epochs * settings.minibatches
    rate = optax.linear_schedule(settings.learning_rate, 0.0, updates)
    policy_adam = optax.chain(
        optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5)
    )
    optimisers = (policy_adam, optax.adam(settings.cost_rate))
    fixed = (env, env_params, settings, optimisers)
    key, key_begin = jax.random.split(jax.random.key(seed))
    state = begin(*fixed, key_begin)
    iteration = jax.jit(partial(iterate, *fixed))
    reports: list[dict[str, float]] = []
    for number in range(iterations):
        state, report = iteration(number, state, jax.random.fold_in(key, number))
        reports.append({name: float(value) for name, value in report.items()})
        if (number + 1) % every == 0:
            earned, stopped = per_episode(reports[-every:])
            done = (number + 1) * per_iteration
            say(f"step {done:>6}: return {earned:.2f}, stopped {stopped:.0%}")
    return per_episode(reports[-max(1, iterations // 10) :])[0], state[1]


def per_episode(reports):
    """Reward and stops per episode that ended."""
    names = ("reward", "ended", "stopped")
    reward, ended, stopped = (sum(report[name] for report in reports) for name in names)
    return reward / max(ended, 1), stopped / max(ended, 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="PPO, without costs")
    args = parser.parse_args()
    train(args.steps, args.seed, Settings(learns_costs=not args.plain))
