"""The environments: one entry each, with everything that the package needs.

An entry is plain data and a few functions. The functions import what they need when they
are called, so the table can be read without JAX. A new environment is one more entry,
here or at run time with `register`.
"""

import dataclasses
import functools
import inspect
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from termdp.settings import nearest

if TYPE_CHECKING:
    import gymnasium
    import numpy as np

    from termdp.observer import Cost, Observer
    from termdp.render.drawing import Draw, Drawing


@dataclasses.dataclass(frozen=True)
class EnvironmentEntry:
    """An environment: a game, its observer, and how both are shown.

    Attributes:
        id: name for `termdp.make` and the command line.
        gym_id: name for `gymnasium.make`.
        description: what the game is, in words.
        cost: what has a cost, in words.
        display_name: name in tables and figures.
        colour: colour in figures, `#rrggbb`.
        observation_shape: shape of an observation.
        num_actions: how many actions there are.
        game: returns the game's class, or another function that makes the game.
        cost_function: from the game to its true cost; None if `observer` is given.
        observer: from the game to its observer, if that needs more than a cost, `window`
            and `bias`.
        renderer: from game, state and observation (NumPy) to a `Drawing` or pixels
            `uint8 [H, W, 3]`; None if the game cannot be drawn.
        moves: from game, state and action to the drawings within that step, the last one
            at its end; None if a step is one picture.
        window: steps that the observer remembers.
        bias: b of the observer.
        matched_discount: mean of TermPG's dynamic discount here; None if not measured.
        paper_image: whether the preset `paper` sees the game as a 42×42 image.
    """

    id: str
    gym_id: str
    description: str
    cost: str
    display_name: str
    colour: str
    observation_shape: tuple[int, ...]
    num_actions: int
    game: Callable[[], Callable[..., Any]]
    cost_function: "Callable[[Any], Cost] | None" = None
    observer: "Callable[[Any], Observer] | None" = None
    renderer: "Callable[[Any, Any, Any], Drawing | np.ndarray] | None" = None
    moves: "Callable[[Any, Any, Any], list[Drawing]] | None" = None
    window: int = 30
    bias: float = 6.0
    matched_discount: float | None = None
    paper_image: bool = False

    def __post_init__(self) -> None:
        """Refuse an entry that could not be used."""
        if (self.cost_function is None) == (self.observer is None):
            raise ValueError(
                f"expected either cost_function or observer for {self.id!r}, got "
                f"{'neither' if self.observer is None else 'both'}"
            )
        if not re.fullmatch("#[0-9a-fA-F]{6}", self.colour):
            raise ValueError(
                f"expected a colour as #rrggbb for {self.id!r}, got {self.colour!r}"
            )

    def make_observer(self, game: Any) -> "Observer":
        """The observer of a game that was made from this entry."""
        from termdp.observer import Observer

        if self.observer is not None:
            return _fitting(self.observer(game), game)
        assert self.cost_function is not None  # by __post_init__
        return Observer(self.cost_function(game), window=self.window, bias=self.bias)

    def drawer(self, game: Any) -> "Draw":
        """A function from a state of the game and its observation to a drawing."""
        import jax

        renderer = self.renderer
        if renderer is None:
            raise ValueError(f"expected a game that can be drawn, got {self.id!r}")
        # Renderers read single numbers, which is slow on the device.
        return lambda state, observation: renderer(
            game, *jax.device_get((state, observation))
        )

    def override_names(self) -> list[str]:
        """All names that `termdp.make` takes for this environment."""
        from termdp.wrappers.observe import ObservedParams

        build = self.game()
        game = build()
        params = ObservedParams(game.default_params, self.make_observer(game))
        return list(dict.fromkeys([*_arguments_of(build), *params.names]))


REGISTRY: dict[str, EnvironmentEntry] = {}


def find(env_id: str) -> EnvironmentEntry:
    """The entry of an id; an error that lists the ids if there is none."""
    if env_id not in REGISTRY:
        raise ValueError(
            f"expected an environment id ({', '.join(REGISTRY)}), got {env_id!r}"
        )
    return REGISTRY[env_id]


