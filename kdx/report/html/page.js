"use strict";

// Sorting: a button in each header that has numbers or names under it; a third press restores the order.
for (const table of document.querySelectorAll("table.sortable")) {
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

function sort(table, body, original, header) {
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  const order = next[header.getAttribute("aria-sort") || "none"];
  for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  if (order !== "none") header.setAttribute("aria-sort", order);
  table.classList.toggle("sorted", order !== "none");
  const column = Number(header.dataset.column);
  const key = (row) => valueOf(row.cells[column]);
  const rows = [...original];
  if (order !== "none") {
    const sign = order === "ascending" ? 1 : -1;
    rows.sort((a, b) => compare(key(a), key(b), sign));
  }
  body.append(...rows);
}

// A number, NaN where a place has none, or the words of a name.
function valueOf(cell) {
  if (cell.tagName === "TH") return cell.textContent.trim();
  return Number.parseFloat(cell.dataset.value ?? cell.textContent.replace("−", "-").replace(/^< /, ""));
}

// Places without a number come last in either order.
function compare(a, b, sign) {
  if (typeof a === "string") return sign * a.localeCompare(b, "en", { numeric: true });
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return sign * (a - b);
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
  const mark = event.target.closest("svg a path[aria-label]");
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
