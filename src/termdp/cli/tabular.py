"""`termdp tabular`: TermCRL and its comparisons on a small model."""

import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from termdp import tabular
from termdp.intervals import mean_interval
from termdp.tabular import plots
from termdp.tabular.baselines import MAX_HISTORIES
from termdp.tabular.learner import Learner, Regret
from termdp.tabular.regret import (
    cost_errors,
    error_rate,
    log_log_slope,
    mean_coverage,
)


@dataclass(frozen=True)
class Args:
    """Learn a small TerMDP whose observer is unknown, and measure the regret.

    Compares TermCRL with four kinds of agents: one that knows the costs; an optimistic
    one that ignores stops; TermCRL with the confidence sets of later work (ofuglb,
    mixture; untuned); Thompson sampling. On tiny models, one agent also takes the whole
    history as its state. Writes regret.png, cost_error.png, model.png and summary.json.

    Example: termdp tabular chain --episodes 5000 --seeds 5
    """

    model: Annotated[str, tyro.conf.arg(metavar="MODEL"), tyro.conf.Positional]
    """Which model to learn: chain, grid, random or paper_example."""

    episodes: int = 5000
    """Episodes per run."""

    seeds: int = 3
    """Runs per agent; intervals need more than one."""

    seed: int = 0
    """The first seed."""

    bonus_scale: float = 0.02
    """Factor on the bonuses for rewards and transitions; the theory's is 1."""

    cost_bonus_scale: float = 1e-8
    """Factor on the paper's bonus for costs, which is huge (docs/tabular_regret.md)."""

    out: Path | None = None
    """Folder for figures and summary.json (default: runs/tabular-MODEL)."""

    json: bool = False
    """Print the summary as JSON instead of a table."""


def run(args: Args) -> None:
    """Learn, then write and print the results."""
    _check(args)
    model = tabular.make_model(args.model)
    begin = time.perf_counter()
    runs = _play(args, model)
    folder = args.out or Path("runs") / f"tabular-{args.model}"
    folder.mkdir(parents=True, exist_ok=True)
    summary = summarise(args, model, runs) | {
        "wall_s": round(time.perf_counter() - begin, 2)
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    figures = {
        "regret": plots.plot_regret(runs),
        "cost_error": plots.plot_cost_errors(model, runs["termcrl"]),
        "model": plots.draw_model(args.model, model),
    }
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=120)
    if args.json:
        print(json.dumps(summary, indent=2))
        return
    _print_table(summary)
    Console().print(f"figures and summary.json are in {folder}")


def make_agents(args: Args, model: tabular.TerMDP) -> dict[str, Learner]:
    """All agents that can learn this model."""
    agents: dict[str, Learner] = {
        "termcrl": tabular.TermCRL(
            radius=model.radius,
            bonus_scale=args.bonus_scale,
            cost_bonus_scale=args.cost_bonus_scale,
        ),
        "known costs": tabular.KnownCosts(bonus_scale=args.bonus_scale),
        "ignores stops": tabular.IgnoreStops(bonus_scale=args.bonus_scale),
    }
    if (model.num_states * model.num_actions) ** model.horizon <= MAX_HISTORIES / 2:
        agents["whole history"] = tabular.WholeHistory(bonus_scale=args.bonus_scale)
    for cost_set in ("ofuglb", "mixture"):
        agents[cost_set] = tabular.TermCRL(
            radius=model.radius,
            bonus_scale=args.bonus_scale,
            cost_bonus_scale=1.0,
            cost_set=cost_set,
        )
    agents["thompson"] = tabular.Thompson(radius=model.radius)
    return agents


def _check(args: Args) -> None:
    for name, least, most in (
        ("seeds", 1, 4096),
        ("episodes", 10, 10_000_000),
        ("seed", 0, 2**32 - 1),
        ("bonus_scale", 0.0, 1e9),
        ("cost_bonus_scale", 0.0, 1e9),
    ):
        value = getattr(args, name)
        if not least <= value <= most:
            raise ValueError(
                f"expected --{name.replace('_', '-')} from {least} to {most}, got {value}"
            )


