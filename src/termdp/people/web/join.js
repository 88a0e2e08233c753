// Join a study: the invite, the text to agree to, then a token for this browser.

import { ask, freshId } from "/static/api.js";
import { begin, find, showParts } from "/static/page.js";

begin();

const NONCE = "termdp.nonce";

/** The same for one invite, so that a join whose answer was lost can be repeated. */
function nonceFor(invite) {
  const known = JSON.parse(sessionStorage.getItem(NONCE) || "{}");
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
    find("#problem").textContent = error.message;
    showParts("none");
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

async function join(invite, consentHash) {
  const body = { invite, nonce: nonceFor(invite), consent_hash: consentHash };
  try {
    const { token } = await ask("POST", "/api/join", body, null);
    localStorage.setItem("termdp.token", token);
    location.replace("/");
  } catch (error) {
    find("#join-problem").textContent = error.message;
  }
}

async function asGuest() {
  const name = find("#guest-name").value.trim().replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  if (!name) {
    find("#guest-problem").textContent = "Please type a name of letters or digits.";
    return;
  }
  try {
    const { invite } = await ask("POST", "/api/guest", { name }, null);
    await offer(invite);
  } catch (error) {
    find("#guest-problem").textContent = error.message;
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

addEventListener("hashchange", open);
await open();
