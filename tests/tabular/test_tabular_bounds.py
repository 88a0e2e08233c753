"""The paper's formulas, against numbers worked out apart from the code."""

import math

import numpy as np
import pytest
from slow_reference import all_paths, logistic, random_model

from termdp import tabular
from termdp.tabular import bounds

SHAPE = (4, 3, 2)  # H, S, A: SAH = 24


def test_the_reciprocal_slope_by_hand():
    assert bounds.reciprocal_slope(0.0) == 4
    rho = logistic(1.5)
    assert bounds.reciprocal_slope(1.5) == pytest.approx(1 / (rho * (1 - rho)))


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("seed", range(3))
def test_kappa_is_the_worst_over_all_paths(seed, window):
    model = random_model(seed, num_states=2, horizon=3, window=window)
    worst = 0.0
    for length in (1, 2, 3):
        for path in all_paths(model.shape, length):
            costs = [model.costs[t, s, a] for t, (s, a) in enumerate(path)]
            rho = logistic(sum(costs[-(window or length) :]) - model.bias)
            worst = max(worst, 1 / (rho * (1 - rho)))
    assert bounds.kappa(model) == pytest.approx(worst)


def test_bonuses_by_hand():
    visits = np.zeros(SHAPE)
    visits[0, 0, 0] = 9
    by_reward = bounds.reward_bonus(visits, 100, 0.05)
    assert by_reward[0, 0, 0] == pytest.approx(
        math.sqrt(2 * math.log(8 * 24 * 100 / 0.05) / 9)
    )
    assert by_reward[1, 0, 0] == pytest.approx(3 * by_reward[0, 0, 0])
    by_move = bounds.transition_bonus(visits, 100, 0.05)
    assert by_move[0, 0, 0] == pytest.approx(
        4 * math.sqrt(4 * 3 * math.log(12 * 24 * 100 / 0.05) / 9)
    )


def test_the_cost_bonus_by_hand():
    """S = 3, A = 2, H = 4, L = 2, κ = 5, k = 7, δ = 0.05, n = 9."""
    visits = np.full(SHAPE, 9.0)
    log_term = math.log(16 / 0.05 * (1 + 7 * 2.5 / (16 * 9 * 4 * 2)))
    expected = 24 * math.sqrt(5 * 6 * 4**2.5) * 3**1.5 * log_term**2
    expected /= math.sqrt(9 + 4 * 24 / (2 * 2 + 0.5))
    found = bounds.cost_bonus(visits, 7, 2.0, 5.0, 0.05)
    np.testing.assert_allclose(found, expected)
    local = bounds.local_cost_bound(visits, 7, 2.0, 5.0, 0.05 / 4)
    np.testing.assert_allclose(found, local)


def test_concentration_by_hand():
    """d = 24, t = 28, λ = 16/3, L = 4, δ = 0.05."""
    ridge = 16 / 3
    gamma = math.sqrt(ridge) * 4.5 + 24 / math.sqrt(ridge) * math.log(
        80 * (1 + 28 / (16 * 24 * ridge))
    )
    assert bounds.logistic_radius_term(24, 28, ridge, 4.0, 0.05) == pytest.approx(gamma)
    bound = 10 * gamma + 2 * math.sqrt(5) * (gamma + gamma**2 / math.sqrt(ridge))
    found = bounds.logistic_concentration(24, 28, ridge, 4.0, 0.05)
    assert found == pytest.approx(bound)
    assert bounds.default_ridge(3, 2, 4, 2.0) == pytest.approx(24 / 4.5)
    derived = bounds.global_cost_bound_derived(SHAPE, 7, 2.0, 9.0, 0.05)
    same = bounds.logistic_concentration(24, 28, 24 / 4.5, 4.0, 0.05)
    assert derived == pytest.approx(3 * same)


