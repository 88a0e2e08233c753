"""The original MinAtar as an oracle: play it, record it, read our state off it.

The original draws from one NumPy generator; here that generator keeps a log, and the
log of a step is translated into the `draws` of our games. Draws that the original did
not make are filled with noise: a game that looked at them would be found out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import minatar
import numpy as np

from termdp.envs import seaquest_rules
from termdp.envs.asterix import Asterix, AsterixDraws
from termdp.envs.breakout import Breakout, BreakoutDraws
from termdp.envs.seaquest import Seaquest, SeaquestDraws
from termdp.envs.space_invaders import SpaceInvaders, SpaceInvadersDraws

GAMES = {
    "breakout": Breakout,
    "space_invaders": SpaceInvaders,
    "asterix": Asterix,
    "seaquest": Seaquest,
}


class RecordingRandom:
    """The two methods the original uses, with a log of what they returned."""

    def __init__(self, seed: int):
        self._random = np.random.RandomState(seed)
        self.log: list[float] = []
        self.last_bound = 1
        """How many outcomes the last `randint` had."""

    def rand(self) -> float:
        self.log.append(self._random.rand())
        return self.log[-1]

    def randint(self, *args: int, **kwargs: int) -> int:
        self.log.append(self._random.randint(*args, **kwargs))
        self.last_bound = args[0] if args else kwargs["high"] - kwargs["low"]
        return self.log[-1]


def make_oracle(name: str, seed: int, sticky_prob: float, ramping: bool) -> Any:
    """The original environment, deterministic in `seed`, its draws on record."""
    oracle = minatar.Environment(name, sticky_prob, ramping)
    oracle.random = oracle.env.random = RecordingRandom(seed)
    oracle.reset()
    return oracle


def draws_of_step(
    name: str, random: RecordingRandom, noise: np.random.Generator
) -> Any:
    """Our draws from the original's log of one step."""
    log = random.log
    sticky = np.float32(log[0])
    if name == "breakout":
        return BreakoutDraws(sticky)
    if name == "space_invaders":
        return SpaceInvadersDraws(sticky)
    if name == "asterix":
        return _asterix_draws(sticky, random, noise)
    return _seaquest_draws(sticky, log[1:], noise)


