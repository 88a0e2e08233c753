"""Step by step, our games do what the original does, given the same chance.

The original plays first and is recorded; then our game replays the recording in one
scan. Observations (the last of an episode and the first of the next included), rewards
and ends must be equal on every step.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import minatar_players as players
import numpy as np
import pytest
from minatar_oracle import GAMES, Play, Player, Prepare, Recording, record


def late_aliens(env: Any) -> None:
    """A late wave at any height, often with few aliens left."""
    level = env.random.randint(7)
    env.enemy_move_interval = 12 - level
    env.ramp_index = level
    top, num_left = env.random.randint(8), 1 + env.random.randint(6)
    env.alien_map[:] = 0
    for _ in range(num_left):
        row = min(9, top + env.random.randint(4))
        env.alien_map[row, env.random.randint(10)] = 1
    env.alien_dir = 1 - 2 * env.random.randint(2)
    env.alien_move_timer = env.random.randint(6)


def few_bricks(env: Any) -> None:
    """A wall that is soon cleared."""
    for row in range(1, 4):
        for column in range(10):
            env.brick_map[row, column] = env.random.randint(6) == 0


def late_asterix(env: Any) -> None:
    """One of the last levels; from level 9 on rows run out."""
    level = 5 + env.random.randint(5)
    env.ramp_index = level
    env.spawn_speed = env.spawn_timer = 10 - level
    env.move_speed = env.move_timer = max(1, 5 - level // 2)
    env.ramp_timer = env.random.randint(101)


def set_seaquest_level(env: Any, level: int) -> None:
    env.ramp_index = level
    env.e_spawn_speed = env.e_spawn_timer = max(1, 20 - level)
    env.move_speed = max(2, 5 - level // 2)


def late_seaquest(env: Any) -> None:
    """Any level, under water, some divers aboard."""
    set_seaquest_level(env, env.random.randint(25))
    env.sub_y = 1 + env.random.randint(8)
    env.surface = False
    env.diver_count = env.random.randint(7)
    env.oxygen = 30 + env.random.randint(171)


def endless_surfacing(env: Any) -> None:
    """After a full rescue the count is -1 and surfacing never fails."""
    set_seaquest_level(env, env.random.randint(3))
    env.diver_count = -1
    env.e_spawn_timer = env.random.randint(5)


def parting_shot(env: Any) -> None:
    """PARITY S1: a sub runs into a torpedo in the frame of its own shot."""
    set_seaquest_level(env, env.random.randint(20))
    env.sub_x, env.sub_y, env.surface = 1, 4, False
    env.sub_or = True
    env.diver_count = 1
    for i in range(1 + env.random.randint(2)):
        env.e_subs.append([5 + i * env.random.randint(2), 4, False, 0, 0])
    env.e_fish.append([5, 4, False, env.random.randint(2)])
    env.f_bullets.append([3, 4, True])
    env.shot_timer = 1


def crowded_divers(env: Any) -> None:
    """PARITY S3: two divers meet a submarine with little room."""
    env.sub_x, env.sub_y, env.surface = 4, 4, False
    env.diver_count = 4 + env.random.randint(3)
    env.d_spawn_timer = 16 + env.random.randint(12)  # a third would come too soon
    timer = (env.d_spawn_timer - 1) % 6
    right = bool(env.random.randint(2))
    for goes_right in (right, not right):
        env.divers.append([3 + env.random.randint(3), 4, goes_right, timer])


def shared_cells(env: Any) -> None:
    """Several enemies in the torpedo's cell and in its way."""
    set_seaquest_level(env, env.random.randint(20))
    env.sub_x, env.sub_y, env.surface = 1, 4, False
    env.sub_or = True
    env.diver_count = 1
    for _ in range(6):
        enemy = [3 + env.random.randint(4), 4, False, env.random.randint(3)]
        if env.random.randint(2):
            env.e_fish.append(enemy)
        else:
            env.e_subs.append([*enemy, env.random.randint(11)])
    env.f_bullets.append([2, 4, True])
    env.shot_timer = 1


def plain_and(game_script: Player, late: Prepare) -> list[Play]:
    """What every game goes through: 24,000 steps."""
    chance = players.by_chance
    return [
        Play(chance, steps=4000),
        Play(chance, steps=2000, sticky_prob=0.0, minimal=False, ramping=False),
        Play(game_script, steps=5000),
        Play(game_script, steps=3000, sticky_prob=0.0, ramping=False),
        Play(game_script, steps=2000, prepare=late, ramping=False, max_episode=400),
        Play(game_script, steps=5000, prepare=late, sticky_prob=0.0, max_episode=400),
        Play(chance, steps=3000, prepare=late, minimal=False, max_episode=400),
    ]