def make(
    env_id: str,
    observer: "Observer | bool | str | Path | None" = None,
    **overrides: Any,
) -> tuple[Any, Any]:
    """Make an environment and its parameters.

    Args:
        env_id: one of `termdp.registry.REGISTRY` (`termdp envs` lists them).
        observer: an `Observer`, None for the environment's own, False for no observer,
            or the path of a saved one (`termdp fit`, `termdp studies fit`).
        **overrides: arguments of the game's constructor (`use_minimal_action_set`),
            its parameters (`sticky_prob`), the observer's (`window`, `bias`) or the
            cost's (`width`).

    Returns:
        (env, params), as gymnax does: `env.reset(key, params)`, `env.step(key, state,
        action, params)`. Changing numbers in `params` does not recompile.

    Examples:
        >>> import jax, termdp
        >>> env, params = termdp.make("breakout", bias=4.0)
        >>> observation, state = env.reset(jax.random.key(0), params)
    """
    from termdp.wrappers.observe import ObservedEnvironment, observe

    entry = find(env_id)
    _check_values(overrides)
    build = entry.game()
    constructor = _arguments_of(build)
    arguments = {k: overrides.pop(k) for k in list(overrides) if k in constructor}
    game = build(**arguments)
    if observer is False:
        return game, _replace_game_params(game.default_params, overrides, constructor)
    if observer is None or observer is True:
        # The package's own costs need no check.
        env = ObservedEnvironment(game, entry.make_observer(game))
    else:
        env = observe(game, _given(observer, game))
    params = env.default_params
    _check_names(overrides, params.names, constructor, "a parameter")
    params = params.replace(**overrides)
    return ObservedEnvironment(game, params.observer), params


def _given(observer: "Observer | str | Path", game: Any) -> "Observer":
    """An observer from the user, read from disk if it is a path."""
    from termdp.observer_file import load_observer

    if isinstance(observer, str | Path):
        observer = load_observer(observer)
    return _fitting(observer, game)


def _fitting(observer: Any, game: Any) -> Any:
    """The observer; an error if its cost is for another game."""
    check = getattr(getattr(observer, "cost", None), "check_game", None)
    if check is not None:
        check(game)
    return observer


