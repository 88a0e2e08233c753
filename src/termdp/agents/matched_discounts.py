"""What TermPG's dynamic discount averages to, per environment: plain data.

The mean of 1 − ρ(z) over the last tenth of training, `termpg`, preset `fast`, 1,000,000
decisions, five seeds: column γ of `termdp report` on the suite `paper`.
"""

MATCHED_DISCOUNTS: dict[str, float] = {
    "space_invaders": 0.9972,
    "breakout": 0.9971,
    "asterix": 0.9937,
    "seaquest": 0.9959,
    "backseat": 0.9920,
    "backseat_passenger": 0.9920,
    "recommender": 0.9923,
}
