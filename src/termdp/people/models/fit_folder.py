"""The results of `termdp studies fit` as a folder.

DIR/observer.safetensors    the pooled observer: `--observer` of `termdp train`
DIR/observer-NAME.safetensors   one for each supervisor with enough stops
DIR/summary.json            what was found, with intervals
DIR/*.svg                   the figures
DIR/index.html              a page about all of it, figures included
"""

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from termdp.files import draft_of, write_json
from termdp.logs.held_out import HeldOut
from termdp.observer_file import save_observer
from termdp.pages import Page, Table, counted
from termdp.people.models import fit_figures
from termdp.people.models.fitting import POOLED, StudyFit
from termdp.people.models.senses import costs_along

# By file: what the figure shows.
_CAPTIONS = {
    "windows.svg": "How well models with different memories explain rides that they "
    "have not seen; higher is better. Bands: 95% intervals over showings.",
    "delays.svg": "The same for different reaction delays.",
    "calibration.svg": "The share of steps that were stopped, against the predicted "
    "chance of a stop, in rides that the model had not seen. On the line both agree. "
    "Bars: 95% intervals.",
    "moments.svg": "Rides that were stopped, as the supervisor's own model sees them (or "
    "the model for all, if there is no own one): the cost of each step (bars), how costs "
    "added up (line), and the patience (dotted) at which a stop is as likely as not.",
}


def check_new(folder: Path) -> None:
    """Refuse a folder that exists and is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"expected a new folder for the results, but {folder} exists: choose "
            "another --out"
        )


def write_results(folder: Path, study: str, fit: StudyFit, seed: int) -> dict[str, Any]:
    """Write the results, completely or not at all; returns the summary."""
    check_new(folder)
    summary = summarise(study, fit, seed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(folder) as draft:
        draft.mkdir()
        for name, observer in fit.observers.items():
            facts = {
                "study": study,
                "supervisor": name,
                "reaction_delay": fit.delay,
                "stops": summary["supervisors"][name]["stops"],
                "reviews": summary["supervisors"][name]["reviews"],
            }
            save_observer(draft / observer_name(name), observer, facts)
        fit_figures.save_figures(draft, fit, seed)
        write_json(draft / "summary.json", summary)
        _page(summary, draft).save(draft / "index.html")
    return summary


def observer_name(name: str) -> str:
    """One observer's file name; a name that a disk might refuse becomes a digest."""
    if name == POOLED:
        return "observer.safetensors"
    plain = name if name.isascii() else sha256(name.encode()).hexdigest()[:16]
    return f"observer-{plain}.safetensors"


def summarise(study: str, fit: StudyFit, seed: int) -> dict[str, Any]:
    """The findings as plain data."""
    _, best = fit.windows.bootstrap(seed)
    groups = {POOLED: fit.pooled, **{group.name: group for group in fit.groups}}
    return {
        "study": study,
        "env": fit.env,
        "reviews": len(fit.pooled.showings),
        "stops": sum(showing.end == "stopped" for showing in fit.pooled.showings),
        "window": fit.window,
        "chosen_window": fit.best_window,
        "chosen_window_interval": np.quantile(
            best, [0.025, 0.975], method="nearest"
        ).tolist(),
        "reaction_delay": fit.delay,
        "constant_log_likelihood": fit.constant,
        "windows": _curve(fit.windows, seed),
        "pooled_windows": _curve(fit.pooled_windows, seed),
        "delays": _curve(fit.delays, seed),
        "calibration": fit_figures.calibration_rows(fit),
        "supervisors": {
            name: {
                "reviews": len(group.showings),
                "stops": sum(showing.end == "stopped" for showing in group.showings),
                "bias": float(fit.observers[name].bias),
                "observer": observer_name(name),
                "minds": minded(fit, name),
            }
            for name, group in groups.items()
        },
    }


