// A person's stops on the Results page. While they still judge, they see only their own.
// At the end, when nothing can influence them, they also see the others' and the model's.

import { ask } from "/static/api.js";
import { bothersCard } from "/static/bothers.js";
import { make } from "/static/page.js";
import { across, axis, AXIS_HEIGHT, discomfortCurve, svg, title, WIDTH } from "/static/strips.js";
import { capital, wordsFor } from "/static/words.js";

let spoken = wordsFor(null); // the words for this study
const LEFT = 62; // for the labels of the rows
const ROW = 24;
const CURVE = 46;

// Each kind has its own colour and its own shape.
const KINDS = {
  mine: { colour: "#0072b2", words: "you", mark: (x, y, colour) => svg("circle", { cx: x, cy: y, r: 7, fill: colour }) },
  mine_again: { colour: "#0072b2", words: "you, the second time", mark: (x, y, colour) => svg("circle", { cx: x, cy: y, r: 6, fill: "none", stroke: colour, "stroke-width": 3 }) },
  people: { colour: "#e69f00", words: "other people", mark: (x, y, colour) => svg("path", { d: `M${x} ${y - 7}l7 13h-14z`, fill: colour, "fill-opacity": 0.75 }) },
  simulated: { colour: "#009e73", words: "simulated passengers", mark: (x, y, colour) => svg("path", { d: `M${x} ${y - 7}l7 7-7 7-7-7z`, fill: colour, "fill-opacity": 0.75 }) },
};

const atSeconds = (step, stepMs) => `${(((step + 0.5) * stepMs) / 1000).toFixed(1)} s`;

function crashMark(x, y) {
  const mark = svg("text", { x, y: y + 6, "font-size": 18, "text-anchor": "middle", fill: "currentColor" }, title(spoken.crash));
  mark.append("✹");
  return mark;
}

/** One row of a strip: a line as long as the ride, a label, and marks on it. */
function row(box, y, label, x, ride, kinds, stepMs) {
  const words = svg("text", { x: 0, y: y + 5, "font-size": 13, fill: "currentColor" });
  words.append(label);
  box.append(words, svg("line", { x1: x(0), x2: x(ride.steps), y1: y, y2: y, stroke: "currentColor", "stroke-opacity": 0.25, "stroke-width": 3 }));
  if (ride.crashed) box.append(crashMark(x(ride.steps), y));
  for (const kind of kinds) {
    for (const step of ride[kind] ?? []) {
      const mark = KINDS[kind].mark(x(step + 0.5), y, KINDS[kind].colour);
      mark.classList.add(`stop-${kind}`);
      mark.append(title(`${KINDS[kind].words}: stop at ${atSeconds(step, stepMs)}`));
      box.append(mark);
    }
  }
}

/** A ride on a seconds axis: you, and the others and the model where they are known. */
function rideStrip(ride, longest, stepMs) {
  const x = across(longest, LEFT);
  const rows = [["You", ["mine", "mine_again"]]];
  if (ride.watched_by) rows.push(["Others", ["people", "simulated"]]);
  const curve = ride.stop_probability ? CURVE : 0;
  const height = ROW * rows.length + curve + AXIS_HEIGHT;
  const box = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": inWords(ride, stepMs) });
  rows.forEach(([label, kinds], index) => row(box, ROW * (index + 0.5), label, x, ride, kinds, stepMs));
  if (curve) {
    const label = svg("text", { x: 0, y: ROW * rows.length + 30, "font-size": 13, fill: "currentColor" });
    label.append("Model");
    box.append(label, discomfortCurve({ stop_probability: ride.stop_probability }, x, ROW * rows.length));
  }
  const seconds = svg("g", { transform: `translate(0 ${height - AXIS_HEIGHT})` });
  seconds.append(...axis(longest, stepMs, LEFT).childNodes);
  box.append(seconds);
  return box;
}

