"use strict";

// Tables: a click on a heading sorts by it, a second one the other way round.
function numberOf(words) {
  const found = words.replaceAll("−", "-").replaceAll(",", "").match(/^[+×]?(-?\d+(\.\d+)?)/);
  return found ? Number(found[1]) : null;
}

function wordsOf(row, column) {
  return row.cells[column].firstChild?.textContent.trim() ?? "";
}

function sort(table, column, upwards) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => {
    const words = wordsOf(row, column);
    return { row, words, number: numberOf(words) };
  });
  const sign = upwards ? 1 : -1;
  const areNumbers = rows.some((entry) => entry.number !== null);
  rows.sort((a, b) => {
    if (!areNumbers) return sign * a.words.localeCompare(b.words);
    if (a.number === null || b.number === null) return (a.number === null) - (b.number === null);
    return sign * (a.number - b.number);
  });
  body.append(...rows.map((entry) => entry.row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.textContent = heading.textContent || "name";
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const upwards = heading.getAttribute("aria-sort") === "descending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", upwards ? "ascending" : "descending");
      sort(table, column, upwards);
    });
  });
}

// Films: all of them from the beginning, at the same moment.
for (const group of document.querySelectorAll(".films")) {
  const films = [...group.querySelectorAll("img")];
  const button = document.createElement("button");
  button.className = "again";
  button.textContent = "Watch again";
  const restart = () => {
    const sources = films.map((film) => film.src);
    films.forEach((film) => { film.src = ""; });
    films.forEach((film, place) => { film.src = sources[place]; });
  };
  button.addEventListener("click", restart);
  group.after(button);
  window.addEventListener("load", restart);
}
