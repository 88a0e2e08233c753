// Ride along: an agent drives, and a stop ends the ride.

import { ask, deliver, freshId } from "/static/api.js";
import { find } from "/static/page.js";
import { Player } from "/static/player.js";
import { FASTER, game, picture, reasons, stopButton } from "/static/stage.js";
import { World } from "/static/world.js";

let world = new World(game.road, { cars: [], coins: [] });
let ride = null;
let state = "waiting"; // waiting, loading, riding, over

const player = new Player(200, draw, () => finish());

function draw(moment) {
  picture.draw(world, moment);
  find("#clock").textContent = `${((moment * player.stepMs) / player.speed / 1000).toFixed(1)} s`;
}

async function start() {
  if (state === "loading" || state === "riding") return;
  if (state === "over") await sendReason();
  state = "loading";
  find("#start").disabled = true;
  find("#again").disabled = true;
  find("#over-title").textContent = "Here it comes…";
  find("#over").hidden = false;
  ride = await ask("POST", "/api/live", {});
  world = new World(game.road, ride).playAll(ride.actions);
  reasons.clear();
  find("#after").hidden = true;
  find("#over").hidden = true;
  find("#hud").hidden = false;
  find("#again").disabled = false;
  stopButton.disabled = stopButton.hidden = false;
  state = "riding";
  player.stepMs = ride.step_ms;
  player.speed = FASTER;
  player.start(() => world.end);
}

async function stop(event) {
  if (state !== "riding") return;
  const { moment, step, latency_ms } = player.at(event);
  player.pause();
  player.moment = moment;
  draw(moment);
  const afterwards = `You stopped after ${((moment * player.stepMs) / player.speed / 1000).toFixed(1)} s`;
  await report(afterwards, true, "stop", { step, latency_ms });
}

async function finish() {
  if (state !== "riding") return;
  const outcome = world.crash === null ? "You arrived" : "It crashed";
  await report(outcome, false, "finish", {});
}

/** Say what happened and have it written down. */
async function report(outcome, stopped, verb, more) {
  state = "over";
  stopButton.disabled = stopButton.hidden = true;
  find("#outcome").textContent = outcome;
  find("#why").hidden = !stopped;
  find("#status").textContent = "Saving…";
  find("#status").className = "soft";
  find("#after").hidden = false;
  const body = { id: freshId(), speed: player.speed, client_ms: Date.now(), ...more };
  try {
    await deliver(`/api/showings/${ride.showing}/${verb}`, body);
    find("#status").textContent = "Saved";
    find("#status").className = "saved";
  } catch (error) {
    if (error.status === 409 && stopped) {
      await report("It crashed before your stop", false, "finish", {});
      return;
    }
    find("#status").textContent = error.message;
    find("#status").className = "problem";
  }
}

async function sendReason() {
  const words = reasons.text;
  if (!find("#why").hidden && words) {
    await deliver(`/api/showings/${ride.showing}/reason`, { id: freshId(), reason: words }).catch(() => {});
  }
}

function pressed(event) {
  if (state === "riding") stop(event);
  else if (state !== "loading") start();
}

addEventListener("keydown", (event) => {
  if (event.key !== " " || event.target.tagName === "TEXTAREA") return;
  event.preventDefault();
  if (!event.repeat) pressed(event);
});
stopButton.addEventListener("pointerdown", (event) => stop(event));
find("#canvas").addEventListener("pointerdown", (event) => stop(event));
find("#start").addEventListener("click", start);
find("#again").addEventListener("click", start);
addEventListener("pagehide", sendReason);
addEventListener("resize", () => draw(player.moment));
draw(0);
document.body.dataset.ready = "true";
