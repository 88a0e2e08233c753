"""Speed of the tabular part: planning, its growth, the cost fit, TermCRL.

Run `python benchmarks/tabular.py` (about a minute), or with `--full` for 10^5 episodes
of TermCRL as well. The figures that count are ratios within one run: the quantised plan
of S = 50, A = 4, H = 30 with 2000 bins against a Python loop over (h, s, a, bin), and
against the same vectorised over bins in NumPy.
"""

import json
import platform
import sys
import time
from collections.abc import Callable

import jax
import numpy as np

from termdp import tabular
from termdp.tabular.quantised import Lattice, backward_induction, make_lattice

SIZES = {"num_states": 50, "num_actions": 4, "horizon": 30}


def best_time(work: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of several calls, after one that may compile."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def problem(
    num_states: int, num_actions: int, horizon: int, num_bins: int
) -> tuple[np.ndarray, np.ndarray, Lattice]:
    """Random transitions, rewards, and non-negative costs that fill the bins."""
    random = np.random.default_rng(0)
    shape = (horizon, num_states, num_actions)
    transition = random.dirichlet(np.ones(num_states), shape)
    costs = random.uniform(0.0, 2.0, shape)
    resolution = 8.0 / (num_bins - 1)
    lattice = make_lattice(costs, resolution, clip=8.0)
    assert lattice.num_bins == num_bins
    return transition, random.random(shape), lattice


def numpy_step(
    h: int, following: np.ndarray, parts: tuple[np.ndarray, np.ndarray, Lattice]
) -> np.ndarray:
    """One step, vectorised over bins: a loop over (s, a)."""
    transition, reward, lattice = parts
    _, num_states, num_actions = reward.shape
    discount = 1 / (1 + np.exp(lattice.sums - 2.0))
    values = np.empty((num_states, num_actions, lattice.num_bins))
    bins = np.arange(lattice.num_bins)
    for s in range(num_states):
        for a in range(num_actions):
            target = np.minimum(bins + lattice.shift[h, s, a], lattice.num_bins - 1)
            ahead = transition[h, s, a] @ following[:, target]
            values[s, a] = reward[h, s, a] + discount[target] * ahead
    return values.max(axis=1)


def python_step(
    h: int, following: np.ndarray, parts: tuple[np.ndarray, np.ndarray, Lattice]
) -> np.ndarray:
    """One step as a Python loop over (s, bin, a); only the sum over s′ is NumPy's."""
    transition, reward, lattice = parts
    _, num_states, num_actions = reward.shape
    last = lattice.num_bins - 1
    discount = (1 / (1 + np.exp(lattice.sums - 2.0))).tolist()
    rows = np.ascontiguousarray(following.T)
    shifts, rewards = lattice.shift[h].tolist(), reward[h].tolist()
    values = np.empty((num_states, last + 1))
    for s in range(num_states):
        for n in range(last + 1):
            best = -np.inf
            for a in range(num_actions):
                target = min(n + shifts[s][a], last)
                ahead = transition[h, s, a].dot(rows[target])
                best = max(best, rewards[s][a] + discount[target] * ahead)
            values[s, n] = best
    return values


def planning() -> dict[str, float]:
    """Seconds and ratios of one quantised plan."""
    parts = problem(**SIZES, num_bins=2000)
    transition, reward, lattice = parts
    horizon = SIZES["horizon"]
    cap = np.full(horizon, np.inf)

    def ours() -> np.ndarray:
        return backward_induction(transition, reward, lattice, 2.0, cap)[0]

    def vectorised() -> np.ndarray:
        values = np.zeros((SIZES["num_states"], lattice.num_bins))
        for h in reversed(range(horizon)):
            values = numpy_step(h, values, parts)
        return values

    np.testing.assert_allclose(ours()[0], vectorised(), atol=1e-9)
    by_jax, by_numpy = best_time(ours), best_time(vectorised, 2)
    following = ours()[1]
    begin = time.perf_counter()
    looped = python_step(0, following, parts)
    by_python = (time.perf_counter() - begin) * horizon  # one step of thirty
    np.testing.assert_allclose(looped, ours()[0], atol=1e-9)
    return {
        "jax_s": by_jax,
        "numpy_s": by_numpy,
        "python_s": by_python,
        "numpy_over_jax": by_numpy / by_jax,
        "python_over_jax": by_python / by_jax,
    }


def growth() -> dict[str, dict[int, float]]:
    """Seconds of a plan as bins, states and steps grow, one at a time."""
    tables: dict[str, dict[int, float]] = {"bins": {}, "states": {}, "steps": {}}
    for bins in (1024, 2048, 4096, 8192, 16384):
        tables["bins"][bins] = _plan_time(**SIZES, num_bins=bins)
    for states in (25, 50, 100, 200):
        sizes = SIZES | {"num_states": states}
        tables["states"][states] = _plan_time(**sizes, num_bins=2048)
    for steps in (15, 30, 60, 120):
        sizes = SIZES | {"horizon": steps}
        tables["steps"][steps] = _plan_time(**sizes, num_bins=2048)
    return tables


def _plan_time(num_states: int, num_actions: int, horizon: int, num_bins: int) -> float:
    transition, reward, lattice = problem(num_states, num_actions, horizon, num_bins)
    cap = np.full(horizon, np.inf)
    return best_time(
        lambda: backward_induction(transition, reward, lattice, 2.0, cap), 3
    )


def estimation() -> dict[str, float]:
    """Seconds of a cost fit on more than 10^6 steps."""
    model = tabular.random(10, 3, 10, bias=5.0)
    seen = tabular.simulate(model, np.full((10, 10, 3), 1 / 3), 190_000, 0)
    begin = time.perf_counter()
    fit = tabular.fit_costs(seen, 10, 3, 10, ridge=0.1)
    cold = time.perf_counter() - begin
    begin = time.perf_counter()
    tabular.fit_costs(seen, 10, 3, 10, ridge=0.1, start=fit)
    warm = time.perf_counter() - begin
    steps = int(np.minimum(seen.lengths, 9).sum())
    return {"steps": steps, "cold_s": cold, "warm_s": warm}


def learning(branching: int = 2) -> dict[str, float]:
    """Seconds of 10^5 episodes of TermCRL, S = 10, A = 3, H = 10, exact regret."""
    model = tabular.random(10, 3, 10, branching=branching)
    agent = tabular.TermCRL(model.radius, bonus_scale=0.02, cost_bonus_scale=1e-8)
    begin = time.perf_counter()
    regret = agent.run(model, 100_000, 0)
    return {
        "branching": branching,
        "termcrl_s": time.perf_counter() - begin,
        "plans": len(regret.planned_at),
        "is_exact": regret.is_exact,
        "regret": float(regret.cumulative[-1]),
    }


def main() -> None:
    result: dict[str, object] = {
        "device": jax.devices()[0].device_kind,
        "machine": platform.machine(),
        "planning": planning(),
        "growth_s": growth(),
        "estimation": estimation(),
    }
    if "--full" in sys.argv[1:]:
        result["learning"] = [learning(2), learning(3)]
    print(json.dumps(result, indent=2, default=float))


if __name__ == "__main__":
    main()
