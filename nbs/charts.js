// What the pages that answer questions share: charts in SVG, controls, a link for each state.
// No library, nothing from elsewhere; the data are scripts, so pages open from disk.
"use strict";

const METHOD_COLOURS = { "guarded_irt": "#2a7fc4", "random": "#808080", "stratified": "#d06a1a", "aipw": "#15906a", "tailored_bench": "#c4579a", "p_irt": "#8f7c10", "gp_irt": "#8d70cc", "metabench": "#1c8ca3", "adaptive_irt": "#d9484f", "essence_bench": "#6a9520" }; // as in the book
const element = (id) => document.getElementById(id);
const unique = (values) => [...new Set(values)];
const shown = (value, digits = 2) => (value == null ? "" : value.toFixed(digits));
const colour = (method) => METHOD_COLOURS[method] || "#777777";

function node(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

function options(select, entries, wanted) {
  const before = wanted ?? select.value;
  select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
  if (entries.some(([value]) => String(value) === String(before))) select.value = before;
}

function ticks(low, high, count = 5) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power, found = [];
  for (let t = Math.ceil(low / step) * step; t <= high + 1e-9; t += step) found.push(Number(t.toFixed(6)));
  return found;
}

// an empty chart as wide as its place, so that 14 pixels are 14 pixels on a phone too
function canvas(chart, height) {
  const width = Math.max(280, chart.clientWidth || chart.parentNode.clientWidth);
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  chart.replaceChildren();
  const draw = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    chart.append(made);
    return made;
  };
  return [width, draw];
}

// labels at these heights, moved apart where they would touch; from top to bottom
function apart(heights, least, low, high) {
  const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]), at = [...heights];
  order.forEach((i, k) => (at[i] = Math.max(at[i], k ? at[order[k - 1]] + least : low)));
  for (let k = order.length - 1, most = high; k >= 0; k--, most -= least) at[order[k]] = Math.min(at[order[k]], most);
  return at;
}

const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const keep = (values) => history.replaceState(null, "", `#${new URLSearchParams(values)}`);
