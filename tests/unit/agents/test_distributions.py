"""Action distributions against scipy and by drawing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces
from scipy import stats
from scipy.special import softmax

from termdp.agents.distributions import Continuous, Discrete, for_action_space

LOGITS = np.array([[0.3, -1.0, 2.0], [5.0, 5.0, -5.0]])
OTHER = np.array([[0.0, 0.5, 1.0], [1.0, 2.0, 3.0]])
# Two actions each: means, then logarithms of standard deviations.
NORMAL = np.array([[0.5, -1.0, 0.0, -0.7], [2.0, 0.0, 0.4, 0.3]])
OTHER_NORMAL = np.array([[0.0, 0.0, 0.3, -0.2], [1.0, 1.0, 0.0, 0.0]])


def normal_parts(parameters):
    return parameters[:, :2], np.exp(parameters[:, 2:])


def test_discrete_log_prob_and_entropy_are_scipys():
    discrete, actions = Discrete(3), np.array([2, 0])
    for row, action in enumerate(actions):
        known = stats.rv_discrete(values=(range(3), softmax(LOGITS[row])))
        log_prob = discrete.log_prob(LOGITS, actions)[row]
        assert float(log_prob) == pytest.approx(known.logpmf(action), abs=1e-5)
        entropy = discrete.entropy(LOGITS)[row]
        assert float(entropy) == pytest.approx(known.entropy(), abs=1e-5)


def test_discrete_kl_is_scipys_and_one_sided():
    for row in range(2):
        old, new = softmax(LOGITS[row]), softmax(OTHER[row])
        kl = Discrete(3).kl(LOGITS, OTHER)[row]
        assert float(kl) == pytest.approx(stats.entropy(old, new), rel=1e-4)
    assert not np.allclose(
        Discrete(3).kl(LOGITS, OTHER), Discrete(3).kl(OTHER, LOGITS), rtol=0.05
    )


def test_discrete_samples_have_the_right_frequencies(key):
    logits = jnp.broadcast_to(LOGITS[0], (20_000, 3))
    counts = np.bincount(Discrete(3).sample(key, logits), minlength=3)
    # Five standard errors of a share at 20,000 draws are at most 0.018.
    np.testing.assert_allclose(counts / 20_000, softmax(LOGITS[0]), atol=0.018)
    assert Discrete(3).mode(LOGITS).tolist() == [2, 0]


def test_continuous_log_prob_and_entropy_are_scipys():
    continuous, actions = (
        Continuous(2, (-9.0, -9.0), (9.0, 9.0)),
        np.array([[0.1, -0.4], [3.0, -2.0]]),
    )
    means, deviations = normal_parts(NORMAL)
    expected = stats.norm(means, deviations).logpdf(actions).sum(axis=1)
    np.testing.assert_allclose(continuous.log_prob(NORMAL, actions), expected, 1e-5)
    entropy = stats.norm(means, deviations).entropy().sum(axis=1)
    np.testing.assert_allclose(continuous.entropy(NORMAL), entropy, 1e-5)


def test_continuous_kl_by_drawing():
    means, deviations = normal_parts(NORMAL)
    old, new = stats.norm(means, deviations), stats.norm(*normal_parts(OTHER_NORMAL))
    rng = np.random.default_rng(0)
    draws = old.rvs((100_000, 2, 2), random_state=rng)
    ratios = (old.logpdf(draws) - new.logpdf(draws)).sum(axis=2)
    kl = Continuous(2, (-9.0, -9.0), (9.0, 9.0)).kl(NORMAL, OTHER_NORMAL)
    errors = 5 * ratios.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(kl - ratios.mean(axis=0)) < errors)
    np.testing.assert_allclose(
        Continuous(2, (-9.0, -9.0), (9.0, 9.0)).kl(NORMAL, NORMAL), 0, atol=1e-6
    )


def test_continuous_samples_have_the_right_moments(key):
    continuous = Continuous(2, (-9.0, -9.0), (9.0, 9.0))
    draws = continuous.sample(key, jnp.broadcast_to(NORMAL[0], (50_000, 4)))
    np.testing.assert_allclose(draws.mean(axis=0), [0.5, -1.0], atol=0.03)
    np.testing.assert_allclose(draws.std(axis=0), np.exp([0.0, -0.7]), rtol=0.03)
    assert continuous.mode(NORMAL).tolist() == NORMAL[:, :2].tolist()


def test_action_spaces_choose_the_distribution():
    assert for_action_space(spaces.Discrete(5)) == Discrete(5)
    box = spaces.Box(-2.0, 2.0, (3,), jnp.float32)
    assert for_action_space(box) == Continuous(3, (-2.0,) * 3, (2.0,) * 3)
    assert for_action_space(box).num_outputs == 6
    with pytest.raises(ValueError, match="one-dimensional Box"):
        for_action_space(spaces.Box(0.0, 1.0, (2, 2), jnp.float32))


def test_each_number_of_an_action_has_its_own_bounds():
    low, high = jnp.array([-1.0, 2.0]), jnp.array([0.0, 3.0])
    continuous = for_action_space(spaces.Box(low, high, (2,), jnp.float32))
    executed = continuous.executed(jnp.array([[5.0, 5.0], [-5.0, -5.0], [-0.5, 2.5]]))
    assert executed.tolist() == [[0.0, 3.0], [-1.0, 2.0], [-0.5, 2.5]]


def test_gradient_of_log_prob_is_one_hot_minus_probabilities():
    gradient = jax.grad(lambda x: Discrete(3).log_prob(x, jnp.int32(1)))(LOGITS[0])
    np.testing.assert_allclose(gradient, np.eye(3)[1] - softmax(LOGITS[0]), atol=1e-6)
