// Admin: create studies, invite supervisors, export.

import { adminToken, ask, isKept, setAdminToken } from "/static/api.js";
import { watchLive } from "/static/admin_live.js";
import { begin, find, make, onEnter, showParts } from "/static/page.js";
import { showRounds } from "/static/rounds.js";

begin();
const admin = (method, path, body = null) => ask(method, `/api/admin/${path}`, body, adminToken());
const studyPath = (name) => `studies/${encodeURIComponent(name)}`;

async function enter(token) {
  setAdminToken(token, isKept());
  try {
    await refresh();
    find("#keep").checked = isKept();
    showParts("inside");
    watchLive((study) => admin("GET", `${studyPath(study)}/live`));
  } catch (error) {
    setAdminToken(null);
    find("#door-problem").textContent = error.message;
    showParts("door");
  }
}

function signOut() {
  setAdminToken(null);
  location.replace("/admin");
}

async function refresh() {
  const { studies, envs } = await admin("GET", "studies");
  if (!find("#new-env").options.length) {
    find("#new-env").append(...envs.map(({ id, about }) => make("option", { value: id, title: about, selected: id === "backseat" }, id)));
  }
  const number = (value) => make("td", { class: "n" }, String(value));
  const rows = studies.map((study) =>
    make("tr", {},
      make("td", {}, make("a", { href: `/results?study=${encodeURIComponent(study.name)}` }, study.title), " ", make("span", { class: "soft small" }, study.name)),
      make("td", { class: "soft" }, study.env), number(study.rides), number(study.supervisors), number(study.reviews), number(study.stops),
      make("td", { class: "n" }, make("button", { class: "button", type: "button", click: () => download(study.name) }, "Export")),
    ),
  );
  find("#studies").replaceChildren(...rows);
  const { entries } = await admin("GET", "audit");
  find("#audit").replaceChildren(...entries.map((entry) => {
    const when = new Date(entry.at_ms).toISOString().slice(0, 19).replace("T", " ");
    return make("tr", {}, ...[when, entry.who, entry.what, entry.study || "", entry.person || ""].map((words) => make("td", {}, words)));
  }));
  showRounds(await admin("GET", "rounds"));
  for (const select of [find("#invite-study"), find("#live-study")]) {
    const chosen = select.value; // keep the current choice
    select.replaceChildren(...studies.map((study) => make("option", { value: study.name, selected: study.name === chosen }, `${study.title} (${study.name})`)));
  }
}

async function download(name) {
  const response = await fetch(`/api/admin/${studyPath(name)}/export`, { headers: { authorization: `Bearer ${adminToken()}` } });
  if (!response.ok) return;
  const link = make("a", { href: URL.createObjectURL(await response.blob()), download: `${name}.parquet` });
  link.click();
  URL.revokeObjectURL(link.href);
}

async function create() {
  const problem = find("#new-problem");
  const name = find("#new-name").value.trim();
  const body = { name, title: find("#new-title").value.trim(), env: find("#new-env").value };
  if (find("#new-consent").value.trim()) body.consent = find("#new-consent").value;
  const count = Number(find("#new-rides").value);
  const steps = Number(find("#new-steps").value);
  problem.textContent = "";
  find("#create").disabled = true;
  try {
    await admin("POST", "studies", { ...body, rides: count, steps, seed: Math.floor(Math.random() * 1e9) });
    find("#new-name").value = find("#new-title").value = find("#new-consent").value = "";
  } catch (error) {
    problem.textContent = error.message;
  }
  find("#create").disabled = false;
  await refresh();
}

async function copyLink(link, button) {
  try {
    await navigator.clipboard.writeText(link);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Please select the link and copy it";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

async function invite() {
  const problem = find("#invite-problem");
  const names = find("#invite-names").value.split(/[\s,;]+/).filter(Boolean);
  problem.textContent = names.length ? "" : "Please type at least one name.";
  if (!names.length) return;
  try {
    const { invites } = await admin("POST", `${studyPath(find("#invite-study").value)}/invites`, { names });
    const lines = Object.entries(invites).map(([name, token]) => {
      const link = `${location.origin}/join#${token}`;
      const copy = make("button", { class: "button", type: "button", click: (event) => copyLink(link, event.currentTarget) }, "Copy");
      return make("div", { class: "row" }, make("b", {}, name), make("span", { class: "link", "data-link": name }, link), copy);
    });
    find("#links").replaceChildren(make("p", { class: "soft small" }, "Each link works once. This is the only time you will see them."), ...lines);
    await refresh();
  } catch (error) {
    problem.textContent = error.message;
  }
}

onEnter(find("#token"), find("#enter"));
onEnter(find("#invite-names"), find("#invite"));
find("#sign-out").addEventListener("click", signOut);
find("#keep").addEventListener("change", (event) => setAdminToken(adminToken(), event.target.checked));
find("#enter").addEventListener("click", () => enter(find("#token").value.trim()));
find("#create").addEventListener("click", create);
find("#invite").addEventListener("click", invite);
const given = location.hash.slice(1);
if (given) history.replaceState(null, "", location.pathname);
if (given || adminToken()) await enter(given || adminToken());
document.body.dataset.ready = "true";
