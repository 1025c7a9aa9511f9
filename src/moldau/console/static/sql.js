// SQL: the rows of a run as a table and as a chart of one column.

import { complain, post, report } from "./console.js";

const form = document.querySelector("[data-sql]");
const head = document.querySelector("[data-head]");
const table = document.querySelector("[data-body]");
const messages = document.querySelector("[data-messages]");
const state = document.querySelector("[data-state]");
const cancel = document.querySelector("[data-cancel]");
const column = document.querySelector("[data-column]");
const over = document.querySelector("[data-over]");
const kind = document.querySelector("[data-kind]");
const figure = document.querySelector("[data-figure]");
const place = document.querySelector("[data-plot]");
let source = null;
let columns = [];
let rows = [];
let plot = null;

function text(value) {
  if (value === null || value === undefined) return "null";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function begin(names) {
  columns = names;
  const line = document.createElement("tr");
  for (const name of names) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    line.append(cell);
  }
  head.replaceChildren(line);
}

function add(row) {
  const names = Object.keys(row);
  if (!columns.length) begin(names);
  rows.push(row);
  const line = document.createElement("tr");
  for (const name of columns) {
    const cell = document.createElement("td");
    cell.className = typeof row[name] === "number" ? "number" : "content";
    cell.textContent = text(row[name]);
    line.append(cell);
  }
  table.append(line);
  for (const name of names) {
    if (typeof row[name] === "number") offer(column, name);
    if (typeof row[name] === "number" || time(row[name]) !== null) offer(over, name);
  }
}

function offer(select, name) {
  if (![...select.options].some((each) => each.value === name)) select.add(new Option(name, name));
}

// Times are text like 2026-01-31T12:30:00.000.
function time(value) {
  if (typeof value !== "string" || !/^\d{4}-\d{2}-\d{2}/.test(value)) return null;
  const found = Date.parse(value.length > 10 && !/(Z|[+-]\d{2}:?\d{2})$/.test(value) ? `${value}Z` : value);
  return Number.isNaN(found) ? null : found / 1000;
}

function points() {
  const at = (row, index) => (over.value ? (typeof row[over.value] === "number" ? row[over.value] : time(row[over.value])) : index + 1);
  const pairs = rows.map((row, index) => [at(row, index), row[column.value]]);
  const known = pairs.filter(([x, y]) => x !== null && typeof y === "number").sort((one, other) => one[0] - other[0]);
  return [known.map((each) => each[0]), known.map((each) => each[1])];
}

function draw() {
  figure.hidden = !column.value;
  plot?.destroy();
  plot = null;
  if (!column.value) return;
  const style = getComputedStyle(document.documentElement);
  const axis = { stroke: style.getPropertyValue("--faint"), grid: { stroke: style.getPropertyValue("--line"), width: 1 } };
  plot = new uPlot(
    {
      width: place.clientWidth,
      height: 190,
      legend: { show: false },
      scales: { x: { time: rows.some((each) => over.value && typeof each[over.value] === "string") } },
      axes: [axis, { ...axis, size: 64 }],
      series: [
        {},
        {
          stroke: style.getPropertyValue("--accent").trim(),
          fill: kind.value === "bars" ? `${style.getPropertyValue("--accent").trim()}66` : undefined,
          width: 1.5,
          paths: { line: uPlot.paths.linear(), bars: uPlot.paths.bars(), points: () => null }[kind.value],
          points: { show: kind.value === "points" || undefined },
        },
      ],
    },
    points(),
    place,
  );
}

function stop() {
  source?.close();
  source = null;
  cancel.hidden = true;
  state.textContent = rows.length ? `${rows.length} rows` : "";
  draw();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  stop();
  complain("");
  columns = [];
  rows = [];
  column.length = 1;
  over.length = 1;
  head.replaceChildren();
  table.replaceChildren();
  messages.hidden = true;
  messages.textContent = "";
  draw();
  const answer = await post(form.dataset.sql, new URLSearchParams(new FormData(form)));
  if (answer.error) {
    complain(answer.error);
    return;
  }
  state.textContent = "Spark is starting …";
  cancel.hidden = false;
  source = new EventSource(`${form.dataset.sql}/${answer.run}`);
  source.addEventListener("row", (one) => {
    add(JSON.parse(one.data));
    state.textContent = `${rows.length} rows`;
  });
  source.addEventListener("message", (one) => {
    messages.hidden = false;
    messages.textContent += `${JSON.parse(one.data)}\n`;
  });
  source.addEventListener("end", (one) => {
    if (JSON.parse(one.data) === 0) report("The statements have run.");
    else complain("The statements have failed.");
  });
  source.addEventListener("closed", stop);
  source.addEventListener("error", stop);
});
cancel.addEventListener("click", () => {
  stop();
  report("The statements are cancelled.");
});
for (const each of [column, over, kind]) each.addEventListener("change", draw);
