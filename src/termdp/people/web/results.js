// Results: supervisors see their own, the admin sees everybody's.

import { adminToken, ask, flush, inWords, loadGame, token } from "/static/api.js";
import { showStops } from "/static/comparison.js";
import { played, Screen } from "/static/film.js";
import { begin, find, make, percent, seconds } from "/static/page.js";
import { Player } from "/static/player.js";
import { axis, COLOURS, cursor, strip } from "/static/strips.js";
import { capital, speak, wordsFor } from "/static/words.js";

begin();
const AT_ONCE = 40;
const content = find("#content");

const figure = (value, words) => make("div", { class: "figure" }, make("b", {}, value), make("span", { class: "soft small" }, words));
const card = (...children) => make("section", { class: "card stack" }, ...children.filter(Boolean));

function table(headings, rows) {
  const cell = (tag, value, index) => make(tag, { class: index && typeof value !== "object" ? "n" : null }, value);
  return make(
    "div",
    { class: "scroll" },
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...headings.map((h, i) => cell("th", h, i)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((v, i) => cell("td", v, i))))),
    ),
  );
}

const agreementRow = (row) => [`${row.a} · ${row.b}`, String(row.rides), percent(row.same), row.kappa === null ? "–" : row.kappa.toFixed(2), row.gap_steps === null ? "–" : row.gap_steps.toFixed(1)];
const agreementHeadings = (words) => ["Pair", `${capital(words.things)} in common`, "Same answer", "Cohen’s κ", "Steps between stops"];

function note(words) {
  return make("p", { class: "soft small" }, words);
}

async function ownResults() {
  await flush(); // deliver what an earlier page could not, so that it counts
  const found = await ask("GET", "/api/results");
  const words = wordsFor(found.game);
  speak(words);
  find("#title").textContent = found.title;
  const mine = found.mine;
  const bar = make("div", { class: "progress" }, make("i"));
  bar.firstChild.style.width = found.total ? `${(100 * found.reviewed) / found.total}%` : "0";
  content.append(
    card(
      make("div", { class: "figures" },
        figure(`${found.reviewed} / ${found.total}`, `${words.things} reviewed`),
        figure(mine ? String(mine.stops) : "0", "stops"),
        figure(mine ? percent(mine.stop_rate) : "–", `of ${words.things} stopped`),
        words.game ? null : figure(mine && mine.reaction_ms ? seconds(mine.reaction_ms[1]) : "–", "median reaction"),
        figure(mine && mine.repeats ? percent(mine.repeats.same) : "–", "same answer the second time"),
      ),
      bar,
      found.live.rides ? note(`${words.game ? "Watching" : "Riding along"} live, you stopped ${found.live.stops} of ${found.live.rides} ${words.things}. They are not included here.`) : null,
      note(`${words.game ? "" : "Reaction is the time from the last coin or lane change to your stop. "}Some ${words.things} are shown twice, to see how consistent you are.`),
    ),
  );
  if (found.agreement.length) content.append(card(make("h2", {}, "You and the others"), table(agreementHeadings(words), found.agreement.map(agreementRow))));
  if (found.rides.length) await showStops(content, found, words);
}

async function adminResults() {
  const { studies } = await ask("GET", "/api/admin/studies", null, adminToken());
  const wanted = new URLSearchParams(location.search).get("study");
  const chosen = studies.find((study) => study.name === wanted) ?? studies.toSorted((a, b) => b.reviews - a.reviews)[0];
  if (!chosen) {
    content.append(note("There are no studies yet."));
    return;
  }
  const select = make("select", { "aria-label": "Study", change: () => (location.search = `?study=${encodeURIComponent(select.value)}`) },
    ...studies.map((study) => make("option", { value: study.name, selected: study === chosen }, study.title)));
  content.append(make("div", { class: "row" }, select));
  const found = await ask("GET", `/api/admin/studies/${encodeURIComponent(chosen.name)}/results`, null, adminToken());
  const words = wordsFor(found.game);
  content.append(
    card(make("div", { class: "figures" },
      figure(String(found.rides), words.things), figure(String(found.supervisors), "supervisors"), figure(String(found.reviews), "reviews"), figure(String(found.stops), "stops"))),
    card(make("h2", {}, "Supervisors"), table(
      ["Name", "Reviews", "Stops", "Stopped", ...(words.game ? [] : ["Median reaction"]), "Same answer on repeats"],
      found.per_supervisor.map((row) => [
        row.kind === "simulated" ? `${row.name} (simulated)` : row.name,
        String(row.reviews), String(row.stops), percent(row.stop_rate),
        ...(words.game ? [] : [row.reaction_ms ? seconds(row.reaction_ms[1]) : "–"]),
        row.repeats ? `${percent(row.repeats.same)} of ${row.repeats.rides}` : "–",
      ]),
    ), words.game ? null : note("Reaction is the time on screen from the last coin or lane change to the stop.")),
  );
  if (found.agreement.length) content.append(card(make("h2", {}, "Agreement"), table(agreementHeadings(words), found.agreement.map(agreementRow)), note("κ is agreement beyond chance: 1 is perfect, 0 is no better than chance.")));
  if (found.per_ride.length) await ridesCard(chosen.name, found, words);
}

