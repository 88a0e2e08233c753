// The road as seen from the back seat: in perspective, with a mirror for the cars left
// behind. It has the same interface as Picture and shows the same world.

import { wantsStillness } from "/static/crash.js";
import { paintNumber, scatter } from "/static/picture.js";

const HORIZON = 0.36; // of the height
const EYES = 0.95; // their height over the road, in lanes' widths
const BEHIND_NOSE = 1.5; // how far the eyes are behind the car's front
const STRETCH = 1.7; // without it, lengths would look too short from this angle
const NEAR = 0.45;
const FAR_ROWS = 8; // things appear this many rows earlier than in the flat view
const TREES = 5; // distance between two trees, in rows
const CAR = { half: 0.3, body: 0.3, roof: 0.52, rows: 2 };

/** A colour made darker or lighter; `#rrggbb`. */
function shade(colour, factor) {
  const parts = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return `rgb(${parts.map((part) => Math.min(255, Math.round(part * factor))).join(" ")})`;
}

/** The colour of a car: that of its largest opaque part. */
function bodyColour(shapes) {
  const bodies = shapes.filter((shape) => shape.kind === "rect" && shape.fill.length === 7);
  return bodies.reduce((a, b) => (a.w * a.h >= b.w * b.h ? a : b)).fill;
}

export class SeatView {
  constructor(canvas, game) {
    this.canvas = canvas;
    this.game = game;
    this.context = canvas.getContext("2d", { alpha: false });
    this.paints = game.traffic.map(bodyColour);
  }

