// Backseat Driver's rules in the browser: what a driver hits on a known road. The server
// replays every drive; a test compares the two, step by step.

export const FRAMES = 4;
const CAR_LENGTH = 2;
const OLD_LANE_FRAMES = [1, 2];
const NEW_LANE_FRAMES = [2, 3, 4];
// The actions of at most this many steps are known ahead, the current step included.
const AHEAD = 3;

function triples(flat, extra) {
  const found = [];
  for (let i = 0; i < flat.length; i += 3) {
    found.push({ time: flat[i], lane: flat[i + 1], row: flat[i + 2], ...extra });
  }
  return found;
}

export class World {
  /** `road`: sizes and speeds; `track`: cars and coins as (time, lane, row), flat. */
  constructor(road, track) {
    this.road = road;
    this.cars = triples(track.cars, {});
    this.coins = triples(track.coins, { taken: Infinity });
    this.lanes = [Math.floor(road.lanes / 2)]; // before each step
    this.headings = []; // of each step
    this.begins = []; // when its lane change begins to show, if not with the step
    this.open = false; // whether more steps will follow (somebody is driving)
    this.crash = null; // the moment of the crash, in steps
    this.score = 0;
    this.coinCount = 0;
    this.overtaken = 0;
    this.rewards = [];
    this.coinCounts = [0]; // after each number of steps
    this.scores = [0];
  }

  get steps() {
    return this.headings.length;
  }

  /** Where a thing is before step `time`; null when it is not on the road. */
  rowAt(thing, time, speed) {
    if (time < thing.time) return null;
    const row = thing.row + speed * (time - thing.time);
    return row < this.road.rows ? row : null;
  }

  /** Whether the cell at `row` touches the agent's rows after some frames. */
  reaches(row, frame, speed) {
    const place = FRAMES * row + frame * speed;
    const first = FRAMES * (this.road.agent_row - 1);
    return first < place && place < FRAMES * (this.road.agent_row + CAR_LENGTH);
  }

  /** Play one step: 0 stay, 1 left, 2 right. */
  step(action) {
    const { road } = this;
    const time = this.steps;
    const lane = this.lanes[time];
    const turn = action === 1 ? -1 : action === 2 ? 1 : 0;
    const target = Math.min(Math.max(lane + turn, 0), road.lanes - 1);
    const holds = (where, frame) =>
      (where === lane && OLD_LANE_FRAMES.includes(frame)) ||
      (where === target && NEW_LANE_FRAMES.includes(frame));
    const cars = this.cars.filter((car) => this.rowAt(car, time, road.car_speed) !== null);
    const coins = this.coins.filter(
      (coin) => coin.taken === Infinity && this.rowAt(coin, time, road.coin_speed) !== null,
    );
    let crashFrame = 0;
    let taken = 0;
    for (let frame = 1; frame <= FRAMES && crashFrame === 0; frame++) {
      for (const coin of coins) {
        const row = this.rowAt(coin, time, road.coin_speed);
        const touched = holds(coin.lane, frame) && this.reaches(row, frame, road.coin_speed);
        if (touched && row >= 0 && coin.taken === Infinity) {
          coin.taken = time + frame / FRAMES;
          taken += 1;
        }
      }
      for (const car of cars) {
        const row = this.rowAt(car, time, road.car_speed);
        const touched = [row, row + 1].some(
          (part) => part >= 0 && part < road.rows && this.reaches(part, frame, road.car_speed),
        );
        if (touched && holds(car.lane, frame)) crashFrame = frame;
      }
    }
    this.finishStep(time, lane, target, crashFrame, taken);
    return crashFrame > 0;
  }

  finishStep(time, lane, target, crashFrame, taken) {
    const { road } = this;
    const crashed = crashFrame > 0;
    const behindRow = road.agent_row + CAR_LENGTH;
    let behind = 0;
    let passed = 0;
    for (const car of this.cars) {
      const row = this.rowAt(car, crashed ? time : time + 1, road.car_speed);
      if (row === null || row < behindRow) continue;
      behind += 1;
      if (!crashed && row < behindRow + road.car_speed) passed += 1;
    }
    this.headings.push(target - lane);
    this.lanes.push(crashed ? lane : target);
    if (crashed) this.crash = time + crashFrame / FRAMES;
    const reward = 0.1 * behind;
    this.rewards.push(reward);
    this.score += reward;
    this.coinCount += taken;
    this.overtaken += passed;
    this.scores.push(this.score);
    this.coinCounts.push(this.coinCount);
  }

  /** Play a whole ride ("0120…"). */
  playAll(actions) {
    for (const action of actions) {
      if (this.crash !== null) break;
      this.step(Number(action));
    }
    return this;
  }

  /** The last moment of what has been played, in steps. */
  get end() {
    return this.crash ?? (this.open ? Infinity : this.steps);
  }

  /** Where the driver's car is, in lanes, and how it leans, from −1 (left) to 1 (right). */
  placeAt(now) {
    const last = this.open && this.crash === null ? this.steps : Math.max(this.steps - 1, 0);
    const first = Math.min(Math.floor(now), last);
    let lane = this.lanes[first];
    let lean = 0;
    for (let step = first; step < Math.min(first + AHEAD, this.steps); step++) {
      const begin = this.begins[step] ?? step;
      const part = Math.min(Math.max((now - begin) / (step + 1 - begin), 0), 1);
      lane += this.headings[step] * part;
      lean += this.headings[step] * Math.sin(Math.PI * part);
    }
    return { lane, lean };
  }
}