async function ridesCard(study, found, words) {
  const names = found.per_supervisor.map((row) => row.name);
  const longest = Math.max(...found.per_ride.map((ride) => ride.steps));
  const legend = make("div", { class: "legend" }, ...names.map((name, index) => {
    const dot = make("i");
    dot.style.background = COLOURS[index % COLOURS.length];
    return make("span", {}, dot, name);
  }));
  const screen = make("div", { class: "screen", hidden: true }, make("canvas"));
  const below = make("div", { class: "below", hidden: true });
  const list = make("div");
  content.append(card(make("h2", {}, capital(words.things)), legend,
    note(`Dots are stops, rings are stops at a second showing, ✹ is ${words.game ? "game over" : "a crash"}${found.has_observer ? "; the curve is the fitted model’s chance of a stop" : ""}. Choose a ${words.thing} to watch it.`), screen, below, list, axis(longest, found.step_ms)));
  const game = words.game ? null : await loadGame();
  const called = (ride) => `${capital(words.thing)} ${ride.ride} · ${ride.driver}`;
  const show = viewer(study, game, screen, below, { names, longest, called, stepMs: found.step_ms });
  for (const ride of found.per_ride.slice(0, AT_ONCE)) {
    const button = make("button", { class: "strip", type: "button", "data-ride": String(ride.ride) });
    const label = make("span", { class: "small soft" }, called(ride));
    button.append(label, strip(ride, names, longest));
    button.addEventListener("click", () => show(ride));
    list.append(button);
    if (found.has_observer) drawCurve(study, ride, button, names, longest);
  }
  if (found.per_ride.length > AT_ONCE) list.append(note(`… and ${found.per_ride.length - AT_ONCE} more. Export the study to see them all.`));
}

const fetchRide = (study, number, only = "") => ask("GET", `/api/admin/studies/${encodeURIComponent(study)}/rides/${number}${only}`, null, adminToken());

async function drawCurve(study, ride, button, names, longest) {
  const data = await fetchRide(study, ride.ride, "?only=curve");
  if (data.discomfort) button.querySelector("svg").replaceWith(strip(ride, names, longest, data.discomfort));
}

/** Plays a chosen ride above its strip; a line on the strip marks the moment shown. */
function viewer(study, game, screen, below, { names, longest, called, stepMs }) {
  const picture = new Screen(screen.firstChild, game);
  let player = null;
  return async (ride) => {
    const data = await fetchRide(study, ride.ride);
    const world = played(game?.road, data);
    player?.pause();
    screen.hidden = below.hidden = false;
    const shown = strip(ride, names, longest, data.discomfort ?? null);
    below.replaceChildren(make("span", { class: "small soft" }, called(ride)), shown, axis(longest, stepMs));
    const draw = (moment) => {
      picture.draw(world, moment);
      cursor(shown, moment, longest);
    };
    player = new Player(data.step_ms, draw, () => {});
    player.speed = 2;
    player.start(() => world.end);
    screen.scrollIntoView({ block: "start" }); // its strip is right below
  };
}

try {
  if (adminToken()) await adminResults();
  else if (token()) await ownResults();
  else location.replace("/join");
} catch (error) {
  find("#problem").hidden = false;
  find("#problem").textContent = adminToken() ? error.message : inWords(error);
}
document.body.dataset.ready = "true";
