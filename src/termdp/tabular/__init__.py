"""Finite TerMDPs: plan, estimate the observer's costs, and learn with guarantees.

The first half of "Reinforcement Learning with a Terminator" (arXiv:2205.15376): section
3 and appendices B, C and F to K. See docs/tabular.md.
"""

from termdp.tabular import bounds, confidence
from termdp.tabular.baselines import IgnoreStops, KnownCosts, WholeHistory
from termdp.tabular.episodes import Rollouts, simulate
from termdp.tabular.estimation import CostEstimate, fit_costs
from termdp.tabular.evaluate import evaluate
from termdp.tabular.exact import ExactPlan
from termdp.tabular.learner import Regret
from termdp.tabular.model import TerMDP, absorb_bias
from termdp.tabular.named_models import (
    NAMED_MODELS,
    chain,
    grid,
    make_model,
    paper_example,
    random,
)
from termdp.tabular.planner import Plan, plan
from termdp.tabular.policies import (
    CostPolicy,
    HistoryPolicy,
    MarkovPolicy,
    Policy,
)
from termdp.tabular.quantised import QuantisedPlan
from termdp.tabular.termcrl import TermCRL
from termdp.tabular.thompson import Thompson

__all__ = [
    "NAMED_MODELS",
    "CostEstimate",
    "CostPolicy",
    "ExactPlan",
    "HistoryPolicy",
    "IgnoreStops",
    "KnownCosts",
    "MarkovPolicy",
    "Plan",
    "Policy",
    "QuantisedPlan",
    "Regret",
    "Rollouts",
    "TerMDP",
    "TermCRL",
    "Thompson",
    "WholeHistory",
    "absorb_bias",
    "bounds",
    "chain",
    "confidence",
    "evaluate",
    "fit_costs",
    "grid",
    "make_model",
    "paper_example",
    "plan",
    "random",
    "simulate",
]
