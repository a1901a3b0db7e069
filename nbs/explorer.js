// The explorer: charts and a table over explorer_data.js, which `make docs` writes from the
// stored results (tools/process.py).
"use strict";

const SPLITS = {
  random: "like the earlier ones",
  ability: "stronger than all earlier ones",
  date: "newer than the earlier ones",
  llm: "with a language model not seen before",
  scaffold: "with a scaffold not seen before",
};
const MEASURES = {
  mae: { name: "error in points", axis: "error in points", scale: 100, digits: 1, best: Math.min },
  relative: { name: "error, where that expected of random sampling is 1", axis: "error (random, expected: 1)", scale: 1, digits: 2, best: Math.min, line: 1 },
  kendall: { name: "agreement of ranks (Kendall's tau, 1 is perfect)", axis: "agreement of ranks (tau)", scale: 1, digits: 2, best: Math.max },
  coverage: { name: "95% intervals that hold the true score, in percent", axis: "intervals that hold, %", scale: 100, digits: 1, line: 95 },
  half_width: { name: "interval, \u00b1 points", axis: "\u00b1 points", scale: 100, digits: 1, best: Math.min },
};
const START = ["guarded_irt", "random", "stratified"]; // what is recommended, beside what needs no model

// range of values with their bars, from zero where that is near
function range(rows, measure) {
  const { scale, line } = MEASURES[measure];
  const ends = rows.flatMap((r) => [-2, 2].map((k) => scale * (r[measure] + k * (r[measure + "_se"] || 0))));
  if (line !== undefined) ends.push(line);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return [low > 0 && low < 0.6 * high ? 0 : Math.floor(low * 20) / 20, high * 1.02];
}

function drawBars(rows, lacking, measure) {
  const { scale, line, axis } = MEASURES[measure], row = 24, left = 160;
  const height = 45 + row * (rows.length + lacking.length), [width, put] = canvas(element("bars"), height);
  const [low, high] = range(rows, measure), x = (v) => left + ((v - low) / (high - low)) * (width - left - 20);
  for (const t of ticks(low, high, width < 500 ? 3 : 5)) {
    put("line", { x1: x(t), x2: x(t), y1: 5, y2: height - 40, class: "grid" });
    put("text", { x: x(t), y: height - 24, "text-anchor": "middle" }, t);
  }
  if (line !== undefined) put("line", { x1: x(line), x2: x(line), y1: 5, y2: height - 40, class: "mark" });
  [...rows.map((r) => r.method), ...lacking].forEach((method, i) => put("text", { x: left - 10, y: 22 + row * i, "text-anchor": "end" }, method));
  lacking.forEach((method, i) => put("text", { x: left, y: 22 + row * (rows.length + i), class: "lacking" }, "not measured"));
  rows.forEach((r, i) => {
    const y = 18 + row * i, value = scale * r[measure], bar = 2 * scale * (r[measure + "_se"] || 0);
    put("line", { x1: x(value - bar), x2: x(value + bar), y1: y, y2: y, stroke: colour(r.method), "stroke-width": 2 });
    const dot = put("circle", { cx: x(value), cy: y, r: 5, fill: colour(r.method), "data-method": r.method, "data-value": r[measure] });
    const text = `${r.method}: ${shown(value, MEASURES[measure].digits)}`;
    dot.append(Object.assign(document.createElementNS("http://www.w3.org/2000/svg", "title"), { textContent: bar ? `${text} (standard error ${shown(bar / 2)})` : text }));
  });
  put("text", { x: width / 2, y: height - 5, "text-anchor": "middle" }, axis);
}

