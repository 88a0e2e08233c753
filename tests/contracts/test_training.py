"""What training promises, for every method, action space and network."""

import dataclasses
import json
import math

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import termdp
from termdp.agents.methods import METHODS
from termdp.runs import program as programs
from termdp.runs.metrics import SUMMARY_NAMES
from termdp.runs.program import Job, TrainProgram
from tiny_config import tiny
from tiny_envs import Counter, action_is_cost

SUMMARY = {
    "env",
    "method",
    "preset",
    "steps",
    "bytes_per_run",
    "compile_s",
    "wall_s",
    "steps_per_s",
    "seeds",
}
SEED = {
    "seed",
    "return_mean",
    "length_mean",
    "stop_rate",
    "game_over_rate",
    "cost_mae",
    "cost_corr",
    "bias",
}
COSTS = {"cost_mae", "cost_corr", "bias"}
LATEST = {"policy_loss", "value_loss", "entropy", "kl", "kl_coef", "cost_loss"}
TINY = tiny(filters=4, lstm_size=4, costs={"filters": 2, "buffer_steps": 128})
ITERATIONS = 2


def counter():
    env = termdp.observe(Counter(), termdp.Observer(action_is_cost, window=3, bias=4.0))
    return env, env.default_params.replace(game_over_at=7)


def make_trainer(methods, seeds):
    env, params = counter()
    return TrainProgram(
        Job(env, params, tuple(methods), tuple(seeds), TINY, ITERATIONS)
    )


FEED_FORWARD = {
    name: method.for_environment("breakout")
    for name, method in METHODS.items()
    if not method.program
}
PAIRS = [(name, seed) for name in FEED_FORWARD for seed in (0, 1)]


