"""Backseat Driver from first principles: rectangles that move and touch.

Slow and plain; it shares no code with the game except the road's sizes.
"""

import numpy as np

FRAMES = 4
CAR_LENGTH = 2
WIDTH = 0.6
HEADINGS = (0, -1, 1)


def objects(words, margin):
    """All (lane, row) of the bits set in these words."""
    return [
        (lane, bit - margin)
        for lane, word in enumerate(np.asarray(words).tolist())
        for bit in range(32)
        if word >> bit & 1
    ]


def word(rows, margin):
    """The word with these rows set."""
    return sum(1 << (row + margin) for row in rows)


def target_lane(agent, action, lanes):
    return min(max(agent + HEADINGS[action], 0), lanes - 1)


def touches(agent_x, agent_row, lane, row, length):
    """Whether the agent's rectangle overlaps one in this lane."""
    beside = abs(agent_x - lane) < WIDTH
    return beside and agent_row - length < row < agent_row + CAR_LENGTH


def play(road, cars, coins, agent, action):
    """Coins taken and the frame of the crash (0: none) of one step."""
    target = target_lane(agent, action, road.lanes)
    taken = set()
    for frame in range(1, FRAMES + 1):
        part = frame / FRAMES
        x = agent + (target - agent) * part
        for lane, row in objects(coins, road.margin):
            if touches(x, road.agent_row, lane, row + part * road.coin_speed, 1):
                taken.add((lane, row))
        for lane, row in objects(cars, road.margin):
            now = row + part * road.car_speed
            if touches(x, road.agent_row, lane, now, CAR_LENGTH):
                return taken, frame
    return taken, 0


def safe_moves(road, cars):
    """Whether each action is safe from each lane: bool `[..., lanes, 3]`.

    `cars` are words `[..., lanes]`; geometry as in `play`, many roads at a time.
    """
    safe = np.ones((*cars.shape, 3), bool)
    for agent in range(road.lanes):
        for action in range(3):
            target = target_lane(agent, action, road.lanes)
            for frame in range(1, FRAMES + 1):
                x = agent + (target - agent) * frame / FRAMES
                shift = frame * road.car_speed / FRAMES
                rows = [
                    row
                    for row in range(-road.margin, road.rows)
                    if abs(row + shift - road.agent_row) < CAR_LENGTH
                ]
                mask = np.uint32(word(rows, road.margin))
                for lane in range(road.lanes):
                    if abs(x - lane) < WIDTH:
                        safe[..., agent, action] &= (cars[..., lane] & mask) == 0
    return safe


def survivors(road, safe, after):
    """Lanes `[..., lanes]` with a safe move into a lane that survives `after`."""
    alive = np.zeros(after.shape, bool)
    for agent in range(road.lanes):
        for action in range(3):
            target = target_lane(agent, action, road.lanes)
            alive[..., agent] |= safe[..., agent, action] & after[..., target]
    return alive
