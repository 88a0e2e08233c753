"""Measurements behind docs/tabular.md: run `python docs/tabular_study.py PART …`.

Parts: regret, bonuses, rate, kappa, planner, sets, later, pictures (default: all). Each
prints a table in Markdown; figures go to docs/images.
"""

import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from termdp import tabular
from termdp.intervals import mean_band, mean_interval
from termdp.tabular import bounds, confidence, plots, termcrl
from termdp.tabular.episodes import StopData, flatten
from termdp.tabular.learner import Learner, Regret
from termdp.tabular.likelihood import Parameters, log_likelihood, maximise
from termdp.tabular.regret import (
    cost_errors,
    error_rate,
    log_log_slope,
    mean_coverage,
)
from termdp.tabular.thompson import cost_posterior

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


def sets(seeds: int = 100) -> None:
    """Coverage and width of the sets for the costs, on the same episodes."""
    model = tabular.random(4, 2, 4)
    truth = tabular.absorb_bias(model).costs.copy()
    truth[-1] = 0.0  # the stop at step H is never seen
    variance = confidence.prior_variance(24, model.radius)
    counts = (300, 1000, 3000, 10_000, 30_000)
    print(f"\nrandom(4, 2, 4), uniform policy, seeds 0–{seeds - 1}, δ = 0.05\n")
    covered: dict[str, list[list[bool]]] = {name: [] for name in SET_NAMES}
    widths: dict[str, list[list[float]]] = {name: [] for name in SET_NAMES}
    fits: list[list[bool]] = []
    shares: list[list[float]] = []
    errors = []
    for seed in range(seeds):
        seen = tabular.simulate(model, np.full(model.shape, 0.5), counts[-1], seed)
        here = {name: ([], []) for name in SET_NAMES}
        members, share, error = [], [], []
        for count in counts:
            data = flatten(seen.first(count), 4, 2, None, False)
            best = maximise(data, 1 / (2 * variance), model.radius)
            radii = set_radii(data, best, model.radius, variance)
            excess = log_likelihood(data, best) - log_likelihood(
                data, Parameters(truth.ravel(), 0.0)
            )
            members.extend(excess <= radius for radius in radii)
            share.extend(excess / radius for radius in radii)
            visits = np.bincount(data.index, data.weight, data.dimension)
            known, gap = visits >= 20, np.abs(best.costs - truth.ravel())
            error.append(float(np.sqrt(np.mean(gap[known] ** 2))))
            found = half_widths(data, best, model, visits, count, radii)
            for name, half in zip(SET_NAMES, found, strict=True):
                if name.startswith("Laplace"):
                    here[name][0].append(float((gap <= half)[known].mean()))
                else:
                    here[name][0].append(bool((gap <= half)[visits > 0].all()))
                here[name][1].append(float(np.median(half[known])))
        fits.append(members)
        shares.append(share)
        errors.append(error)
        for name in SET_NAMES:
            covered[name].append(here[name][0])
            widths[name].append(here[name][1])
    heading("set", "covers", *(f"half-width at {count:,}" for count in counts))
    for name in SET_NAMES:
        table = np.array(covered[name], float)
        kind = "of single costs" if name.startswith("Laplace") else "of runs"
        share_of = table.mean() if name.startswith("Laplace") else table.min(1).mean()
        middle = np.median(widths[name], axis=0)
        row(name, f"{share_of:.1%} {kind}", *(f"{width:,.3g}" for width in middle))
    row("error (root mean square)", "", *(f"{e:.3f}" for e in np.mean(errors, axis=0)))
    inside = np.array(fits).reshape(seeds, len(counts), 2).all(axis=1).mean(axis=0)
    most = np.array(shares).reshape(seeds, -1, 2).max(axis=1)
    print(f"the truth is in the sets themselves: {inside[0]:.1%}, {inside[1]:.1%}")
    print(f"largest share of β² that it used: {most.max(axis=0).round(3)}")
    save(plot_widths(counts, widths, errors), "cost_sets")


SET_NAMES = ("paper's bonus", "OFUGLB", "Gaussian mixture", "Laplace, 95% each")


def set_radii(
    data: StopData, best: Parameters, radius: float, variance: float
) -> tuple[float, float]:
    """β² of OFUGLB and of the Gaussian mixture at δ = 0.05 for `random(4, 2, 4)`."""
    return (
        confidence.ofuglb_radius(24, confidence.lipschitz(data), radius, 0.05),
        confidence.mixture_radius(data, best, variance, 0.05),
    )


