"""TermCRL on the chain: learn what the observer minds, and how to act, with guarantees.

    python examples/termcrl_chain.py --episodes 20000

The chain has few states, so everything is exact: the best policy, the value of every
policy that is played, and so the regret.
"""

import argparse

from termdp import tabular


def main(episodes, seed=0):
    """Plan with the true model, then learn without it, and compare."""
    model = tabular.chain()
    best = tabular.plan(model)
    print(f"the best policy earns {best.value:.3f} per episode")
    learners = {
        "TermCRL": tabular.TermCRL(
            radius=model.radius, bonus_scale=0.02, cost_bonus_scale=1e-8
        ),
        "knows the costs": tabular.KnownCosts(bonus_scale=0.02),
        "ignores stops": tabular.IgnoreStops(bonus_scale=0.02),
    }
    found = {}
    for name, learner in learners.items():
        regret = learner.run(model, episodes=episodes, key=seed)
        found[name] = float(regret.cumulative[-1])
        print(f"{name:>16}: lost {found[name]:,.0f} in {episodes:,} episodes")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    main(args.episodes, args.seed)
