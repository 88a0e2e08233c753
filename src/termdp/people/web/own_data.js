// A person's own data: download it, sign out, or leave the study for good.

import { ask, flush, inWords, leave } from "/static/api.js";
import { find, make } from "/static/page.js";

async function download(name) {
  const data = await ask("GET", "/api/me/data");
  const file = new Blob([JSON.stringify(data, null, 2)], { type: "application/json" });
  const link = make("a", { href: URL.createObjectURL(file), download: `${name}.json` });
  link.click();
  URL.revokeObjectURL(link.href);
}

async function signOut() {
  if (!confirm("Sign out? You will need a new invite link to come back.")) return;
  await flush(); // unsent stops must arrive first
  await ask("POST", "/api/sign-out", {});
  leave();
  location.replace("/join");
}

async function withdraw() {
  const keep = find("input[name=stops]:checked").value === "keep";
  await ask("POST", "/api/withdraw", { keep_stops: keep });
  leave();
  find("#left-words").textContent = keep
    ? "Your stops are kept without your name. Everything else about you has been deleted."
    : "Everything about you has been deleted.";
  for (const part of ["#own-data", "#progress-card"]) find(part).hidden = true;
  find("#left").hidden = false;
}

/** Show the card "Your data"; called only for people who have joined. */
export function showOwnData(name) {
  const on = (selector, action) =>
    find(selector).addEventListener("click", async () => {
      find("#own-problem").textContent = "";
      try {
        await action();
      } catch (error) {
        find("#own-problem").textContent = inWords(error);
      }
    });
  on("#download", () => download(name));
  on("#sign-out", signOut);
  on("#withdraw", () => (find("#leaving").hidden = false));
  on("#stay", () => (find("#leaving").hidden = true));
  on("#leave", withdraw);
  find("#own-data").hidden = false;
}
