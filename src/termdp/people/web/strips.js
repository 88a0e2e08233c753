// A ride as a strip: time runs from left to right, marks show who stopped when, and the
// area below is the fitted model's chance of a stop.

const SVG = "http://www.w3.org/2000/svg";
// Colour-blind people can tell these apart (Okabe and Ito), on light and dark.
export const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#7f7f7f"];
// As wide as the screen allows, so that letters keep their size on a phone.
export const WIDTH = Math.max(260, Math.min(1000, document.documentElement.clientWidth - 70));
const CURVE_HEIGHT = 46;
export const AXIS_HEIGHT = 22;

export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function title(text) {
  const element = svg("title", {});
  element.textContent = text;
  return element;
}

/** The x of a step; `left` pixels are kept free for labels. */
export const across = (longest, left = 8) => (step) => left + ((WIDTH - 8 - left) * step) / longest;

/** An axis in seconds, for strips of the same scale. */
export function axis(longest, stepMs, left = 8) {
  const x = across(longest, left);
  const whole = (longest * stepMs) / 1000;
  const most = (WIDTH - left) / 60;
  const gap = [1, 2, 5, 10, 20, 30, 60, 120, 300].find((seconds) => whole / seconds <= most) ?? 600;
  const box = svg("svg", { class: "axis", viewBox: `0 0 ${WIDTH} ${AXIS_HEIGHT}`, "aria-hidden": "true" });
  for (let second = 0; second <= whole; second += gap) {
    const place = x((1000 * second) / stepMs);
    const anchor = second === 0 ? "start" : second + gap > whole ? "end" : "middle";
    const label = svg("text", { x: place, y: 18, "font-size": 13, "text-anchor": anchor, fill: "currentColor", "fill-opacity": 0.7 });
    label.append(`${second} s`);
    box.append(svg("line", { x1: place, x2: place, y1: 0, y2: 4, stroke: "currentColor", "stroke-opacity": 0.5 }), label);
  }
  return box;
}

/** One strip; all strips share the scale of the longest ride. */
export function strip(ride, names, longest, curve = null) {
  const x = across(longest);
  const height = 26 + (curve ? CURVE_HEIGHT : 0);
  const box = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `ride ${ride.ride}` });
  const line = { x1: x(0), x2: x(ride.steps), y1: 13, y2: 13, stroke: "currentColor", "stroke-opacity": 0.25, "stroke-width": 4, "stroke-linecap": "round" };
  box.append(svg("line", line));
  if (ride.crashed) {
    const mark = svg("text", { x: x(ride.steps), y: 18, "font-size": 18, "text-anchor": "middle", fill: "currentColor" }, title("crash, or game over"));
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

/** The chance of a stop as an area, from 0 at the bottom to the ride's largest. */
export function discomfortCurve(curve, x, top) {
  const bottom = top + CURVE_HEIGHT - 4;
  const highest = Math.max(...curve.stop_probability, 1e-6);
  const y = (chance) => bottom - (chance / highest) * (CURVE_HEIGHT - 8);
  const points = curve.stop_probability.map((chance, step) => `${x(step + 0.5)},${y(chance)}`);
  const last = x(curve.stop_probability.length - 0.5);
  const area = svg("polygon", { points: `${x(0.5)},${bottom} ${points.join(" ")} ${last},${bottom}`, fill: "var(--accent)", "fill-opacity": 0.18 });
  const line = svg("polyline", { points: points.join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": 2 });
  const base = svg("line", { x1: x(0), x2: last, y1: bottom, y2: bottom, stroke: "currentColor", "stroke-opacity": 0.2 });
  const isShort = last < WIDTH / 2; // then there is room beside it
  const label = svg("text", { x: isShort ? last + 8 : last, y: isShort ? bottom - 12 : top + 10, "font-size": 13, "text-anchor": isShort ? "start" : "end", fill: "currentColor", "fill-opacity": 0.7 });
  label.append(`at most ${(100 * highest).toFixed(highest < 0.1 ? 1 : 0)}% a step`);
  return svg("g", {}, base, area, line, label, title("fitted model: chance of a stop at each step"));
}

/** A thin line at the step that is playing. */
export function cursor(box, step, longest) {
  let line = box.querySelector(".cursor");
  if (!line) {
    line = svg("line", { class: "cursor", y1: 0, y2: "100%", stroke: "currentColor", "stroke-width": 2 });
    box.append(line);
  }
  const place = across(longest)(step);
  line.setAttribute("x1", place);
  line.setAttribute("x2", place);
}
