"""Rounds of `termdp studies improve`: do drivers get better, as the passengers see it?

    python benchmarks/improve_rounds.py --first-seed 1000 --studies 10 --json found.json
    python benchmarks/improve_rounds.py --draw found.json docs/images/improve_rounds.svg

Every seed is a study of its own: a driver that was trained without an observer, its
rides, and five SIMULATED passengers who review all of them. A round fits one observer to
all stops so far. Under it the last driver is trained further. Then rides are added: half
by the new driver, half by earlier ones. All studies advance together: a fit, or a
training, is one program for all of them.

After each round the new driver drives on fresh roads, and the passengers themselves (not
the fitted observer) say when they would have stopped it. Two others begin with the same
driver and train for as many steps: `alone` never hears of stops (PPO without an
observer), and `oracle` is told the passengers' true rules.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from termdp.agents.actor_critic import Actor
from termdp.agents.value_scale import with_plain_values
from termdp.envs.passenger_cost import PERCEPT_NAMES, percepts
from termdp.intervals import difference, mean_interval
from termdp.observer import Observer
from termdp.people.driving.drivers import Driver
from termdp.people.driving.rides import MAX_SEED, game, record_with_ends, replay
from termdp.people.driving.track import ride_data_many
from termdp.people.driving.trained import AgentDriverModel, AtTheWheel
from termdp.people.improving.learning import round_observers
from termdp.people.models.showing_data import ShowingData
from termdp.people.simulated.passengers import PASSENGERS, react
from termdp.people.simulated.sight import see
from termdp.runs.agent import make_card
from termdp.runs.collect import Mind
from termdp.runs.program import TrainProgram, _stacked
from termdp.runs.spec import make_job, make_spec

STEP_MS = 200
RIDE_STEPS = 200
WINDOW, DELAY = 35, 2
FRESH_RIDES = 40
# Studies are trained together, so their observers have equally many networks.
MEMBERS = len(PASSENGERS) * 3
NAMES = ("stop_rate", "return", "length", "crashes")


# The passengers' true rules as one observer


@struct.dataclass
class TrueCost:
    """What all five mind, each as a share of its patience, added up."""

    weights: jax.Array

    def __call__(self, observation, action):
        return self.weights @ percepts(game().road, observation, action)


def everybody():
    """An observer that knows every rule, and loses patience with their sum."""
    rules = {
        "weaving": ["back and forth with a free road"],
        "close_gaps": ["car within 1 rows ahead where it goes"],
        "coins": ["takes a coin by changing"],
        "jerks": ["third change within four decisions"],
    }
    rules["close_gaps"].append("car within 1 rows behind where it goes")
    weights = np.zeros(len(PERCEPT_NAMES))
    patience = np.mean([p.patience for p in PASSENGERS])
    strictness = np.mean([p.strictness for p in PASSENGERS])
    for passenger in PASSENGERS:
        for rule, weight in passenger.rules._asdict().items():
            for name in rules[rule]:
                share = strictness * weight * patience / passenger.patience
                weights[PERCEPT_NAMES.index(name)] += share
    cost = TrueCost(jnp.asarray(weights, jnp.float32))
    return Observer(cost, window=WINDOW, bias=float(strictness * patience))


# Training all studies at once


class School:
    """One compiled program that trains a driver for every study.

    Args:
        method: of `termdp methods`.
        seeds: one per study.
        steps: per study.
        observers: who watches each, or the first of them; False for nobody.
        sizes: numbers of the networks.
    """

    def __init__(self, method, seeds, steps, observers, sizes):
        first = observers[0] if observers else False
        spec = make_spec(
            "backseat",
            method,
            None,
            "ppo",
            first,
            sizes,
            steps=steps,
            seeds=len(seeds),
            seed=seeds[0],
        )
        job = make_job(spec, observer=first or None)
        self.spec, self.job = spec, job
        if observers:
            job = dataclasses.replace(job, run_params=self._watched(observers))
        self.program = TrainProgram(job)
        card = make_card(spec, self.program.job)
        learner = self.program.recipe.learner
        actor = Actor(learner.network, learner.distribution, learner.is_recurrent)
        self.model = AgentDriverModel(actor, (), card)
        self.methods = job.method_params()

    def _watched(self, observers):
        return tuple(self.job.params.replace(observer=o) for o in observers)

    def train(self, weights, observers, name):
        """Drivers of all studies, trained further from some weights `[studies, ...]`."""
        program = self.program
        if observers:
            program.params = _stacked(self._watched(observers))
        state = program.init()
        if weights is not None:
            # A copy: the first step reuses the memory of what it is given.
            copied = jax.tree.map(jnp.copy, weights)
            policy = dataclasses.replace(state.policy, params=copied)
            state = dataclasses.replace(state, policy=policy)
        iterations = self.job.num_iterations
        state, _ = program.advance(state, iterations)
        state = jax.block_until_ready(state)
        plain = jax.vmap(with_plain_values)
        weights = plain(state.policy.params, state.policy.value_scale)
        return weights, [
            Driver(name, self.model, self._numbers(weights, observers, run))
            for run in range(len(self.job.seeds))
        ]

    def _numbers(self, weights, observers, run):
        def mine(tree):
            return jax.tree.map(lambda x: x[run], tree)

        told = observers[run] if observers else None
        return AtTheWheel(Mind(mine(weights), None, mine(self.methods)), told)


# Rides and what the passengers make of them


@dataclasses.dataclass
class Study:
    """The rides so far with all reviews, and the roads yet to come."""

    seed: int
    rng: np.random.Generator
    showings: list = dataclasses.field(default_factory=list)
    drivers: list = dataclasses.field(default_factory=list)

    def drive(self, driver, count):
        """Rides on roads of their own, each with every passenger's review."""
        roads = [int(x) for x in self.rng.choice(MAX_SEED, size=count, replace=False)]
        driven = record_with_ends(driver, roads, RIDE_STEPS)
        shown = ride_data_many([ride for ride, _ in driven])
        for (ride, crashed), data in zip(driven, shown, strict=True):
            seen, again = see(game().road, data), replay(ride)
            for passenger in PASSENGERS:
                yield passenger, again, _review(passenger, seen, crashed, self.rng)

    def add(self, driver, count):
        """Let the passengers review new rides of a driver."""
        for passenger, again, (length, end) in self.drive(driver, count):
            self.showings.append(
                ShowingData(
                    ride=str(again.ride.seed),
                    supervisor=passenger.name,
                    observations=again.observations[:length],
                    actions=again.ride.actions[:length],
                    end=end,
                )
            )

    def judged(self, driver):
        """How the passengers judge fresh rides: means, and stop rates by passenger."""
        rows, stops = [], {passenger.name: [] for passenger in PASSENGERS}
        for passenger, again, (length, end) in self.drive(driver, FRESH_RIDES):
            stopped = end == "stopped"
            total = float(again.rewards[:length].sum(dtype=np.float64))
            rows.append((stopped, total, length, end == "game_over"))
            stops[passenger.name].append(stopped)
        found = dict(zip(NAMES, np.mean(rows, axis=0).tolist(), strict=True))
        found["by_passenger"] = {n: float(np.mean(s)) for n, s in stops.items()}
        return found


