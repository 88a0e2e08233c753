// Talks to the server. Requests that do not get through are sent again until they do.
// What must not be lost waits in the outbox, which survives a reload.

import { make } from "/static/page.js";

const OUTBOX = "termdp.outbox";
const MAX_WAIT_MS = 3000;
// Browsers still send this much after a page is gone: 64 KiB over all requests.
const KEPT_ALIVE = 16_000;

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export const token = () => localStorage.getItem("termdp.token");

// The admin's token is forgotten with the tab, unless the admin asked to stay signed in.
const ADMIN = "termdp.admin";
const KEPT = "termdp.admin.kept";
localStorage.removeItem(ADMIN); // earlier versions kept it here without asking
export const adminToken = () => sessionStorage.getItem(ADMIN) || localStorage.getItem(KEPT);
export const isKept = () => localStorage.getItem(KEPT) !== null;

/** Remember the admin's token, or forget it (null). */
export function setAdminToken(value, kept = false) {
  sessionStorage.removeItem(ADMIN);
  localStorage.removeItem(KEPT);
  if (value && kept) localStorage.setItem(KEPT, value);
  else if (value) sessionStorage.setItem(ADMIN, value);
}

/** An id that nobody else will make up. */
export function freshId() {
  const bytes = crypto.getRandomValues(new Uint8Array(18));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
}

const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

let banner = null;
function showBanner(sentence) {
  if (sentence && !banner) {
    banner = make("div", { class: "banner", role: "status" });
    document.body.append(banner);
  }
  if (sentence) banner.textContent = sentence;
  else if (banner) {
    banner.remove();
    banner = null;
  }
}

const BUSY = "Something went wrong on the server. Please try again in a minute.";
const WORDS = {
  401: "You are signed out. Please open your invite link again.",
  403: "The server does not allow this.",
  404: "This no longer exists.",
  409: "You have already judged this. Your first answer counts.",
  413: "This is too long.",
};

/** A refusal in words for participants. */
export const inWords = (error) =>
  WORDS[error.status] ?? (error.status >= 500 ? BUSY : "The server did not accept this. Please reload the page.");

/** Whether a retry is pointless: the server understood, and said no. */
const isFinal = (status) => status >= 400 && status < 500 && ![408, 425, 429].includes(status);

/**
 * Ask once. Gives `{ answer }`, or `{ wait }` if there was none: how many milliseconds the
 * server wants us to wait before asking again (0 if it did not say). A refusal throws.
 */
async function once(method, path, body, bearer) {
  const headers = {};
  if (body !== null) headers["content-type"] = "application/json";
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  const options = { method, headers, cache: "no-store" };
  if (body !== null) {
    options.body = JSON.stringify(body);
    options.keepalive = options.body.length < KEPT_ALIVE; // even if the page is left
  }
  try {
    const response = await fetch(path, { ...options, signal: AbortSignal.timeout(15000) });
    if (response.ok) return { answer: await response.json() };
    if (isFinal(response.status)) throw await refusal(response);
    return { status: response.status, wait: 1000 * (Number(response.headers.get("retry-after")) || 0) };
  } catch (error) {
    if (error instanceof Refused) throw error;
    return { wait: 0 };
  }
}

async function refusal(response) {
  const { error } = await response.json().catch(() => ({}));
  return new Refused(response.status, error || "the server refused");
}

/**
 * Ask until there is an answer or a final refusal. A caller that can do without an answer
 * says after how many server failures (lost connections do not count) to give up.
 */
export async function ask(method, path, body = null, bearer = token(), mostFailures = Infinity) {
  let failures = 0;
  for (let wait = 250; ; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
    const found = await once(method, path, body, bearer);
    if ("answer" in found) {
      showBanner(null);
      return found.answer;
    }
    if (found.status && ++failures >= mostFailures) {
      showBanner(null);
      throw new Refused(found.status, "the server failed");
    }
    showBanner(found.status ? "The server has a problem. Trying again…" : "Connection lost. Trying again…");
    // Random waits, so that not everybody asks a returning server at the same moment.
    await sleep(Math.min(Math.max(wait, found.wait), MAX_WAIT_MS) * (0.75 + Math.random() / 2));
  }
}

const waiting = () => JSON.parse(localStorage.getItem(OUTBOX) || "[]");
const keep = (entries) => localStorage.setItem(OUTBOX, JSON.stringify(entries));

// One at a time: a stop must arrive before it can be taken back.
let line = Promise.resolve();

/** Send something that must arrive: kept here until the server has it on disk. */
export function deliver(path, body) {
  const entry = { path, body, token: token() };
  keep([...waiting(), entry]);
  const sent = line.then(() => send(entry));
  line = sent.catch(() => {});
  return sent;
}

/** If the login has ended meanwhile, this browser's next login sends the entry. */
async function send(entry) {
  let isOver = true;
  try {
    return await ask("POST", entry.path, entry.body, entry.token);
  } catch (error) {
    if (error.status !== 401) throw error;
    isOver = token() !== null && token() !== entry.token;
    if (!isOver) throw error;
    return await ask("POST", entry.path, entry.body, token());
  } finally {
    if (isOver) keep(waiting().filter((other) => other.body.id !== entry.body.id));
  }
}

/** Deliver what an earlier page could not. */
export async function flush() {
  for (const entry of waiting()) {
    try {
      await send(entry);
    } catch (error) {
      console.warn("not accepted:", entry.path, error.message);
    }
  }
}

/** What this browser remembers about a person, besides the login. */
export const WARM = "termdp.warm"; // the warm-up is done, or was skipped
export const BEST = "termdp.best"; // their best drive

/** Remove every trace of this person from this browser. */
export function leave() {
  for (const name of ["termdp.token", OUTBOX, WARM, BEST]) localStorage.removeItem(name);
  sessionStorage.removeItem("termdp.nonce");
}

/** Send people who have not joined to the join page. */
export async function mustHaveJoined() {
  if (!token()) return goTo("/join");
  try {
    await flush();
    return await ask("GET", "/api/me");
  } catch (error) {
    if (error.status === 401) {
      localStorage.removeItem("termdp.token");
      return goTo("/join");
    }
    throw error;
  }
}

/** Go to another page. */
export function goTo(path) {
  location.replace(path);
  return new Promise(() => {}); // nothing more happens here
}

/** The game's sizes and shapes. */
export const loadGame = () => ask("GET", "/api/game");
