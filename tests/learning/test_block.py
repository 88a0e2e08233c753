"""Costs from stops alone, on data whose costs are known.

Two seeds here; the table of ten is printed by benchmarks/cost_learning.py. Scores are
expected ones: with drawn stops, 400 held-out episodes cannot resolve 0.002 of the area
under the curve (see `offline_costs.block.score`).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from offline_costs import block
from offline_costs.episodes import from_episodes
from offline_costs.offline import fit_buffer
from runs_long import optimised
from termdp.costs.config import CostConfig
from termdp.runs.config import make_config

pytestmark = pytest.mark.slow


def learned(task, num_train, config, seeds, num_steps, num_rows):
    """States of all seeds, learned together, and their held-out episodes."""
    held_out, streams = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        train = block.block_episodes(rng, num_train, task)
        held_out.append(block.block_episodes(rng, 400, task))
        streams.append(
            from_episodes(
                jax.random.key(seed),
                [known.episode for known in train],
                block.ACTIONS,
                config,
                num_rows=num_rows,
            )
        )
    buffer = jax.tree.map(lambda *x: np.stack(x), *streams)
    fit = partial(
        fit_buffer,
        action_spec=block.ACTIONS,
        window=task.window,
        config=config,
        num_steps=num_steps,
    )
    keys = jnp.stack([jax.random.key(1000 + seed) for seed in seeds])
    with optimised():
        states, _ = jax.jit(jax.vmap(fit))(keys, buffer)
    states = jax.device_get(states)
    return [jax.tree.map(lambda x, i=i: x[i], states) for i in range(len(seeds))], (
        held_out
    )


def test_the_block_is_found_and_the_model_is_as_good_as_the_truth():
    task = block.BlockTask()
    states, held_out = learned(
        task, 1000, make_config("fast", (10, 10, 4), 30).costs, range(2), 400, 1000
    )
    for state, episodes in zip(states, held_out, strict=True):
        score = block.score(state, episodes, task, expected=True)
        assert score.auc > score.true_auc - 0.002
        assert score.log_loss < 1.015 * score.true_log_loss
        assert score.correlation >= 0.97
        assert abs(score.bias - task.bias) <= 0.5
        assert score.smallest_std >= 0.01  # no dead member


def test_rare_stops_are_enough_to_begin_with():
    """0.6% of the steps are stops; a third of the steps of above, half the batch."""
    task = block.BlockTask(min_rate=0.0, max_rate=0.06)
    config = CostConfig(segments_per_step=4)
    states, held_out = learned(task, 400, config, [0], 400, 1000)
    score = block.score(states[0], held_out[0], task, expected=True)
    assert score.correlation >= 0.8
    assert score.auc > score.true_auc - 0.02
    assert score.log_loss < 1.05 * score.true_log_loss
    assert abs(score.bias - task.bias) <= 1.0


def test_the_area_under_the_curve_is_scikit_learns_with_ties():
    rng = np.random.default_rng(1)
    scores = rng.integers(6, size=200) / 6
    labels = rng.random(200) < scores * 0.5
    expected = roc_auc_score(labels, scores)
    assert block.area_under_curve(scores, labels) == pytest.approx(expected)
    assert np.isnan(block.area_under_curve(scores, np.zeros(200)))


def test_the_expected_area_under_the_curve_ignores_how_ties_are_broken():
    rng = np.random.default_rng(0)
    probs = rng.integers(4, size=1000) / 8
    jittered = probs + rng.random(1000) * 1e-6
    exact = block.area_under_curve(probs, probs)
    assert block.area_under_curve(jittered, probs) == pytest.approx(exact, abs=1e-3)