def _play(args: Args, model: tabular.TerMDP) -> dict[str, list[Regret]]:
    agents = make_agents(args, model)
    runs: dict[str, list[Regret]] = {name: [] for name in agents}
    columns = (
        TextColumn("{task.description:<15}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for name, agent in agents.items():
            bar = progress.add_task(name, total=args.episodes * args.seeds)
            for seed in range(args.seed, args.seed + args.seeds):
                runs[name].append(
                    agent.run(
                        model,
                        args.episodes,
                        seed,
                        progress=partial(progress.advance, bar),
                    )
                )
    return runs


def summarise(
    args: Args, model: tabular.TerMDP, runs: dict[str, list[Regret]]
) -> dict[str, Any]:
    """The results as plain data; `interval` is half of a 95% interval."""
    visits, errors = cost_errors(model, runs["termcrl"])
    return {
        "model": args.model,
        "episodes": args.episodes,
        "seeds": list(range(args.seed, args.seed + args.seeds)),
        "bonus_scale": args.bonus_scale,
        "cost_bonus_scale": args.cost_bonus_scale,
        "optimal_value": runs["termcrl"][0].optimal_value,
        "kappa": tabular.bounds.kappa(model),
        "radius": model.radius,
        "cost_error_rate": _plain(error_rate(visits, errors)),
        "agents": {name: _agent_summary(results) for name, results in runs.items()},
    }


def _agent_summary(results: list[Regret]) -> dict[str, Any]:
    figures = {
        "regret": [run.cumulative[-1] for run in results],
        "slope": [log_log_slope(run.cumulative) for run in results],
        "last_loss": [run.per_episode[-1] for run in results],
        "cost_error": [run.cost_error[-1] for run in results],
        "cost_coverage": [mean_coverage(run) for run in results],
        "plans": [len(run.planned_at) for run in results],
    }
    summary: dict[str, Any] = {"is_exact": all(run.is_exact for run in results)}
    for name, values in figures.items():
        found = mean_interval(values)
        summary[name] = {
            "mean": _plain(found.value),
            "interval": _plain(found.half_width),
        }
    return summary


def _plain(value: Any) -> float | None:
    """A number for JSON; None unless it is finite."""
    return float(value) if np.isfinite(value) else None


def _print_table(summary: dict[str, Any]) -> None:
    title = (
        f"{summary['model']}: {summary['episodes']} episodes, "
        f"{len(summary['seeds'])} seeds, V* = {summary['optimal_value']:.3f}"
    )
    table = Table(title=title, title_justify="left")
    headings = ("agent", "regret", "slope", "last loss", "cost error", "covered")
    for heading in headings:
        is_name = heading == "agent"
        table.add_column(
            heading, justify="left" if is_name else "right", no_wrap=is_name
        )
    for name, figures in summary["agents"].items():
        table.add_row(
            name,
            *(
                _with_interval(figures[key])
                for key in ("regret", "slope", "last_loss", "cost_error")
            ),
            _as_percent(figures["cost_coverage"]),
        )
    Console().print(table)
    rate = summary["cost_error_rate"]
    if rate is not None:
        Console().print(
            "slope: of log regret against log episodes; ±: 95% intervals over seeds\n"
            "covered: share of the visited costs inside the agent's confidence sets\n"
            f"cost error ∝ n^{rate:.2f} (theory: n^-0.5)"
        )


def _as_percent(figure: dict[str, float | None]) -> str:
    return "–" if figure["mean"] is None else f"{figure['mean']:.0%}"


def _with_interval(figure: dict[str, float | None]) -> str:
    if figure["mean"] is None:
        return "–"
    digits = 0 if abs(figure["mean"]) >= 10 else 2
    half = figure["interval"]
    spread = "" if half is None else f" ± {half:,.{digits}f}"
    return f"{figure['mean']:,.{digits}f}{spread}"
