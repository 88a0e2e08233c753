"""Which environments there are: each a game, its observer and a few words.

The table is data; games are imported only when one is made.
"""

import dataclasses
import importlib
import inspect
from typing import Any

from termdp.observer import Observer
from termdp.wrappers.observe import ObservedEnvironment, observe


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
    """

    id: str
    gym_id: str
    game: str
    cost_function: str
    cost: str
    description: str
    window: int = 30
    bias: float = 6.0

    def make_game(self, **arguments: Any) -> Any:
        """The bare game."""
        return _load(self.game)(**arguments)

    def make_observer(self, game: Any) -> Observer:
        """The benchmark's observer of this game."""
        cost = _load(self.cost_function)
        # A cost that depends on the game's make-up (its items, say) is built from it.
        build = getattr(cost, "for_game", lambda game: cost())
        return Observer(build(game), window=self.window, bias=self.bias)


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
        id="backseat",
        gym_id="termdp/BackseatDriver-v0",
        game="backseat:BackseatDriver",
        cost_function="backseat_costs:BackseatCoinCost",
        cost="1 when the decision collects a coin",
        description="Backseat Driver: overtake cars on a five-lane road",
    ),
    EnvironmentSpec(
        id="recommender",
        gym_id="termdp/Recommender-v0",
        game="recommender:Recommender",
        cost_function="recommender_costs:RecommenderFatigueCost",
        cost="fatigue from repeated and irritating items, relief from fitting ones",
        description="Session recommender: sell without tiring the user",
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


def make(
    env_id: str, observer: Observer | bool | None = None, **overrides: Any
) -> tuple[Any, Any]:
    """Make an environment and its parameters, as gymnax does.

    Args:
        env_id: one of `termdp.registry.REGISTRY` (`termdp envs` lists them).
        observer: who watches; None for the benchmark's observer, False for nobody.
        **overrides: arguments of the game's constructor (`use_minimal_action_set`),
            its parameters (`sticky_prob`), the observer's (`window`, `bias`) or the
            cost's (`width`).

    Returns:
        (env, params), with gymnax's API: `env.reset(key, params)`, `env.step(key,
        state, action, params)`. Changing numbers in `params` does not recompile.

    Example:
        >>> import jax, termdp
        >>> env, params = termdp.make("breakout", bias=4.0)
        >>> observation, state = env.reset(jax.random.key(0), params)
    """
    spec = find(env_id)
    constructor = set(inspect.signature(_load(spec.game).__init__).parameters)
    arguments = {
        name: overrides.pop(name) for name in list(overrides) if name in constructor
    }
    game = spec.make_game(**arguments)
    if observer is False:
        return game, _replace_game_params(game.default_params, overrides)
    if observer is None or observer is True:
        # The benchmark's costs are known to be sound: no need to try them out first.
        env = ObservedEnvironment(game, spec.make_observer(game))
    else:
        env = observe(game, observer)
    params = env.default_params.replace(**overrides)
    return ObservedEnvironment(game, params.observer), params


def _replace_game_params(params: Any, overrides: dict[str, Any]) -> Any:
    known = [field.name for field in dataclasses.fields(params)]
    for name in overrides:
        if name not in known:
            raise ValueError(
                f"expected a parameter of the game ({', '.join(known)}), got {name!r}"
            )
    return params.replace(**overrides)


def _load(path: str) -> Any:
    module, name = path.split(":")
    return getattr(importlib.import_module(f"termdp.envs.{module}"), name)
