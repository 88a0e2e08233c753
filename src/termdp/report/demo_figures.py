"""The pictures of the demo's page."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from termdp.intervals import mean_band

METHODS = ("pg", "termpg", "oracle")
NAMES = {
    "pg": "PPO",
    "termpg": "TermPG",
    "oracle": "oracle (told the true costs)",
}
COLOURS = {"pg": "#8a93a6", "termpg": "#d6336c", "oracle": "#2b8a3e"}


def learning_figure(steps: np.ndarray, curves: dict[str, np.ndarray]) -> Any:
    """Return, stop rate and cost correlation over training.

    Args:
        steps: where the curves' points are.
        curves: by name, `[methods, seeds, points]`.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.2))
    panels = (
        ("return_mean", "return", METHODS),
        ("stop_rate", "share stopped", METHODS),
        ("cost_corr", "correlation with true cost", ("termpg",)),
    )
    for axis, (name, title, methods) in zip(axes, panels, strict=True):
        for method in methods:
            values = curves[name][METHODS.index(method)]
            low, mean, high = mean_band(values)
            colour = COLOURS[method]
            axis.plot(steps / 1000, mean, color=colour, label=NAMES[method])
            axis.fill_between(steps / 1000, low, high, color=colour, alpha=0.2, lw=0)
        _tidy(axis, title, "thousand steps")
        if name != "return_mean":
            axis.set_ylim(max(axis.get_ylim()[0], -0.02), min(axis.get_ylim()[1], 1.02))
    axes[0].set_ylim(bottom=0)
    axes[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    return figure


def cost_figure(truths: Sequence[np.ndarray], guesses: Sequence[np.ndarray]) -> Any:
    """Learned against true costs of single steps, a panel per seed."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(truths), figsize=(11.5, 3.4), sharex=True, sharey=True, squeeze=False
    )
    low = min(float(np.min(x)) for x in (*truths, *guesses))
    high = max(float(np.max(x)) for x in (*truths, *guesses))
    for seed, (axis, truth, guess) in enumerate(
        zip(axes[0], truths, guesses, strict=True)
    ):
        axis.plot([low, high], [low, high], color="#b8bfcc", lw=1, ls="--")
        axis.scatter(truth, guess, s=9, alpha=0.25, color=COLOURS["termpg"], lw=0)
        _tidy(axis, f"seed {seed}", "true cost")
    axes[0][0].set_ylabel("learned cost", fontsize=9)
    figure.tight_layout()
    return figure


def _tidy(axis: Any, title: str, xlabel: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(xlabel, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
