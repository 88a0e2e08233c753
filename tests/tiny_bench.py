"""Benchmark plans so small that only compilation takes time."""

import dataclasses

from termdp.bench.plan import Plan, make_plan
from termdp.bench.suites import RECOMMENDER, Column, Row, Suite
from tiny_config import tiny

STEPS = 32 * 30
TINY = tiny(
    ppo={"num_epochs": 1},
    costs={"num_steps": 1, "segment_length": 64, "buffer_steps": 256},
)
BROKEN = Column("broken", "recommender", {"no_such_parameter": 1})


def tiny_plan(*methods, seeds=2, columns=(RECOMMENDER,), steps=STEPS) -> Plan:
    """Some methods, tiny networks; a broken column fails when it is compiled."""
    rows = tuple(Row(name, name) for name in methods)
    plan = make_plan(Suite("tiny", "for tests", (RECOMMENDER,), rows), seeds, 10**6)
    cells = tuple(
        dataclasses.replace(cell, column=column, config=TINY)
        for column in columns
        for cell in plan.cells
    )
    return dataclasses.replace(plan, cells=cells, steps=steps)
