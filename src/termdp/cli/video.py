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
    """Folder of a run."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")]
    """File to write: .gif, or .mp4 where ffmpeg is installed."""
    index: int = 0
    """Which of the run's seeds, counted from 0."""
    seed: int = 0
    """Seed of the episode."""
    max_steps: int = 300
    """Longest film, in decisions."""
    fps: float = 10.0
    """Decisions per second."""


def run(args: Args) -> None:
    """Play, draw, save."""
    import jax

    from termdp.runs.evaluate import open_run, watch_episode
    from termdp.runs.video import check_suffix, episode_frames, save_video

    check_suffix(args.out)
    if args.max_steps < 1:
        raise ValueError(f"expected --max-steps of at least 1, got {args.max_steps}")
    if not 0 < args.fps <= MOST_FPS:
        raise ValueError(
            f"expected --fps above 0 and at most {MOST_FPS}, got {args.fps:g}"
        )
    trained = open_run(args.run)
    if not 0 <= args.index < trained.settings.seeds:
        raise ValueError(
            f"expected --index from 0 to {trained.settings.seeds - 1}, got {args.index}"
        )
    trainer = trained.trainer
    watched = watch_episode(
        trainer, trained.state, args.index, jax.random.key(args.seed), args.max_steps
    )
    game = trainer.job.env.game_env
    frames = episode_frames(watched, trained.settings.env, game)
    save_video(args.out, frames, args.fps)
    print(
        f"{args.out}: {len(frames)} decisions, return {watched.total:g}, {watched.end}"
    )