def _review(passenger, seen, crashed, rng):
    """Steps that were seen, and how the showing ended."""
    reaction = react(passenger, seen, rng, STEP_MS)
    last = len(seen) - 1
    if reaction.step is not None and not (crashed and reaction.step == last):
        return reaction.step + 1, "stopped"
    return last + 1, "game_over" if crashed else "truncated"


# The loop


def run(args, tell):
    seeds = list(range(args.first_seed, args.first_seed + args.studies))
    sizes = {"hidden": args.hidden, "filters": args.filters}
    studies = [Study(s, np.random.default_rng(s)) for s in seeds]
    tell("training the first drivers")
    school = School("pg", seeds, args.start_steps, None, sizes)
    first, drivers = school.train(None, None, "round 0")
    rows = {"0": judge_all(studies, drivers)}
    for study, driver in zip(studies, drivers, strict=True):
        study.drivers.append(driver)
        study.add(driver, args.rides)
    weights, school = first, None
    for number in range(1, args.rounds + 1):
        observers = observers_of(studies, not args.pooled)
        tell(f"round {number}: training")
        school = school or School("oracle", seeds, args.steps, observers, sizes)
        weights, drivers = school.train(weights, observers, f"round {number}")
        rows[str(number)] = judge_all(studies, drivers)
        tell(f"round {number}: {summary(rows[str(number)])}")
        if number < args.rounds:
            for study, driver in zip(studies, drivers, strict=True):
                add_round(study, driver, args.rides)
    for name, method, told in (
        ("alone", "pg", None),
        ("oracle", "oracle", everybody()),
    ):
        if name in args.without:
            continue
        tell(f"{name}: training")
        observers = told and [told] * len(seeds)
        school = School(method, seeds, args.rounds * args.steps, observers, sizes)
        rows[name] = judge_all(studies, school.train(first, observers, name)[1])
        tell(f"{name}: {summary(rows[name])}")
    return rows


