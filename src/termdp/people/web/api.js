// The server's interface. Requests that cannot get through are tried again until they
// do; what must not be lost waits in the outbox, which survives a reload.

import { make } from "/static/page.js";

const OUTBOX = "termdp.outbox";
const MAX_WAIT_MS = 3000;
// What browsers send after a page is gone, 64 KiB for all requests together.
const KEPT_ALIVE = 16_000;

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export const token = () => localStorage.getItem("termdp.token");

// The admin's token lives as long as the tab, unless asked to be kept on this computer.
const ADMIN = "termdp.admin";
const KEPT = "termdp.admin.kept";
localStorage.removeItem(ADMIN); // where it was kept without being asked, once
export const adminToken = () => sessionStorage.getItem(ADMIN) || localStorage.getItem(KEPT);
export const isKept = () => localStorage.getItem(KEPT) !== null;

/** Remember the admin's token, or forget it (null). */
export function setAdminToken(value, kept = false) {
  sessionStorage.removeItem(ADMIN);
  localStorage.removeItem(KEPT);
  if (value && kept) localStorage.setItem(KEPT, value);
  else if (value) sessionStorage.setItem(ADMIN, value);
}

/** Something that nobody else makes up. */
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

const BUSY = "The server has a problem just now. Please try again in a minute.";
const WORDS = {
  401: "You are signed out. Please open your invite link again.",
  403: "The server does not allow this.",
  404: "It is not there any more.",
  409: "This has been judged already. The first answer counts.",
  413: "This is too long.",
};

/** What a refusal means to somebody who takes part. */
export const inWords = (error) =>
  WORDS[error.status] ?? (error.status >= 500 ? BUSY : "The server could not take this. Please reload the page.");

/** Whether asking again is of no use: the server understood, and said no. */
const isFinal = (status) => status >= 400 && status < 500 && ![408, 425, 429].includes(status);

/**
 * Ask once: `{ answer }`, or `{ wait }` if there is none and it may be asked again, after
 * as many milliseconds as the server wishes. A refusal throws.
 */
async function once(method, path, body, bearer) {
  const headers = {};
  if (body !== null) headers["content-type"] = "application/json";
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  const options = { method, headers, cache: "no-store" };
  if (body !== null) {
    options.body = JSON.stringify(body);
    options.keepalive = options.body.length < KEPT_ALIVE; // also if the page is left
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
 * Ask until there is an answer or a final refusal. Who can do without an answer says
 * after how many failures of the server (not of the connection) to give up.
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
    // Not all at the same moment: a server that comes back is asked by everybody.
    await sleep(Math.min(Math.max(wait, found.wait), MAX_WAIT_MS) * (0.75 + Math.random() / 2));
  }
}

const waiting = () => JSON.parse(localStorage.getItem(OUTBOX) || "[]");
const keep = (entries) => localStorage.setItem(OUTBOX, JSON.stringify(entries));

// One after the other: a stop must be there before it is taken back.
let line = Promise.resolve();

/** Send something that must arrive: it is kept here until the server has it on disk. */
export function deliver(path, body) {
  const entry = { path, body, token: token() };
  keep([...waiting(), entry]);
  const sent = line.then(() => send(entry));
  line = sent.catch(() => {});
  return sent;
}

/** A login may have ended meanwhile: then the next one of this browser delivers. */
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

/** What this browser remembers of a person, beside the login. */
export const WARM = "termdp.warm"; // the warm-up is done, or was skipped
export const BEST = "termdp.best"; // their best drive

/** Nothing of this person stays in this browser. */
export function leave() {
  for (const name of ["termdp.token", OUTBOX, WARM, BEST]) localStorage.removeItem(name);
  sessionStorage.removeItem("termdp.nonce");
}

/** Who has not joined is sent to the door. */
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

/** What this page is about is somewhere else. */
export function goTo(path) {
  location.replace(path);
  return new Promise(() => {}); // nothing more happens here
}

/** The game's sizes and looks. */
export const loadGame = () => ask("GET", "/api/game");