def minded(fit: StudyFit, name: str, most: int = 5) -> list[dict[str, Any]]:
    """What a model minds: mean cost of steps with a percept, minus that of the others."""
    group = fit.pooled if name == POOLED else _named(fit, name)
    packed = group.packed
    used = packed.owner >= 0
    noticed, acted = packed.noticed[used], packed.acted[used]
    costs = costs_along(fit.observers[name].cost, noticed, acted)
    felt = group.senses.felt(noticed, acted)
    rows = []
    for index, percept in enumerate(group.senses.names):
        having = felt[:, index]
        if 0 < having.sum() < len(having):
            extra = float(costs[having].mean() - costs[~having].mean())
            rows.append((extra, percept))
    rows.sort(key=lambda row: -abs(row[0]))
    return [{"percept": name, "extra_cost": extra} for extra, name in rows[:most]]


def _named(fit: StudyFit, name: str) -> Any:
    return next(group for group in fit.groups if group.name == name)


def _curve(found: HeldOut, seed: int) -> list[dict[str, Any]]:
    intervals, best = found.bootstrap(seed)
    return [
        {
            "value": case,
            "log_likelihood": float(mean),
            "interval": interval.tolist(),
            "share_of_bootstraps": float(np.mean(best == case)),
        }
        for case, mean, interval in zip(
            found.cases, found.means, intervals, strict=True
        )
    ]


def _page(summary: dict[str, Any], figures: Path) -> Page:
    page = Page(
        "What made them stop",
        f"Study {summary['study']}: {counted(summary['stops'], 'stop')} in "
        f"{counted(summary['reviews'], 'review')} of recorded rides.",
        contents=True,
    )
    page.paragraph(
        "Supervisors watched rides and stopped them when they felt wrong. One model of "
        "all of them, and one of each who stopped often enough, were fitted to the times "
        "of their stops. In a model every step has a cost, costs add up over what is "
        "remembered, and the larger the sum, the likelier the stop. The reasons that "
        "supervisors gave are not used."
    )
    page.findings(findings(summary))

    def plot(name: str, meaning: str = "") -> None:
        page.plot((figures / name).read_bytes(), _CAPTIONS[name], meaning)

    page.heading("What they mind")
    page.table(_minded_table(summary))
    page.heading("How long they remember")
    plot("windows.svg", _memory_words(summary))
    page.heading("How fast they react")
    plot("delays.svg", _delay_words(summary))
    page.heading("How sure this is")
    plot("calibration.svg")
    page.heading("Rides that were stopped")
    plot("moments.svg")
    page.heading("Use it")
    page.commands(
        [f"termdp train {summary['env']} termpg --observer observer.safetensors"]
    )
    return page


def findings(summary: dict[str, Any]) -> list[str]:
    """What the page begins with."""
    found = []
    minds = [row for row in summary["supervisors"][POOLED]["minds"] if _is_bad(row)]
    if minds:
        names = ", ".join(row["percept"] for row in minds[:3])
        found.append(f"Taken together, they mind these most: {names}.")
    return [*found, _memory_words(summary), _delay_words(summary)]


def _is_bad(row: dict[str, Any]) -> bool:
    return bool(row["extra_cost"] > 0)


def _memory_words(summary: dict[str, Any]) -> str:
    low, high = summary["chosen_window_interval"]
    words = (
        f"The last {counted(summary['chosen_window'], 'step')} explain the stops best "
        f"(95% of bootstraps: {low} to {high})."
    )
    if summary["window"] != summary["chosen_window"]:
        words += f" The saved observers remember {counted(summary['window'], 'step')}."
    return words


def _delay_words(summary: dict[str, Any]) -> str:
    delay = summary["reaction_delay"]
    return (
        "They react at once."
        if delay == 0
        else f"They react after {counted(delay, 'step')}."
    )


def _minded_table(summary: dict[str, Any]) -> Table:
    rows = [
        [
            name,
            str(row["reviews"]),
            str(row["stops"]),
            f"{row['bias']:.2f}",
            _minds(row),
        ]
        for name, row in summary["supervisors"].items()
    ]
    return Table(
        "One model for all, and one for each",
        "Patience is the sum of costs at which a stop is as likely as not. The last "
        "column: by how much steps with something cost more than steps without it.",
        ["model", "reviews", "stops", "patience", "extra cost of steps with …"],
        rows,
    )


def _minds(row: dict[str, Any]) -> str:
    most = row["minds"][:3]
    return "; ".join(f"{found['percept']} {found['extra_cost']:+.2f}" for found in most)