def observers_of(studies, personal):
    """An observer that speaks for all supervisors of each study."""
    showings = {str(study.seed): study.showings for study in studies}
    fitted = round_observers(showings, WINDOW, DELAY, 0, personal=personal)
    return [with_members(fitted[str(study.seed)], MEMBERS) for study in studies]


def with_members(observer, count):
    """The same observer with more networks: those that are added have no cost."""
    cost = observer.cost
    given = len(jax.tree.leaves(cost.weights)[0])
    weights = jax.tree.map(
        lambda x: jnp.pad(x, [(0, count - given)] + [(0, 0)] * (x.ndim - 1)),
        cost.weights,
    )
    scale = jnp.asarray(cost.scale, jnp.float32) * count / given
    return observer.replace(cost=cost.replace(weights=weights, scale=scale))


def add_round(study, driver, count):
    """Half of the rides by the new driver, half by the earlier ones in turn."""
    earlier = study.drivers
    study.add(driver, count // 2)
    for place, other in enumerate(earlier):
        share = len(range(place, count - count // 2, len(earlier)))
        if share:
            study.add(other, share)
    study.drivers.append(driver)


def judge_all(studies, drivers):
    return [s.judged(driver) for s, driver in zip(studies, drivers, strict=True)]


def summary(row):
    return {name: round(float(np.mean([r[name] for r in row])), 3) for name in NAMES}


def report(found):
    """A table in Markdown: means over studies with 95% intervals."""
    rows = found["rows"]
    print("| driver | stopped | return | length | crashed |\n|---|---|---|---|---|")
    for name, row in rows.items():
        cells = [mean_interval([r[n] for r in row]) for n in NAMES]
        words = [f"{c.value:.3g} ({c.low:.3g} … {c.high:.3g})" for c in cells]
        label = f"round {name}" if name.isdigit() else name
        print(f"| {label} |", " | ".join(words), "|")
    last = max((name for name in rows if name.isdigit()), key=int)
    for other in ("0", "alone", "oracle"):
        if other in rows:
            for name in NAMES[:2]:
                pair = [[r[name] for r in rows[k]] for k in (last, other)]
                gap = difference(*pair)
                print(
                    f"round {last} − {other}, {name}: {gap.value:+.3g} "
                    f"({gap.low:+.3g} … {gap.high:+.3g})"
                )


def draw(found, path):
    """Stop rate and return by round, with the two others as lines."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "termdp"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    rows = found["rows"]
    numbers = sorted(int(name) for name in rows if name.isdigit())
    titles = {"stop_rate": "rides that were stopped", "return": "return until the stop"}
    for axes, (name, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        bands = [mean_interval([r[name] for r in rows[str(n)]]) for n in numbers]
        low, high = [b.low for b in bands], [b.high for b in bands]
        axes.fill_between(numbers, low, high, color="#2b6cb0", alpha=0.2, linewidth=0)
        values = [band.value for band in bands]
        axes.plot(numbers, values, "o-", color="#2b6cb0", label="rounds of improve")
        for other, colour in (("alone", "#c05621"), ("oracle", "#718096")):
            if other in rows:
                band = mean_interval([r[name] for r in rows[other]])
                axes.axhline(band.value, color=colour, linestyle="--", label=other)
                axes.axhspan(band.low, band.high, color=colour, alpha=0.12, linewidth=0)
        axes.set_xticks(numbers)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("round")
        axes.set_title(title, loc="left", fontsize=10)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--studies", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40_960, help="of a round")
    parser.add_argument("--start-steps", type=int, default=163_840)
    parser.add_argument("--rides", type=int, default=40, help="of a round")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--filters", type=int, default=8)
    parser.add_argument("--pooled", action="store_true", help="one model of everybody")
    parser.add_argument("--without", nargs="*", default=(), help="alone, oracle")
    parser.add_argument("--json", type=Path, help="file for all numbers")
    parser.add_argument("--draw", type=Path, nargs=2, help="numbers, figure")
    args = parser.parse_args()
    if args.draw:
        found = json.loads(args.draw[0].read_text())
        draw(found, args.draw[1])
    else:
        began = time.monotonic()

        def say(words):
            print(f"{time.monotonic() - began:6.0f} s", words, flush=True)

        settings = {k: v for k, v in vars(args).items() if k not in ("json", "draw")}
        found = {"settings": settings, "rows": run(args, say)}
        found["seconds"] = round(time.monotonic() - began)
        if args.json:
            args.json.write_text(json.dumps(found, indent=1) + "\n")
    report(found)


if __name__ == "__main__":
    main()
