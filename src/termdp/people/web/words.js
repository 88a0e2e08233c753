// How pages speak of what is watched: rides with a driver, or games that somebody plays.

import { find } from "/static/page.js";

const RIDE = {
  game: null,
  about: "",
  thing: "ride",
  things: "rides",
  start: "Start the ride",
  next: "Next ride",
  lead: "Agents drive, you sit behind them. Stop them whenever it feels wrong. They learn from nothing but the moments you stopped.",
  watch: "Ride",
  watchText: "An agent drives, live. You have one button: STOP.",
  seat: "Take a seat",
  seatText: "An agent drives. Stop it as soon as you would rather get out.",
  crashed: "It crashed",
  crash: "crash",
  crashedFirst: "It crashed before your stop",
  crashedAtLast: "it crashed in the end",
  over: "The ride is over",
  arrived: "You arrived",
  none: "There are no recorded rides in this study so far. Try Ride or Drive.",
  simulated: "simulated passengers",
  reasons: ["needless lane change", "too close", "coins", "jerky", "about to crash"],
};

const GAME = {
  thing: "game",
  things: "games",
  start: "Start the game",
  next: "Next game",
  lead: "Agents play, you look on. Stop them whenever it feels wrong. They learn from nothing but the moments you stopped.",
  watch: "Watch",
  watchText: "An agent plays, live. You have one button: STOP.",
  seat: "Look on",
  seatText: "An agent plays. Stop it as soon as it feels wrong.",
  crashed: "The game is over",
  crash: "game over",
  crashedFirst: "The game was over before your stop",
  crashedAtLast: "the game was over in the end",
  over: "Time is up",
  arrived: "Time is up",
  none: "There are no recorded games in this study so far. Try Watch.",
  simulated: "simulated spectators",
  reasons: ["too risky", "clumsy", "pointless", "stuck", "about to lose"],
};

/**
 * The words of a study; `game` is what its environment is called, null for the road,
 * `about` says what it is.
 */
export const wordsFor = (game, about = "") => (game ? { ...GAME, game, about: about && `${about}. ` } : RIDE);

export const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** Put them where the page has a place for them. */
export function speak(words) {
  for (const place of document.querySelectorAll("[data-word]")) place.textContent = words[place.dataset.word];
  for (const place of document.querySelectorAll("[data-road]")) place.hidden = words.game !== null;
  document.title = document.title.replace("Backseat Driver", words.game ?? "Backseat Driver").replace("Ride ·", `${words.watch} ·`);
  const brand = find(".brand span");
  if (brand && words.game) brand.textContent = words.game;
}
