// Review recorded rides: watch, stop when it feels wrong, say why, go on to the next.

import { ask, deliver, freshId, inWords, WARM } from "/static/api.js";
import { find, segments } from "/static/page.js";
import { Player } from "/static/player.js";
import { FASTER, isAfterCrash, nothing, picture, reasons, say, sendMistake, sendReason, status, toPlay, words } from "/static/stage.js";
import { enableLater, isForPage, StopButton, TakeBack } from "/static/stopping.js";

const SPEEDS = [[0.5, "½×"], [1, "1×"], [2, "2×"]];
const HOW = `${words.about}Stop the ${words.thing} as soon as it starts to feel wrong. If it never does, let it play to the end.`;
let world = nothing;
let ride = null;
let replays = 0;
let lastStop = null; // the id of the stop that may be taken back
let progress = { reviewed: 0, total: 0 };
// loading, ready (not begun), playing, paused, ended (no stop yet), reviewed, done
let state = "loading";

const player = new Player(200, draw, () => ended());
const stopButton = new StopButton(find("#stop"), player, stop);
const takeBack = new TakeBack(goOn);

function draw(moment) {
  picture.draw(world, moment);
  find("#time-part").style.width = `${(100 * moment) / Math.max(world.end, 1)}%`;
  find("#clock").textContent = `${((moment * player.stepMs) / 1000).toFixed(1)} s`;
}

function enter(next) {
  state = next;
  document.body.dataset.state = next;
  const watching = next === "playing" || next === "paused";
  if (!watching) stopButton.disarm(next === "reviewed" ? "STOPPED" : "STOP");
  find("#pause").disabled = !watching;
  find("#pause").textContent = next === "paused" ? "Resume" : "Pause";
  find("#replay").disabled = !(watching || next === "ended");
  find("#over").hidden = watching || next === "reviewed";
  find("#hud").hidden = find("#time").hidden = !watching;
  find("#after").hidden = next !== "reviewed";
  find("#watch-again").hidden = next !== "ended";
}

async function load(begun) {
  enter("loading");
  say("One moment…", "", "");
  const found = await ask("GET", "/api/next");
  showProgress(found.reviewed, found.total);
  ride = found.ride;
  if (ride === null) {
    enter("done");
    if (found.total) say("All done. Thank you!", `You have judged every ${words.thing}. Now see how you compare with the others${words.game ? "" : ", and what bothers you"}.`, "See your results");
    else say(`No ${words.things} yet`, words.none, "");
    return;
  }
  world = toPlay(ride);
  player.stepMs = ride.step_ms;
  replays = 0;
  reasons.clear();
  player.moment = 0;
  draw(0);
  enter("ready");
  say(begun ? words.next : "Ready?", HOW, "Start");
  find("#new-here").hidden = words.game !== null || found.reviewed > 0 || localStorage.getItem(WARM) !== null;
  if (begun) play();
}

function showProgress(reviewed, total) {
  progress = { reviewed, total };
  find("#count").textContent = total ? `${reviewed} of ${total} reviewed` : "Nothing to review";
  find("#progress").style.width = total ? `${(100 * reviewed) / total}%` : "0";
}

function play() {
  enter("playing");
  stopButton.arm();
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
  say(crashed ? words.crashed : words.over, "You did not stop it. Was it fine until then?", `Fine, next ${words.thing}`);
  enableLater(find("#start"));
}

const manner = () => ({ id: freshId(), speed: player.speed, replays, client_ms: Date.now() });

async function stop({ moment, step, latency_ms }) {
  if (state !== "playing" && state !== "paused") return;
  player.pause();
  player.moment = moment;
  draw(moment);
  enter("reviewed");
  enableLater(find("#next"));
  find("#outcome").textContent = `Stopped at ${((moment * player.stepMs) / 1000).toFixed(1)} s`;
  status("Saving…", "soft");
  takeBack.offer();
  const body = { step, latency_ms, ...manner() };
  lastStop = body.id;
  try {
    await deliver(`/api/showings/${ride.showing}/stop`, body);
    if (lastStop !== body.id) return;
    status("Saved", "saved");
    showProgress(progress.reviewed + 1, progress.total);
  } catch (error) {
    takeBack.withdraw();
    if (isAfterCrash(world, step)) {
      player.moment = world.end;
      draw(world.end);
      ended();
    } else if (error.status === 409) {
      status(`You already judged this ${words.thing} in another tab. That answer counts.`, "problem");
    } else status(inWords(error), "problem");
  }
}

/** The stop was a mistake: take it back and let the ride go on. */
async function goOn() {
  const stopped = lastStop;
  lastStop = null;
  enter("playing");
  stopButton.arm();
  player.resume();
  await sendMistake(ride.showing, stopped).catch((error) => status(inWords(error), "problem"));
  const found = await ask("GET", "/api/me");
  showProgress(found.reviewed, found.total);
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
  takeBack.withdraw();
  await sendReason(ride.showing);
  await load(true);
}

function forward() {
  if (state === "ready") play();
  else if (state === "done" && !find("#start").hidden) location.assign("/results");
  else if (state === "ended" && !find("#start").disabled) finish();
  else if (state === "reviewed" && !find("#next").disabled) next();
}

addEventListener("keydown", (event) => {
  const actions = {
    " ": () => (state === "ready" ? play() : stopButton.key(event)),
    p: togglePause,
    r: replay,
    Enter: forward,
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action || !isForPage(event)) return;
  event.preventDefault();
  if (!event.repeat) action();
});
addEventListener("pagehide", () => state === "reviewed" && sendReason(ride.showing));
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
