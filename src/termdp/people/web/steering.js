// From presses to decisions. The game decides once per step. A step's decision is left
// open for its first quarter, in which the car is in its old lane whatever it does. So a
// press acts in the present step if it comes that early, else in the next one. The car
// begins to turn in the very next picture.

import { FRAMES } from "/static/world.js";

export const STAY = 0;
export const LEFT = 1;
export const RIGHT = 2;
const OPEN = 1 / FRAMES;
const MOST_AHEAD = 2;

export class Steering {
  /** `steps`: how many decisions there are at most. */
  constructor(world, steps) {
    this.world = world;
    this.steps = steps;
    this.actions = "";
    world.open = true;
  }

  decide(action, moment) {
    this.actions += action;
    this.world.begins[this.world.steps] = moment;
    this.world.step(action);
  }

  get isOver() {
    return this.world.crash !== null || this.actions.length >= this.steps;
  }

  /** Time goes on: steps in which nothing was pressed. */
  advance(moment) {
    while (!this.isOver && this.world.steps + OPEN <= moment) this.decide(STAY, this.world.steps);
  }

  /** Left or right, now; false if it comes too fast after others. */
  press(action, moment) {
    this.advance(moment);
    if (this.isOver || this.world.steps - moment >= MOST_AHEAD) return false;
    this.decide(action, moment);
    return true;
  }
}
