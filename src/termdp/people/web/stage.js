// What Ride, Review and the warm-up share: the game, its picture, the reasons, and where words go.

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

/** What there is to play before there is anything. */
export const nothing = game ? new World(game.road, { cars: [], coins: [] }) : new Film();

/** A ride of the server's, ready to be played. */
export const toPlay = (ride) => played(game?.road, ride);

export function status(text, kind) {
  find("#status").textContent = text;
  find("#status").className = kind;
}

/** Send the reason that was given, once. It waits in the outbox if the page is left. */
export async function sendReason(showing) {
  const words = reasons.text;
  reasons.clear();
  if (!words) return;
  await deliver(`/api/showings/${showing}/reason`, { id: freshId(), reason: words }).catch(() => {});
}

/** Tell the server that a stop was a mistake; the ride is open again. */
export const sendMistake = (showing, stop) =>
  deliver(`/api/showings/${showing}/mistake`, { id: freshId(), stop });

/** Whether a stop at this step is too late: the last step of a ride that crashes is the crash,
 * the last of a game that is over its end. */
export const isAfterCrash = (world, step) => world.crash !== null && step >= world.steps - 1;

/** Words over the picture, and a button under them; no button without a name. */
export function say(title, text, button) {
  find("#over-title").textContent = title;
  find("#over-text").textContent = text;
  find("#start").textContent = button;
  find("#start").hidden = !button;
  find("#start").disabled = false;
}
