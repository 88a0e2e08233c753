// Rounds of a study: what the reviews say about each driver, with 95% intervals.

import { find, make } from "/static/page.js";

const HEADINGS = ["Driver", "Learned from", "Reviews", "Stopped", "Length in steps", "Return", "Same answer"];
const share = (value) => `${Math.round(100 * value)}%`;
const number = (value) => value.toFixed(1);

/** A number with its interval, or a dash. */
function measured(found, words) {
  if (found === null) return "–";
  if (found.low === null) return words(found.value);
  return `${words(found.value)} (${words(found.low)} – ${words(found.high)})`;
}

function line(row) {
  const from = row.learned_from.stops ? `${row.learned_from.stops} stops` : "nobody";
  const cells = [from, String(row.reviews), measured(row.stop_rate, share), measured(row.length, number), measured(row.return, number), measured(row.agreement, share)];
  return make("tr", {}, make("td", {}, row.driver), ...cells.map((words) => make("td", { class: "n" }, words)));
}

function table({ title, name, rounds }) {
  const head = make("tr", {}, ...HEADINGS.map((words, i) => make("th", { class: i ? "n" : null }, words)));
  return make("div", { class: "stack", "data-rounds": name }, make("h3", {}, title),
    make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rounds.map(line)))));
}

/** Fill the card with the rounds of every study. */
export function showRounds({ studies }) {
  find("#no-rounds").hidden = studies.length > 0;
  find("#rounds").replaceChildren(...studies.map(table));
}