  fit() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    this.unit = 0.85 * Math.min(width, 1.15 * height);
    this.ownPlace = { x: width / 2, y: 0.62 * height, size: 0.35 * this.unit };
  }

  /** A place on the road: `lane` (its middle is whole), `ahead` of the nose, height. */
  spot(lane, ahead, up = 0) {
    const scale = this.unit / Math.max(BEHIND_NOSE + STRETCH * ahead, NEAR);
    return [this.canvas.width / 2 + (lane - this.eye) * scale, HORIZON * this.canvas.height + (EYES - up) * scale];
  }

  shape(fill, ...points) {
    const { context } = this;
    context.fillStyle = fill;
    context.beginPath();
    for (const [x, y] of points) context.lineTo(x, y);
    context.fill();
  }

  /** How far ahead of the nose a row is. */
  ahead(row) {
    return (this.road.agent_row - row) * this.game.row;
  }

  draw(world, moment) {
    this.fit();
    const { context, canvas } = this;
    this.road = world.road;
    const now = Math.max(0, Math.min(moment, world.end));
    const { lane, lean } = world.placeAt(now);
    this.eye = lane;
    context.save();
    if (!wantsStillness()) {
      context.translate(canvas.width / 2, canvas.height / 2);
      context.rotate(0.025 * lean);
      context.scale(1.04, 1.04);
      context.translate(-canvas.width / 2, -canvas.height / 2);
    }
    const driven = now * this.road.coin_speed;
    this.land(driven);
    this.things(world, now, driven);
    context.restore();
    this.inside(world, now, lean);
    if (world.crash !== null && now >= world.crash) this.cracks();
  }

  land(driven) {
    const { context, canvas, game, road } = this;
    const horizon = HORIZON * canvas.height;
    const sky = context.createLinearGradient(0, 0, 0, horizon);
    sky.addColorStop(0, "#7fb2e5");
    sky.addColorStop(1, "#dcebf7");
    context.fillStyle = sky;
    context.fillRect(-canvas.width, -canvas.height, 3 * canvas.width, canvas.height + horizon);
    context.fillStyle = game.grass[0];
    context.fillRect(-canvas.width, horizon, 3 * canvas.width, 2 * canvas.height);
    const edges = [-0.62, road.lanes - 0.38];
    const far = 60;
    const strip = (fill, left, right) =>
      this.shape(fill, this.spot(left, -1), this.spot(left, far), this.spot(right, far), this.spot(right, -1));
    strip("#8d8a80", edges[0], edges[1]);
    strip("#3b3f4a", edges[0] + 0.08, edges[1] - 0.08);
    for (const lane of [1, 3]) strip("#353944", lane - 0.5, lane + 0.5);
    for (const side of [-0.5, road.lanes - 0.5]) strip("#e9e6dc", side - 0.02, side + 0.02);
    const { period, length, fill } = game.dash;
    for (let line = 0.5; line < road.lanes - 1; line++) {
      for (let ahead = -((driven * game.row) % period) - period; ahead < 14; ahead += period) {
        const end = ahead + length;
        if (end < -0.6) continue;
        this.shape(fill, this.spot(line - 0.025, Math.max(ahead, -0.6)), this.spot(line - 0.025, end), this.spot(line + 0.025, end), this.spot(line + 0.025, Math.max(ahead, -0.6)));
      }
    }
  }

  /** Trees, coins and cars, the farthest first. */
  things(world, now, driven) {
    const { road } = this;
    const found = [];
    const first = Math.floor((driven - road.agent_row) / TREES);
    for (let number = first; number < first + 8; number++) {
      for (const side of [0, 1]) {
        const row = driven - number * TREES;
        found.push({ row, draw: () => this.tree(scatter(number * 2 + side), side, this.ahead(row)) });
      }
    }
    for (const coin of world.coins) {
      const row = coin.row + road.coin_speed * (now - coin.time);
      if (now < coin.taken && row > -FAR_ROWS && row < road.agent_row + 1) found.push({ row, draw: () => this.coin(coin.lane, this.ahead(row)) });
    }
    for (const car of world.cars) {
      const row = car.row + road.car_speed * (now - car.time);
      if (row > -FAR_ROWS && row < road.agent_row + 2) found.push({ row, draw: () => this.car(car, row) });
    }
    found.sort((a, b) => a.row - b.row);
    for (const { row, draw } of found) {
      this.context.globalAlpha = Math.min(Math.max((row + FAR_ROWS) / (FAR_ROWS / 2), 0), 1);
      draw();
    }
    this.context.globalAlpha = 1;
  }

  tree(jumble, side, ahead) {
    if (ahead < -0.5 || jumble % 5 >= 3) return;
    const lane = side ? this.road.lanes + 0.3 + (jumble % 97) / 90 : -1.3 - (jumble % 97) / 90;
    const [dark, light] = this.game.trees[jumble % 3];
    const [x, y] = this.spot(lane, ahead);
    const size = this.unit / (BEHIND_NOSE + STRETCH * ahead);
    this.shape("#5b4632", [x - 0.05 * size, y], [x - 0.05 * size, y - 0.4 * size], [x + 0.05 * size, y - 0.4 * size], [x + 0.05 * size, y]);
    this.disc(dark, x, y - 0.75 * size, 0.42 * size);
    this.disc(light, x - 0.08 * size, y - 0.85 * size, 0.26 * size);
  }

  disc(fill, x, y, radius, narrow = 1) {
    const { context } = this;
    context.fillStyle = fill;
    context.beginPath();
    context.ellipse(x, y, radius * narrow, radius, 0, 0, 2 * Math.PI);
    context.fill();
  }

  coin(lane, ahead) {
    const [x, y] = this.spot(lane, ahead, 0.2);
    const size = this.unit / Math.max(BEHIND_NOSE + STRETCH * ahead, NEAR);
    const narrow = 0.35 + 0.65 * Math.abs(Math.cos(ahead * 1.3));
    this.disc("#a86f00", x, y, 0.17 * size, narrow);
    this.disc("#f5b921", x, y, 0.145 * size, narrow);
    this.disc("#ffd95a", x, y, 0.085 * size, narrow);
  }

  /** A box with a cabin, lights at the back. */
  car({ lane, ...rest }, row) {
    const colour = this.paints[paintNumber({ lane, ...rest }, this.road, this.paints.length)];
    const back = this.ahead(row + CAR.rows);
    const front = this.ahead(row);
    if (BEHIND_NOSE + STRETCH * front < NEAR) return;
    const [left, right] = [lane - CAR.half, lane + CAR.half];
    const side = lane > this.eye ? left : right;
    this.shape("#0006", this.spot(left - 0.04, back), this.spot(left - 0.04, front), this.spot(right + 0.04, front), this.spot(right + 0.04, back));
    this.shape(shade(colour, 0.6), this.spot(side, back), this.spot(side, front), this.spot(side, front, CAR.body), this.spot(side, back, CAR.body));
    this.shape(shade(colour, 1.15), this.spot(left, back, CAR.body), this.spot(left, front, CAR.body), this.spot(right, front, CAR.body), this.spot(right, back, CAR.body));
    const cabin = back + 0.3 * (front - back);
    this.shape("#1d2a38", this.spot(left + 0.05, cabin, CAR.body), this.spot(left + 0.11, cabin + 0.1, CAR.roof), this.spot(right - 0.11, cabin + 0.1, CAR.roof), this.spot(right - 0.05, cabin, CAR.body));
    this.shape(colour, this.spot(left + 0.11, cabin + 0.1, CAR.roof), this.spot(left + 0.13, front - 0.25, CAR.roof), this.spot(right - 0.13, front - 0.25, CAR.roof), this.spot(right - 0.11, cabin + 0.1, CAR.roof));
    this.shape(colour, this.spot(left, back, 0.06), this.spot(left, back, CAR.body), this.spot(right, back, CAR.body), this.spot(right, back, 0.06));
    for (const light of [left + 0.03, right - 0.13]) {
      this.shape("#ff4040", this.spot(light, back, 0.17), this.spot(light, back, 0.25), this.spot(light + 0.1, back, 0.25), this.spot(light + 0.1, back, 0.17));
    }
  }

  /** The inside of the car: mirror, dashboard, wheel, front seats. */
  inside(world, now, lean) {
    const { context, canvas } = this;
    const [w, h] = [canvas.width, canvas.height];
    this.mirror(world, now);
    context.fillStyle = "#14161c";
    context.beginPath();
    context.moveTo(0, h);
    context.lineTo(0, 0.86 * h);
    context.quadraticCurveTo(w / 2, 0.8 * h, w, 0.86 * h);
    context.lineTo(w, h);
    context.fill();
    context.save();
    context.translate(0.3 * w, 0.92 * h);
    context.rotate(0.5 * lean);
    context.lineWidth = 0.018 * this.unit;
    context.strokeStyle = "#4a505e";
    context.beginPath();
    context.arc(0, 0, 0.1 * this.unit, 0, 2 * Math.PI);
    context.moveTo(-0.1 * this.unit, 0);
    context.lineTo(0.1 * this.unit, 0);
    context.stroke();
    context.restore();
    context.fillStyle = "#23272f";
    for (const place of [0.3, 0.7]) {
      context.beginPath();
      context.roundRect(place * w - 0.13 * this.unit, 0.955 * h, 0.26 * this.unit, 0.2 * h, 0.05 * this.unit);
      context.fill();
    }
  }

  /** The cars behind, which are what scores. */
  mirror(world, now) {
    const { context, canvas, road } = this;
    const [width, height] = [0.34 * this.unit, 0.1 * this.unit];
    const [left, top] = [(canvas.width - width) / 2, 0.02 * canvas.height];
    context.fillStyle = "#14161c";
    context.beginPath();
    context.roundRect(left - 6, top - 6, width + 12, height + 12, 12);
    context.fill();
    context.save();
    context.beginPath();
    context.roundRect(left, top, width, height, 8);
    context.clip();
    context.fillStyle = "#9db7cf";
    context.fillRect(left, top, width, height);
    context.fillStyle = "#3b3f4a";
    context.fillRect(left, top + 0.45 * height, width, height);
    const behind = road.agent_row + CAR.rows;
    for (const car of world.cars) {
      const row = car.row + road.car_speed * (now - car.time);
      if (row < behind || row >= road.rows) continue;
      const near = 1 - (row - behind) / (road.rows - behind + 4);
      const size = 0.16 * width * near;
      const x = left + width / 2 - (car.lane - this.eye) * size * 1.25;
      context.fillStyle = this.paints[paintNumber(car, road, this.paints.length)];
      context.fillRect(x - size / 2, top + (0.35 + 0.45 * near) * height - 0.5 * size, size, 0.7 * size);
    }
    context.restore();
  }

  /** The windscreen after a crash. */
  cracks() {
    const { context, canvas } = this;
    context.strokeStyle = "#fffc";
    context.lineWidth = Math.max(1.5, 0.004 * this.unit);
    for (let ray = 0; ray < 14; ray++) {
      const jumble = scatter(ray + 50);
      let [x, y] = [canvas.width / 2, 0.45 * canvas.height];
      let angle = (2 * Math.PI * ray) / 14;
      context.beginPath();
      context.moveTo(x, y);
      for (let bend = 0; bend < 4; bend++) {
        angle += (((jumble >>> (4 * bend)) % 16) - 7.5) / 22;
        x += 0.13 * this.unit * Math.cos(angle);
        y += 0.13 * this.unit * Math.sin(angle);
        context.lineTo(x, y);
      }
      context.stroke();
    }
  }
}
