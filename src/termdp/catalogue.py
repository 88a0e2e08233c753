"""Which environments there are: each a game, its observer and a few words.

Plain data that imports nothing heavy: Gymnasium reads it whenever it is imported.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class EnvironmentSpec:
    """One line of the table.

    Attributes:
        id: name for `termdp.make` and the command line.
        gym_id: name for `gymnasium.make`.
        game: `module:class` of the game, under `termdp.envs`.
        cost_function: `module:class` of the true cost, under `termdp.envs`.
        cost: what costs, in words.
        description: what the game is, in words.
        window: steps the benchmark's observer remembers.
        bias: b of the benchmark's observer.
        observer: `module:function` that makes an observer which was not written down
            but fitted; then `cost_function` is the class of its cost.
    """

    id: str
    gym_id: str
    game: str
    cost_function: str
    cost: str
    description: str
    window: int = 30
    bias: float = 6.0
    observer: str | None = None
    matched_discount: float | None = None

    @property
    def paper_image(self):
        return self.id.startswith('backseat')

    def override_names(self):
        import inspect
        from termdp.registry import make, _load
        _, params = make(self.id)
        return [*params.names, *inspect.signature(_load(self.game).__init__).parameters]


_SPECS = (
    EnvironmentSpec(
        id="breakout",
        gym_id="termdp/Breakout-v0",
        game="breakout:Breakout",
        cost_function="cost_functions:BreakoutEdgeCost",
        cost="1 while the paddle is in an outermost column",
        description="MinAtar Breakout: break bricks, keep the ball in play",
    ),
    EnvironmentSpec(
        id="space_invaders",
        gym_id="termdp/SpaceInvaders-v0",
        game="space_invaders:SpaceInvaders",
        cost_function="cost_functions:SpaceInvadersBulletCost",
        cost="1 while an enemy bullet is within one cell of the cannon",
        description="MinAtar Space Invaders: shoot aliens, dodge bullets",
    ),
    EnvironmentSpec(
        id="seaquest",
        gym_id="termdp/Seaquest-v0",
        game="seaquest:Seaquest",
        cost_function="cost_functions:SeaquestDepthCost",
        cost="1 while the submarine is at half of the greatest depth",
        description="MinAtar Seaquest: rescue divers, shoot, mind the oxygen",
    ),
    EnvironmentSpec(
        id="asterix",
        gym_id="termdp/Asterix-v0",
        game="asterix:Asterix",
        cost_function="cost_functions:AsterixEnemyCost",
        cost="1 while an enemy is within one cell of the player",
        description="MinAtar Asterix: collect gold, avoid enemies",
    ),
    EnvironmentSpec(
        id="asterix_middle",
        gym_id="termdp/AsterixMiddle-v0",
        game="asterix:Asterix",
        cost_function="cost_functions:AsterixMiddleCost",
        cost="1 while the player is in one of the middle two rows",
        description="MinAtar Asterix, watched by somebody who dislikes the middle",
        bias=16.0,
    ),
    EnvironmentSpec(
        id="backseat",
        gym_id="termdp/BackseatDriver-v0",
        game="backseat:BackseatDriver",
        cost_function="backseat_costs:BackseatCoinCost",
        cost="1 when the decision collects a coin",
        description="Backseat Driver: overtake cars on a five-lane road",
    ),
    EnvironmentSpec(
        id="backseat_passenger",
        gym_id="termdp/BackseatPassenger-v0",
        game="backseat:BackseatDriver",
        cost_function="termdp.envs.passenger_cost:PassengerCost",
        cost="real-valued, of a model fitted to stops of five simulated passengers",
        description="Backseat Driver with a fitted passenger: drive comfortably",
        window=35,
        bias=6.29,
        observer="termdp.observer_file:shipped_observer",
    ),
    EnvironmentSpec(
        id="recommender",
        gym_id="termdp/Recommender-v0",
        game="recommender:Recommender",
        cost_function="recommender_costs:RecommenderFatigueCost",
        cost="fatigue from repeated and irritating items, relief from fitting ones",
        description="Session recommender: sell without tiring the user",
    ),
    EnvironmentSpec(
        id="notifier",
        gym_id="termdp/Notifier-v0",
        game="notifier:Notifier",
        cost_function="notifier_costs:NotifierNuisanceCost",
        cost="3.5 to 5.5 for a notification, least to an interested user",
        description="Notifier: when to send to somebody who may switch it off",
        window=10,
        bias=10.0,
    ),
)

REGISTRY = {spec.id: spec for spec in _SPECS}


def find(env_id: str) -> EnvironmentSpec:
    """The table's line for an id; an error that lists the ids if there is none."""
    if env_id not in REGISTRY:
        raise ValueError(
            f"expected an environment id ({', '.join(REGISTRY)}), got {env_id!r}"
        )
    return REGISTRY[env_id]
