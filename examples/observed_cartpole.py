"""PPO and TermPG on CartPole, with an observer who minds a cart off the centre.

    python examples/observed_cartpole.py --steps 100000

The environment is Gymnasium's own, with the observer around it. The agents are told only
that they were stopped.
"""

import argparse

import gymnasium

import termdp


def off_centre(observation, action):
    """A step costs 1 while the cart is more than 0.3 off the centre."""
    return float(abs(observation[0]) > 0.3)


def make():
    """One copy of the environment."""
    return gymnasium.make("CartPole-v1")


def main(steps, seeds=1):
    """Train both methods, compare them, and act with the second."""
    observer = termdp.Observer(off_centre, window=30, bias=8.0)
    found = {}
    for method in ("pg", "termpg"):
        result = termdp.train(make, method, observer=observer, steps=steps, seeds=seeds)
        found[method] = termdp.evaluate(result, episodes=16)
        low, high = found[method].return_interval
        print(
            f"{method}: return {found[method].return_mean:.0f} ({low:.0f} … {high:.0f}), "
            f"stopped in {found[method].stop_rate:.0%} of the episodes"
        )
    env = termdp.gym.ObserverWrapper(make(), observer)
    agent, memory = result.agent(), None
    observation, _ = env.reset(seed=0)
    for _ in range(3):
        action, after = agent.predict(observation, memory, deterministic=True)
        chance = agent.stop_probability(observation, action, memory)
        memory = after
        observation, _, _, _, info = env.step(action)
        print(f"a stop is {chance:.4f} likely, in truth {info['stop_probability']:.4f}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    main(args.steps, args.seeds)
