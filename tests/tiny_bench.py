"""Benchmark plans so small that only compilation takes time."""

import dataclasses

from termdp.agents.ppo import PPOConfig
from termdp.bench.plan import Plan, make_plan
from termdp.bench.suites import RECOMMENDER, Column, Row, Suite
from termdp.costs.config import CostConfig
from termdp.training.config import TrainConfig

STEPS = 32 * 30
TINY = TrainConfig(
    num_envs=4,
    rollout_steps=8,
    network="vector",
    hidden=8,
    ppo=PPOConfig(num_epochs=1, num_minibatches=2),
    costs=CostConfig(
        network="vector",
        hidden=4,
        num_steps=1,
        segments_per_step=2,
        segment_length=64,
        buffer_steps=256,
    ),
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
