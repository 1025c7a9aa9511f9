// The table of messages: searching the whole topic with progress, following new records, files, saved filters.

import { ask, complain, post, report } from "./console.js";

const form = document.querySelector("[data-reading]");
const rows = document.querySelector("[data-rows]");
const empty = document.querySelector("[data-empty]");
const progress = document.querySelector("[data-progress]");
const bar = progress.querySelector("progress");
const words = progress.querySelector("[data-progress-text]");
const follow = document.querySelector("[data-follow]");
const more = document.querySelector("[data-more]");
const MOST_ROWS = 1000;
let source = null;

function query() {
  const fields = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...fields]) if (!value) fields.delete(name);
  return fields;
}

function stop() {
  source?.close();
  source = null;
  progress.hidden = true;
}

function open(kind, atTop, after = "") {
  stop();
  complain("");
  more.hidden = true;
  const fields = query();
  if (after) fields.set("after", after);
  const own = new EventSource(`${form.dataset.reading}/${kind}?${fields}`);
  source = own;
  own.addEventListener("rows", (event) => {
    empty.hidden = true;
    // The server's template has escaped everything.
    const fresh = document.createElement("template");
    fresh.innerHTML = JSON.parse(event.data).html;
    const added = [...fresh.content.children];
    if (atTop) rows.prepend(...added.reverse());
    else rows.append(...added);
    while (rows.children.length > MOST_ROWS) rows[atTop ? "lastElementChild" : "firstElementChild"].remove();
  });
  own.addEventListener("problem", (event) => {
    complain(JSON.parse(event.data).error);
    stop();
    follow.checked = false;
  });
  own.addEventListener("error", () => {
    // A browser connects again by itself. New records can be followed again; a search would begin again.
    if (source !== own || (atTop && own.readyState !== EventSource.CLOSED)) return;
    complain("The connection to the console is lost; read again.");
    stop();
    follow.checked = false;
    // The session may have ended.
    ask(location.href, { method: "HEAD", headers: { "X-Background": "true" } }).catch(() => {});
  });
  return own;
}

function search(after = "") {
  follow.checked = false;
  if (!after) rows.replaceChildren();
  empty.hidden = true;
  const own = open("search", false, after);
  progress.hidden = false;
  bar.value = 0;
  words.textContent = "Searching …";
  own.addEventListener("progress", (event) => {
    const { done, total, found } = JSON.parse(event.data);
    bar.value = total ? (100 * done) / total : 100;
    words.textContent = `${done.toLocaleString("en")} of ${total.toLocaleString("en")} records, ${found} found`;
  });
  own.addEventListener("end", (event) => {
    const { done, found, complete, next } = JSON.parse(event.data);
    stop();
    empty.hidden = rows.children.length > 0;
    more.hidden = !next;
    more.dataset.after = next ?? "";
    report(`${found} found in ${done.toLocaleString("en")} records${complete ? "." : "; the limit is reached."}`);
  });
}

form.addEventListener("submit", (event) => {
  if (!query().has("filter") && !query().has("expression")) return;
  event.preventDefault();
  history.replaceState(null, "", `${form.dataset.reading}?${query()}`);
  search();
});
if (form.hasAttribute("data-search-now")) search();

// A search ends at the limit, and continues after its last record.
document.querySelector("[data-continue]").addEventListener("click", () => search(more.dataset.after));

document.querySelector("[data-cancel]").addEventListener("click", () => {
  stop();
  report("The search is cancelled.");
});

follow.addEventListener("change", () => {
  if (!follow.checked) {
    stop();
    return;
  }
  open("follow", true);
});

// After a record was written, the table is read again, unless it follows the topic anyway.
document.addEventListener("done", async () => {
  if (follow.checked || query().has("filter") || query().has("expression")) return;
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  rows.replaceChildren(...page.querySelector("[data-rows]").children);
  empty.hidden = rows.children.length > 0;
});

document.querySelector("[data-export]").addEventListener("click", (event) => {
  const fields = query();
  if (fields.get("start") === "newest") fields.set("start", "beginning");
  event.target.href = `${form.dataset.reading}/export?${fields}`;
});

document.querySelector("[data-import]")?.addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  const kind = document.querySelector("[data-import-as]").value;
  const answer = await post(`${event.target.dataset.import}?as=${kind}`, file, "application/octet-stream");
  event.target.value = "";
  complain(answer.error ?? "");
  if (!answer.error) {
    report(answer.message);
    document.dispatchEvent(new CustomEvent("done"));
  }
});

// Filters are kept in this browser, for all topics.

const KEY = "moldau-filters";
const saved = document.querySelector("[data-saved]");

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}
function list() {
  saved.length = 1;
  kept().forEach((each, index) => saved.add(new Option([each.filter, each.expression].filter(Boolean).join(" · "), index)));
}
document.querySelector("[data-save-filter]").addEventListener("click", () => {
  const one = { filter: form.elements.filter.value, expression: form.elements.expression.value };
  if (!one.filter && !one.expression) {
    complain("There is no filter to keep.");
    return;
  }
  complain("");
  const others = kept().filter((each) => each.filter !== one.filter || each.expression !== one.expression);
  localStorage.setItem(KEY, JSON.stringify([one, ...others].slice(0, 30)));
  list();
  report("The filter is kept in this browser.");
});
saved.addEventListener("change", () => {
  const one = kept()[Number(saved.value)];
  if (!one || saved.value === "") return;
  form.elements.filter.value = one.filter;
  form.elements.expression.value = one.expression;
});
list();
