"""The benchmark suites, as data; all of them are in this file.

A suite is columns × rows: an environment with its observer, times a method with its
numbers. A label means the same in every suite, so results of several suites fit into one
table.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from termdp.agents.methods import METHODS, find_method

DEFAULT_STEPS = 1_000_000
DEFAULT_SEEDS = 5


@dataclasses.dataclass(frozen=True)
class Column:
    """An environment and its observer.

    Attributes:
        label: name of the column in results, tables and folders.
        env: id of the environment.
        overrides: as for `termdp.make`: observer, cost, game.
        matched_discount: constant of `pg_matched` here; None takes the table by id.
        why: a description of the observer, if it is not the environment's own.
    """

    label: str
    env: str
    overrides: dict[str, Any] = dataclasses.field(default_factory=dict)
    matched_discount: float | None = None
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Row:
    """A method and the numbers in which it differs from the table of methods."""

    label: str
    method: str
    changes: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Suite:
    """What a suite runs unless told otherwise.

    Attributes:
        name: for the command line.
        about: one line.
        columns: environments.
        rows: methods.
        steps: steps per run.
        seeds: runs per cell.
        parts: names of the suites that this one is made of.
    """

    name: str
    about: str
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    steps: int = DEFAULT_STEPS
    seeds: int = DEFAULT_SEEDS
    parts: tuple[str, ...] = ()


def _row(method: str, label: str | None = None, **changes: Any) -> Row:
    return Row(label or method, method, changes)


def _distinct(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Without rows that are the same method as an earlier row, with the same numbers."""
    kept: dict[Any, Row] = {}
    for row in rows:
        method = find_method(row.method, **row.changes)
        numbers = dataclasses.replace(method, description="")
        numbers = dataclasses.replace(numbers, end_handling=method.handles_ends)
        kept.setdefault(numbers, row)
    return tuple(kept.values())


# The paper's six columns, in its order, with the benchmark's own observers.
PAPER_COLUMNS = tuple(
    Column(env, env)
    for env in (
        "backseat",
        "backseat_passenger",
        "space_invaders",
        "seaquest",
        "breakout",
        "asterix",
    )
)
RECOMMENDER = Column("recommender", "recommender")

# Observers under which methods can be told apart (docs/hard.md). They forgive a slip, but
# not a habit: long windows, small costs, or negative costs for harmless steps, and
# b ≥ ln 3T (T: mean length of an unobserved episode). Matched discounts are 0.995 times
# the mean of 1 − ρ(z) at a million steps, measured with an earlier cost learner.
HARD_COLUMNS = (
    Column(
        "backseat_hard",
        "backseat",
        {"window": 60, "bias": 9.5, "scale": 0.5, "relief": 0.2},
        matched_discount=0.9946,
        why="a coin costs 0.5, any other step −0.2; window 60",
    ),
    Column(
        "space_invaders_hard",
        "space_invaders",
        {"window": 60, "bias": 9.3, "scale": 1.0, "relief": 0.1},
        matched_discount=0.9947,
        why="a near bullet costs 1, any other step −0.1; window 60",
    ),
    Column(
        "seaquest_hard",
        "seaquest",
        {"row": 5, "window": 30, "bias": 10.0, "scale": 1.0, "relief": 0.2},
        matched_discount=0.9948,
        why="the sixth row costs 1, the others −0.2",
    ),
    Column(
        "breakout_hard",
        "breakout",
        {"width": 3, "window": 30, "bias": 12.5, "scale": 1.5},
        matched_discount=0.9940,
        why="three columns at either side cost 1.5",
    ),
    Column(
        "asterix_hard",
        "asterix_middle",
        {"window": 60, "bias": 16.0, "scale": 0.5},
        matched_discount=0.9948,
        why="the middle two rows cost 0.5; window 60",
    ),
    Column(
        "recommender_hard",
        "recommender",
        {"window": 30, "bias": 8.3},
        matched_discount=0.9938,
        why="a more patient user: b = 8.3",
    ),
)

