// A ride as a strip: time from left to right, who stopped when, and under it how
// uncomfortable the fitted model finds it.

const SVG = "http://www.w3.org/2000/svg";
export const COLOURS = ["#3b82f6", "#f59e0b", "#10b981", "#a855f7", "#ec4899", "#06b6d4", "#84cc16", "#ef4444"];
const WIDTH = 1000;
const CURVE_HEIGHT = 46;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function title(text) {
  const element = svg("title", {});
  element.textContent = text;
  return element;
}

/** One strip; all strips share the scale of the longest ride. */
export function strip(ride, names, longest, curve = null) {
  const x = (step) => 8 + ((WIDTH - 16) * step) / longest;
  const height = 26 + (curve ? CURVE_HEIGHT : 0);
  const box = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `ride ${ride.ride}` });
  const line = { x1: x(0), x2: x(ride.steps), y1: 13, y2: 13, stroke: "currentColor", "stroke-opacity": 0.25, "stroke-width": 4, "stroke-linecap": "round" };
  box.append(svg("line", line));
  if (ride.crashed) {
    const mark = svg("text", { x: x(ride.steps), y: 18, "font-size": 18, "text-anchor": "middle", fill: "currentColor" }, title("crash"));
    mark.append("✹");
    box.append(mark);
  }
  for (const review of ride.reviews) {
    if (review.stop === null) continue;
    const colour = COLOURS[names.indexOf(review.supervisor) % COLOURS.length];
    const dot = { cx: x(review.stop + 0.5), cy: 13, r: 7, fill: review.repeat ? "none" : colour, stroke: colour, "stroke-width": 3 };
    const words = `${review.supervisor}: stop at step ${review.stop}${review.reason ? `, “${review.reason}”` : ""}`;
    box.append(svg("circle", dot, title(words)));
  }
  if (curve) box.append(discomfortCurve(curve, x, 26));
  return box;
}

/** The chance of a stop as an area, from 0 at the bottom to 1 at the top. */
function discomfortCurve(curve, x, top) {
  const bottom = top + CURVE_HEIGHT - 4;
  const y = (chance) => bottom - chance * (CURVE_HEIGHT - 8);
  const points = curve.stop_probability.map((chance, step) => `${x(step + 0.5)},${y(chance)}`);
  const last = x(curve.stop_probability.length - 0.5);
  const area = svg("polygon", { points: `${x(0.5)},${bottom} ${points.join(" ")} ${last},${bottom}`, fill: "var(--accent)", "fill-opacity": 0.18 });
  const line = svg("polyline", { points: points.join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": 2 });
  const base = svg("line", { x1: x(0), x2: last, y1: bottom, y2: bottom, stroke: "currentColor", "stroke-opacity": 0.2 });
  return svg("g", {}, base, area, line, title("fitted model: chance of a stop"));
}

/** A thin line where the player is. */
export function cursor(box, step, longest) {
  let line = box.querySelector(".cursor");
  if (!line) {
    line = svg("line", { class: "cursor", y1: 0, y2: "100%", stroke: "currentColor", "stroke-width": 2 });
    box.append(line);
  }
  const place = 8 + ((WIDTH - 16) * step) / longest;
  line.setAttribute("x1", place);
  line.setAttribute("x2", place);
}
