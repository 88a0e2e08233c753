// What Ride, Review and the warm-up share: the game, its picture, the reasons, and where words go.

import { deliver, freshId, loadGame, mustHaveJoined } from "/static/api.js";
import { begin, find } from "/static/page.js";
import { Picture } from "/static/picture.js";
import { Reasons } from "/static/reasons.js";

begin();
export const FASTER = Number(new URLSearchParams(location.search).get("speed")) || 1;

await mustHaveJoined();
export const game = await loadGame();
export const picture = new Picture(find("#canvas"), game);
export const reasons = new Reasons(find("#chips"), find("#reason"));

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

/** Whether a stop at this step is too late: the last step of a ride that crashes is the crash. */
export const isAfterCrash = (world, step) => world.crash !== null && step >= world.steps - 1;

/** Words over the picture, and a button under them; no button without a name. */
export function say(title, text, button) {
  find("#over-title").textContent = title;
  find("#over-text").textContent = text;
  find("#start").textContent = button;
  find("#start").hidden = !button;
  find("#start").disabled = false;
}