TOP = (
    _row("pg"),
    _row("pg_naive"),
    _row("pg_recurrent"),
    _row("pg_rs"),
    _row("termpg"),
    _row("termpg_rs"),
    _row("termpg_penalty"),
)
REFERENCE = (_row("pg"), _row("termpg"))
ABLATIONS = (
    _row("termpg_paper"),
    _row("termpg_std", "termpg_std_0.5", std_factor=0.5),
    _row("termpg_std", "termpg_std_1", std_factor=1.0),
    _row("termpg_std", "termpg_std_2", std_factor=2.0),
    _row("termpg_mean"),
    _row("termpg_fixed_discount"),
    _row("termpg_half_window"),
    _row("termpg_double_window"),
)
BONUSES = (
    _row("termpg_bonus_0.1"),
    _row("termpg_bonus_1"),
    _row("termpg_bonus_0.1", "termpg_bonus_std_0.1", uncertainty="std"),
    _row("termpg_bonus_1", "termpg_bonus_std_1", uncertainty="std"),
)
FAIR = _distinct(
    (
        _row("pg"),
        _row("pg_naive"),
        _row("pg_rs"),
        _row("pg_matched"),
        _row("pg", "pg_0.953", discount=0.953),
        # The published TermPG becomes this if its costs are all zero.
        _row("pg_naive", "pg_naive_0.953", discount=0.953),
        _row("pg_0.97"),
        _row("pg_0.995"),
        _row("pg_0.999"),
        _row("pg_recurrent", "pg_recurrent_rs", stop_penalty=1.0),
        _row("oracle"),
        _row("oracle", "oracle_discount_1", discount=1.0),
        _row("oracle", "oracle_discount_0.97", discount=0.97),
        _row("termpg"),
        _row("termpg", "termpg_discount_1", discount=1.0),
        _row("termpg", "termpg_discount_0.97", discount=0.97),
        _row("termpg", "termpg_cut", end_handling="cut"),
        _row("termpg", "termpg_ignored", end_handling="ignored"),
        _row("termpg_paper"),
        _row("termpg_std", "termpg_std_1", std_factor=1.0),
        _row("termpg_logit"),
    )
)
WINDOWS = (
    *REFERENCE,
    _row("termpg", "termpg_window_0.25", window_factor=0.25),
    _row("termpg_half_window"),
    _row("termpg_double_window"),
    _row("termpg", "termpg_window_4", window_factor=4.0),
)

EVERY_METHOD = _distinct([_row(name) for name in METHODS])
HARD = (
    *EVERY_METHOD,
    _row("termpg", "termpg_discount_1", discount=1.0),
    _row("termpg", "termpg_discount_0.97", discount=0.97),
    _row("oracle", "oracle_discount_1", discount=1.0),
    _row("oracle", "oracle_discount_0.97", discount=0.97),
)
RIVALS = (
    _row("pg"),
    _row("pg_0.97"),
    _row("pg_0.999"),
    _row("pg_rs"),
    _row("termpg"),
    _row("oracle"),
    _row("rosarl"),
    _row("rlif"),
    _row("rlif_task"),
    _row("rift"),
    _row("ppo_lagrangian"),
    _row("ct"),
    _row("traces"),
    _row("traces_lagrangian"),
)

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "smoke",
            "does everything work here? three methods, one environment, two seeds",
            (RECOMMENDER,),
            (_row("pg"), _row("termpg"), _row("oracle")),
            steps=65_536,
            seeds=2,
        ),
        Suite("paper", "Table 1, top: the paper's methods", PAPER_COLUMNS, TOP),
        Suite(
            "ablations",
            "Table 1, bottom: optimism, discount, window",
            PAPER_COLUMNS,
            (*REFERENCE, *ABLATIONS),
        ),
        Suite(
            "bonus",
            "the appendix's cost bonus, U by max − min and by std",
            PAPER_COLUMNS,
            (*REFERENCE, *BONUSES),
        ),
        Suite(
            "fair",
            "where gains come from: discounts, ends, optimism, known costs",
            (*PAPER_COLUMNS, RECOMMENDER),
            FAIR,
        ),
        Suite(
            "methods",
            "every method there is, on the paper's columns and the recommender",
            (*PAPER_COLUMNS, RECOMMENDER),
            EVERY_METHOD,
            seeds=10,
        ),
        Suite(
            "hard",
            "observers that matter: an agent that ignores them loses half its return",
            HARD_COLUMNS,
            HARD,
            steps=3_000_000,
            seeds=10,
        ),
        Suite(
            "window",
            "a learner with the wrong window, ×0.25 to ×4",
            (*PAPER_COLUMNS, RECOMMENDER),
            WINDOWS,
        ),
        Suite(
            "rivals",
            "methods from other papers in the same loop (docs/rivals.md)",
            (*PAPER_COLUMNS, RECOMMENDER, *HARD_COLUMNS),
            RIVALS,
        ),
        Suite(
            "all",
            "all of the above but smoke; a cell that is in several runs once",
            parts=(
                *("paper", "ablations", "bonus", "fair", "methods"),
                *("hard", "window", "rivals"),
            ),
        ),
    )
}


def find_suite(name: str) -> Suite:
    """A suite by name."""
    if name not in SUITES:
        raise ValueError(f"expected a suite ({', '.join(SUITES)}), got {name!r}")
    return SUITES[name]


def cells(suite: Suite) -> tuple[tuple[Column, Row], ...]:
    """All pairs of a suite, each once."""
    if not suite.parts:
        return tuple((c, r) for c in suite.columns for r in suite.rows)
    found = {
        (column.label, row.label): (column, row)
        for name in suite.parts
        for column, row in cells(SUITES[name])
    }
    return tuple(found.values())
