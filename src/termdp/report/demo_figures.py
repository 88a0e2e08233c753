"""The pictures of the demo's page: small ones that stay readable on a phone."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from termdp.intervals import mean_band
from termdp.report.demo import FIRST_SEED, METHODS
from termdp.report.figures import drawing
from termdp.report.names import colours, marker, method_name

_SIZE = (4.0, 3.0)


def learning_figures(
    steps: np.ndarray, curves: dict[str, np.ndarray]
) -> Iterator[tuple[str, str, Any]]:
    """Return, stop rate and cost correlation over training: name, words, figure.

    Args:
        steps: where the curves' points are.
        curves: by name, `[methods, seeds, points]`.
    """
    panels = (
        ("return", "return_mean", "Return of a ride", METHODS),
        ("stopped", "stop_rate", "Share of rides that were stopped", METHODS),
        (
            "correlation",
            "cost_corr",
            "Correlation of TermPG's costs with the true ones; 1 is perfect",
            ("termpg",),
        ),
    )
    for name, curve, words, methods in panels:
        yield name, words, _learning_figure(steps, curves[curve], curve, methods)


def _learning_figure(
    steps: np.ndarray, values: np.ndarray, name: str, methods: Sequence[str]
) -> Any:
    palette = colours(METHODS)
    with drawing() as plt:
        figure, axis = plt.subplots(figsize=_SIZE)
        for method in methods:
            low, mean, high = mean_band(values[METHODS.index(method)])
            colour = palette[method]
            axis.plot(
                steps / 1000,
                mean,
                color=colour,
                marker=marker(method),
                markevery=max(1, len(steps) // 6),
                markersize=5,
                label=method_name(method),
            )
            axis.fill_between(steps / 1000, low, high, color=colour, alpha=0.15, lw=0)
        if name == "return_mean":
            axis.set_ylim(bottom=0)
        else:
            axis.set_ylim(-0.03, 1.03)
        axis.set_xlabel("thousand steps")
        axis.tick_params(labelsize=11)
        if len(methods) > 1:
            axis.legend(fontsize=11)
        return figure


def cost_figure(truths: Sequence[np.ndarray], guesses: Sequence[np.ndarray]) -> Any:
    """Learned costs of single steps: for each seed one column per kind of step.

    Args:
        truths: true costs, one array per seed.
        guesses: learned costs of the same steps.
    """
    colour = colours(METHODS)["termpg"]
    rng = np.random.default_rng(0)
    with drawing() as plt:
        figure, axis = plt.subplots(figsize=(5.2, 3.2))
        for seed, (truth, guess) in enumerate(zip(truths, guesses, strict=True)):
            for cost, grey in ((0, True), (1, False)):
                shown = guess[(truth > 0) == bool(cost)]
                x = (
                    seed
                    + (0.22 if cost else -0.22)
                    + rng.uniform(-0.12, 0.12, len(shown))
                )
                axis.scatter(
                    x, shown, s=8, alpha=0.3, lw=0, color="#5b6478" if grey else colour
                )
        level = max(float(truth.max()) for truth in truths)
        for value, words in (
            (level, "true cost of steering"),
            (0.0, "of going on"),
        ):
            axis.axhline(value, color="#3a4152", lw=1, ls=(0, (4, 3)))
            axis.annotate(
                words,
                (len(truths) - 0.5, value),
                ha="right",
                va="bottom",
                fontsize=9,
            )
        axis.set_xticks(
            range(len(truths)),
            [f"seed {FIRST_SEED + place}" for place in range(len(truths))],
        )
        axis.set_xlim(-0.5, len(truths) - 0.5)
        axis.set_ylabel("learned cost")
        axis.scatter([], [], s=20, color=colour, label="steers")
        axis.scatter([], [], s=20, color="#5b6478", label="goes straight on")
        figure.legend(loc="outside upper center", ncols=2, fontsize=10)
        return figure
