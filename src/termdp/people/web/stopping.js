// What counts as a stop: a press that was intended, and not taken back.

import { find } from "/static/page.js";

// A press just after a start or a stop was meant for what was there before.
export const DEAD_MS = 400;
const UNDO_MS = 3000;
// A click comes at most this long after its pointer was lifted.
const CLICK_MS = 300;
const IS_TYPED_INTO = "input, textarea, select, [contenteditable]";
const IS_PRESSED = "a, button, summary";
const hasModifier = (event) => event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;

/** Whether a key is meant for the page: no modifiers, and no focused element uses it. */
export function isForPage(event) {
  const presses = event.key === " " || event.key === "Enter";
  const users = presses ? `${IS_TYPED_INTO}, ${IS_PRESSED}` : IS_TYPED_INTO;
  return !hasModifier(event) && !(event.target instanceof Element && event.target.closest(users));
}

/**
 * The STOP button. A press halts the ride at once and counts when it is released on the
 * button; sliding or scrolling away lets the ride go on. A click without a press (Enter,
 * voice, a switch) counts as well.
 */
export class StopButton {
  /** `stop(seen)` is called with what was on screen at the press. */
  constructor(button, player, stop) {
    this.button = button;
    this.player = player;
    this.stop = stop;
    this.pressed = null; // what was on screen, while the button is held
    this.wasDead = false;
    this.deadUntil = Infinity;
    button.addEventListener("pointerdown", (event) => this.press(event));
    button.addEventListener("click", (event) => this.click(event));
    button.addEventListener("keydown", (event) => {
      if (event.key !== " " || hasModifier(event)) return;
      event.preventDefault(); // the click would come only when the key is released
      this.key(event);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      addEventListener(name, () => {
        const held = this.pressed;
        if (held) setTimeout(() => this.letGo(held), CLICK_MS);
      });
    }
  }

  /** A ride begins or goes on. */
  arm() {
    this.pressed = null;
    this.deadUntil = performance.now() + DEAD_MS;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.button.dataset.armed = "true"), DEAD_MS);
    this.button.disabled = false;
    this.button.firstChild.textContent = "STOP";
  }

  /** There is nothing to stop; the button shows `word`. */
  disarm(word = "STOP") {
    this.pressed = null;
    this.deadUntil = Infinity;
    clearTimeout(this.timer);
    delete this.button.dataset.armed;
    this.button.disabled = true;
    this.button.firstChild.textContent = word;
  }

  isDead(event) {
    return event.timeStamp < this.deadUntil;
  }

  press(event) {
    this.wasDead = this.isDead(event);
    if (this.wasDead || event.button > 0) return;
    this.pressed = { ...this.player.at(event), wasRunning: this.player.running };
    this.player.pause();
  }

  /** The press led to no click: the ride goes on. */
  letGo(held) {
    if (this.pressed !== held) return;
    this.pressed = null;
    if (held.wasRunning) this.player.resume();
  }

  click(event) {
    const isPointer = event.detail > 0;
    if (this.isDead(event) || (isPointer && this.wasDead)) return;
    const seen = (isPointer && this.pressed) || this.player.at(event);
    this.pressed = null;
    this.stop(seen);
  }

  /** Space stops from anywhere, except where it means something else. */
  key(event) {
    if (!event.repeat && !this.isDead(event)) this.stop(this.player.at(event));
  }
}

/** "That was a mistake", for three seconds. */
export class TakeBack {
  constructor(takeBack) {
    this.button = find("#mistake");
    this.timer = null;
    this.button.addEventListener("click", () => {
      if (this.button.hidden) return;
      this.withdraw();
      takeBack();
    });
  }

  offer() {
    this.button.hidden = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.withdraw(), UNDO_MS);
  }

  withdraw() {
    clearTimeout(this.timer);
    this.button.hidden = true;
  }
}

/** Protect a button that has just appeared from presses meant for something else. */
export function enableLater(button) {
  button.disabled = true;
  setTimeout(() => (button.disabled = false), DEAD_MS);
}
