"""Measurements behind docs/tabular.md: run `python docs/tabular_study.py PART …`.

Parts: regret, bonuses, rate, kappa, planner, pictures (default: all). Each prints a
table in Markdown; figures go to docs/images.
"""

import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from termdp import tabular
from termdp.intervals import mean_band, mean_interval
from termdp.tabular import bounds, plots, termcrl
from termdp.tabular.learner import Learner, Regret
from termdp.tabular.regret import cost_errors, error_rate, log_log_slope

IMAGES = Path(__file__).parent / "images"
BONUS_SCALE, COST_BONUS_SCALE = 0.02, 1e-8


def with_interval(values: list[float], digits: int = 2) -> str:
    """Mean over seeds and half of its 95% interval."""
    found = mean_interval(values)
    return f"{found.value:,.{digits}f} ± {found.half_width:,.{digits}f}"


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def heading(*cells: str) -> None:
    """Print the head of a Markdown table."""
    row(*cells)
    row(*["---"] * len(cells))


def save(figure: Figure, name: str) -> None:
    """Write a figure to docs/images."""
    figure.savefig(IMAGES / f"tabular_{name}.png", dpi=90)


def run_seeds(
    agent: Learner, model: tabular.TerMDP, episodes: int, seeds: int
) -> list[Regret]:
    """One run for each of the seeds 0, 1 and so on."""
    return [agent.run(model, episodes, seed) for seed in range(seeds)]


def regret(episodes: int = 20_000, seeds: int = 5) -> None:
    """Regret and its growth on the named models."""
    print(f"\n{episodes} episodes, seeds 0–{seeds - 1}\n")
    heading("model", "agent", "regret", "slope", "regret / theory's bound", "time (s)")
    for name in tabular.NAMED_MODELS:
        model = tabular.make_model(name)
        agents: dict[str, Learner] = {
            "termcrl": tabular.TermCRL(
                model.radius,
                bonus_scale=BONUS_SCALE,
                cost_bonus_scale=COST_BONUS_SCALE,
            ),
            "known costs": tabular.KnownCosts(bonus_scale=BONUS_SCALE),
            "ignores stops": tabular.IgnoreStops(bonus_scale=BONUS_SCALE),
        }
        if name == "paper_example":
            agents["whole history"] = tabular.WholeHistory(bonus_scale=BONUS_SCALE)
        bound = bounds.regret_bound(
            model.shape, episodes, model.radius, bounds.kappa(model), 0.05
        )
        runs = {}
        for agent_name, agent in agents.items():
            begin = time.perf_counter()
            runs[agent_name] = results = run_seeds(agent, model, episodes, seeds)
            final = [run.cumulative[-1] for run in results]
            row(
                name,
                agent_name,
                with_interval(final, 0),
                with_interval([log_log_slope(run.cumulative) for run in results]),
                f"{np.mean(final) / bound:.0e}",
                f"{(time.perf_counter() - begin) / seeds:.1f}",
            )
        save(plots.plot_regret(runs), f"regret_{name}")
        if name == "chain":
            save(plots.plot_cost_errors(model, runs["termcrl"]), "cost_error_chain")
        visits, errors = cost_errors(model, runs["termcrl"])
        print(f"cost error on {name}: n^{error_rate(visits, errors):.2f}")


