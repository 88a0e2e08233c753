"""From results to findings: every number of the report."""

import dataclasses
from typing import Any

import numpy as np

from termdp.intervals import Interval, difference
from termdp.report import published, statistics
from termdp.report.names import split_discount
from termdp.report.results import Results

BASELINE = "pg"
OURS = "termpg"
# An environment is pooled if it has this share of the fullest one's methods.
MOSTLY = 0.9
CEILING = "oracle"


@dataclasses.dataclass(frozen=True)
class BestAgainstBest:
    """The best TermPG against the best PG on one environment.

    Attributes:
        column: the environment.
        ours: the TermPG variant with the highest mean.
        theirs: the PG variant with the highest mean.
        relative: improvement; its interval includes the choice of the best.
        gap: difference of the two means, Welch's interval.
        claimed: what the paper's text says, if anything.
        implied: what the paper's table gives, if anything.
    """

    column: str
    ours: str
    theirs: str
    relative: Interval
    gap: Interval
    claimed: float | None
    implied: float | None

    @property
    def is_supported(self) -> bool:
        """Whether an improvement may be claimed: both intervals must agree."""
        return self.relative.low > 0 and self.gap.low > 0

    @property
    def is_contradicted(self) -> bool:
        """Whether it is a clear loss."""
        return self.relative.high < 0 and self.gap.high < 0

    @property
    def is_undecided(self) -> bool:
        """Whether one interval excludes zero and the other does not agree."""
        is_clear = self.relative.excludes_zero or self.gap.excludes_zero
        return is_clear and not (self.is_supported or self.is_contradicted)


@dataclasses.dataclass(frozen=True)
class Findings:
    """All numbers of a report.

    Attributes:
        against_pg: difference of means to `pg` by (column, row).
        iqm: interquartile mean by (column, row).
        pooled: interquartile mean of scores ÷ pg's mean, over all environments, by row.
        pooled_columns: environments of `pooled`.
        probability_pg: P(improvement over pg) by row, over the same environments.
        probability_best: the same over the best PG variant of each of them.
        probability_termpg: the same over `termpg`, where that ran.
        best: best against best, by environment.
        closed: share of the gap between pg and oracle, by (column, row).
    """

    against_pg: dict[tuple[str, str], Interval]
    iqm: dict[tuple[str, str], Interval]
    pooled: dict[str, Interval]
    pooled_columns: list[str]
    probability_pg: dict[str, Interval]
    probability_best: dict[str, Interval]
    probability_termpg: dict[str, Interval]
    best: list[BestAgainstBest]
    closed: dict[tuple[str, str], Interval | None]


def analyse(results: Results) -> Findings:
    """Compute everything."""
    pooled_columns = _comparable(results)
    best_pg = {c: _best(results, c, results.family("pg")) for c in pooled_columns}
    return Findings(
        against_pg=_against_pg(results),
        iqm={
            cell: statistics.pooled_interquartile_mean([results.values(*cell)])
            for cell in results.records
        },
        pooled=_pooled(results, pooled_columns),
        pooled_columns=pooled_columns,
        probability_pg=_probabilities(results, dict.fromkeys(pooled_columns, BASELINE)),
        probability_best=_probabilities(results, best_pg),
        probability_termpg=_probabilities(
            results, {c: OURS for c in pooled_columns if results.has(c, OURS)}
        ),
        best=[
            found
            for column in results.columns
            if (found := _best_against_best(results, column)) is not None
        ],
        closed=_closed(results),
    )


def _comparable(results: Results) -> list[str]:
    """Environments to pool: pg's mean is above 0, and nearly all methods ran there.

    One method that did not run on an environment does not exclude it for the others.
    """
    count = {
        column: sum(results.has(column, row) for row in results.rows)
        for column in results.columns
        if results.has(column, BASELINE) and results.values(column, BASELINE).mean() > 0
    }
    return [c for c in count if count[c] >= MOSTLY * max(count.values())]


def _against_pg(results: Results) -> dict[tuple[str, str], Interval]:
    return {
        (column, row): difference(
            results.values(column, row), results.values(column, BASELINE)
        )
        for column, row in results.records
        if row != BASELINE and results.has(column, BASELINE)
    }


