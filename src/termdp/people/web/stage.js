// What Ride and Review share: the game, its picture, the reasons and the STOP button.

import { loadGame, mustHaveJoined } from "/static/api.js";
import { begin, find } from "/static/page.js";
import { Picture } from "/static/picture.js";
import { Reasons } from "/static/reasons.js";

begin();
export const FASTER = Number(new URLSearchParams(location.search).get("speed")) || 1;

await mustHaveJoined();
export const game = await loadGame();
export const picture = new Picture(find("#canvas"), game);
export const reasons = new Reasons(find("#chips"), find("#reason"));
export const stopButton = find("#stop");
