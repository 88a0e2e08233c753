"""The games: MinAtar, Backseat Driver, a recommender and a notifier, all in JAX.

Games know nothing about observers. Costs are in separate modules, such as
`termdp.envs.cost_functions`; `termdp.registry` combines the two.
"""