def test_the_printed_global_bound_is_too_small_for_large_radii():
    """(L + 1)^1.5 is printed where the lemma gives (L√H + 1)²."""
    ratios = [
        bounds.global_cost_bound(SHAPE, 100, radius, 4.0, 0.05)
        / bounds.global_cost_bound_derived(SHAPE, 100, radius, 4.0, 0.05)
        for radius in (1.0, 100.0, 10_000.0)
    ]
    assert ratios[0] > 1 > ratios[1] > ratios[2]
    assert ratios[1] / ratios[2] == pytest.approx(10, rel=0.35), "√L is missing"


@pytest.mark.parametrize("length", [1, 2, 3, 7, 30])
def test_the_gram_block_its_inverse_and_its_smallest_eigenvalue(length):
    block = np.zeros((length, length))
    for t in range(1, length + 1):
        prefix = np.arange(length) < t
        block += np.outer(prefix, prefix)
    np.testing.assert_array_equal(bounds.gram_block(length), block)
    np.testing.assert_allclose(
        bounds.gram_block_inverse(length) @ block, np.eye(length), atol=1e-9
    )
    assert np.linalg.eigvalsh(block).min() >= 0.25
    for ridge in (0.0, 0.1, 3.0):
        inverse = np.linalg.inv(ridge * np.eye(length) + block)
        assert np.diag(inverse).max() <= bounds.inverse_eigenvalue_bound(ridge)


def test_the_eigenvalue_lemma_on_real_episodes():
    """eᵀ(λI + A_k)⁻¹e ≤ 1/(¼ + λ) for what the episode visited, in any order."""
    model = tabular.random(4, 2, 5)
    seen = tabular.simulate(model, np.full((5, 4, 2), 0.5), 20, 0)
    for states, actions, _ in seen:
        gram = np.zeros((40, 40))
        prefix = np.zeros(40)
        visited = []
        for t in range(min(len(states), 4)):
            place = t * 8 + states[t] * 2 + actions[t]
            prefix[place] = 1
            visited.append(place)
            gram += np.outer(prefix, prefix)
        for ridge in (0.01, 1.0):
            inverse = np.linalg.inv(ridge * np.eye(40) + gram)
            worst = inverse[visited, visited].max()
            assert worst <= bounds.inverse_eigenvalue_bound(ridge) + 1e-12


def test_planning_errors_by_hand():
    assert bounds.signed_error(0.01, 4) == pytest.approx(0.32)
    assert bounds.signed_error(bounds.signed_resolution(0.3, 7), 7) == pytest.approx(
        0.3
    )
    pitch, level = bounds.clipped_resolution(0.3, 7), bounds.clip_level(0.3, 7)
    assert level == pytest.approx(math.log(4 * 49 / 0.3))
    assert bounds.clipped_error(pitch, level, 7) == pytest.approx(0.3)


def test_the_regret_bound_by_hand():
    """4 · 24 = 96 (the paper prints 92 and 32), √(κSAH^2.5), log²."""
    visits = 16 * 16 * math.log(80) + 4 * 6 * 16
    visits += 2 * math.sqrt(2) * math.sqrt(6 * 16 * 1000 * math.log(4000))
    assert bounds.visitation_bound(SHAPE, 1000, 0.05 / 4) == pytest.approx(visits)
    log_term = math.log(320 * (1 + 1000 * 2.5 / (16 * 36 * 2)))
    size = 2 * math.sqrt(2 * math.log(8 * 24 * 1000 / 0.05))
    size += 2 * 4 * math.sqrt(4 * 3 * math.log(12 * 24 * 1000 / 0.05))
    size += 96 * 16 * math.sqrt(5 * 6 * 32) * 3**1.5 * log_term**2
    found = bounds.regret_bound(SHAPE, 1000, 2.0, 5.0, 0.05)
    assert found == pytest.approx(visits * size)
    # √((L + ½)/(4SA√H)) exceeds 1 when L is large.
    large = bounds.regret_bound(SHAPE, 1000, 200.0, 5.0, 0.05)
    assert large > 100 * found
