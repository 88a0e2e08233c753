"""README's film: a ride that is stopped, and the same road after learning from stops.

Command: python docs/make_ride_pictures.py

The drivers of `termdp demo`: of each method the seed nearest to the mean of all. Shown is
the first road on which the passenger stops plain PPO (PG), and both drive for about as
long as they do on average.
"""

from pathlib import Path

import jax

from termdp.render.film import Film, save_gif
from termdp.report import demo
from termdp.runs.evaluate import watch_episode
from termdp.runs.video import episode_scene

OUT = Path(__file__).parent / "images" / "ride.gif"
NAMES = {"pg": "PG: plain PPO", "termpg": "TermPG: learned from stops"}
LONGEST = 300
CLOSE = 0.2  # share of the mean
PICTURES_PER_STEP = 1
STEPS_PER_SECOND = 8


def is_typical(ride, mean):
    """Whether a ride takes about as long as the mean."""
    return abs(len(ride.rewards) / mean - 1) < CLOSE


def main():
    """Train, find the road, film it twice."""
    results = demo.run_demo(demo.DemoSettings(), lambda *progress: None)
    agents = {method: demo.typical_agent(results, method) for method in NAMES}
    for road in range(500):
        rides = {
            method: watch_episode(agent, *results.place, jax.random.key(road), LONGEST)
            for method, agent in agents.items()
        }
        both = all(is_typical(ride, results.length(m)) for m, ride in rides.items())
        if both and rides["pg"].end == "stopped":
            break
    game = results.place[0].game_env
    scenes = [
        episode_scene(ride, demo.ENVIRONMENT, game, NAMES[method], PICTURES_PER_STEP)
        for method, ride in rides.items()
    ]
    save_gif(OUT, Film(scenes), STEPS_PER_SECOND * PICTURES_PER_STEP)
    for method, ride in rides.items():
        print(f"{NAMES[method]}: {len(ride.rewards)} steps, return {ride.total:.1f}")
    print(f"road {road}; {demo.verdict(results)}")


if __name__ == "__main__":
    main()
