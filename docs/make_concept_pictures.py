"""Pictures of docs/concepts.md: a step, the three ends, the window, the discount.

Command: python docs/make_concept_pictures.py
"""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt

OUT = Path(__file__).parent / "images"
INK, COST, STOP, CALM = "#3c4254", "#e0a020", "#d6336c", "#2b8a3e"
BIAS, WINDOW = 6.0, 30
plt.rcParams |= {
    "svg.hashsalt": "termdp",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def logistic(x):
    """ρ."""
    return 1 / (1 + np.exp(-x))


def save(figure, name):
    """Write one picture; the same bytes for the same picture."""
    path = OUT / f"concept_{name}.svg"
    figure.savefig(
        path, bbox_inches="tight", facecolor="white", metadata={"Date": None}
    )
    plt.close(figure)


def draw_step():
    """What happens in one step: agent, game, observer."""
    figure, axes = plt.subplots(figsize=(7, 2.2))
    axes.set(xlim=(0, 14), ylim=(0, 4.4))
    axes.axis("off")
    boxes = ((0.2, "agent"), (5.0, "game"), (9.8, "observer"))
    for left, name in boxes:
        colour = STOP if name == "observer" else INK
        axes.add_patch(
            plt.Rectangle((left, 1.4), 3, 1.4, fill=False, ec=colour, lw=1.8)
        )
        axes.text(left + 1.5, 2.1, name, ha="center", va="center", color=colour)
    arrows = (
        ((3.2, 2.4), (5.0, 2.4), "action", 2.6, INK),
        ((5.0, 1.8), (3.2, 1.8), "reward", 1.1, INK),
        ((8.0, 2.1), (9.8, 2.1), "sees both", 2.35, INK),
    )
    for start, end, word, height, colour in arrows:
        axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colour})
        axes.text((start[0] + end[0]) / 2, height, word, ha="center", fontsize=9)
    bend = {"arrowstyle": "->", "color": STOP, "connectionstyle": "arc3,rad=0.25"}
    axes.annotate("", (1.7, 2.85), (11.3, 2.85), arrowprops=bend)
    axes.text(
        6.5,
        4.15,
        "may stop it, for reasons nobody wrote down",
        ha="center",
        color=STOP,
        fontsize=9,
    )
    axes.text(11.3, 0.8, "adds up costs", ha="center", fontsize=9, color=COST)
    save(figure, "step")


def draw_ends():
    """The three ways in which an episode ends."""
    figure, axes = plt.subplots(figsize=(7, 2.0))
    axes.axis("off")
    axes.set(xlim=(-2.6, 14.5), ylim=(-0.6, 2.7))
    rows = (
        ("game_over", 6, INK, "the game itself: a crash. No value follows."),
        ("stopped", 8, STOP, "the observer. The game could have gone on."),
        ("truncated", 10, CALM, "a time limit. Only the watching ends."),
    )
    for height, (name, length, colour, words) in zip((2, 1, 0), rows, strict=True):
        axes.text(-0.3, height, name, ha="right", va="center", color=colour)
        axes.plot([0, length / 2], [height, height], color=colour, lw=2)
        axes.plot(length / 2, height, "s", color=colour, ms=8)
        axes.text(length / 2 + 0.4, height, words, va="center", fontsize=9)
    save(figure, "ends")


def draw_window():
    """Costs leave the window; the sum and the chance of a stop fall again."""
    steps = np.arange(1, 101)
    costs = np.zeros(100)
    costs[[9, 14, 20, 24, 27, 31, 34]] = 1.0
    sums = np.array([costs[max(0, t - WINDOW) : t].sum() for t in steps])
    figure, (top, middle, low) = plt.subplots(
        3, 1, figsize=(7, 4), sharex=True, height_ratios=(1, 2, 2)
    )
    top.bar(steps, costs, color=COST, width=1)
    top.set(ylabel="cost", yticks=(0, 1))
    middle.step(steps, sums, where="mid", color=COST)
    middle.axhline(BIAS, ls="--", color=INK, lw=1)
    middle.text(100, BIAS + 0.2, "bias b", ha="right")
    middle.set(ylabel="C: sum of the\nlast 30 costs", ylim=(0, 8))
    low.step(steps, logistic(sums - BIAS), where="mid", color=STOP)
    low.set(ylabel="chance of\na stop", ylim=(0, 1), xlabel="step")
    figure.align_ylabels()
    save(figure, "window")


def draw_discount():
    """The discount falls where a stop is likely."""
    sums = np.linspace(0, 12, 200)
    figure, axes = plt.subplots(figsize=(7, 2.6))
    axes.axhline(0.99, color=INK, lw=1, ls="--")
    axes.text(12, 0.92, "PPO: 0.99 whatever happens", ha="right", va="top", color=INK)
    axes.plot(sums, 0.99 * (1 - logistic(sums - BIAS)), color=STOP)
    axes.text(6.8, 0.42, "TermPG: 0.99 × the chance of no stop", color=STOP)
    axes.set(xlabel="accumulated cost C (bias 6)", ylabel="discount γ", ylim=(0, 1.05))
    save(figure, "discount")


if __name__ == "__main__":
    draw_step()
    draw_ends()
    draw_window()
    draw_discount()
