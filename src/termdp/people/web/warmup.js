// Three guided rides before the study: watch, stop and take it back, judge. Nothing people
// do here leaves the browser.

import { ask, goTo, WARM } from "/static/api.js";
import { find } from "/static/page.js";
import { Player } from "/static/player.js";
import { FASTER, picture, reasons, say, toPlay, words } from "/static/stage.js";
import { enableLater, isForPage, StopButton } from "/static/stopping.js";

const LESSONS = [
  {
    title: "1. Just watch",
    text: "An agent drives and you sit in the back. Notice how it changes lanes, how close it gets to other cars, and when it goes for coins.",
    hint: "You are in the red car. It overtakes slower cars. Coins look nice but are worth nothing.",
    ended: ["That was the first ride", "You will stop the next one."],
    canStop: false,
  },
  {
    title: "2. Stop, and take it back",
    text: "Press STOP once, whenever you like: the red button, or Space.",
    hint: "The ride pauses as soon as you press. If you slide off the button before letting go, it goes on.",
    stopped: "If you did not mean to stop, press “That was a mistake, go on”. Try it now. In the study you have three seconds to do so.",
    goesOn: "Your stop is taken back, and the ride goes on as if nothing had happened. You can stop it again.",
    ended: ["The ride is over", "Would you like another chance to try STOP?"],
    canStop: true,
  },
  {
    title: "3. Just like in the study",
    text: "Stop as soon as it starts to feel wrong to you. If it never does, let it play to the end. There is no right answer: people differ, and that is what the study is about.",
    hint: "Watch as if you were sitting in that car.",
    stopped: "Tell us why if you like. It helps, but you don’t have to.",
    goesOn: "The ride goes on.",
    ended: ["It crashed", "You did not stop it. That is an answer too."],
    canStop: true,
  },
];

if (words.game) await goTo("/review"); // the warm-up is about driving
const { rides } = await ask("GET", "/api/warmup");
let lesson = 0;
let world = null;
let state = "ready"; // ready (not begun), playing, stopped, ended, done

const player = new Player(200, draw, () => ended());
const stopButton = new StopButton(find("#stop"), player, stop);

function draw(moment) {
  picture.draw(world, moment);
  find("#time-part").style.width = `${(100 * moment) / Math.max(world.end, 1)}%`;
}

function enter(next) {
  state = next;
  document.body.dataset.state = next;
  if (next !== "playing") stopButton.disarm(next === "stopped" ? "STOPPED" : "STOP");
  find("#over").hidden = next === "playing" || next === "stopped";
  find("#after").hidden = next !== "stopped";
  find("#watch-again").hidden = next !== "ended";
}

function load(number) {
  lesson = number;
  world = toPlay(rides[number]);
  player.stepMs = rides[number].step_ms;
  player.speed = FASTER;
  player.moment = 0;
  reasons.clear();
  draw(0);
  find("#count").textContent = `Warm-up: ride ${number + 1} of ${LESSONS.length}`;
  find("#progress").style.width = `${(100 * number) / LESSONS.length}%`;
  find("#hint").textContent = LESSONS[number].hint;
  enter("ready");
  say(LESSONS[number].title, LESSONS[number].text, "Start");
}

function play() {
  enter("playing");
  if (LESSONS[lesson].canStop) stopButton.arm();
  player.pause();
  player.start(() => world.end);
}

function stop({ moment }) {
  if (state !== "playing") return;
  player.pause();
  player.moment = moment;
  draw(moment);
  enter("stopped");
  find("#status").textContent = LESSONS[lesson].stopped;
  find("#mistake").hidden = false;
  find("#why").hidden = lesson < LESSONS.length - 1;
  enableLater(find("#next"));
}

function goOn() {
  find("#hint").textContent = LESSONS[lesson].goesOn;
  enter("playing");
  stopButton.arm();
  player.resume();
}

function ended() {
  enter("ended");
  say(...LESSONS[lesson].ended, "Next");
  enableLater(find("#start"));
}

function next() {
  if (lesson + 1 < LESSONS.length) {
    load(lesson + 1);
    return;
  }
  localStorage.setItem(WARM, "done");
  find("#progress").style.width = "100%";
  find("#skip").hidden = true;
  enter("done");
  say("You are ready", "From now on your answers count.", "Begin the study");
}

function forward() {
  if (find("#start").disabled) return;
  if (state === "ready") play();
  else if (state === "ended") next();
  else if (state === "stopped" && !find("#next").disabled) next();
  else if (state === "done") location.assign("/review");
}

addEventListener("keydown", (event) => {
  if (![" ", "Enter"].includes(event.key) || !isForPage(event)) return;
  event.preventDefault();
  if (event.repeat) return;
  if (event.key === " " && state === "playing") stopButton.key(event);
  else if (event.key === "Enter" || state === "ready") forward();
});
find("#start").addEventListener("click", forward);
find("#next").addEventListener("click", forward);
find("#watch-again").addEventListener("click", play);
find("#mistake").addEventListener("click", goOn);
find("#skip").addEventListener("click", () => localStorage.setItem(WARM, "skipped"));
addEventListener("resize", () => draw(player.moment));
load(0);
document.body.dataset.ready = "true";