def bonuses(episodes: int = 2000, seeds: int = 40) -> None:
    """Which factor on the bonuses covers the truth, and which one explores all."""
    model = tabular.random(4, 2, 4)
    horizon = model.horizon
    print(f"\nrandom(4, 2, 4), {episodes} episodes, seeds 0–{seeds - 1}\n")
    agent = tabular.TermCRL(model.radius)
    needed = np.array(
        [
            run.needed_scales.max(axis=0)
            for run in run_seeds(agent, model, episodes, seeds)
        ]
    )
    quantile = np.quantile(needed, 0.95, axis=0, method="higher")
    heading("bonus", "smallest factor with coverage ≥ 95%", "median over seeds")
    for name, place in (("rewards", 0), ("transitions", 1), ("costs", 2)):
        row(name, f"{quantile[place]:.2g}", f"{np.median(needed[:, place]):.2g}")
    together = np.quantile(needed.max(axis=1), 0.95, method="higher")
    row("one factor for all", f"{together:.2g}", f"{np.median(needed.max(axis=1)):.2g}")
    print()
    heading(
        "bonus_scale (all)", "V̄ at its cap H", "costs at −L", "regret", "of the worst"
    )
    worst = model_worst(model) * episodes
    kappa, visits_by = bounds.kappa(model), 5
    for scale in (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        agent = tabular.TermCRL(model.radius, bonus_scale=scale)
        runs = run_seeds(agent, model, episodes, visits_by)
        capped = np.mean([(r.optimistic_values >= horizon - 1e-9).mean() for r in runs])
        lowest = []
        for run in runs:
            assert run.estimate is not None
            bonus = scale * bounds.cost_bonus(
                run.visits, episodes, model.radius, kappa, 0.05
            )
            is_low = run.estimate.costs - bonus <= -model.radius
            lowest.append(np.average(is_low[:-1], weights=run.visits[:-1]))
        final = [run.cumulative[-1] for run in runs]
        row(
            f"{scale:g}",
            f"{capped:.0%} of plans",
            f"{np.mean(lowest):.0%} of visits",
            with_interval(final, 0),
            f"{np.mean(final) / worst:.0%}",
        )


def rate(seeds: int = 20) -> None:
    """How the error of a cost falls with its visits, and what the penalty does."""
    model = tabular.random(4, 2, 4)
    truth = tabular.absorb_bias(model).costs
    uniform = np.full(model.shape, 0.5)
    paper = bounds.default_ridge(4, 2, 4, model.radius)
    print(f"\nrandom(4, 2, 4), uniform policy, seeds 0–{seeds - 1}; the paper's λ = ")
    print(f"{paper:.1f}; root mean square error over visited costs\n")
    heading("episodes", "λ of the paper", "λ = 0.01", "95% intervals cover (λ = 0.01)")
    errors: dict[float, list[float]] = {paper: [], 0.01: []}
    counts = (300, 1000, 3000, 10_000, 30_000, 100_000)
    for episodes in counts:
        cells: list[str] = []
        inside: list[float] = []
        for ridge in errors:
            squares = []
            for seed in range(seeds):
                seen = tabular.simulate(model, uniform, episodes, seed)
                fit = tabular.fit_costs(seen, 4, 2, 4, ridge=ridge)
                known = fit.visits >= 20
                gap = np.abs(fit.costs - truth)[known]
                squares.append(float(np.mean(gap**2)))
                if ridge == 0.01:
                    inside.extend(gap <= 1.96 * fit.standard_errors[known])
            errors[ridge].append(float(np.sqrt(np.mean(squares))))
            cells.append(f"{errors[ridge][-1]:.3f}")
        row(f"{episodes:,}", *cells, f"{np.mean(inside):.1%}")
    slopes = [np.polyfit(np.log(counts), np.log(e), 1)[0] for e in errors.values()]
    row("slope", *(f"{slope:.2f}" for slope in slopes), "")


def model_worst(model: tabular.TerMDP) -> float:
    """Loss per episode of the uniformly random policy."""
    uniform = np.full(model.shape, 1 / model.num_actions)
    return tabular.plan(model).value - tabular.evaluate(model, uniform)


def kappa(episodes: int = 10_000, seeds: int = 5) -> None:
    """Cost error and regret as the observer becomes patient (b from 0 to 8)."""
    print(f"\nchain, {episodes} episodes, seeds 0–{seeds - 1}\n")
    heading("b", "κ", "V*", "cost error", "regret", "regret / V*")
    errors_by, kappas = [], []
    for bias in range(9):
        model = tabular.chain(bias=float(bias))
        agent = tabular.TermCRL(
            model.radius, bonus_scale=BONUS_SCALE, cost_bonus_scale=COST_BONUS_SCALE
        )
        runs = run_seeds(agent, model, episodes, seeds)
        errors = [float(run.cost_error[-1]) for run in runs]
        final = [float(run.cumulative[-1]) for run in runs]
        kappas.append(bounds.kappa(model))
        errors_by.append(errors)
        row(
            bias,
            f"{kappas[-1]:.0f}",
            f"{runs[0].optimal_value:.2f}",
            with_interval(errors, 3),
            with_interval(final, 0),
            f"{np.mean(final) / runs[0].optimal_value:,.0f}",
        )
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    _, mean, high = mean_band(np.array(errors_by).T)
    axes.errorbar(
        range(9), mean, high - mean, marker="o", color=plots.COLOURS[0], capsize=3
    )
    axes.set(xlabel="bias b", ylabel="visit-weighted cost error", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, "kappa")


def planner(seeds: int = 5) -> None:
    """TermCRL with the lattice of ε = 1/√K against exact planning."""
    print(f"\nseeds 0–{seeds - 1}\n")
    heading("model", "K", "Δ", "planner", "regret", "time (s)")
    for name, model, episodes in (
        ("paper_example", tabular.paper_example(), 10_000),
        ("random(3, 2, 4)", tabular.random(3, 2, 4), 2500),
    ):
        pitch = bounds.signed_resolution(1 / np.sqrt(episodes), model.horizon)
        for how in ("exact", pitch, termcrl.default_resolution(4.0, 4)):
            agent = tabular.TermCRL(
                model.radius,
                bonus_scale=BONUS_SCALE,
                cost_bonus_scale=COST_BONUS_SCALE,
                resolution=how,
            )
            begin = time.perf_counter()
            runs = run_seeds(agent, model, episodes, seeds)
            seconds = (time.perf_counter() - begin) / seeds
            row(
                name,
                episodes,
                "–" if how == "exact" else f"{how:.2g}",
                "exact" if how == "exact" else "lattice",
                with_interval([run.cumulative[-1] for run in runs], 1),
                f"{seconds:.1f}",
            )


def pictures() -> None:
    """One picture of each named model."""
    for name in tabular.NAMED_MODELS:
        save(plots.draw_model(name, tabular.make_model(name)), name)


PARTS = {
    "regret": regret,
    "bonuses": bonuses,
    "rate": rate,
    "kappa": kappa,
    "planner": planner,
    "pictures": pictures,
}


def main() -> None:
    """Run the parts named on the command line, or all."""
    for part in sys.argv[1:] or list(PARTS):
        PARTS[part]()


if __name__ == "__main__":
    main()