function inWords(ride, stepMs) {
  const first = ride.mine.length ? `you stopped at ${atSeconds(ride.mine[0], stepMs)}` : "you did not stop";
  const again = ride.mine_again?.length ? `, the second time at ${atSeconds(ride.mine_again[0], stepMs)}` : "";
  const others = ride.watched_by ? `; ${ride.stopped_by} of ${ride.watched_by} others stopped` : "";
  return `${capital(spoken.thing)} ${ride.ride}: ${first}${again}${others}${ride.crashed ? `; ${spoken.crashedAtLast}` : ""}`;
}

function legend(kinds, rides) {
  const entries = kinds.map((kind) => {
    const sign = svg("svg", { width: 18, height: 18, viewBox: "0 0 18 18", "aria-hidden": "true" });
    sign.append(KINDS[kind].mark(9, 9, KINDS[kind].colour));
    return make("span", {}, sign, kind === "simulated" ? spoken.simulated : KINDS[kind].words);
  });
  if (rides.some((ride) => ride.crashed)) entries.push(make("span", {}, `✹ ${spoken.crash}`));
  if (rides.some((ride) => ride.stop_probability)) {
    const sign = svg("svg", { width: 18, height: 18, viewBox: "0 0 18 18", "aria-hidden": "true" });
    sign.append(svg("polygon", { points: "0,16 6,5 12,11 18,3 18,16", fill: "var(--accent)", "fill-opacity": 0.35 }));
    entries.push(make("span", {}, sign, "the fitted model’s chance of a stop"));
  }
  return make("div", { class: "legend", id: "legend" }, ...entries);
}

function stopsCard(heading, sentence, rides, stepMs, kinds) {
  const longest = Math.max(...rides.map((ride) => ride.steps));
  const lines = rides.map((ride) =>
    make("div", { class: "compared", "data-ride": String(ride.ride) }, make("p", { class: "small soft" }, inWords(ride, stepMs)), rideStrip(ride, longest, stepMs)),
  );
  return make("section", { class: "card stack", id: "stops" }, make("h2", {}, heading), make("p", { class: "soft" }, sentence), legend(kinds, rides), ...lines);
}

/** A person's own stops of a ride, those of the second showing apart. */
function ownStops(ride) {
  const stops = (again) => ride.reviews.filter((r) => r.repeat === again && r.stop !== null).map((r) => r.stop);
  return { ...ride, mine: stops(false), mine_again: stops(true) };
}

/** Show a person's stops; `found` is the answer of /api/results. */
export async function showStops(content, found, words) {
  spoken = words;
  if (found.reviewed < found.total) {
    const rides = found.rides.slice(0, 200).map(ownStops);
    const later = `These are your own stops. Once you have judged all the ${words.things}, you will also see what the others and the model did${words.game ? "" : ", and what bothers you"}.`;
    content.append(stopsCard("Your stops", later, rides, found.step_ms, ["mine", "mine_again"]));
    return;
  }
  const wait = make("p", { class: "soft", role: "status" }, "Comparing your stops with everybody else’s…");
  content.append(wait);
  const whole = await ask("GET", "/api/comparison");
  wait.remove();
  const kinds = ["mine", "mine_again", ...["people", "simulated"].filter((kind) => whole[kind])];
  if (whole.bothers) content.append(bothersCard(whole));
  content.append(stopsCard("Your stops and theirs", whom(whole), whole.rides, whole.step_ms, kinds));
}

function whom({ people, simulated, model }) {
  const watchers = [people && `${people} other ${people === 1 ? "person" : "people"}`, simulated && `${simulated} ${spoken.simulated}`].filter(Boolean);
  const others = watchers.length ? `Next to your stops you see those of ${watchers.join(" and ")}, without names.` : `Nobody else has judged these ${spoken.things} yet.`;
  return `${others} ${model ? "The curve below is the chance of a stop at each step, according to the model fitted to this study." : "No model has been fitted to this study yet."}`;
}