def _asterix_draws(
    sticky: np.float32, random: RecordingRandom, noise: np.random.Generator
) -> AsterixDraws:
    spawn = random.log[1:]
    side, kind, row = spawn + list(noise.random(3))[len(spawn) :]
    num_free = random.last_bound
    # Any number that leaves the original's choice modulo the number of free rows.
    row_choice = row + num_free * noise.integers(840 // num_free)
    has_row = len(spawn) == 3
    return AsterixDraws(
        sticky=sticky,
        enters_left=side < 1 / 2,
        is_gold=kind < 1 / 3,
        row_choice=np.int32(row_choice if has_row else noise.integers(840)),
    )


def _seaquest_draws(
    sticky: np.float32, spawn: list[float], noise: np.random.Generator
) -> SeaquestDraws:
    enemy = [*noise.random(2), noise.integers(1, 9)]
    diver = [noise.random(), noise.integers(1, 9)]
    if len(spawn) in (3, 5):
        enemy = spawn[:3]
    if len(spawn) in (2, 5):
        diver = spawn[-2:]
    return SeaquestDraws(
        sticky=sticky,
        enemy_enters_left=enemy[0] < 1 / 2,
        enemy_is_sub=enemy[1] < 1 / 3,
        enemy_y=np.int32(enemy[2]),
        diver_enters_left=diver[0] < 1 / 2,
        diver_y=np.int32(diver[1]),
    )


def state_of(name: str, oracle: Any) -> Any:
    """Our state of the game the oracle is in, with nothing as the last action."""
    return _READERS[name](_first_state(name), oracle.env)


@cache
def _first_state(name: str) -> Any:
    return jax.tree.map(np.asarray, GAMES[name]().first_state(jax.random.key(0)))


def _columns(board: np.ndarray) -> np.ndarray:
    powers = 1 << np.arange(10)
    return np.asarray((board != 0).T @ powers, np.uint32)


def _read_breakout(first: Any, env: Any) -> Any:
    bricks = env.brick_map[1:4].reshape(-1) @ (1 << np.arange(30))
    return first.replace(
        paddle_x=np.int32(env.pos),
        ball_x=np.int32(env.ball_x),
        ball_y=np.int32(env.ball_y),
        moves_right=np.bool_(env.ball_dir in (1, 2)),
        moves_down=np.bool_(env.ball_dir in (2, 3)),
        trail_x=np.int32(env.last_x),
        trail_y=np.int32(env.last_y),
        bricks=np.uint32(bricks),
        in_brick=np.bool_(env.strike),
    )


def _read_space_invaders(first: Any, env: Any) -> Any:
    return first.replace(
        cannon_x=np.int32(env.pos),
        cannon_timer=np.int32(env.shot_timer),
        aliens=_columns(env.alien_map),
        friendly_bullets=_columns(env.f_bullet_map),
        enemy_bullets=_columns(env.e_bullet_map),
        aliens_go_right=np.bool_(env.alien_dir > 0),
        move_interval=np.int32(env.enemy_move_interval),
        move_timer=np.int32(env.alien_move_timer),
        shot_timer=np.int32(env.alien_shot_timer),
    )


def _read_asterix(first: Any, env: Any) -> Any:
    things = np.zeros(10, np.uint32)
    gold = goes_right = 0
    for thing in env.entities:
        if thing is not None:
            things[thing[0]] |= 1 << thing[1]
            goes_right |= bool(thing[2]) << thing[1]
            gold |= bool(thing[3]) << thing[1]
    return first.replace(
        player_x=np.int32(env.player_x),
        player_y=np.int32(env.player_y),
        things=np.asarray(things),
        gold=np.uint32(gold),
        goes_right=np.uint32(goes_right),
        spawn_interval=np.int32(env.spawn_speed),
        spawn_timer=np.int32(env.spawn_timer),
        move_interval=np.int32(env.move_speed),
        move_timer=np.int32(env.move_timer),
        ramp_timer=np.int32(env.ramp_timer),
        ramp_level=np.int32(env.ramp_index),
    )


def _pair(kind: Any, things: list[list[int]]) -> Any:
    """Our pair of torpedoes or divers: the original's list, the newest first."""
    assert len(things) <= 2
    rows = [thing[:3] for thing in reversed(things)]
    table = np.array(rows + [[-1, 0, 0]] * (2 - len(rows)))
    return kind(
        x=np.asarray(table[:, 0], np.int32),
        y=np.asarray(table[:, 1], np.int32),
        goes_right=np.asarray(table[:, 2], np.bool_),
    )


def _read_enemies(env: Any) -> seaquest_rules.Enemies:
    # The original does not know whether a fish or a sub is older, and so it must not
    # matter: sometimes these are taken to be older, sometimes those.
    subs = [(sub, True) for sub in env.e_subs]
    fish = [([*fish, 0], False) for fish in env.e_fish]
    is_fish_older = sum(enemy[0] for enemy, _ in subs + fish) % 2 == 0
    enemies = fish + subs if is_fish_older else subs + fish
    words = {
        "in_column": np.zeros(10, np.uint32),
        "in_row": np.zeros(10, np.uint32),
        "move_clock": np.zeros(3, np.uint32),
        "shot_clock": np.zeros(4, np.uint32),
    }
    goes_right = is_sub = 0
    for i, ((x, y, right, move_timer, shot_timer), sub) in enumerate(enemies):
        number = 32 - len(enemies) + i
        words["in_column"][x] |= 1 << number
        words["in_row"][y] |= 1 << number
        goes_right |= bool(right) << number
        is_sub |= sub << number
        for digit in range(3):
            words["move_clock"][digit] |= (move_timer >> digit & 1) << number
        for digit in range(4):
            words["shot_clock"][digit] |= (shot_timer >> digit & 1) << number
    return seaquest_rules.Enemies(
        goes_right=np.uint32(goes_right),
        is_sub=np.uint32(is_sub),
        **{name: np.asarray(word) for name, word in words.items()},
    )


def _read_seaquest(first: Any, env: Any) -> Any:
    assert not env.e_bullets, "starts have no enemy bullets"
    assert all(d[3] == (env.d_spawn_timer - 1) % 6 for d in env.divers)
    return first.replace(
        x=np.int32(env.sub_x),
        y=np.int32(env.sub_y),
        faces_right=np.bool_(env.sub_or),
        oxygen=np.int32(env.oxygen),
        divers_aboard=np.int32(env.diver_count),
        is_surfaced=np.bool_(env.surface),
        cool_down=np.int32(env.shot_timer),
        torpedoes=_pair(seaquest_rules.Torpedoes, env.f_bullets),
        divers=_pair(seaquest_rules.Divers, env.divers),
        diver_timer=np.int32(env.d_spawn_timer),
        enemies=_read_enemies(env),
        spawn_interval=np.int32(env.e_spawn_speed),
        spawn_timer=np.int32(env.e_spawn_timer),
        move_interval=np.int32(env.move_speed),
        ramp_level=np.int32(env.ramp_index),
    )


_READERS = {
    "breakout": _read_breakout,
    "space_invaders": _read_space_invaders,
    "asterix": _read_asterix,
    "seaquest": _read_seaquest,
}


@dataclass
class Recording:
    """What the oracle did, one entry per step; `starts` one per episode."""

    actions: list[int] = field(default_factory=list)
    draws: list[Any] = field(default_factory=list)
    observations: list[np.ndarray] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    game_overs: list[bool] = field(default_factory=list)
    ends: list[bool] = field(default_factory=list)
    next_observations: list[np.ndarray] = field(default_factory=list)
    starts: list[Any] = field(default_factory=list)


Player = Callable[[Any, np.random.Generator], int]
Prepare = Callable[[Any], None]


@dataclass(frozen=True)
class Play:
    """How the oracle is played: settings, a player, what episodes start from."""

    player: Player
    prepare: Prepare = lambda env: None
    steps: int = 5000
    max_episode: int = 3000
    sticky_prob: float = 0.1
    ramping: bool = True
    minimal: bool = True


def record(name: str, play: Play, seed: int) -> Recording:
    """Play the oracle and write down everything."""
    rng = np.random.default_rng(seed)
    oracle = make_oracle(name, seed, play.sticky_prob, play.ramping)
    action_set = GAMES[name](use_minimal_action_set=play.minimal).action_set
    out = Recording()

    def start() -> None:
        oracle.reset()
        play.prepare(oracle.env)
        out.starts.append(state_of(name, oracle))

    start()
    length = 0
    for _ in range(play.steps):
        wanted = play.player(oracle.env, rng)
        action = action_set.index(wanted) if wanted in action_set else 0
        oracle.random.log.clear()
        reward, game_over = oracle.act(action_set[action])
        out.actions.append(action)
        out.draws.append(draws_of_step(name, oracle.random, rng))
        out.observations.append(oracle.state())
        out.rewards.append(float(reward))
        out.game_overs.append(bool(game_over))
        length += 1
        out.ends.append(bool(game_over) or length >= play.max_episode)
        if out.ends[-1]:
            start()
            length = 0
        out.next_observations.append(oracle.state())
    return out
