"""Figures of a fitted study: likelihood by window, calibration, moments of discomfort."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from termdp.logs.held_out import HeldOut, calibration
from termdp.people.models.discomfort import discomfort
from termdp.people.models.fitting import POOLED, StudyFit
from termdp.people.models.showing_data import ShowingData
from termdp.people.models.window_choice import Group

matplotlib.use("Agg")
from matplotlib.figure import Figure

BLUE, ORANGE, GREY, RED = "#2b6cb0", "#c05621", "#718096", "#c53030"
SAMPLE_SIZE = 6


def window_figure(fit: StudyFit, seed: int) -> Figure:
    """Held-out log-likelihood per showing against the window."""
    figure = _figure(7.2, 4.0)
    axes = figure.add_subplot()
    if fit.groups:
        _curve(axes, fit.windows, seed, BLUE, "a model for each supervisor")
    _curve(axes, fit.pooled_windows, seed, ORANGE, "one model for all")
    axes.axhline(fit.constant, color=GREY, linestyle=":", label="no costs at all")
    axes.axvline(fit.best_window, color=BLUE, linewidth=1, alpha=0.5)
    axes.set_xlabel("window in steps")
    axes.set_ylabel("held-out log-likelihood per showing")
    axes.set_title(f"Chosen window: {fit.best_window} steps", loc="left")
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    return figure


def delay_figure(fit: StudyFit, seed: int) -> Figure:
    """The same against the reaction delay."""
    figure = _figure(4.8, 3.2)
    axes = figure.add_subplot()
    _curve(axes, fit.delays, seed, BLUE, "")
    axes.set_xlabel("reaction delay in steps")
    axes.set_ylabel("held-out log-likelihood per showing")
    axes.set_xticks(fit.delays.cases)
    axes.set_title(f"Chosen delay: {fit.delay}", loc="left")
    return figure


def calibration_figure(fit: StudyFit) -> Figure:
    """Predicted against observed stop rates on held-out showings."""
    figure = _figure(4.8, 4.2)
    axes = figure.add_subplot()
    found = calibration_rows(fit)
    series = [("one model for all", ORANGE, found[POOLED])]
    if "personal" in found:
        series.append(("a model for each supervisor", BLUE, found["personal"]))
    for label, colour, rows in series:
        axes.errorbar(
            [row["predicted"] for row in rows],
            [row["observed"] for row in rows],
            yerr=[1.96 * row["standard_error"] for row in rows],
            fmt="o",
            color=colour,
            label=label,
            capsize=2,
        )
    low = min(row["predicted"] for _, _, rows in series for row in rows)
    axes.plot([low, 1], [low, 1], color=GREY, linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("predicted chance of a stop, held out")
    axes.set_ylabel("observed share of stops")
    axes.set_title("Calibration", loc="left")
    axes.legend(frameon=False)
    return figure


def calibration_rows(fit: StudyFit) -> dict[str, list[dict[str, float]]]:
    """Calibration of the pooled model, and of all personal ones taken together."""

    def rows(groups: list[Group], held_out: HeldOut) -> list[dict[str, float]]:
        nearest = int(np.argmin(np.abs(np.array(held_out.cases) - fit.window)))
        labels = [group.packed.labels(fit.delay).ravel() for group in groups]
        logits = [of_group[nearest].ravel() for of_group in held_out.logits]
        return calibration(np.concatenate(labels), np.concatenate(logits))

    found = {POOLED: rows([fit.pooled], fit.pooled_windows)}
    if fit.groups:
        found["personal"] = rows(fit.groups, fit.windows)
    return found


def moments_figure(fit: StudyFit, seed: int) -> Figure:
    """Cost over time on showings that were stopped: which moments added up."""
    showings = sample_showings(fit, seed)
    figure = _figure(9.0, 1.7 * len(showings) + 0.6)
    every = figure.subplots(len(showings), 1, squeeze=False)[:, 0]
    for axes, showing in zip(every, showings, strict=True):
        name = showing.supervisor if showing.supervisor in fit.observers else POOLED
        observer = fit.observers[name]
        felt = discomfort(observer, showing.observations, showing.actions)
        steps = np.arange(len(showing))
        axes.bar(steps, felt.costs, width=1.0, color=ORANGE, label="cost")
        axes.plot(steps, felt.accumulated, color=BLUE, label="accumulated")
        axes.axhline(float(observer.bias), color=GREY, linestyle=":", label="bias")
        axes.axvline(len(showing) - 1, color=RED, label="stop")
        axes.set_xlim(-1, max(len(r) for r in showings))
        axes.set_title(
            f"ride {showing.ride}, {showing.supervisor}", fontsize=9, loc="left"
        )
    every[0].legend(frameon=False, ncols=4, loc="upper right", fontsize=8)
    every[-1].set_xlabel("step")
    return figure


def sample_showings(fit: StudyFit, seed: int) -> list[ShowingData]:
    """Some stopped showings, of different supervisors first."""
    rng = np.random.default_rng(seed)
    stopped = [showing for showing in fit.pooled.showings if showing.end == "stopped"]
    mixed = [stopped[i] for i in rng.permutation(len(stopped))]
    turns: dict[str, int] = {}
    ranked = []
    for showing in mixed:
        turns[showing.supervisor] = turns.get(showing.supervisor, 0) + 1
        ranked.append((turns[showing.supervisor], showing.supervisor, showing))
    ranked.sort(key=lambda entry: entry[:2])
    return [showing for _, _, showing in ranked[:SAMPLE_SIZE]]


def save_figures(folder: Path, fit: StudyFit, seed: int) -> list[str]:
    """Write all of them as SVG; returns the names of the files."""
    figures = {
        "windows.svg": window_figure(fit, seed),
        "delays.svg": delay_figure(fit, seed),
        "calibration.svg": calibration_figure(fit),
        "moments.svg": moments_figure(fit, seed),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name)
    return list(figures)


def _curve(axes: Any, found: HeldOut, seed: int, colour: str, label: str) -> None:
    intervals, _ = found.bootstrap(seed)
    axes.fill_between(found.cases, *intervals.T, color=colour, alpha=0.15, linewidth=0)
    axes.plot(found.cases, found.means, "o-", color=colour, label=label)


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")
