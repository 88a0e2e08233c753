// The first page: where to go, and how much is done.

import { ask, flush, loadGame, token, WARM } from "/static/api.js";
import { showOwnData } from "/static/own_data.js";
import { begin, find } from "/static/page.js";
import { Picture } from "/static/picture.js";
import { speak, wordsFor } from "/static/words.js";
import { World } from "/static/world.js";

begin();

/** Draw little scenes on the four cards, cut out of the real road. */
async function drawSigns() {
  const game = await loadGame();
  const scenes = {
    drive: { cars: [0, 1, 12, 0, 4, 11], coins: [] },
    ride: { cars: [0, 1, 14], coins: [0, 2, 11, 0, 2, 10] },
    review: { cars: [0, 3, 12, 0, 2, 15], coins: [] },
    results: { cars: [], coins: [0, 1, 12, 0, 3, 12, 0, 2, 11, 0, 0, 13, 0, 4, 11] },
  };
  for (const canvas of document.querySelectorAll("[data-sign]")) {
    const whole = document.createElement("canvas");
    Object.defineProperty(whole, "clientWidth", { value: 340 });
    Object.defineProperty(whole, "clientHeight", { value: 525 });
    const world = new World(game.road, scenes[canvas.dataset.sign]);
    new Picture(whole, game).draw(world, 0);
    const top = (whole.height * 10.6) / 21;
    canvas.width = whole.width;
    canvas.height = (whole.width * 130) / 340;
    canvas.getContext("2d").drawImage(whole, 0, -top);
  }
}

/** Set the one main button: what is left to do, and how long it takes. */
function showTask({ reviewed, total, ride_seconds: seconds }, words) {
  const left = total - reviewed;
  const minutes = Math.max(1, Math.round((left * seconds) / 60));
  const button = find("#go-on");
  find("#count").textContent = total ? `${reviewed} of ${total} ${words.things} reviewed` : `No recorded ${words.things} to review yet.`;
  if (!total) {
    [button.textContent, button.href] = [words.game ? "Watch one live instead" : "Ride along instead", "/ride"];
  } else if (!left) {
    [button.textContent, button.href] = ["All done: see your results", "/results"];
  } else if (!words.game && !reviewed && !localStorage.getItem(WARM)) {
    [button.textContent, button.href] = ["Begin with a warm-up · 2 min", "/warmup"];
    find("#count").textContent += `, about ${minutes} min. You start with three warm-up rides that do not count.`;
    find("#skip").hidden = false;
    find("#skip").addEventListener("click", () => localStorage.setItem(WARM, "skipped"));
  } else {
    button.textContent = `${reviewed ? "Continue" : "Begin"} reviewing · about ${minutes} min`;
  }
}

drawSigns();
if (token()) {
  try {
    await flush();
    const me = await ask("GET", "/api/me");
    find("#progress-card").hidden = false;
    find("#study").textContent = me.title;
    find("#who").textContent = `you are ${me.name}`;
    find("#progress").style.width = me.total ? `${(100 * me.reviewed) / me.total}%` : "0";
    const words = wordsFor(me.game, me.about);
    speak(words);
    showTask(me, words);
    showOwnData(me.name);
  } catch (error) {
    console.warn(error.message);
  }
}
document.body.dataset.ready = "true";
