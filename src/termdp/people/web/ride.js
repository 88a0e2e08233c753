// Ride along: an agent drives, and a stop ends the ride.

import { ask, deliver, freshId, inWords, token } from "/static/api.js";
import "/static/learned.js";
import { find } from "/static/page.js";
import { Player } from "/static/player.js";
import { FASTER, isAfterCrash, nothing, picture, reasons, sendMistake, sendReason, status, toPlay, words } from "/static/stage.js";
import { enableLater, isForPage, StopButton, TakeBack } from "/static/stopping.js";

const MOST_FAILURES = 4; // then give up and say so

let world = nothing;
let ride = null;
let lastStop = null; // the id of the stop that may be taken back
let state = "waiting"; // waiting, loading, riding, over

const player = new Player(200, draw, () => finish());
const stopButton = new StopButton(find("#stop"), player, stop);
const takeBack = new TakeBack(goOn);

const time = (moment) => `${((moment * player.stepMs) / player.speed / 1000).toFixed(1)} s`;

function draw(moment) {
  picture.draw(world, moment);
  find("#clock").textContent = time(moment);
}

function enter(next) {
  state = next;
  document.body.dataset.state = next;
  find("#start").disabled = next === "loading";
  find("#over").hidden = next === "riding" || next === "over";
  find("#hud").hidden = next === "waiting";
  find("#after").hidden = next !== "over";
}

async function start() {
  if (state === "loading" || state === "riding") return;
  if (ride) await sendReason(ride.showing);
  takeBack.withdraw();
  enter("loading");
  find("#over-title").textContent = "Here it comes…";
  try {
    ride = await ask("POST", "/api/live", {}, token(), MOST_FAILURES);
  } catch (error) {
    enter("waiting");
    find("#over-title").textContent = `No ${words.thing} right now`;
    find("#over-text").textContent = inWords(error);
    return;
  }
  world = toPlay(ride);
  reasons.clear();
  player.stepMs = ride.step_ms;
  player.speed = FASTER;
  enter("riding");
  stopButton.arm();
  player.start(() => world.end);
}

async function stop({ moment, step, latency_ms }) {
  if (state !== "riding") return;
  player.pause();
  player.moment = moment;
  draw(moment);
  const id = freshId();
  lastStop = id;
  over(`You stopped after ${time(moment)}`, "STOPPED");
  find("#why").hidden = false;
  takeBack.offer();
  if (await save("stop", { id, step, latency_ms })) return;
  takeBack.withdraw();
  if (isAfterCrash(world, step)) await crashedFirst();
}

/** The stop came too late: the car had crashed, the game was over. */
async function crashedFirst() {
  over(words.crashedFirst, "STOP");
  await save("finish", {});
}

async function finish() {
  if (state !== "riding") return;
  over(world.crash === null ? words.arrived : words.crashed, "STOP");
  await save("finish", {});
}

/** The stop was a mistake: take it back and let the ride go on. */
async function goOn() {
  enter("riding");
  stopButton.arm();
  player.resume();
  await sendMistake(ride.showing, lastStop).catch((error) => status(inWords(error), "problem"));
}

function over(outcome, word) {
  enter("over");
  stopButton.disarm(word);
  enableLater(find("#again"));
  find("#outcome").textContent = outcome;
  find("#why").hidden = true;
}

/** Have the server store the answer; false if it was refused. */
async function save(verb, more) {
  status("Saving…", "soft");
  const body = { id: freshId(), speed: player.speed, client_ms: Date.now(), ...more };
  try {
    await deliver(`/api/showings/${ride.showing}/${verb}`, body);
    status("Saved", "saved");
    return true;
  } catch (error) {
    status(inWords(error), "problem");
    return false;
  }
}

addEventListener("keydown", (event) => {
  if (![" ", "Enter"].includes(event.key) || !isForPage(event)) return;
  event.preventDefault();
  if (event.repeat) return;
  if (state === "riding" && event.key === " ") stopButton.key(event);
  else if (state === "waiting") start();
  else if (state === "over" && event.key === "Enter" && !find("#again").disabled) start();
});
find("#start").addEventListener("click", start);
find("#again").addEventListener("click", start);
addEventListener("pagehide", () => ride && sendReason(ride.showing));
addEventListener("resize", () => draw(player.moment));
enter("waiting");
draw(0);
document.body.dataset.ready = "true";
