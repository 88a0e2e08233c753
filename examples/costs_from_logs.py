"""A log of sessions that users left: what made them leave, and how long they remember.

    python examples/costs_from_logs.py --users 1000

The log is made up here, so the truth is known. Users mind noise (0.2 per unit) and the
third button (0.9). They remember 20 steps, and their patience is 9.
"""

import argparse

import numpy as np

import termdp

WINDOW, BIAS = 20, 9.0
NAMES = ("user", "speed", "noise", "action", "left")


def make_log(users, seed=0):
    """One row per step; `left` is true on the row after which the user left."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        recent = []
        for _ in range(100):
            speed, noise, action = rng.uniform(), rng.normal(), int(rng.integers(3))
            recent.append(0.2 * noise + 0.9 * (action == 2))
            chance = 1 / (1 + np.exp(BIAS - sum(recent[-WINDOW:])))
            left = bool(rng.uniform() < chance)
            rows.append((user, speed, noise, action, left))
            if left:
                break
    return dict(zip(NAMES, zip(*rows, strict=True), strict=True))


def main(users, windows=None, out=None):
    """Fit an observer to the log, print what was found, and save it."""
    log = make_log(users)
    fit = termdp.fit(
        {name: list(column) for name, column in log.items()},
        session="user",
        stopped="left",
        observations=["speed", "noise"],
        actions="action",
        windows=windows,
    )
    found = fit.summary()
    low, high = found["window_interval"]
    print(f"window {found['window']} ({low:.0f} … {high:.0f}), truth {WINDOW}")
    for name, row in found["costs"].items():
        low, high = row["interval"]
        print(f"{name:>12}: {row['cost']:+.2f} ({low:+.2f} … {high:+.2f})")
    if out is not None:
        fit.save(out)
        print(f"look at {out}/index.html")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--out", help="a new folder for the page and the observer")
    args = parser.parse_args()
    main(args.users, out=args.out)
