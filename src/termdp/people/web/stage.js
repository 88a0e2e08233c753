// What Ride, Review and the warm-up share: the game, its picture, the reasons, the messages.

import { deliver, freshId, loadGame, mustHaveJoined } from "/static/api.js";
import { Film, played, Screen } from "/static/film.js";
import { begin, find } from "/static/page.js";
import { Reasons } from "/static/reasons.js";
import { speak, wordsFor } from "/static/words.js";
import { World } from "/static/world.js";

begin();
export const FASTER = Number(new URLSearchParams(location.search).get("speed")) || 1;

const me = await mustHaveJoined();
export const words = wordsFor(me.game, me.about);
speak(words);
const game = words.game ? null : await loadGame();
export const picture = new Screen(find("#canvas"), game);
export const reasons = new Reasons(find("#chips"), find("#reason"), words.reasons);

/** An empty world, until there is one to play. */
export const nothing = game ? new World(game.road, { cars: [], coins: [] }) : new Film();

/** A ride from the server, ready to play. */
export const toPlay = (ride) => played(game?.road, ride);

export function status(text, kind) {
  find("#status").textContent = text;
  find("#status").className = kind;
}

/** Send the reason, once. It waits in the outbox if the page is left. */
export async function sendReason(showing) {
  const words = reasons.text;
  reasons.clear();
  if (!words) return;
  await deliver(`/api/showings/${showing}/reason`, { id: freshId(), reason: words }).catch(() => {});
}

/** Tell the server that a stop was a mistake; the ride is open again. */
export const sendMistake = (showing, stop) =>
  deliver(`/api/showings/${showing}/mistake`, { id: freshId(), stop });

/** Whether a stop at this step is too late: in the last step the ride crashes, or the game
 * is over. */
export const isAfterCrash = (world, step) => world.crash !== null && step >= world.steps - 1;

/** Show a message over the picture, with a button below it if the button has a name. */
export function say(title, text, button) {
  find("#over-title").textContent = title;
  find("#over-text").textContent = text;
  find("#start").textContent = button;
  find("#start").hidden = !button;
  find("#start").disabled = false;
}
