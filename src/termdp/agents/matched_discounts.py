"""What TermPG's dynamic discount averages to, per environment: plain data.

The mean of 1 − ρ(z) over the last tenth of training, `termpg`, preset `fast`, 1,000,000
decisions, five seeds: column γ of `termdp report` on the suite `paper`.
"""

MATCHED_DISCOUNTS: dict[str, float] = {
    "space_invaders": 0.9957,
    "breakout": 0.9976,
    "asterix": 0.9921,
    "seaquest": 0.9959,
    "backseat": 0.9896,
    "backseat_passenger": 0.9896,
    "recommender": 0.9923,
}