def half_widths(
    data: StopData,
    best: Parameters,
    model: tabular.TerMDP,
    visits: np.ndarray,
    count: int,
    radii: tuple[float, float],
) -> list[np.ndarray]:
    """How far each cost can be from its estimate, in the order of `SET_NAMES`."""
    bonus = bounds.local_cost_bound(
        visits.reshape(model.shape), count + 1, model.radius, bounds.kappa(model), 0.05
    )
    later = [
        confidence.ellipsoid(data, best, model.radius, beta).half_widths
        for beta in radii
    ]
    variance = confidence.prior_variance(24, model.radius)
    posterior = cost_posterior(data, best, 1 / (2 * variance))
    return [bonus.ravel(), *later, 1.96 * posterior.standard_deviations]


def plot_widths(
    counts: tuple[int, ...],
    widths: dict[str, list[list[float]]],
    errors: list[list[float]],
) -> Figure:
    """Median half-widths against the number of episodes, and the error itself."""
    figure = Figure(figsize=(6.2, 4.0), layout="constrained")
    axes = figure.subplots()
    for colour, (name, table) in zip(plots.COLOURS, widths.items(), strict=False):
        axes.plot(
            counts, np.median(table, axis=0), "o-", color=colour, ms=4, label=name
        )
    axes.plot(counts, np.mean(errors, axis=0), "--", color=plots.INK, label="error")
    axes.axhline(1.0, color=plots.INK, lw=0.8, ls=":")
    axes.annotate("a cost of 1", (counts[0], 1.0), (0, 3), textcoords="offset points")
    axes.set(xscale="log", yscale="log", xlabel="episodes", ylabel="half-width")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, lw=0.6)
    return figure


UNTUNED = ("paper's bonus × 1", "OFUGLB", "mixture")


def later(seeds: int = 5) -> None:
    """Regret and coverage of the paper's bonus, of later sets and of Thompson."""
    print(f"\nseeds 0–{seeds - 1}\n")
    heading(
        "model", "agent", "episodes", "regret", "last loss", "costs covered", "time (s)"
    )
    for name, episodes, is_long in (
        ("paper_example", 20_000, False),
        ("chain", 20_000, False),
        ("random", 20_000, False),
        ("paper_example", 200_000, True),
        ("chain", 200_000, True),
        ("grid", 5000, False),
    ):
        model = tabular.make_model(name)
        runs = {}
        for agent_name, agent in later_agents(model).items():
            if is_long and agent_name not in UNTUNED:
                continue
            begin = time.perf_counter()
            runs[agent_name] = run_seeds(agent, model, episodes, seeds)
            seconds = (time.perf_counter() - begin) / seeds
            later_row(name, agent_name, episodes, runs[agent_name], seconds)
        if name == "chain" and not is_long:
            save(plots.plot_regret(runs), "later_chain")


def later_agents(model: tabular.TerMDP) -> dict[str, Learner]:
    """Who is compared; the bonuses of rewards and transitions are the same for all."""

    def termcrl_with(cost_set: str, factor: float) -> Learner:
        return tabular.TermCRL(
            model.radius,
            bonus_scale=BONUS_SCALE,
            cost_bonus_scale=factor,
            cost_set=cost_set,
        )

    return {
        "paper's bonus × 1e-8": termcrl_with("bonus", COST_BONUS_SCALE),
        "paper's bonus × 1": termcrl_with("bonus", 1.0),
        "OFUGLB": termcrl_with("ofuglb", 1.0),
        "mixture": termcrl_with("mixture", 1.0),
        "Thompson, costs": tabular.Thompson(
            model.radius, sampled="costs", bonus_scale=BONUS_SCALE
        ),
        "Thompson, all": tabular.Thompson(model.radius),
        "known costs": tabular.KnownCosts(bonus_scale=BONUS_SCALE),
    }


def later_row(
    model: str, agent: str, episodes: int, runs: list[Regret], seconds: float
) -> None:
    """One row: regret, loss of the last episode, share of visited costs covered."""
    share = np.mean([mean_coverage(run) for run in runs])
    row(
        model,
        agent,
        f"{episodes:,}",
        with_interval([run.cumulative[-1] for run in runs], 0),
        with_interval([run.per_episode[-1] for run in runs], 3),
        "–" if np.isnan(share) else f"{share:.1%}",
        f"{seconds:.0f}",
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
    "sets": sets,
    "later": later,
    "pictures": pictures,
}


def main() -> None:
    """Run the parts named on the command line, or all."""
    for part in sys.argv[1:] or list(PARTS):
        PARTS[part]()


if __name__ == "__main__":
    main()
