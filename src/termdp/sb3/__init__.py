"""For Stable-Baselines3: TermPG as one of its algorithms, our games as its VecEnv.

Needs the extra `sb3`. See docs/sb3.md.
"""

from termdp.extras import needs

with needs("sb3", "stable_baselines3", "torch"):
    from termdp.sb3.accumulated_cost import AccumulatedCost, AccumulatedCostWrapper
    from termdp.sb3.games import JaxVecEnv, make_vec_env
    from termdp.sb3.grid_extractor import GridExtractor
    from termdp.sb3.termpg import TermPG

__all__ = [
    "AccumulatedCost",
    "AccumulatedCostWrapper",
    "GridExtractor",
    "JaxVecEnv",
    "TermPG",
    "make_vec_env",
]
