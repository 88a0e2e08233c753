// Join a study: check the invite, show the consent text, get a token for this browser.

import { ask, freshId } from "/static/api.js";
import { begin, find, onEnter, showParts } from "/static/page.js";

begin();

const NONCE = "termdp.nonce";
const USED = "This invite link has already been used. Each link works once, in one browser. To continue in this browser, please ask for a new link.";
const NOT_VALID = "This invite link does not work. Please copy the whole link again, or ask for a new one.";
const WORDS = { 404: NOT_VALID, 409: USED, 422: NOT_VALID };
const inWords = (error) => WORDS[error.status] ?? "The server did not let you in. Please try again later, or ask the person who invited you.";

const knownNonce = () => JSON.parse(sessionStorage.getItem(NONCE) || "{}");

/** Always the same for one invite, so that a join can be repeated if its answer was lost. */
function nonceFor(invite) {
  const known = knownNonce();
  if (known.invite !== invite) {
    known.invite = invite;
    known.nonce = freshId();
    sessionStorage.setItem(NONCE, JSON.stringify(known));
  }
  return known.nonce;
}

async function offer(invite) {
  showParts("loading");
  let found;
  try {
    found = await ask("POST", "/api/invite", { invite }, null);
  } catch (error) {
    refuse(inWords(error));
    return;
  }
  // If the answer was lost, only the tab that used the invite may ask again.
  if (found.used && knownNonce().invite !== invite) {
    refuse(USED);
    return;
  }
  find("#title").textContent = found.title;
  find("#name").textContent = found.name;
  find("#consent").textContent = found.consent;
  const agree = find("#agree");
  const button = find("#join");
  agree.checked = false;
  button.disabled = true;
  agree.onchange = () => (button.disabled = !agree.checked);
  button.onclick = () => join(invite, found.consent_hash);
  showParts("consent");
}

function refuse(sentence) {
  find("#problem").textContent = sentence;
  showParts("none");
}

async function join(invite, consentHash) {
  const body = { invite, nonce: nonceFor(invite), consent_hash: consentHash };
  try {
    const { token } = await ask("POST", "/api/join", body, null);
    localStorage.setItem("termdp.token", token);
    location.replace("/");
  } catch (error) {
    find("#join-problem").textContent = inWords(error);
  }
}

async function asGuest() {
  const typed = find("#guest-name").value.trim().normalize("NFC");
  const name = typed.replace(/[^\p{L}\p{M}\p{N}._-]+/gu, "-").replace(/^[^\p{L}\p{N}]+/u, "");
  if (!name) {
    find("#guest-problem").textContent = "Please type a name with letters or digits.";
    return;
  }
  try {
    const { invite } = await ask("POST", "/api/guest", { name }, null);
    await offer(invite);
  } catch (error) {
    find("#guest-problem").textContent = inWords(error);
  }
}

async function open() {
  const invite = location.hash.slice(1);
  if (invite) {
    await offer(invite);
    return;
  }
  const { tokens } = await ask("GET", "/api/health", null, null);
  showParts(tokens ? "none" : "guest");
  find("#guest-go").onclick = asGuest;
}

onEnter(find("#guest-name"), find("#guest-go"));
addEventListener("hashchange", open);
await open();
