"""`plan`: exact, with a resolution, or with a guaranteed error."""

from termdp.tabular.exact import ExactPlan
from termdp.tabular.model import TerMDP
from termdp.tabular.quantised import QuantisedPlan, quantised_plan

Plan = ExactPlan | QuantisedPlan


def plan(
    model: TerMDP,
    exact: bool | None = None,
    resolution: float | None = None,
    epsilon: float | None = None,
) -> Plan:
    """Solve a TerMDP whose costs are known.

    Args:
        model: the TerMDP.
        exact: plan on the reachable accumulated costs (the default); an error if there
            are too many.
        resolution: plan on a lattice of pitch Δ.
        epsilon: plan on the lattice that guarantees V* − V^π ≤ ε (appendix G).

    Returns:
        A plan with `value`, `value_at(h, s, accumulated)`, `act(h, s, accumulated)` and
        `error_bound`. Steps h count from 1; `accumulated` is the cost before step h.

    Examples:
        >>> from termdp import tabular
        >>> model = tabular.paper_example()
        >>> best = tabular.plan(model)
        >>> best.act(1, 0), round(best.value, 4)
        (1, 0.875)
    """
    if resolution is not None and epsilon is not None:
        raise ValueError("expected a resolution or an epsilon, got both")
    is_quantised = resolution is not None or epsilon is not None
    if exact and is_quantised:
        raise ValueError("expected exact=True or a resolution or an epsilon, got two")
    if exact is False and not is_quantised:
        raise ValueError("expected a resolution or an epsilon with exact=False")
    if is_quantised:
        return quantised_plan(model, resolution, epsilon)
    return ExactPlan(model)
