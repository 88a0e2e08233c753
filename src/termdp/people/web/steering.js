// From key presses to actions. The game takes one action per step. The action can still
// be chosen in the first quarter of the step, because until then the car is in its old
// lane either way. A press that early acts in the current step, a later one in the next
// step. The car begins to turn in the very next picture.

import { FRAMES } from "/static/world.js";

export const STAY = 0;
export const LEFT = 1;
export const RIGHT = 2;
const OPEN = 1 / FRAMES;
const MOST_AHEAD = 2;

export class Steering {
  /** `steps`: the most steps of a drive. */
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

  /** Stay in the lane for every step that passed without a press. */
  advance(moment) {
    while (!this.isOver && this.world.steps + OPEN <= moment) this.decide(STAY, this.world.steps);
  }

  /** Turn left or right now; false if the press comes too soon after others. */
  press(action, moment) {
    this.advance(moment);
    if (this.isOver || this.world.steps - moment >= MOST_AHEAD) return false;
    this.decide(action, moment);
    return true;
  }
}
