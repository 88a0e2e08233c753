// What counts as a stop, and what does not: a press that was meant, and not taken back.

import { find } from "/static/page.js";

// Just after a start or a stop a press was meant for what was there before.
export const DEAD_MS = 400;
const UNDO_MS = 3000;
// A click comes this much after its pointer was lifted, at the latest.
const CLICK_MS = 300;
const IS_TYPED_INTO = "input, textarea, select, [contenteditable]";
const IS_PRESSED = "a, button, summary";
const hasModifier = (event) => event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;

/** Whether a key was meant for the page: no modifiers, nothing focused that uses it. */
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
      event.preventDefault(); // its click would come only when the key is let go
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

  /** Nothing to stop; `word` says what the button stands for now. */
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

  /** No click came of a press: the ride goes on. */
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

  /** Space, from anywhere but where it means something else. */
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

/** A button that comes into sight cannot be hit by a press meant for something else. */
export function enableLater(button) {
  button.disabled = true;
  setTimeout(() => (button.disabled = false), DEAD_MS);
}
