// "What bothers you": what often came before a person's stops, in words and as a picture.

import { make, percent } from "/static/page.js";

const SIZE = { width: 1080, top: 232, row: 78, bottom: 130 };
const INK = "#181c24";
const SOFT = "#5b6575";
const YOU = "#0072b2";
const OTHERS = "#e69f00";
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const BAR = { left: 500, width: 520 };

const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** The finding in one sentence. */
function finding({ stops, bothers }) {
  if (stops < 3) return "You stopped too few rides for us to say what bothers you.";
  const found = bothers.filter((row) => row.stands_out);
  if (!found.length) return "Nothing stands out: your stops came after all kinds of driving.";
  return capital(found.slice(0, 2).map((row) => row.words).join(", and "));
}

function details({ stops, bothers }) {
  if (stops < 3) return `You stopped ${stops === 1 ? "once" : stops ? "twice" : "no rides"}. That is fine too.`;
  const [first] = bothers;
  return `${capital(first.words)} happened in the second before ${percent(first.mine)} of your ${stops} stops, compared with ${percent(first.usual)} of all the moments you watched. This is only a count: it does not prove why you stopped.`;
}

/** What the fitted model says, and whose model it is. */
function modelWords({ model, bothers }) {
  if (!model) return "No model has been fitted to this study yet, so this is counted from your own stops alone.";
  const minded = bothers.filter((row) => row.extra_cost > 0).toSorted((a, b) => b.extra_cost - a.extra_cost);
  const most = minded.slice(0, 3).map((row) => `${row.words} (+${row.extra_cost.toFixed(2)})`);
  const whose = model === "you" ? "The model fitted to your own stops" : "The model fitted to everybody’s stops (not just yours)";
  return `${whose} ${most.length ? `minds these most: ${most.join(", ")}. The numbers say how much discomfort each adds in one step.` : "minds none of these."}`;
}

function text(context, words, x, y, size, colour, weight = 400) {
  context.font = `${weight} ${size}px ${FONT}`;
  context.fillStyle = colour;
  context.fillText(words, x, y);
}

/** The largest size at which words fit. */
function fitted(context, words, room, size) {
  for (let now = size; ; now -= 2) {
    context.font = `700 ${now}px ${FONT}`;
    if (now <= 24 || context.measureText(words).width <= room) return now;
  }
}

function tick(context, share, y, colour) {
  context.fillStyle = colour;
  context.fillRect(BAR.left + BAR.width * share - 3, y - 32, 6, 44);
}

function bar(context, row, y) {
  text(context, capital(row.words), 60, y, 28, INK, row.stands_out ? 700 : 400);
  context.fillStyle = "#e7eaf0";
  context.fillRect(BAR.left, y - 26, BAR.width, 32);
  context.fillStyle = YOU;
  context.globalAlpha = row.stands_out ? 1 : 0.5;
  context.fillRect(BAR.left, y - 26, BAR.width * (row.mine ?? 0), 32);
  context.globalAlpha = 1;
  tick(context, row.usual, y, INK);
  if (row.others !== null) tick(context, row.others, y, OTHERS);
}

function key(context, x, y, colour, words, isBar) {
  context.fillStyle = colour;
  if (isBar) context.fillRect(x, y - 18, 30, 20);
  else context.fillRect(x + 12, y - 24, 6, 32);
  text(context, words, x + 42, y, 24, SOFT);
}

/** The card as a picture; always light, because people show it elsewhere. */
function draw(canvas, found) {
  const rows = found.bothers;
  canvas.width = SIZE.width;
  canvas.height = SIZE.top + SIZE.row * rows.length + SIZE.bottom;
  const context = canvas.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = YOU;
  context.fillRect(0, 0, canvas.width, 12);
  text(context, "What bothers you in the back seat", 60, 80, 32, SOFT, 600);
  const words = finding(found);
  text(context, words, 60, 146, fitted(context, words, SIZE.width - 120, 52), INK, 700);
  text(context, `How often each happened in the second before your ${found.stops} stops`, 60, 192, 26, SOFT);
  rows.forEach((row, index) => bar(context, row, SIZE.top + SIZE.row * index + 34));
  const bottom = canvas.height - 72;
  key(context, 60, bottom, YOU, "before your stops", true);
  if (rows.some((row) => row.others !== null)) key(context, 370, bottom, OTHERS, "before the others’ stops");
  key(context, 740, bottom, INK, "at any moment");
  text(context, "0 to 100%. Backseat Driver, termdp", 60, canvas.height - 24, 22, SOFT);
}

function download(canvas) {
  canvas.toBlob((file) => {
    const link = make("a", { href: URL.createObjectURL(file), download: "what-bothers-you.png" });
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

/** The card; `found` is the answer of /api/comparison. */
export function bothersCard(found) {
  const canvas = make("canvas", { class: "keepsake", role: "img", "aria-label": details(found) });
  draw(canvas, found);
  const tooFew = found.stops < 3;
  return make("section", { class: "card stack", id: "bothers" },
    make("h2", {}, "What bothers you"),
    make("p", { class: "lead-finding" }, finding(found)),
    make("p", {}, details(found)),
    tooFew ? null : canvas,
    make("p", { class: "soft small", id: "model-words" }, modelWords(found)),
    tooFew ? null : make("div", {}, make("button", { class: "button", type: "button", id: "keep-card", click: () => download(canvas) }, "Download the picture")),
  );
}