def _pooled(results: Results, columns: list[str]) -> dict[str, Interval]:
    """Rows that ran on all comparable environments: else they are not comparable."""
    base = {c: float(np.mean(results.values(c, BASELINE))) for c in columns}
    return {
        row: statistics.pooled_interquartile_mean(
            [results.values(c, row) / base[c] for c in columns]
        )
        for row in results.rows
        if columns and all(results.has(c, row) for c in columns)
    }


def _probabilities(
    results: Results, baselines: dict[str, str | None]
) -> dict[str, Interval]:
    """Rows that ran on all these environments: else they are not comparable."""
    found = {}
    for row in results.rows:
        # Where a row is itself the best PG, it is not compared with itself.
        columns = [c for c, base in baselines.items() if base not in (None, row)]
        if columns and all(results.has(c, row) for c in baselines):
            found[row] = statistics.probability_of_improvement(
                [results.values(c, row) for c in columns],
                [results.values(c, str(baselines[c])) for c in columns],
            )
    return found


def _best(results: Results, column: str, rows: list[str]) -> str | None:
    there = [row for row in rows if results.has(column, row)]
    if not there:
        return None
    return max(there, key=lambda row: float(np.mean(results.values(column, row))))


def _best_against_best(results: Results, column: str) -> BestAgainstBest | None:
    ours = [r for r in results.of(*published.TERMPG_ROWS) if results.has(column, r)]
    theirs = [r for r in results.family("pg") if results.has(column, r)]
    best, base = _best(results, column, ours), _best(results, column, theirs)
    if best is None or base is None:
        return None
    known = column in published.COLUMNS
    return BestAgainstBest(
        column=column,
        ours=best,
        theirs=base,
        relative=statistics.relative_improvement(
            [results.values(column, r) for r in ours],
            [results.values(column, r) for r in theirs],
        ),
        gap=difference(results.values(column, best), results.values(column, base)),
        claimed=published.CLAIMS.get(column),
        implied=published.implied_improvement(column) if known else None,
    )


def counterpart(results: Results, column: str, row: str) -> str | None:
    """The PG to compare a method with: the one of the same discount, if that ran.

    The effect of a discount alone must not count for the costs.
    """
    _, discount = split_discount(row)
    wanted = (f"{BASELINE}_{discount}", BASELINE)
    return next((base for base in wanted if results.has(column, base)), None)


def ceiling(results: Results, column: str) -> str | None:
    """The better of the agents that are told the costs there."""
    return _best(results, column, results.of(CEILING))


def _closed(results: Results) -> dict[tuple[str, str], Interval | None]:
    tops = {column: ceiling(results, column) for column in results.columns}
    return {
        (column, row): statistics.gap_closed(
            results.values(column, row),
            results.values(column, BASELINE),
            results.values(column, top),
        )
        for column, row in results.records
        if (top := tops[column]) is not None
        and row not in (BASELINE, *results.of(CEILING))
        and results.has(column, BASELINE)
    }


def as_data(results: Results, findings: Findings) -> dict[str, Any]:
    """The findings as plain data, for `--json`."""

    def plain(found: dict[Any, Interval | None]) -> dict[str, Any]:
        return {
            key if isinstance(key, str) else "/".join(key): None
            if value is None
            else dataclasses.asdict(value)
            for key, value in found.items()
        }

    return {
        "columns": results.columns,
        "rows": results.rows,
        "cells": {
            f"{column}/{row}": {
                "seeds": [record["seed"] for record in records],
                "returns": [record["return_mean"] for record in records],
                "mean": statistics.mean_and_std(results.values(column, row))[0],
                "std": statistics.mean_and_std(results.values(column, row))[1],
            }
            for (column, row), records in results.records.items()
        },
        "difference_to_pg": plain(dict(findings.against_pg)),
        "interquartile_mean": plain(dict(findings.iqm)),
        "pooled_interquartile_mean": plain(dict(findings.pooled)),
        "probability_over_pg": plain(dict(findings.probability_pg)),
        "probability_over_best_pg": plain(dict(findings.probability_best)),
        "probability_over_termpg": plain(dict(findings.probability_termpg)),
        "best_termpg_over_best_pg": [
            dataclasses.asdict(best) | {"is_supported": best.is_supported}
            for best in findings.best
        ],
        "gap_closed": plain(dict(findings.closed)),
    }
