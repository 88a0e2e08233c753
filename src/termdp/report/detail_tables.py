"""Tables behind the headline: intervals, gaps, learned costs, ends, times."""

from termdp.pages import Cell, Table
from termdp.report.analysis import Findings
from termdp.report.names import column_name, method_name
from termdp.report.results import Results
from termdp.report.tables import grid_table, interval, number


def detail_tables(results: Results, findings: Findings) -> list[Table]:
    """All detail tables that are not empty."""
    found = [
        grid_table(
            results,
            "Interquartile mean",
            "Of the returns of one environment's seeds, with 95% bootstrap intervals "
            "(too narrow for few seeds: claims rest on the t intervals above).",
            lambda column, row: interval(findings.iqm.get((column, row))),
        ),
        grid_table(
            results,
            "Gap closed between PG and the oracle",
            "(method − PG) ÷ (the better oracle − PG), 95% bootstrap interval; a dash "
            "where no oracle is clearly better than PG: there is no gap to close.",
            lambda column, row: _closed(findings, column, row),
        ),
        cost_table(results),
        grid_table(
            results,
            "Mean effective discount γ",
            "Over the last tenth of training: the constant, for dynamic discounts times "
            "the mean of 1 − ρ(z).",
            lambda column, row: _mean(results, column, row, "discount_mean", 4),
        ),
        grid_table(
            results,
            "Share of episodes that the observer ended",
            "Over the last tenth of training; the others ended by game over or by time.",
            lambda column, row: _mean(results, column, row, "stop_rate", 2),
        ),
        grid_table(
            results,
            "Length of episodes",
            "Mean number of steps over the last tenth of training.",
            lambda column, row: _mean(results, column, row, "length_mean", 3),
        ),
    ]
    return [table for table in found if table is not None]


def _closed(findings: Findings, column: str, row: str) -> str | None:
    if (column, row) not in findings.closed:
        return None
    return interval(findings.closed[column, row], 2)


def _mean(
    results: Results, column: str, row: str, name: str, digits: int
) -> str | None:
    found = results.mean(column, row, name)
    return None if found is None else number(found, digits)


def cost_table(results: Results) -> Table | None:
    """How well the costs were learned."""
    names = (
        ("cost_rmse", 2),
        ("cost_mae", 2),
        ("cost_corr", 2),
        ("window_cost_mae", 2),
        ("bias", 3),
        ("calibration_error", 2),
    )
    rows = [
        [
            Cell(column_name(column)),
            Cell(method_name(row)),
            *(
                Cell(number(results.mean(column, row, n), digits))
                for n, digits in names
            ),
        ]
        for column in results.columns
        for row in results.rows
        if len(results.values(column, row, "cost_rmse"))
    ]
    if not rows:
        return None
    return Table(
        "Learned costs",
        "Against the true costs, per step, over the last tenth of training: ℓ2 error "
        "(root of the mean square), mean absolute error, correlation; error of the "
        "accumulated cost; learned bias; calibration of the stop probability.",
        [
            "environment",
            "",
            "ℓ2",
            "absolute",
            "correlation",
            "accumulated",
            "bias",
            "calibration",
        ],
        rows,
    )


def observer_table(results: Results) -> Table | None:
    """Whether the hard observers matter, and whether an agent can live with them."""
    if not results.observers:
        return None
    rows = []
    for row in results.observers:
        means = {
            name: sum(row[name]) / len(row[name])
            for name in ("unobserved", "switched_on", "oracle")
        }
        rows.append(
            [
                Cell(column_name(row["column"]), row["why"]),
                Cell(number(means["unobserved"])),
                Cell(number(means["switched_on"])),
                Cell(f"{row['lost']:.0%}", mark="better" if row["lost"] >= 0.5 else ""),
                Cell(number(means["oracle"])),
                Cell(
                    f"{row['kept']:.0%}", mark="better" if row["kept"] >= 0.75 else ""
                ),
                Cell(f"{row['bias']:g}", f"ln 3T = {row['least_bias']:.1f}"),
            ]
        )
    # Older files do not say how they measured; it was always this.
    usual = "last tenth of training"
    how = {row.get("oracle_measured", usual) for row in results.observers}
    return Table(
        "Do these observers matter?",
        "Return of an agent trained without the observer, alone and with the observer "
        "switched on, both in fresh episodes, and of the better oracle "
        f"({' and '.join(sorted(how))}). Wanted (▲): at least half is lost, and the "
        "oracle keeps three quarters of the unobserved return.",
        [
            "observer",
            "unobserved",
            "switched on",
            "lost",
            "oracle",
            "kept",
            "bias",
        ],
        rows,
    )


def time_table(results: Results) -> Table:
    """Programs, their times and speeds."""
    rows = []
    for manifest in results.manifests:
        for program in manifest["programs"]:
            share = program["wall_s"] / program["runs"]
            rows.append(
                [
                    Cell(program["job"]),
                    Cell(str(program["runs"])),
                    Cell(f"{program['steps']:,}"),
                    Cell(f"{program['compile_s']:.1f}"),
                    Cell(f"{program['wall_s']:.1f}"),
                    Cell(f"{share:.2f}"),
                    Cell(f"{program['steps_per_s']:,.0f}"),
                ]
            )
    return Table(
        "Time",
        "The runs of a program train together: in parallel on an accelerator, one after "
        "the other on CPUs. The next program compiles meanwhile, so times overlap.",
        [
            "program",
            "runs",
            "steps",
            "compile s",
            "run s",
            "s per run",
            "steps/s",
        ],
        rows,
    )
