// Draws a moment of a world on a canvas, from the same shapes the server uses.

const STRIPE = 1.5;

/** A hash of whole numbers, the same as the server's. */
export function scatter(number) {
  const mixed = Math.imul(number, 2654435761) >>> 0;
  return Math.imul(mixed ^ (mixed >>> 15), 2246822519) >>> 0;
}

/** The number of a car's colour; it is the same in every picture. */
export function paintNumber(car, road, paints) {
  const identity = car.time * road.car_speed - car.row;
  return (scatter(identity * 31 + car.lane) >>> 8) % paints;
}

function trace(context, shape, scale) {
  context.beginPath();
  if (shape.kind === "rect") {
    const radius = Math.min(shape.r, shape.w / 2, shape.h / 2) * scale;
    context.roundRect(shape.x * scale, shape.y * scale, shape.w * scale, shape.h * scale, radius);
  } else if (shape.kind === "circle") {
    context.arc(shape.x * scale, shape.y * scale, shape.r * scale, 0, 2 * Math.PI);
  } else {
    for (const [x, y] of shape.points) context.lineTo(x * scale, y * scale);
    context.closePath();
  }
}

export function paint(context, shapes, scale) {
  for (const shape of shapes) {
    context.fillStyle = shape.fill;
    if (shape.kind === "text") {
      context.font = `${shape.h * scale}px system-ui, sans-serif`;
      context.textBaseline = "top";
      context.fillText(shape.words, shape.x * scale, shape.y * scale);
    } else {
      trace(context, shape, scale);
      context.fill();
    }
  }
}

/** Shapes drawn once, then copied: drawing them 60 times a second is slow on phones. */
class Sprite {
  constructor(shapes, scale, box) {
    this.box = box;
    this.canvas = document.createElement("canvas");
    this.canvas.width = Math.ceil(box.w * scale);
    this.canvas.height = Math.ceil(box.h * scale);
    const context = this.canvas.getContext("2d");
    context.translate(-box.x * scale, -box.y * scale);
    paint(context, shapes, scale);
  }

  draw(context, x, y, scale) {
    context.drawImage(
      this.canvas,
      (x + this.box.x) * scale,
      (y + this.box.y) * scale,
      this.canvas.width,
      this.canvas.height,
    );
  }
}

const CAR_BOX = { x: -0.4, y: -0.05, w: 0.85, h: 1.2 };
const COIN_BOX = { x: -0.3, y: -0.3, w: 0.6, h: 0.65 };
const FIRE_BOX = { x: -0.8, y: -0.8, w: 1.6, h: 1.6 };

export class Picture {
  constructor(canvas, game) {
    this.canvas = canvas;
    this.game = game;
    this.scale = 0;
    this.context = canvas.getContext("2d", { alpha: false });
  }

  /** Fit the canvas to its place on the screen; if that changed, make the sprites again. */
  fit() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2.5);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    const scale = Math.min(width / this.game.width, height / this.game.height);
    if (this.canvas.width === width && this.canvas.height === height && scale === this.scale) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.scale = scale;
    const { agent, traffic, coins, fire } = this.game;
    this.agent = new Sprite(agent, scale, CAR_BOX);
    this.traffic = traffic.map((shapes) => new Sprite(shapes, scale, CAR_BOX));
    this.coins = coins.map((shapes) => new Sprite(shapes, scale, COIN_BOX));
    this.fire = new Sprite(fire, scale, FIRE_BOX);
  }

  /** Draw the world at a moment, counted in steps (fractions lie between steps). */
  draw(world, moment) {
    this.fit();
    const { context, game, scale } = this;
    const { road } = world;
    const now = Math.max(0, Math.min(moment, world.end));
    const driven = now * road.coin_speed;
    context.fillStyle = game.grass[0];
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.verges(driven);
    paint(context, game.asphalt, scale);
    this.dashes(road, driven);
    for (const coin of world.coins) {
      if (now < coin.time - 1 || now >= coin.taken) continue;
      const row = coin.row + road.coin_speed * (now - coin.time);
      if (row >= road.rows) continue;
      const x = game.verge + coin.lane + 0.5;
      const glint = 0.5 + 0.5 * Math.sin(driven * 0.8 + x * 2);
      const sprite = this.coins[Math.round(glint * (this.coins.length - 1))];
      sprite.draw(context, x, (row + 0.5) * game.row, scale);
    }
    for (const car of world.cars) {
      if (now < car.time - 1) continue;
      const row = car.row + road.car_speed * (now - car.time);
      if (row >= road.rows) continue;
      const painted = this.traffic[paintNumber(car, road, this.traffic.length)];
      painted.draw(context, game.verge + car.lane + 0.5, row * game.row, scale);
    }
    this.driver(world, now);
  }

  driver(world, now) {
    const { context, game, scale } = this;
    const { lane, lean } = world.placeAt(now);
    const crashed = world.crash !== null && now >= world.crash;
    const x = game.verge + lane + 0.5;
    const y = world.road.agent_row * game.row;
    context.save();
    context.translate(x * scale, (y + 0.5) * scale);
    context.rotate(0.2 * lean); // lean into the lane change
    context.translate(-x * scale, -(y + 0.5) * scale);
    this.agent.draw(context, x, y, scale);
    context.restore();
    if (crashed) this.fire.draw(context, x, y + 0.2, scale);
    this.ownPlace = { x: x * scale, y: (y + 0.3) * scale, size: scale };
  }

  verges(driven) {
    const { context, game, scale } = this;
    const shift = driven * game.row;
    const first = Math.floor(-shift / STRIPE);
    const last = Math.ceil((game.height - shift) / STRIPE);
    context.fillStyle = game.grass[1];
    for (let number = first; number <= last; number++) {
      if (number % 2 === 0) continue;
      context.fillRect(0, (number * STRIPE + shift) * scale, game.width * scale, STRIPE * scale);
    }
    for (let number = first - 1; number <= last; number++) {
      for (const isRight of [0, 1]) {
        const jumble = scatter(number * 2 + isRight);
        if (jumble % 5 >= 3) continue;
        const inset = 0.18 + ((jumble >>> 8) % 32) / 100;
        const x = isRight ? game.width - inset : inset;
        const y = number * STRIPE + shift + ((jumble >>> 16) % 64) / 64;
        this.tree(x, y, 0.2 + ((jumble >>> 24) % 12) / 100, game.trees[jumble % 3]);
      }
    }
  }

  tree(x, y, size, [dark, light]) {
    const circle = (cx, cy, r, fill) => ({ kind: "circle", x: cx, y: cy, r, fill });
    paint(
      this.context,
      [
        circle(x + 0.05, y + 0.07, size, this.game.shadow),
        circle(x, y, size, dark),
        circle(x - size * 0.2, y - size * 0.2, size * 0.65, light),
      ],
      this.scale,
    );
  }

  dashes(road, driven) {
    const { context, game, scale } = this;
    const { period, length, fill } = game.dash;
    context.fillStyle = fill;
    for (let lane = 1; lane < road.lanes; lane++) {
      for (let y = ((driven * game.row) % period) - period; y < game.height; y += period) {
        context.beginPath();
        context.roundRect((game.verge + lane - 0.02) * scale, y * scale, 0.04 * scale, length * scale, 0.02 * scale);
        context.fill();
      }
    }
  }
}
