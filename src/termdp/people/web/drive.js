// Drive oneself. The road is known ahead, so the car obeys at once; the server plays the
// finished drive again and keeps what it finds.

import { ask, deliver, freshId, loadGame, mustHaveJoined } from "/static/api.js";
import { begin, find, make } from "/static/page.js";
import { Picture } from "/static/picture.js";
import { Player } from "/static/player.js";
import { isForPage } from "/static/stopping.js";
import { World } from "/static/world.js";

begin();
const STAY = 0;
const LEFT = 1;
const RIGHT = 2;
const KEYS = { ArrowLeft: LEFT, a: LEFT, A: LEFT, ArrowRight: RIGHT, d: RIGHT, D: RIGHT };
const FASTER = Number(new URLSearchParams(location.search).get("speed")) || 1;

await mustHaveJoined();
const game = await loadGame();
const picture = new Picture(find("#canvas"), game);
let road = await ask("GET", "/api/road");
let world = new World(game.road, road);
let actions = "";
let queue = [];
let held = STAY;
let driving = false;

const player = new Player(road.step_ms, draw, () => finish());

/** Decide for every step that begins, then draw. */
function draw(moment) {
  while (driving && world.crash === null && world.steps <= moment && actions.length < road.steps) {
    const action = queue.shift() ?? held;
    actions += action;
    world.step(action);
  }
  picture.draw(world, moment);
  const shown = moment >= world.end ? world.steps : Math.floor(moment);
  find("#score").textContent = world.scores[shown].toFixed(1);
  const coins = world.coins.filter((coin) => coin.taken <= moment).length;
  find("#coins").textContent = `${coins} ${coins === 1 ? "coin" : "coins"}`;
}

const end = () => (world.crash === null ? road.steps : world.crash);

async function start() {
  if (driving) return;
  if (actions) {
    find("#start").disabled = true;
    road = await ask("GET", "/api/road");
    find("#start").disabled = false;
  }
  world = new World(game.road, road);
  [actions, queue, held, driving] = ["", [], STAY, true];
  find("#over").hidden = true;
  delete document.body.dataset.outcome;
  player.stepMs = road.step_ms;
  player.speed = FASTER;
  player.start(end);
}

async function finish() {
  driving = false;
  const crashed = world.crash !== null;
  find("#over-title").textContent = crashed ? "Crash!" : "Time is up";
  find("#over-text").textContent = `${world.score.toFixed(1)} points · ${world.overtaken} cars overtaken · ${world.coinCount} coins`;
  find("#start").textContent = "Drive again";
  find("#over").hidden = false;
  const found = await deliver("/api/drives", { id: freshId(), seed: road.seed, actions });
  showScores(found.scores);
  const here = { score: world.score, coins: world.coinCount, overtaken: world.overtaken, crashed };
  document.body.dataset.outcome = JSON.stringify({ here, server: found });
}

function showScores(scores) {
  const rows = scores.map((row) =>
    make("tr", {}, make("td", {}, row.name), make("td", { class: "n" }, row.score.toFixed(1)), make("td", { class: "n" }, String(row.overtaken)), make("td", { class: "n" }, String(row.coins))),
  );
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: "4", class: "soft" }, "Nobody has driven yet.")));
  find("#scores").replaceChildren(...rows);
}

function steer(action) {
  if (driving && queue.length < 2) queue.push(action);
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
find("#canvas").addEventListener("pointerdown", (event) => {
  const box = event.currentTarget.getBoundingClientRect();
  const lane = world.lanes[world.steps] + 0.5 + game.verge;
  steer(event.clientX - box.left < (lane / game.width) * box.width ? LEFT : RIGHT);
});
addEventListener("resize", () => draw(player.moment));
draw(0);
showScores((await ask("GET", "/api/scores")).scores);
find("#start").disabled = false;
document.body.dataset.ready = "true";
