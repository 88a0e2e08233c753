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
# Rollouts of 32 steps cannot be cut into three parts: refused when it is compiled.
BROKEN = Column("broken", "recommender")
UNEVEN = dataclasses.replace(
    TINY, algorithm=dataclasses.replace(TINY.algorithm, num_minibatches=3)
)


def tiny_plan(*methods, seeds=2, columns=(RECOMMENDER,), steps=STEPS, seed=0) -> Plan:
    """Some methods (names or rows), tiny networks; a broken column fails to compile."""
    rows = tuple(m if isinstance(m, Row) else Row(m, m) for m in methods)
    suite = Suite("tiny", "for tests", columns, rows)
    plan = make_plan(suite, seeds, 10**6, seed=seed)
    cells = tuple(
        dataclasses.replace(cell, config=UNEVEN if cell.column is BROKEN else TINY)
        for cell in plan.cells
    )
    return dataclasses.replace(plan, cells=cells, steps=steps)
