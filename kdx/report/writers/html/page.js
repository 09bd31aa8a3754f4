"use strict";

// Sorting: a button in each header that has numbers or names under it; the first press puts the best first where the
// metric has a good end, and a third restores the order.
function prepare(part) {
  for (const table of part.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    for (const header of table.querySelectorAll("th[data-column]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, body, original, header));
    }
  }
}
prepare(document);

function sort(table, body, original, header) {
  const orders = ["none", "ascending", "descending"];
  if ("bestIsHighest" in header.dataset || header.textContent.includes("↑")) orders.push(orders.splice(1, 1)[0]);
  const order = orders[(orders.indexOf(header.getAttribute("aria-sort") || "none") + 1) % 3];
  for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  if (order !== "none") header.setAttribute("aria-sort", order);
  table.classList.toggle("sorted", order !== "none");
  const column = Number(header.dataset.column);
  const rows = original.map((row) => ({ row, key: keyOf(row.cells[column]) }));
  if (order !== "none") {
    const sign = order === "ascending" ? 1 : -1;
    const kind = rows.some(({ key }) => typeof key === "number") ? "number" : "string";
    rows.sort((a, b) => compare(a.key, b.key, kind, sign));
  }
  body.append(...rows.map(({ row }) => row));
}

// What a place is sorted by: its number, ∞ beyond all others; or its words.
function keyOf(cell) {
  const text = (cell.dataset.value ?? cell.textContent).trim();
  if (cell.tagName === "TH") return text;
  const plain = text.replace("−", "-").replace(/^[<>≤≥]\s*/, "").replace(/^([+-]?)(∞|inf$)/, "$1Infinity");
  const number = Number.parseFloat(plain.replace(/(\d),(?=\d{3})/g, "$1"));
  return Number.isNaN(number) ? text : number;
}

// In a column of numbers, places without one come last in either order; in one of words, those without any.
function compare(a, b, kind, sign) {
  const missing = (key) => typeof key !== kind || key === "" || key === "–";
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  if (kind === "string") return sign * a.localeCompare(b, "en", { numeric: true });
  return a === b ? 0 : a < b ? -sign : sign;
}

// What a link leads to may lie in a closed part of the page.
function reveal() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  target.scrollIntoView({ block: "center" });
  target.tabIndex = -1;
  target.focus({ preventScroll: true });
}
addEventListener("hashchange", reveal);
// The same link twice changes nothing, so the event alone would not do.
addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (link && link.getAttribute("href") === location.hash) reveal();
});
reveal();

// A point of a plot tells what it is: the label that a screen reader reads, for the mouse.
addEventListener("mouseover", (event) => {
  const mark = event.target.closest("svg path[aria-label]");
  if (mark && !mark.firstChild) {
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = mark.getAttribute("aria-label");
    mark.append(title);
  }
});

// On paper nothing can be opened.
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details.numbers")) part.open = true;
});
