"""What TermPG's dynamic discount averages to, per environment: plain data.

The mean of 1 − ρ(z) over the last tenth of training, `termpg`, preset `fast`, 1,000,000
decisions, five seeds: results/fast_1m/tables.md, "Mean effective discount γ" (the
passenger's: results/grid).
"""

MATCHED_DISCOUNTS: dict[str, float] = {
    "space_invaders": 0.9971,
    "breakout": 0.9976,
    "asterix": 0.9936,
    "seaquest": 0.9973,
    "backseat": 0.9921,
    "backseat_passenger": 0.9991,
    "recommender": 0.9982,
}
