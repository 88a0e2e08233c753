// What every page has: the bar, the theme, helpers to make elements.

const PAGES = [
  ["drive", "Drive", { "data-road": true }],
  ["ride", "Ride", { "data-word": "watch" }],
  ["review", "Review"],
  ["results", "Results"],
];

/** An element with attributes, listeners (functions) and children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export const find = (selector) => document.querySelector(selector);

/** Of all elements with a `data-part`, show only these. */
export function showParts(...names) {
  for (const element of document.querySelectorAll("[data-part]")) {
    element.hidden = !names.includes(element.dataset.part);
  }
}

function toggleTheme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("termdp.theme", next);
  document.documentElement.dataset.theme = next;
}

/** Put the bar on top and register the service worker. */
export function begin() {
  // After a mouse click or a tap, keys go to the page again, not to the button.
  addEventListener("click", (event) => {
    if (event.detail > 0) event.target.closest?.("button")?.blur();
  });
  const here = location.pathname.slice(1);
  const links = PAGES.map(([name, title, attributes]) =>
    make("a", { href: `/${name}`, "aria-current": name === here ? "page" : null, ...attributes }, title),
  );
  const bar = make(
    "header",
    { class: "bar" },
    make(
      "a",
      { class: "brand", href: "/" },
      make("img", { src: "/static/icon.svg", alt: "", width: "30", height: "30" }),
      make("span", {}, "Backseat Driver"),
    ),
    make("nav", { "aria-label": "Pages" }, ...links),
    make("button", { class: "icon-button", title: "Light or dark", "aria-label": "Light or dark", click: toggleTheme }, "◐"),
  );
  document.body.prepend(bar);
  if ("serviceWorker" in navigator && isSecureContext) navigator.serviceWorker.register("/worker.js");
}

/** A row of buttons, one of which is pressed. */
export function segments(options, chosen, choose) {
  const box = make("div", { class: "segments", role: "group" });
  for (const [value, title] of options) {
    const button = make("button", { type: "button", "aria-pressed": String(value === chosen) }, title);
    button.addEventListener("click", () => {
      for (const other of box.children) other.setAttribute("aria-pressed", String(other === button));
      choose(value);
    });
    box.append(button);
  }
  return box;
}

/** Enter in a field does what its button does. */
export function onEnter(field, button) {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) button.click();
  });
}

export const percent = (share) => (share === null ? "–" : `${Math.round(100 * share)}%`);
export const seconds = (ms) => (ms === null ? "–" : `${(ms / 1000).toFixed(1)} s`);
