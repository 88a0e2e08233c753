// Drive the car yourself. The road is known ahead, so the car reacts in the next picture.
// The server replays the finished drive and stores the result.

import { ask, BEST, deliver, freshId, goTo, loadGame, mustHaveJoined } from "/static/api.js";
import { showCrash } from "/static/crash.js";
import { begin, find, make, segments } from "/static/page.js";
import { Picture } from "/static/picture.js";
import { Player } from "/static/player.js";
import { SeatView } from "/static/seat_view.js";
import { Sound } from "/static/sound.js";
import { LEFT, RIGHT, Steering } from "/static/steering.js";
import { isForPage } from "/static/stopping.js";
import { World } from "/static/world.js";

begin();
const KEYS = { ArrowLeft: LEFT, a: LEFT, A: LEFT, ArrowRight: RIGHT, d: RIGHT, D: RIGHT };
const VIEW = "termdp.view";
const FASTER = Number(new URLSearchParams(location.search).get("speed")) || 1;

if ((await mustHaveJoined()).game) await goTo("/ride"); // only cars can be driven
const game = await loadGame();
const canvas = find("#canvas");
const views = { above: new Picture(canvas, game), seat: new SeatView(canvas, game) };
let view = views[localStorage.getItem(VIEW)] ? localStorage.getItem(VIEW) : "above";
const sound = new Sound(find("#sound"));
let road = await ask("GET", "/api/road");
let world = new World(game.road, road);
let steering = new Steering(world, road.steps);
let driving = false;
let coins = 0;

const player = new Player(road.step_ms, draw, () => finish());
/** The game counts scores in tenths; the page shows whole points. */
const points = (score) => Math.round(10 * score);
const best = () => Number(localStorage.getItem(BEST) ?? -1);

function draw(moment) {
  if (driving) steering.advance(moment);
  views[view].draw(world, moment);
  const shown = moment >= world.end ? world.steps : Math.min(Math.floor(moment), world.steps);
  find("#score").textContent = String(points(world.scores[shown]));
  find("#clock").textContent = ((moment * road.step_ms) / 1000).toFixed(1);
  const found = world.coins.filter((coin) => coin.taken <= moment).length;
  if (found > coins) sound.coin();
  coins = found;
  find("#coins").textContent = `${coins} ${coins === 1 ? "coin" : "coins"}`;
}

async function start() {
  if (driving || find("#start").disabled) return;
  if (steering.actions) {
    find("#start").disabled = true;
    road = await ask("GET", "/api/road");
    find("#start").disabled = false;
  }
  world = new World(game.road, road);
  steering = new Steering(world, road.steps);
  [driving, coins] = [true, 0];
  find("#over").hidden = true;
  delete document.body.dataset.outcome;
  document.body.dataset.state = "driving";
  player.stepMs = road.step_ms;
  player.speed = FASTER;
  player.start(() => world.crash ?? road.steps);
}

async function finish() {
  driving = false;
  const crashed = world.crash !== null;
  document.body.dataset.state = crashed ? "crashed" : "over";
  find("#start").disabled = true; // ignore keys that are still held down
  const sent = deliver("/api/drives", { id: freshId(), seed: road.seed, actions: steering.actions });
  if (crashed) {
    sound.crash();
    const place = () => views[view].ownPlace;
    await showCrash(canvas, find("#screen"), () => views[view].draw(world, player.moment), place);
  }
  const made = points(world.score);
  const isBest = made > best();
  if (isBest) localStorage.setItem(BEST, String(made));
  showBest();
  find("#over-title").textContent = `${crashed ? "Crash!" : "Time is up."} ${made} points${isBest ? ": your best!" : ""}`;
  find("#over-text").textContent = `${((player.moment * road.step_ms) / 1000).toFixed(1)} s · ${world.overtaken} cars overtaken · ${world.coinCount} coins`;
  find("#start").textContent = "Drive again";
  find("#start").disabled = false;
  find("#over").hidden = false;
  const found = await sent;
  showScores(found.scores);
  const here = { score: world.score, coins: world.coinCount, overtaken: world.overtaken, crashed };
  document.body.dataset.outcome = JSON.stringify({ here, server: found });
}

function showBest() {
  if (best() >= 0) find("#best").textContent = `Your best: ${best()} points`;
}

function showScores(scores) {
  const number = (value) => make("td", { class: "n" }, String(value));
  const rows = scores.map((row) => make("tr", {}, make("td", {}, row.name), number(points(row.score)), number(row.overtaken), number(row.coins)));
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: "4", class: "soft" }, "Nobody has driven yet.")));
  find("#scores").replaceChildren(...rows);
}

function steer(action) {
  if (driving && steering.press(action, player.moment)) sound.steer();
}

function choose(name) {
  view = name;
  localStorage.setItem(VIEW, name);
  find("#screen").classList.toggle("seat", name === "seat");
  draw(player.moment);
}

addEventListener("keydown", (event) => {
  if (!isForPage(event)) return;
  if (event.key in KEYS) {
    if (!event.repeat) steer(KEYS[event.key]);
    event.preventDefault();
  } else if ((event.key === " " || event.key === "Enter") && !driving) {
    event.preventDefault();
    start();
  }
});
find("#start").addEventListener("click", start);
for (const [id, action] of [["#left", LEFT], ["#right", RIGHT]]) {
  find(id).addEventListener("pointerdown", (event) => {
    event.preventDefault();
    steer(action);
  });
}
canvas.addEventListener("pointerdown", (event) => {
  const box = canvas.getBoundingClientRect();
  const own = (views[view].ownPlace.x / canvas.width) * box.width;
  steer(event.clientX - box.left < own ? LEFT : RIGHT);
});
find("#views").append(segments([["above", "From above"], ["seat", "From the back seat"]], view, choose));
addEventListener("resize", () => draw(player.moment));
choose(view);
showBest();
showScores((await ask("GET", "/api/scores")).scores);
find("#start").disabled = false;
document.body.dataset.ready = "true";
