// Review recorded rides: watch, stop at the moment of discomfort, say why, go on.

import { ask, deliver, freshId } from "/static/api.js";
import { find, segments } from "/static/page.js";
import { Player } from "/static/player.js";
import { FASTER, game, picture, reasons, stopButton } from "/static/stage.js";
import { World } from "/static/world.js";

const SPEEDS = [[0.5, "½×"], [1, "1×"], [2, "2×"]];
let world = new World(game.road, { cars: [], coins: [] });
let ride = null;
let replays = 0;
let progress = { reviewed: 0, total: 0 };
// loading, ready (not begun), playing, paused, ended (no stop yet), reviewed, done
let state = "loading";

const player = new Player(200, draw, () => ended());

function draw(moment) {
  picture.draw(world, moment);
  find("#time-part").style.width = `${(100 * moment) / Math.max(world.end, 1)}%`;
  find("#clock").textContent = `${((moment * player.stepMs) / 1000).toFixed(1)} s`;
}

function enter(next) {
  state = next;
  document.body.dataset.state = next;
  const watching = next === "playing" || next === "paused";
  stopButton.disabled = !watching;
  stopButton.hidden = next === "reviewed";
  find("#pause").disabled = !watching;
  find("#pause").textContent = next === "paused" ? "Go on" : "Pause";
  find("#replay").disabled = !(watching || next === "ended");
  find("#over").hidden = watching || next === "reviewed";
  find("#hud").hidden = find("#time").hidden = !watching;
  find("#after").hidden = next !== "reviewed";
  find("#watch-again").hidden = next !== "ended";
}

function say(title, text, button) {
  find("#over-title").textContent = title;
  find("#over-text").textContent = text;
  find("#start").textContent = button;
  find("#start").hidden = !button;
}

async function load(begun) {
  enter("loading");
  say("One moment…", "", "");
  const found = await ask("GET", "/api/next");
  showProgress(found.reviewed, found.total);
  ride = found.ride;
  if (ride === null) {
    enter("done");
    if (found.total) say("All done. Thank you!", "You have reviewed every ride of this study.", "");
    else say("No rides yet", "There are no recorded rides in this study so far. Try Ride or Drive.", "");
    return;
  }
  world = new World(game.road, ride).playAll(ride.actions);
  player.stepMs = ride.step_ms;
  replays = 0;
  reasons.clear();
  player.moment = 0;
  draw(0);
  enter("ready");
  say(begun ? "Next ride" : "Ready?", "Stop the ride at the moment it begins to feel wrong. If it never does, let it end.", "Start");
  if (begun) play();
}

function showProgress(reviewed, total) {
  progress = { reviewed, total };
  find("#count").textContent = total ? `${reviewed} of ${total} reviewed` : "Nothing to review";
  find("#progress").style.width = total ? `${(100 * reviewed) / total}%` : "0";
}

function play() {
  enter("playing");
  player.pause();
  player.start(() => world.end);
}

function togglePause() {
  if (state === "playing") {
    player.pause();
    enter("paused");
  } else if (state === "paused") {
    enter("playing");
    player.resume();
  }
}

function replay() {
  if (!["playing", "paused", "ended"].includes(state)) return;
  replays += 1;
  play();
}

function ended() {
  enter("ended");
  const crashed = world.crash !== null;
  say(crashed ? "It crashed" : "The ride is over", "You did not stop it. Was it fine until then?", "Fine, next ride");
}

const manner = () => ({ id: freshId(), speed: player.speed, replays, client_ms: Date.now() });

async function stop(event) {
  if (state !== "playing" && state !== "paused") return;
  const { moment, step, latency_ms } = player.at(event);
  player.pause();
  player.moment = moment;
  draw(moment);
  enter("reviewed");
  find("#outcome").textContent = `Stopped at ${((moment * player.stepMs) / 1000).toFixed(1)} s`;
  status("Saving…", "soft");
  try {
    await deliver(`/api/showings/${ride.showing}/stop`, { step, latency_ms, ...manner() });
    status("Saved", "saved");
    showProgress(progress.reviewed + 1, progress.total);
  } catch (error) {
    if (error.status === 409 && world.crash !== null) {
      player.moment = world.end;
      draw(world.end);
      ended();
    } else status(error.message, "problem");
  }
}

function status(text, kind) {
  find("#status").textContent = text;
  find("#status").className = kind;
}

async function finish() {
  enter("loading");
  try {
    await deliver(`/api/showings/${ride.showing}/finish`, manner());
  } catch (error) {
    if (error.status !== 409) throw error; // another tab has reviewed it
  }
  await load(true);
}

async function next() {
  if (state !== "reviewed" || find("#status").textContent === "Saving…") return;
  const words = reasons.text;
  if (words) await deliver(`/api/showings/${ride.showing}/reason`, { id: freshId(), reason: words }).catch(() => {});
  await load(true);
}

function forward() {
  if (state === "ready") play();
  else if (state === "ended") finish();
  else if (state === "reviewed") next();
}

addEventListener("keydown", (event) => {
  if (event.target.tagName === "TEXTAREA" && event.key !== "Enter") return;
  const actions = {
    " ": () => (state === "ready" ? play() : stop(event)),
    p: togglePause,
    r: replay,
    Enter: forward,
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  if (!event.repeat) action();
});
stopButton.addEventListener("pointerdown", stop);
find("#start").addEventListener("click", forward);
find("#watch-again").addEventListener("click", replay);
find("#pause").addEventListener("click", togglePause);
find("#replay").addEventListener("click", replay);
find("#next").addEventListener("click", next);
find("#speeds").append(segments(SPEEDS, 1, (speed) => (player.speed = speed)));
player.speed = FASTER;
addEventListener("resize", () => draw(player.moment));
addEventListener("visibilitychange", () => {
  if (document.hidden && state === "playing") togglePause();
});
await load(false);
document.body.dataset.ready = "true";