@pytest.fixture(scope="module")
def all_at_once():
    """All feed-forward methods × two seeds: (traces, state, reports)."""
    traces = 0
    real = programs.train_iteration

    def counted(*args):
        nonlocal traces
        traces += 1
        return real(*args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(programs, "train_iteration", counted)
        methods = [FEED_FORWARD[name] for name, _ in PAIRS]
        trainer = make_trainer(methods, [seed for _, seed in PAIRS])
        state, reports = trainer.advance(trainer.init(), ITERATIONS)
    return traces, state, trainer.unpack(reports)


def test_all_feed_forward_methods_and_seeds_are_traced_once(all_at_once):
    traces, _, _ = all_at_once
    assert traces == 1


@pytest.mark.parametrize("method", FEED_FORWARD)
def test_method_reports_finite_numbers(all_at_once, method):
    _, state, reports = all_at_once
    for seed in (0, 1):
        run = PAIRS.index((method, seed))
        for name, values in reports.items():
            assert values.shape[:2] == (len(PAIRS), ITERATIONS)
            assert np.all(np.isfinite(values[run])), name
        assert reports["episodes"][run].sum() > 0
        for leaf in jax.tree.leaves(state.policy.params):
            assert np.all(np.isfinite(leaf[run]))


def test_seeds_and_methods_differ(all_at_once):
    _, state, _ = all_at_once
    kernels = np.asarray(state.policy.params["params"]["heads"]["kernel"])
    different = {kernel.tobytes() for kernel in kernels}
    # termpg_mean is termpg, by its own name.
    methods = {dataclasses.replace(m, description="") for m in FEED_FORWARD.values()}
    assert len(different) == 2 * len(methods)


# The longest window of a program decides how windows of stops are laid out for a draw.
@pytest.mark.parametrize("method", ["termpg_double_window", "pg"])
def test_a_run_among_others_is_the_run_alone(all_at_once, method):
    _, together, reports = all_at_once
    trainer = make_trainer([FEED_FORWARD[method]], [1])
    alone, packed = trainer.advance(trainer.init(), ITERATIONS)
    its_reports = trainer.unpack(packed)
    run = PAIRS.index((method, 1))
    for name, values in its_reports.items():
        np.testing.assert_allclose(
            values[0], reports[name][run], rtol=1e-3, atol=1e-4, err_msg=name
        )
    for one, many in zip(
        jax.tree.leaves(alone.policy.params),
        jax.tree.leaves(together.policy.params),
        strict=True,
    ):
        np.testing.assert_allclose(one[0], many[run], rtol=1e-3, atol=1e-5)


def test_recurrent_method_trains_and_does_not_mix():
    trainer = make_trainer([METHODS["pg_recurrent"]], [0])
    state, reports = trainer.advance(trainer.init(), ITERATIONS)
    assert np.all(np.isfinite(reports))
    memory = np.asarray(state.rollout_state.carry[0])
    assert np.any(memory != 0)
    with pytest.raises(ValueError, match="one kind of program .* plain, recurrent"):
        make_trainer([METHODS["pg_recurrent"], METHODS["pg"]], [0, 1])


def check_files(folder, method, seeds, iterations, learns):
    """summary.json and metrics.jsonl have the promised names, and no others' nulls."""
    summary = json.loads((folder / "summary.json").read_text())
    assert set(summary) == SUMMARY
    assert summary["method"] == method
    assert [row["seed"] for row in summary["seeds"]] == seeds
    for row in summary["seeds"]:
        assert set(row) >= SEED
        assert set(row) <= {"seed", *SUMMARY_NAMES, *LATEST}
        unknown = {name for name in COSTS if row[name] is None}
        assert unknown <= {"cost_corr"} if learns else unknown == COSTS
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == iterations * len(seeds)
    assert [row["seed"] for row in rows] == seeds * iterations
    for row in rows:
        assert {"step", *SEED} <= set(row)
    steps = summary["steps"] // iterations
    assert [row["step"] for row in rows[:: len(seeds)]] == [
        steps * (i + 1) for i in range(iterations)
    ]
    assert math.isclose(
        summary["steps_per_s"],
        summary["steps"] * len(seeds) / summary["wall_s"],
        rel_tol=0.05,
    )
    return summary


def test_another_policy_gradient_on_ones_own_environment(tmp_path):
    # ALG-PG is an argument: A2C instead of PPO.
    env, params = counter()
    result = termdp.train(
        env,
        "pg",
        params=params,
        steps=100,
        seeds=2,
        seed=3,
        config=TINY,
        algorithm="a2c",
        out=tmp_path / "run",
    )
    summary = check_files(tmp_path / "run", "pg", [3, 4], 3, learns=False)
    assert summary == result.summary
    assert summary["steps"] == 96
    assert "kl" not in result.rows[0], "PPO ran instead of A2C"
    # Game over at 7 or a stop before: by hand, from the rows.
    last = [row for row in result.rows if row["step"] == 96]
    for row, entry in zip(last, summary["seeds"], strict=True):
        assert row["return_mean"] == entry["return_mean"] == entry["length_mean"]
        assert row["stop_rate"] + row["game_over_rate"] == pytest.approx(1.0)


def test_continuous_actions_of_a_gymnax_environment(tmp_path):
    pendulum, _ = gymnax.make("Pendulum-v1")

    def effort(observation, action):
        return jnp.abs(jnp.squeeze(action))

    env = termdp.observe(pendulum, termdp.Observer(effort, window=4, bias=3.0))
    result = termdp.train(
        env,
        "termpg",
        steps=64,
        seeds=2,
        config=TINY,
        out=tmp_path / "run",
        cost_keep="stops",
    )
    check_files(tmp_path / "run", "termpg", [0, 1], 2, learns=True)
    buffer = np.asarray(result.state.experience.recent.actions)
    assert buffer.shape[-1] == 1
    assert buffer.dtype == np.float32
    assert len(np.unique(buffer)) > 32


def test_a_bare_environment_is_refused():
    with pytest.raises(ValueError, match="expected an environment with an observer"):
        termdp.train(Counter(), "pg")


class Lazy:
    """An algorithm of one's own: it never updates anything."""

    def updates(self):
        return 1

    def make_optimiser(self, num_iterations):
        return optax.sgd(0.0)

    def initial_extra(self):
        return ()

    def update(self, learner, state, examples, key):
        return state, {"laziness": jnp.mean(examples.advantages)}


def test_an_algorithm_of_ones_own():
    env, params = counter()
    options = {"params": params, "steps": 64, "config": TINY, "algorithm": Lazy()}
    result = termdp.train(env, "pg", **options)
    assert result.spec.unserialised == ("env", "algorithm")
    start = result.program.init()
    for one, other in zip(
        jax.tree.leaves(start.policy), jax.tree.leaves(result.state.policy), strict=True
    ):
        np.testing.assert_array_equal(one, other)
