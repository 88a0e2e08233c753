// Tells people how many stops, and how many of theirs, the driver has learned from.

import { ask, token } from "/static/api.js";
import { find } from "/static/page.js";

const LOOK_MS = 60_000; // a round may finish while somebody rides

const counted = (stops) => (stops === 1 ? "one stop" : `${stops} stops`);

function inWords({ stops, yours }) {
  if (stops === 1 && yours) return "The driver on this page has learned from you: your stop is the only one in this study.";
  if (yours) return `The driver on this page has learned from you: from ${counted(stops)} in this study, ${yours} of them yours.`;
  return `The driver on this page has learned from ${counted(stops)} in this study.`;
}

async function look() {
  if (!token() || document.hidden) return;
  try {
    const found = await ask("GET", "/api/learned");
    const place = find("#learned");
    place.hidden = found.round === null;
    place.dataset.round = String(found.round ?? "");
    if (found.round !== null) place.textContent = inWords(found);
  } catch (error) {
    console.warn(error.message); // nothing depends on it
  }
}

setInterval(look, LOOK_MS);
look();