PLAYS = {
    "breakout": plain_and(players.breakout_script, few_bricks),
    "space_invaders": plain_and(players.space_invaders_script, late_aliens),
    "asterix": plain_and(players.asterix_script, late_asterix),
    "seaquest": [
        *plain_and(players.seaquest_script, late_seaquest),
        Play(players.seaquest_bobber, prepare=endless_surfacing, sticky_prob=0.0),
        Play(players.seaquest_bobber, prepare=late_seaquest, steps=2000),
        Play(players.by_chance, prepare=parting_shot, steps=2000, max_episode=15),
        Play(players.by_chance, prepare=crowded_divers, steps=2000, max_episode=15),
        Play(players.by_chance, prepare=shared_cells, steps=2000, max_episode=15),
    ],
}


def stacked(items: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *items)


def replay(game: Any, recordings: list[Recording], plays: list[Play]) -> Any:
    """Our observations, rewards, ends and next observations for the recordings.

    All recordings are replayed in one scan, one after the other.
    """
    lengths = [len(recording.actions) for recording in recordings]
    starts = stacked([start for rec in recordings for start in rec.starts])
    ends = np.array([end for rec in recordings for end in rec.ends])
    # A recording goes on to a start of its own after its last end.
    is_last = np.zeros(len(ends), bool)
    is_last[np.cumsum(lengths) - 1] = True
    inputs = {
        "action": np.concatenate([rec.actions for rec in recordings]).astype(np.int32),
        "draws": stacked([draws for rec in recordings for draws in rec.draws]),
        "sticky_prob": np.repeat([play.sticky_prob for play in plays], lengths),
        "ramping": np.repeat([play.ramping for play in plays], lengths),
        "ends": ends,
        "is_last": is_last,
        "next_start": np.cumsum(ends) + np.cumsum(is_last),
        "start": np.cumsum(ends) + np.cumsum(is_last) - is_last,
    }

    @jax.jit
    def scan(starts: Any, inputs: Any) -> Any:
        def start_of(number: Any) -> Any:
            return jax.tree.map(lambda leaf: leaf[number], starts)

        def step(state: Any, x: Any) -> Any:
            params = game.default_params.replace(sticky_prob=x["sticky_prob"])
            if hasattr(params, "ramping"):
                params = params.replace(ramping=x["ramping"])
            obs, state, reward, game_over, _ = game.advance(
                state, x["action"], x["draws"], params
            )
            start = start_of(x["start"]).replace(last_action=state.last_action)
            state = jax.tree.map(partial(jnp.where, x["ends"]), start, state)
            outputs = (obs, reward, game_over, game.get_obs(state))
            other = start_of(x["next_start"])
            return jax.tree.map(partial(jnp.where, x["is_last"]), other, state), outputs

        return jax.lax.scan(step, start_of(0), inputs)[1]

    return jax.tree.map(np.asarray, scan(starts, inputs))


def assert_equal(what: str, ours: np.ndarray, originals: list[Any]) -> None:
    theirs = np.array(originals)
    differs = (ours != theirs).reshape(len(theirs), -1).any(axis=1)
    where = np.argwhere(ours != theirs)[:5].tolist()
    assert not differs.any(), (
        f"{what} differs in {differs.sum()} of {len(theirs)} steps, first at {where}"
    )


@pytest.mark.parametrize("minimal", [True, False])
@pytest.mark.parametrize("name", PLAYS)
def test_lockstep(name: str, minimal: bool) -> None:
    plays = [play for play in PLAYS[name] if play.minimal == minimal]
    recordings = [record(name, play, 100 + i) for i, play in enumerate(plays)]
    game = GAMES[name](use_minimal_action_set=minimal)
    ours = replay(game, recordings, plays)
    assert ours[0].dtype == np.bool_
    assert ours[1].dtype == np.float32
    begin = 0
    for i, recording in enumerate(recordings):
        end = begin + len(recording.actions)
        obs, rewards, game_overs, next_obs = (array[begin:end] for array in ours)
        begin = end
        play = f"of play {i} of {name}"
        assert_equal(f"the observation {play}", obs, recording.observations)
        assert_equal(f"the reward {play}", rewards, recording.rewards)
        assert_equal(f"the end {play}", game_overs, recording.game_overs)
        assert_equal(
            f"the next observation {play}", next_obs, recording.next_observations
        )


@pytest.mark.parametrize("name", PLAYS)
def test_lockstep_is_long_enough(name: str) -> None:
    assert sum(play.steps for play in PLAYS[name]) >= 20_000
