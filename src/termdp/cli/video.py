"""`termdp video`: one episode as a moving picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

MOST_FPS = 100


@dataclass(frozen=True)
class Args:
    """Film one episode: the game, its costs and the stop probability under it.

    Example: termdp video runs/breakout-termpg episode.gif
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of a run, a file of `agent.save`, or a name of `termdp agents`."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")]
    """File to write: .gif, or .mp4 where ffmpeg is installed."""
    index: int = 0
    """Which of the run's seeds, counted from 0."""
    seed: int = 0
    """Seed of the episode."""
    max_steps: int = 300
    """Longest film, in steps."""
    fps: float = 10.0
    """Steps per second."""


def run(args: Args) -> None:
    """Play, draw, save."""
    import jax

    from termdp.runs.evaluate import (
        agents_of,
        gymnasium_place_of,
        place_of,
        watch_episode,
        watch_gymnasium,
    )
    from termdp.runs.video import (
        check_suffix,
        episode_frames,
        gymnasium_frames,
        save_video,
    )

    check_suffix(args.out)
    if args.max_steps < 1:
        raise ValueError(f"expected --max-steps of at least 1, got {args.max_steps}")
    if not 0 < args.fps <= MOST_FPS:
        raise ValueError(
            f"expected --fps above 0 and at most {MOST_FPS}, got {args.fps:g}"
        )
    agents = agents_of(args.run)
    if not 0 <= args.index < len(agents):
        raise ValueError(
            f"expected --index from 0 to {len(agents) - 1}, got {args.index}"
        )
    agent = agents[args.index]
    source = gymnasium_place_of(agent)
    if source is None:
        env, params = place_of(agent)
        key = jax.random.key(args.seed)
        watched = watch_episode(agent, env, params, key, args.max_steps)
        frames = episode_frames(watched, agent.card.spec.env, env.game_env)
    else:
        drawn = source.one(render_mode="rgb_array")
        watched = watch_gymnasium(agent, drawn, args.seed, args.max_steps)
        drawn.close()
        frames = gymnasium_frames(watched)
    save_video(args.out, frames, args.fps)
    print(f"{args.out}: {len(frames)} steps, return {watched.total:g}, {watched.end}")