// lines join neighbours on the axis alone: where nothing was measured there is a gap
function drawLines(rows, budgets, measure) {
  const { scale, line, axis } = MEASURES[measure], height = 360, side = 150, left = 46;
  const [width, put] = canvas(element("lines"), height), [low, high] = range(rows, measure);
  const first = Math.log(budgets[0]), last = Math.log(budgets.at(-1));
  const x = (b) => left + 12 + ((Math.log(b) - first) / (last - first || 1)) * (width - left - side - 20);
  const y = (v) => 10 + ((high - v) / (high - low)) * (height - 62);
  for (const t of ticks(low, high)) {
    put("line", { x1: left, x2: width - side, y1: y(t), y2: y(t), class: "grid" });
    put("text", { x: left - 6, y: y(t) + 4, "text-anchor": "end" }, t);
  }
  if (line !== undefined) put("line", { x1: left, x2: width - side, y1: y(line), y2: y(line), class: "mark" });
  budgets.forEach((b, i) => (i % 2 && width < 500 && budgets.length > 4) || put("text", { x: x(b), y: height - 34, "text-anchor": "middle" }, b));
  const methods = unique(rows.map((r) => r.method)), ends = [];
  for (const method of methods) {
    const own = new Map(rows.filter((r) => r.method === method).map((r) => [r.budget, r])), stroke = colour(method);
    budgets.forEach((b, i) => {
      const [r, next] = [own.get(b), own.get(budgets[i + 1])];
      if (!r) return;
      const value = scale * r[measure], bar = 2 * scale * (r[measure + "_se"] || 0);
      if (next) put("line", { x1: x(b), y1: y(value), x2: x(next.budget), y2: y(scale * next[measure]), stroke, "stroke-width": 2 });
      put("line", { x1: x(b), x2: x(b), y1: y(value - bar), y2: y(value + bar), stroke });
      put("circle", { cx: x(b), cy: y(value), r: 3.5, fill: stroke });
      ends[methods.indexOf(method)] = y(value);
    });
  }
  const at = apart(ends, 17, 14, height - 55);
  methods.forEach((method, i) => {
    put("line", { x1: width - side + 4, x2: width - side + 18, y1: at[i], y2: at[i], stroke: colour(method), "stroke-width": 3 });
    put("text", { x: width - side + 23, y: at[i] + 5 }, method);
  });
  put("text", { x: left, y: height - 12 }, `across: items asked. Up: ${axis}`);
}

function writeTable(rows, complete) {
  const [head, body] = [element("numbers").tHead, element("numbers").tBodies[0]];
  const names = ["method", ...Object.values(MEASURES).map((m) => m.name), "trials"];
  head.replaceChildren(node("tr", {}, ...names.map((textContent) => node("th", { textContent, scope: "col" }))));
  const best = Object.fromEntries(Object.entries(MEASURES).map(([key, m]) => {
    const values = rows.map((r) => r[key]).filter((v) => v != null);
    return [key, complete && m.best ? m.best(...values) : undefined];
  }));
  body.replaceChildren(...rows.map((r) => {
    const cells = Object.entries(MEASURES).map(([key, { scale }]) => {
      const se = r[key + "_se"], { digits } = MEASURES[key], error = se == null ? "" : `\u00a0(${shown(scale * se)})`;
      const cell = node("td", { textContent: r[key] == null ? "" : shown(scale * r[key], digits) + error });
      cell.style.fontWeight = r[key] != null && r[key] === best[key] ? "bold" : "";
      return cell;
    });
    return node("tr", {}, node("th", { textContent: r.method, scope: "row" }), ...cells, node("td", { textContent: r.trials }));
  }));
  if (typeof fit === "function") fit(); // of site.html: narrow windows
}

