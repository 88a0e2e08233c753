// A game as the server draws it: a list of shapes for each step. Every game except Backseat
// Driver is shown this way, because the browser does not know its rules.

import { paint, Picture } from "/static/picture.js";
import { World } from "/static/world.js";

const NOTHING = { width: 1, height: 1, background: "#10131c", shapes: [], backdrop: [], frames: [[]], game_over: false };

/** What a page plays; it has `steps`, `end` and `crash`, like the road's `World`. */
export class Film {
  constructor(data = NOTHING) {
    this.data = data;
    this.steps = data.frames.length - 1;
    this.end = this.steps;
    this.crash = data.game_over ? this.steps : null; // the game ended by itself
  }

  /** The shapes on screen at a moment, back to front. */
  at(moment) {
    const { backdrop, frames, shapes } = this.data;
    const frame = frames[Math.max(0, Math.min(Math.floor(moment), this.steps))];
    return [...backdrop, ...frame].map((number) => shapes[number]);
  }
}

/** A ride from the server, ready to play; only rides on the road need `road`. */
export const played = (road, data) => (data.frames ? new Film(data) : new World(road, data).playAll(data.actions));

/** Draws both kinds: the road smoothly, a film step by step. */
export class Screen {
  constructor(canvas, game) {
    this.canvas = canvas;
    this.road = game ? new Picture(canvas, game) : null;
    this.context = canvas.getContext("2d", { alpha: false });
  }

  draw(world, moment) {
    if (world instanceof Film) this.film(world, moment);
    else this.road.draw(world, moment);
  }

  film(film, moment) {
    const { canvas, context } = this;
    const { width, height, background } = film.data;
    canvas.parentElement.classList.add("film");
    canvas.parentElement.style.setProperty("--aspect", width / height);
    const ratio = Math.min(window.devicePixelRatio || 1, 2.5);
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    context.fillStyle = background;
    context.fillRect(0, 0, canvas.width, canvas.height);
    paint(context, film.at(moment), Math.min(canvas.width / width, canvas.height / height));
  }
}
