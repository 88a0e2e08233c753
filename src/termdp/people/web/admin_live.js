// What happens in a study right now, fetched every few seconds while the page is visible.

import { find, make } from "/static/page.js";

const EVERY_MS = 3000;
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const ago = (seconds) => (seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`);
const figure = (value, words) => make("div", { class: "figure" }, make("b", {}, String(value)), make("span", { class: "soft small" }, words));

/** One bar per minute, the current one on the right. */
function bars(counts, words) {
  const most = Math.max(...counts, 1);
  const columns = counts.map((count, index) => {
    const bar = make("i", { title: `${counts.length - index} min ago: ${count}` });
    bar.style.height = `${(100 * count) / most}%`;
    return bar;
  });
  return make("div", { class: "minutes", role: "img", "aria-label": `${words} in each of the last ${counts.length} minutes: ${counts.join(", ")}` }, ...columns);
}

function rider(row) {
  const who = row.kind === "simulated" ? `${row.name} (simulated)` : row.name;
  return make("span", { class: "rider", "data-rider": row.name }, make("b", {}, who), ` ${row.page}, ride ${row.ride}, for ${ago(row.for_s)}`);
}

function show(found) {
  const { minutes, riding } = found;
  const cells = (stop) => [`${ago(stop.ago_s)} ago`, stop.name, `ride ${stop.ride} at ${stop.at_s} s`, stop.reason ?? ""];
  find("#live").replaceChildren(
    make("div", { class: "figures" },
      figure(riding.length, "riding now"),
      make("div", {}, figure(sum(found.rides_shown), `rides shown in ${minutes} min`), bars(found.rides_shown, "rides shown")),
      make("div", {}, figure(sum(found.stops), `stops in ${minutes} min`), bars(found.stops, "stops")),
    ),
    make("div", { class: "chips", id: "riding" }, ...(riding.length ? riding.map(rider) : [make("span", { class: "soft" }, "Nobody is riding right now.")])),
    make("div", { class: "scroll" }, make("table", {}, make("tbody", { id: "last-stops" },
      ...found.last_stops.map((stop) => make("tr", {}, ...cells(stop).map((words) => make("td", {}, words))))))),
  );
}

let isWatching = false;

/** Keep the card fresh; `fetchLive(study)` asks the server. */
export async function watchLive(fetchLive) {
  if (isWatching) return;
  isWatching = true;
  const select = find("#live-study");
  const look = async () => {
    const study = select.value;
    if (document.hidden || !study) return;
    const found = await fetchLive(study);
    if (study === select.value) show(found);
  };
  select.addEventListener("change", look);
  try {
    for (;;) {
      await look();
      await new Promise((wake) => setTimeout(wake, EVERY_MS));
    }
  } catch (error) {
    find("#live").replaceChildren(make("p", { class: "problem" }, error.message));
    isWatching = false;
  }
}