function explore(table) {
  const rows = table.rows.map((row) => Object.fromEntries(row.map((v, i) => [table.columns[i], v])));
  const [data, split, budget, measure] = ["data", "split", "budget", "measure"].map(element), old = state();
  options(data, unique(rows.map((r) => r.data)).map((d) => [d, table.names[d] || d]), old.data || "swebench_verified");
  options(measure, Object.entries(MEASURES).map(([key, m]) => [key, m.name]), old.measure);
  const listed = old.methods?.split(",");
  element("methods").replaceChildren(...[...START, ...unique(rows.map((r) => r.method)).filter((m) => !START.includes(m)).sort()].map((value) =>
    node("label", {}, node("input", { type: "checkbox", value, checked: (listed || START).includes(value) }), ` ${value}`)));
  const boxes = [...element("methods").querySelectorAll("input")], first = START.join();
  function refresh(wanted = {}) {
    const here = rows.filter((r) => r.data === data.value);
    options(split, unique(here.map((r) => r.split)).map((s) => [s, SPLITS[s] || s]), wanted.split);
    const kind = here.filter((r) => r.split === split.value), field = unique(kind.map((r) => r.method)).sort();
    const budgets = unique(kind.map((r) => r.budget)).sort((a, b) => a - b);
    const measured = (b) => new Set(kind.filter((r) => r.budget === b).map((r) => r.method)).size;
    const most = Math.max(...budgets.map(measured)), full = budgets.filter((b) => measured(b) === most);
    const asked = Number(wanted.budget || budget.value || 25);
    const nearest = full.reduce((a, b) => (Math.abs(b - asked) < Math.abs(a - asked) ? b : a));
    const chosen = wanted.budget || wanted.keep ? asked : nearest; // another data set: where its field is complete
    options(budget, budgets.map((b) => [b, `${b}${measured(b) < field.length ? ` (${measured(b)} of ${field.length} methods)` : ""}`]), budgets.includes(chosen) ? chosen : nearest);
    const on = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const key = measure.value, { best, line, scale, name, digits } = MEASURES[key], n = Number(budget.value);
    const at = kind.filter((r) => r.budget === n), known = kind.filter((r) => on.has(r.method) && r[key] != null);
    const cost = (r) => (best === Math.max ? -r[key] : best ? r[key] : Math.abs(scale * r[key] - line));
    const now = known.filter((r) => r.budget === n).sort((a, b) => cost(a) - cost(b));
    const lacking = field.filter((m) => on.has(m) && !now.some((r) => r.method === m));
    const complete = at.length === field.length && field.every((m) => on.has(m));
    keep({ data: data.value, split: split.value, budget: n, measure: key, ...([...on].join() === first ? {} : { methods: [...on].join() }) });
    const where = `${data.selectedOptions[0].text}; new models ${split.selectedOptions[0].text}; ${n} items`;
    const missing = field.length - at.length;
    const each = now.map((r) => `${r.method} ${shown(scale * r[key], digits)}`).slice(0, 4).join(", ");
    element("summary").textContent = !now.length ? `${where}: nothing was measured of the methods chosen.`
      : !best ? `${where}, ${name}: ${each}; ${line} are promised.`
      : `${where}, ${name}: ${each}${now.length > 4 ? ", and more below" : ""}.`;
    element("missing").textContent = missing ? `${at.length} of ${field.length} methods were measured here; all were at ${full.filter(() => most === field.length).join(" and ") || "no number of"} items.` : "";
    element("bars").hidden = element("lines").hidden = !now.length;
    if (now.length) {
      drawBars(now, lacking, key);
      drawLines(known.filter((r) => START.includes(r.method) || on.size <= 7), budgets, key);
    }
    writeTable(now, complete);
    element("bars-caption").textContent = `${where} asked. Bars are two standard errors.`;
    element("lines-caption").textContent = `${where.replace(/;[^;]*$/, "")}; over the number of items asked. Where a line is broken, nothing was measured.`;
  }
  const tick = (wanted) => (boxes.forEach((box) => (box.checked = wanted(box.value))), refresh({ keep: true }));
  element("all-methods").addEventListener("click", () => tick(() => true));
  element("first-methods").addEventListener("click", () => tick((method) => START.includes(method)));
  element("explorer").addEventListener("change", (event) => refresh({ keep: event.target !== data && event.target !== split }));
  addEventListener("resize", () => refresh({ keep: true }));
  refresh(old);
}

explore(EXPLORER);
