"""A chain with an observer whose optimum is known: TermPG finds it, naive PPO does not.

The lucrative end of the chain makes the observer stop; who does not see stops as ends
goes there all the same.
"""

import numpy as np
import pytest

import termdp
from probe_envs import Chain
from runs_long import optimised
from termdp.agents.methods import find_method
from termdp.agents.ppo import PPOConfig
from termdp.costs.config import CostConfig
from termdp.runs.config import TrainConfig
from termdp.runs.program import Job, TrainProgram
from termdp.runs.runner import Runner
from termdp.tabular import TerMDP, plan

pytestmark = pytest.mark.slow

WINDOW, BIAS, SEEDS, ITERATIONS = 3, 4.0, (0, 1, 2), 140
METHODS = {
    "termpg": find_method("termpg", discount=1.0),
    # A short horizon, so that its values converge soon, to 10 on the right, 3 left.
    "pg_naive": find_method("pg_naive", discount=0.9),
}
CONFIG = TrainConfig(
    num_envs=64,
    rollout_steps=32,
    network="vector",
    hidden=16,
    algorithm=PPOConfig(
        num_epochs=2, num_minibatches=8, entropy_coef=0.05, kl_target=0.05
    ),
    costs=CostConfig(
        network="vector", hidden=16, segment_length=16, buffer_steps=64 * 256
    ),
)


def optimum():
    """The best return in 200 steps, by exact dynamic programming on last costs."""
    transition = np.zeros((5, 2, 5))
    for state in range(5):
        transition[state, 0, max(state - 1, 0)] = 1.0
        transition[state, 1, min(state + 1, 4)] = 1.0
    model = TerMDP(
        transition=transition,
        reward=np.repeat(np.array(Chain.rewards)[:, None], 2, axis=1),
        cost=np.repeat(np.array(Chain.costs)[:, None], 2, axis=1),
        bias=BIAS,
        horizon=200,
        initial=np.full(5, 0.2),
        window=WINDOW,
    )
    return plan(model).value


@pytest.fixture(scope="module")
def returns():
    """Mean return over the last few iterations of training, by method and seed."""
    env = termdp.observe(Chain(), termdp.Observer(Chain.cost, window=WINDOW, bias=BIAS))
    names = [name for name in METHODS for _ in SEEDS]
    job = Job(
        env=env,
        params=env.default_params,
        methods=tuple(METHODS[name] for name in names),
        seeds=SEEDS * 2,
        config=CONFIG,
        num_iterations=ITERATIONS,
    )
    runner = Runner(TrainProgram(job), advise=False)
    with optimised():
        runner.run()
    found = {name: [] for name in METHODS}
    for run, name in enumerate(names):
        row = runner.row(run, ITERATIONS - 10, ITERATIONS)
        found[name].append(row["return_mean"])
    return found


def test_the_optimum_is_the_modest_end():
    # From state s it takes s steps to get there, then 0.3 per step as long as nobody
    # stops: ρ(−4) = 0.018. Going the other way first is never worth it but at the end.
    survival = 1 - 1 / (1 + np.exp(BIAS))
    modest = [sum(0.3 * survival**t for t in range(s, 200)) for s in range(4)]
    assert optimum() >= 0.8 * np.mean(modest)
    assert optimum() <= 0.3 / (1 - survival) + 1.0


def test_termpg_finds_it(returns):
    assert np.mean(returns["termpg"]) >= 0.9 * optimum(), returns
    assert min(returns["termpg"]) >= 0.75 * optimum(), returns


def test_naive_policy_gradient_does_not(returns):
    assert max(returns["pg_naive"]) <= 0.6 * optimum(), returns