def _arguments_of(build: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(build).parameters.values()
    return [parameter.name for parameter in found if parameter.kind in kinds]


def _replace_game_params(
    params: Any, overrides: dict[str, Any], constructor: list[str]
) -> Any:
    known = [field.name for field in dataclasses.fields(params)]
    _check_names(overrides, known, constructor, "a parameter of the game")
    return params.replace(**overrides)


def _check_values(overrides: dict[str, Any]) -> None:
    for name, value in overrides.items():
        no_number = isinstance(value, list | tuple | dict | bytes)
        if no_number or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(
                f"expected {name} to be a finite number, got {value!r:.60}"
            )


def _check_names(
    given: dict[str, Any], known: list[str], constructor: list[str], what: str
) -> None:
    known = [*constructor, *known]
    for name in given:
        if name not in known:
            raise ValueError(
                f"expected {what} ({', '.join(known)}), got {name!r}: "
                f"{nearest(name, known)}"
            )


def register(entry: EnvironmentEntry) -> None:
    """Add an environment: to `termdp.make`, the command line and Gymnasium.

    Examples:
        >>> import dataclasses
        >>> from termdp.registry import EnvironmentEntry, find, register
        >>> calm = dataclasses.replace(
        ...     find("notifier"), id="notifier_calm", gym_id="termdp/Calm-v0", bias=20.0
        ... )
        >>> register(calm)  # doctest: +SKIP
        >>> env, params = make("notifier_calm")  # doctest: +SKIP
    """
    gym_ids = [other.gym_id for other in REGISTRY.values()]
    if entry.id in REGISTRY or entry.gym_id in gym_ids:
        raise ValueError(
            f"expected an id and a Gymnasium id that are new, got {entry.id!r} and "
            f"{entry.gym_id!r}"
        )
    _register_with_gymnasium(entry)
    REGISTRY[entry.id] = entry


def register_environments() -> None:
    """Register all Gymnasium ids; a second call changes nothing.

    `import termdp` calls this. It is also the package's entry point in the group
    `gymnasium.envs`, which Gymnasium has not read since 1.0, but other tools do.
    """
    for entry in REGISTRY.values():
        _register_with_gymnasium(entry)


def _register_with_gymnasium(entry: EnvironmentEntry) -> None:
    from gymnasium.envs.registration import register, registry

    if entry.gym_id not in registry:
        # Gymnasium can save a specification only if its entry points are strings.
        register(
            id=entry.gym_id,
            entry_point=f"{__name__}:{make_gymnasium_env.__name__}",
            vector_entry_point=f"{__name__}:{make_gymnasium_vector_env.__name__}",
            kwargs={"env_id": entry.id},
        )


def make_gymnasium_env(
    env_id: str, render_mode: str | None = None, **arguments: Any
) -> "gymnasium.Env":
    """What `gymnasium.make("termdp/…")` calls; arguments as for `termdp.make`."""
    from termdp.gym.gymnasium_env import JaxEnv

    env, params = make(env_id, **arguments)
    entry = find(env_id)
    game = getattr(env, "game_env", env)
    draw = None if entry.renderer is None else entry.drawer(game)
    return JaxEnv(env, params, render_mode, draw)


def make_gymnasium_vector_env(
    env_id: str, num_envs: int, **arguments: Any
) -> "gymnasium.vector.VectorEnv":
    """What `gymnasium.make_vec("termdp/…")` calls; arguments as for `termdp.make`."""
    from termdp.gym.gymnasium_vector_env import JaxVectorEnv

    mode = {k: arguments.pop(k) for k in ["autoreset_mode"] if k in arguments}
    env, params = make(env_id, **arguments)
    return JaxVectorEnv(env, params, num_envs, **mode)


# The games, their costs and their pictures.


def _breakout() -> Any:
    from termdp.envs.breakout import Breakout

    return Breakout


def _breakout_cost(game: Any) -> "Cost":
    from termdp.envs.cost_functions import BreakoutEdgeCost

    return BreakoutEdgeCost()


def _space_invaders() -> Any:
    from termdp.envs.space_invaders import SpaceInvaders

    return SpaceInvaders


def _space_invaders_cost(game: Any) -> "Cost":
    from termdp.envs.cost_functions import SpaceInvadersBulletCost

    return SpaceInvadersBulletCost()


def _seaquest() -> Any:
    from termdp.envs.seaquest import Seaquest

    return Seaquest


def _seaquest_cost(game: Any) -> "Cost":
    from termdp.envs.cost_functions import SeaquestDepthCost

    return SeaquestDepthCost()


def _asterix() -> Any:
    from termdp.envs.asterix import Asterix

    return Asterix


def _asterix_cost(game: Any) -> "Cost":
    from termdp.envs.cost_functions import AsterixEnemyCost

    return AsterixEnemyCost()


def _asterix_middle_cost(game: Any) -> "Cost":
    from termdp.envs.cost_functions import AsterixMiddleCost

    return AsterixMiddleCost()


def _draw_minatar(name: str, game: Any, state: Any, observation: Any) -> "Drawing":
    from termdp.render import minatar

    return minatar.draw(observation, name)


def _backseat() -> Any:
    from termdp.envs.backseat import BackseatDriver

    return BackseatDriver


def _backseat_cost(game: Any) -> "Cost":
    from termdp.envs.backseat_costs import BackseatCoinCost

    return BackseatCoinCost.for_game(game)


def _passenger(game: Any) -> "Observer":
    from termdp.observer_file import shipped_observer

    return shipped_observer()


def _draw_backseat(game: Any, state: Any, observation: Any) -> "Drawing":
    from termdp.render import backseat

    return backseat.draw(state, game.road)


def _backseat_moves(game: Any, state: Any, action: Any) -> "list[Drawing]":
    from termdp.render import backseat

    return backseat.moves(game, state, action)


def _recommender() -> Any:
    from termdp.envs.recommender import Recommender

    return Recommender


def _recommender_cost(game: Any) -> "Cost":
    from termdp.envs.recommender_costs import RecommenderFatigueCost

    return RecommenderFatigueCost.for_game(game)


def _draw_recommender(game: Any, state: Any, observation: Any) -> "Drawing":
    from termdp.render import recommender

    return recommender.draw(state, game)


def _notifier() -> Any:
    from termdp.envs.notifier import Notifier

    return Notifier


def _notifier_cost(game: Any) -> "Cost":
    from termdp.envs.notifier_costs import NotifierNuisanceCost

    return NotifierNuisanceCost()


def _draw_notifier(game: Any, state: Any, observation: Any) -> "Drawing":
    from termdp.render import notifier

    return notifier.draw(state, game.default_params)


# Matched discounts: the mean of TermPG's discount over the last tenth of training, preset
# `fast`, seeds 0 to 4 (`termdp bench methods --methods termpg --seeds 5`).
_ASTERIX = EnvironmentEntry(
    id="asterix",
    gym_id="termdp/Asterix-v0",
    description="MinAtar Asterix: collect gold, avoid enemies",
    cost="1 while an enemy is within one cell of the player",
    display_name="Asterix",
    colour="#7048e8",
    observation_shape=(10, 10, 4),
    num_actions=5,
    game=_asterix,
    cost_function=_asterix_cost,
    renderer=functools.partial(_draw_minatar, "asterix"),
    matched_discount=0.9876,
)

_BACKSEAT = EnvironmentEntry(
    id="backseat",
    gym_id="termdp/BackseatDriver-v0",
    description="Backseat Driver: overtake cars on a five-lane road",
    cost="1 when the step collects a coin",
    display_name="Backseat coins",
    colour="#d6336c",
    observation_shape=(21, 5, 12),
    num_actions=3,
    game=_backseat,
    cost_function=_backseat_cost,
    renderer=_draw_backseat,
    moves=_backseat_moves,
    matched_discount=0.9856,
    paper_image=True,
)

_ENTRIES = (
    EnvironmentEntry(
        id="breakout",
        gym_id="termdp/Breakout-v0",
        description="MinAtar Breakout: break bricks, keep the ball in play",
        cost="1 while the paddle is in an outermost column",
        display_name="Breakout",
        colour="#f08c00",
        observation_shape=(10, 10, 4),
        num_actions=3,
        game=_breakout,
        cost_function=_breakout_cost,
        renderer=functools.partial(_draw_minatar, "breakout"),
        matched_discount=0.9924,
    ),
    EnvironmentEntry(
        id="space_invaders",
        gym_id="termdp/SpaceInvaders-v0",
        description="MinAtar Space Invaders: shoot aliens, dodge bullets",
        cost="1 while an enemy bullet is within one cell of the cannon",
        display_name="Space Invaders",
        colour="#1971c2",
        observation_shape=(10, 10, 6),
        num_actions=4,
        game=_space_invaders,
        cost_function=_space_invaders_cost,
        renderer=functools.partial(_draw_minatar, "space_invaders"),
        matched_discount=0.9921,
    ),
    EnvironmentEntry(
        id="seaquest",
        gym_id="termdp/Seaquest-v0",
        description="MinAtar Seaquest: rescue divers, shoot, mind the oxygen",
        cost="1 while the submarine is at half of the greatest depth",
        display_name="Seaquest",
        colour="#0c8599",
        observation_shape=(10, 10, 10),
        num_actions=6,
        game=_seaquest,
        cost_function=_seaquest_cost,
        renderer=functools.partial(_draw_minatar, "seaquest"),
        matched_discount=0.9916,
    ),
    _ASTERIX,
    dataclasses.replace(
        _ASTERIX,
        id="asterix_middle",
        gym_id="termdp/AsterixMiddle-v0",
        description="MinAtar Asterix with an observer that dislikes the middle",
        cost="1 while the player is in one of the middle two rows",
        display_name="Asterix middle",
        colour="#9c36b5",
        cost_function=_asterix_middle_cost,
        bias=16.0,
        matched_discount=None,
    ),
    _BACKSEAT,
    dataclasses.replace(
        _BACKSEAT,
        id="backseat_passenger",
        gym_id="termdp/BackseatPassenger-v0",
        description="Backseat Driver with a fitted passenger: drive comfortably",
        cost="a real number, from a model fitted to stops of five simulated passengers",
        display_name="Backseat passenger",
        colour="#846358",
        cost_function=None,
        observer=_passenger,
        window=35,
        bias=6.29,
        matched_discount=0.9940,
    ),
    EnvironmentEntry(
        id="recommender",
        gym_id="termdp/Recommender-v0",
        description="Session recommender: sell without tiring the user",
        cost="positive for repeated and irritating items, negative for fitting ones",
        display_name="Recommender",
        colour="#2b8a3e",
        observation_shape=(22,),
        num_actions=16,
        game=_recommender,
        cost_function=_recommender_cost,
        renderer=_draw_recommender,
        matched_discount=0.9946,
    ),
    EnvironmentEntry(
        id="notifier",
        gym_id="termdp/Notifier-v0",
        description="Notifier: when to send to somebody who may switch it off",
        cost="3.5 to 5.5 for a notification, least to an interested user",
        display_name="Notifier",
        colour="#5b6478",
        observation_shape=(3,),
        num_actions=2,
        game=_notifier,
        cost_function=_notifier_cost,
        renderer=_draw_notifier,
        window=10,
        bias=10.0,
    ),
)
REGISTRY.update({entry.id: entry for entry in _ENTRIES})
