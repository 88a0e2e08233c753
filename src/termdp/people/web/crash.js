// A visible crash: a shake, a flash, and flying pieces.

import { scatter } from "/static/picture.js";

export const CRASH_MS = 900;
const PIECES = 26;
const COLOURS = ["#e5322d", "#f5b921", "#ff8c2b", "#fff4ee", "#15171c"];

export const wantsStillness = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Draw the pieces around a place on the canvas, after a share of the time. */
function drawPieces(context, { x, y, size }, share) {
  context.save();
  context.globalAlpha = Math.max(0, 0.75 * (1 - 4 * share));
  context.fillStyle = "#fff";
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  context.globalAlpha = 1;
  for (let piece = 0; piece < PIECES; piece++) {
    const jumble = scatter(piece + 1);
    const angle = ((jumble % 360) * Math.PI) / 180;
    const far = size * (0.5 + ((jumble >>> 9) % 100) / 45) * Math.sqrt(share);
    const length = size * (0.06 + ((jumble >>> 16) % 10) / 90);
    context.save();
    context.translate(x + far * Math.cos(angle), y + far * Math.sin(angle));
    context.rotate(angle + 6 * share);
    context.fillStyle = COLOURS[piece % COLOURS.length];
    context.fillRect(-length, -length / 2, 2 * length, length);
    context.restore();
  }
  context.restore();
}

/**
 * Show the crash; resolves when it is over. `draw()` draws what is underneath; `place()`
 * says where it is, and the size of a car. Nothing moves for people who want no motion.
 */
export async function showCrash(canvas, screen, draw, place) {
  const context = canvas.getContext("2d");
  if (wantsStillness()) {
    drawPieces(context, place(), 1);
    return;
  }
  screen.classList.add("crashing");
  const begin = performance.now();
  let share = 0;
  while (share < 1) {
    const now = await new Promise(requestAnimationFrame);
    share = Math.min(Math.max((now - begin) / CRASH_MS, 0), 1);
    draw();
    drawPieces(context, place(), share);
  }
  screen.classList.remove("crashing");
}
