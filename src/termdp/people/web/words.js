// The words pages use for what people watch: rides with a driver, or games with a player.

import { find } from "/static/page.js";

const RIDE = {
  game: null,
  about: "",
  thing: "ride",
  things: "rides",
  start: "Start the ride",
  next: "Next ride",
  lead: "An agent drives and you sit in the back. Stop it whenever something feels wrong. Your stops are what agents learn from.",
  watch: "Ride",
  watchText: "An agent drives you, live. You have one button: STOP.",
  seat: "Take a seat",
  seatText: "An agent drives. Stop it as soon as you would rather get out.",
  crashed: "It crashed",
  crash: "crash",
  crashedFirst: "It crashed before your stop",
  crashedAtLast: "it crashed in the end",
  over: "The ride is over",
  arrived: "You arrived",
  none: "This study has no recorded rides yet. Try Ride or Drive.",
  simulated: "simulated passengers",
  reasons: ["needless lane change", "too close", "coins", "jerky", "about to crash"],
};

const GAME = {
  thing: "game",
  things: "games",
  start: "Start the game",
  next: "Next game",
  lead: "An agent plays and you watch. Stop it whenever something feels wrong. Your stops are what agents learn from.",
  watch: "Watch",
  watchText: "An agent plays, live. You have one button: STOP.",
  seat: "Sit back and watch",
  seatText: "An agent plays. Stop it as soon as something feels wrong.",
  crashed: "The game is over",
  crash: "game over",
  crashedFirst: "The game was over before your stop",
  crashedAtLast: "the game was over in the end",
  over: "Time is up",
  arrived: "Time is up",
  none: "This study has no recorded games yet. Try Watch.",
  simulated: "simulated spectators",
  reasons: ["too risky", "clumsy", "pointless", "stuck", "about to lose"],
};

/**
 * The words for a study. `game` is the name of its environment, null for the road;
 * `about` describes it in one sentence.
 */
export const wordsFor = (game, about = "") => (game ? { ...GAME, game, about: about && `${about}. ` } : RIDE);

export const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** Put the words into the page, and hide what belongs to the other kind of study. */
export function speak(words) {
  for (const place of document.querySelectorAll("[data-word]")) place.textContent = words[place.dataset.word];
  for (const place of document.querySelectorAll("[data-road]")) place.hidden = words.game !== null;
  document.title = document.title.replace("Backseat Driver", words.game ?? "Backseat Driver").replace("Ride ·", `${words.watch} ·`);
  const brand = find(".brand span");
  if (brand && words.game) brand.textContent = words.game;
}
