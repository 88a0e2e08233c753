"""`termdp video`: one episode as a moving picture, or two side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from termdp.render.film import Scene
    from termdp.runs.agent import Agent

MOST_FPS = 100


@dataclass(frozen=True)
class Args:
    """Film one episode: the game, with its costs and stop probabilities below.

    Example: termdp video runs/breakout-termpg episode.gif
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of a run, a file of `agent.save`, or a name from `termdp agents`."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")]
    """File to write: .gif, or .mp4 where ffmpeg is installed."""
    side_by_side: Annotated[Path | None, tyro.conf.arg(metavar="RUN2")] = None
    """Another run of the same environment, shown beside the first with the same seed."""
    index: int = 0
    """Which of the run's seeds, counted from 0."""
    seed: int = 0
    """Seed of the episode."""
    max_steps: int = 300
    """Longest film, in steps."""
    fps: float = 10.0
    """Speed of the film, in steps per second."""


def run(args: Args) -> None:
    """Play, draw, save."""
    from termdp.render.film import Film
    from termdp.runs.video import check_suffix, save_video

    check_suffix(args.out)
    if args.max_steps < 1:
        raise ValueError(f"expected --max-steps of at least 1, got {args.max_steps}")
    if not 0 < args.fps <= MOST_FPS:
        raise ValueError(
            f"expected --fps above 0 and at most {MOST_FPS}, got {args.fps:g}"
        )
    paths = [path for path in (args.run, args.side_by_side) if path is not None]
    agents = [_agent_of(path, args.index) for path in paths]
    first, last = agents[0].card.spec.env, agents[-1].card.spec.env
    if first != last:
        raise ValueError(
            f"expected two runs of one environment, got {first} in {paths[0]} and "
            f"{last} in {paths[-1]}"
        )
    scenes = [
        _scene_of(agent, title, args)
        for agent, title in zip(agents, _titles(agents, paths), strict=True)
    ]
    save_video(args.out, Film(scenes), args.fps * scenes[0].per_step)
    for path, scene in zip(paths, scenes, strict=True):
        end = scene.end.replace("_", " ")
        print(f"{path}: {scene.steps} steps, return {scene.returns[-1]:g}, {end}")
    print(f"look at {args.out.resolve()}")


def _agent_of(path: Path, index: int) -> "Agent":
    from termdp.runs.evaluate import agents_of

    agents = agents_of(path)
    if not 0 <= index < len(agents):
        raise ValueError(
            f"expected --index from 0 to {len(agents) - 1}, got {index} for {path}"
        )
    return agents[index]


def _titles(agents: "list[Agent]", paths: list[Path]) -> list[str]:
    """The methods' names, or the folders' names if both have the same method."""
    from termdp.report.names import method_name

    methods = [agent.card.spec.method for agent in agents]
    names = [method_name(m) if isinstance(m, str) else "own method" for m in methods]
    are_different = len(set(names)) == len(names)
    return names if are_different else [path.name for path in paths]


def _scene_of(agent: "Agent", title: str, args: Args) -> "Scene":
    """One episode of an agent, played where it was trained."""
    import jax

    from termdp.runs import evaluate, video

    source = evaluate.gymnasium_place_of(agent)
    if source is None:
        env, params = evaluate.place_of(agent)
        key = jax.random.key(args.seed)
        watched = evaluate.watch_episode(agent, env, params, key, args.max_steps)
        return video.episode_scene(watched, agent.card.spec.env, env.game_env, title)
    drawn = source.one(render_mode="rgb_array")
    watched = evaluate.watch_gymnasium(agent, drawn, args.seed, args.max_steps)
    drawn.close()
    return video.gymnasium_scene(watched, title)
