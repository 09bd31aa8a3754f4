
// Asks for what is new while somebody looks: the progress each time, the report only when it was made anew.
const EVERY = 3000;

async function part(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).split("\n")[0]);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function replace(id, page) {
  const old = document.getElementById(id), fresh = page.getElementById(id);
  if (!old || !fresh) return;
  const active = old.contains(document.activeElement) ? document.activeElement : null;
  const focused = active && (active.id ? `#${CSS.escape(active.id)}` : active.href ? `a[href="${CSS.escape(active.getAttribute("href"))}"]` : null);
  const open = new Set([...old.querySelectorAll("details[open]")].map(nameOf));
  for (const details of fresh.querySelectorAll("details")) details.open = open.has(nameOf(details));
  const sorted = [...old.querySelectorAll("th[aria-sort]")].map((header) => [placeOf(header, old), header.getAttribute("aria-sort")]);
  old.replaceWith(fresh);
  prepare(fresh);
  for (const [[table, column], order] of sorted) {
    const header = fresh.querySelectorAll("table")[table]?.querySelector(`th[data-column="${column}"]`);
    for (let press = 0; header && press < 2 && header.getAttribute("aria-sort") !== order; press++) {
      header.querySelector("button")?.click();
    }
  }
  if (focused) fresh.querySelector(focused)?.focus({ preventScroll: true });
}

const nameOf = (details) => [details.closest("[id]").id, details.querySelector("summary").textContent].join(" ");
const placeOf = (header, root) => [[...root.querySelectorAll("table")].indexOf(header.closest("table")), header.dataset.column];

let asking = false;

async function refresh() {
  // What is selected, to be copied, stays.
  if (asking || document.hidden || !getSelection().isCollapsed) return;
  asking = true;
  const silent = document.getElementById("silent");
  try {
    const fresh = await part(`${location.pathname}?progress`);
    replace("progress", fresh);
    replace("texts", fresh);
    const revision = fresh.getElementById("report")?.dataset.revision;
    if (revision !== document.getElementById("report").dataset.revision) replace("report", await part(location.pathname));
    silent.textContent = "";
  } catch (error) {
    silent.textContent = error instanceof TypeError ? "kdx serve does not answer" : error.message;
  }
  asking = false;
}
setInterval(refresh, EVERY);
addEventListener("visibilitychange", refresh);
