// Why a ride was stopped: reasons to choose from, and a field for other words.

import { make } from "/static/page.js";

export class Reasons {
  constructor(chips, area, words) {
    this.area = area;
    this.buttons = words.map((word) =>
      make("button", { type: "button", "aria-pressed": "false", click: (event) => this.toggle(event) }, word),
    );
    chips.append(...this.buttons);
  }

  toggle(event) {
    const button = event.currentTarget;
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
  }

  clear() {
    for (const button of this.buttons) button.setAttribute("aria-pressed", "false");
    this.area.value = "";
  }

  get text() {
    const chosen = this.buttons.filter((b) => b.getAttribute("aria-pressed") === "true");
    const words = [...chosen.map((b) => b.textContent), this.area.value.trim()];
    return words.filter(Boolean).join("; ").slice(0, 1000);
  }
}
