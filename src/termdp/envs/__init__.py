"""The games: MinAtar, Backseat Driver, a recommender and a notifier, all in JAX.

Games know nothing of observers. What an observer charges for is in
`termdp.envs.cost_functions`; putting the two together is `termdp.registry`'s work.
"""
