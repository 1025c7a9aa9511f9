// Live charts: their points come from the JSON of a page, fetched once per snapshot for all charts of it.

const charts = [];
const style = () => getComputedStyle(document.documentElement);
const units = ["B", "KiB", "MiB", "GiB", "TiB"];

function shown(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit !== "B") return value >= 100 ? Math.round(value).toLocaleString("en") : String(Math.round(value * 10) / 10);
  let step = 0;
  while (value >= 1024 && step < units.length - 1) {
    value /= 1024;
    step += 1;
  }
  return `${Math.round(value * 10) / 10} ${units[step]}`;
}

const powers = Array.from({ length: 50 }, (_, power) => 2 ** power);
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

function draw(element, points) {
  const index = Number(element.dataset.index);
  const data = [points.map((each) => each[0] / 1000), points.map((each) => each[index])];
  const known = charts.find((each) => each.element === element);
  const last = data[1].at(-1);
  const label = element.getAttribute("aria-label");
  element.dataset.latest = last === undefined ? "" : shown(last, element.dataset.unit);
  element.title = `${label}: ${element.dataset.latest || "no data yet"}`;
  if (known) {
    known.plot.setData(data);
    return;
  }
  const colour = style().getPropertyValue("--accent").trim();
  const faint = style().getPropertyValue("--faint").trim();
  const line = style().getPropertyValue("--line").trim();
  const axis = { stroke: faint, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const plot = new uPlot(
    {
      width: element.clientWidth,
      height: 150,
      legend: { show: false },
      cursor: { y: false },
      // A short history is drawn at the scale of a minute.
      scales: { x: { range: (self, from, to) => [Math.min(from ?? to, to - 60), to] }, y: { range: (self, low, high) => [0, Math.max(high * 1.1, 1)] } },
      axes: [
        { ...axis, space: 80, size: 26, values: (self, ticks) => ticks.map(clock) },
        { ...axis, size: 64, incs: element.dataset.unit === "B" ? powers : undefined, values: (self, ticks) => ticks.map((each) => shown(each, element.dataset.unit)) },
      ],
      series: [{}, { stroke: colour, fill: `${colour}22`, width: 1.5, points: { show: false } }],
    },
    data,
    element,
  );
  charts.push({ element, plot });
  new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 150 })).observe(element);
}

let busy = false;
async function update() {
  if (busy) return;
  busy = true;
  try {
    const elements = [...document.querySelectorAll("[data-chart]")];
    for (const source of new Set(elements.map((each) => each.dataset.chart))) {
      const response = await fetch(source, { headers: { Accept: "application/json", "X-Background": "true" } });
      if (!response.ok) continue;
      const page = await response.json();
      for (const each of elements.filter((one) => one.dataset.chart === source)) draw(each, page[each.dataset.series] ?? []);
    }
  } catch {
    // The next snapshot tries again.
  } finally {
    busy = false;
  }
}
document.body.addEventListener("snapshot", update);
update();
