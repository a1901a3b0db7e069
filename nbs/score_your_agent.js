// "Score your agent": the adaptive test of the library (adaptive_irt without its fallback),
// step by step as tools/demonstration.py and a test of it in Python.
"use strict";

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// the most likely ability and its variance (IRT.abilities, equation 3)
function ability(bank, asked, seen) {
  let theta = 0, hessian = 1;
  for (let round = 0; round < 100; round++) {
    let gradient = -theta;
    hessian = 1;
    asked.forEach((item, i) => {
      const slope = bank.slopes[item], chance = sigmoid(theta * slope + bank.intercepts[item]);
      gradient += (seen[i] - chance) * slope;
      hessian += chance * (1 - chance) * slope ** 2;
    });
    const step = gradient / hessian, short = step / Math.max(1, Math.abs(step));
    if (Math.abs(short) <= 1e-9) break;
    theta += short;
  }
  return { theta, variance: 1 / hessian };
}

// the task that tells most at this ability (AdaptiveTest.choose, equation 5); -1: none is left
function nextTask(bank, theta, asked, open) {
  let best = -1, most = -Infinity;
  bank.slopes.forEach((slope, item) => {
    if (asked.includes(item) || !open(item)) return;
    const chance = sigmoid(theta * slope + bank.intercepts[item]);
    const use = Math.round(chance * (1 - chance) * slope ** 2 * 1e6) / 1e6 - (slope < 0 ? 1e6 : 0);
    if (use > most) [best, most] = [item, use];
  });
  return best;
}

// score, standard error and interval after some answers (equations 6 and 7)
function conclude(bank, asked, seen) {
  const { theta, variance } = ability(bank, asked, seen), known = new Map(asked.map((item, i) => [item, seen[i]]));
  let score = 0, gradient = 0, noise = 0;
  const share = 1 / bank.slopes.length;
  bank.slopes.forEach((slope, item) => {
    if (known.has(item)) return (score += share * known.get(item));
    const chance = sigmoid(theta * slope + bank.intercepts[item]), spread = chance * (1 - chance);
    score += share * chance;
    gradient += share * spread * slope;
    noise += share ** 2 * spread;
  });
  const se = Math.sqrt(gradient ** 2 * variance + noise);
  const half = se * bank.factors[Math.min(asked.length, bank.factors.length) - 1];
  const outside = theta > bank.range[1] ? "above" : theta < bank.range[0] ? "below" : "";
  return { theta, score, se, low: Math.max(0, score - half), high: Math.min(1, score + half), outside };
}

// the whole test of one agent; answers: 1, 0, or null where the task was not run
function adaptiveTest(bank, answers, steps = bank.factors.length) {
  const asked = [], seen = [], found = [], open = (item) => answers[item] !== null;
  for (let theta = 0; asked.length < steps; theta = found.at(-1).theta) {
    const item = nextTask(bank, theta, asked, open);
    if (item < 0) break;
    asked.push(item);
    seen.push(answers[item]);
    found.push({ item, right: answers[item], ...conclude(bank, asked, seen) });
  }
  return found;
}

// as many random tasks: their mean, and wilson_interval with effective_size
function randomSample(answers, steps, seed) {
  const order = answers.map((_, i) => i).filter((i) => answers[i] !== null), total = answers.length, found = [];
  for (let i = order.length - 1; i > 0; i--) {
    seed = (seed + 0x6d2b79f5) | 0; // mulberry32
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    const j = Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  for (let n = 1, right = 0; n <= Math.min(steps, order.length); n++) {
    right += answers[order[n - 1]];
    const score = right / n, q = (1.959963984540054 ** 2 * (total - n)) / (n * (total - 1));
    const centre = (score + q / 2) / (1 + q), half = Math.sqrt(q * score * (1 - score) + q ** 2 / 4) / (1 + q);
    found.push({ item: order[n - 1], score, low: Math.max(0, centre - half), high: Math.min(1, centre + half) });
  }
  return found;
}

// the answers of a report of SWE-bench's harness (report_scores in benchnb.harnesses.swebench)
function readReport(report, tasks) {
  if (!Array.isArray(report?.resolved_ids)) throw new Error("This file has no list resolved_ids: drop the report that SWE-bench's harness or sb-cli wrote.");
  const scores = new Map(), none = ["pending_ids", "infra_failure_ids"];
  const lists = ["submitted_ids", "unresolved_ids", "failed_ids", "empty_patch_ids", "error_ids", ...none, "resolved_ids"];
  for (const name of lists.slice(report.unresolved_ids ? 1 : 0))
    for (const task of report[name] || []) scores.set(task, none.includes(name) ? null : Number(name === "resolved_ids"));
  const both = report.resolved_ids.find((task) => (report.unresolved_ids || []).includes(task));
  if (both) throw new Error(`${both} is both in resolved_ids and in unresolved_ids.`);
  const answers = tasks.map((task) => scores.get(task) ?? null);
  if (answers.every((answer) => answer === null)) throw new Error("No task of SWE-bench Verified was scored in this report.");
  return answers;
}

// answers as text for a link, two bits each
function packed(answers) {
  let text = "";
  for (let i = 0; i < answers.length; i += 4)
    text += String.fromCharCode([0, 1, 2, 3].reduce((sum, k) => sum + ((answers[i + k] ?? 2) << (2 * k)), 0));
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
}

function unpacked(text, count) {
  const bytes = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Array.from({ length: count }, (_, i) => [0, 1, null, null][(bytes.charCodeAt(i >> 2) >> (2 * (i % 4))) & 3]);
}

function bits(text, count) {
  const bytes = atob(text);
  return Array.from({ length: count }, (_, i) => (bytes.charCodeAt(i >> 3) >> (7 - (i % 8))) & 1);
}

function scoreYourAgent(place, data) {
  const small = place.classList.contains("small"), tasks = data.tasks, count = tasks.length;
  const answered = data.answers.map((text) => bits(text, count));
  const mean = (answers) => answers.reduce((sum, a) => sum + a, 0) / answers.length;
  const truths = answered.map(mean), names = data.agents.map((name) => name.replace(/^(\d{4})(\d\d)\d\d_/, "$1-$2 "));
  const percent = (x) => `${(100 * x).toFixed(1)}%`, money = (x) => `$${x.toFixed(x < 100 ? 2 : 0)}`;

  const agent = node("select"), steps = node("input", { type: "range", min: 1, max: 60, value: 25 });
  const cost = node("input", { type: "number", min: 0, step: 0.05, value: 1 });
  const file = node("input", { type: "file", accept: ".json,application/json" });
  const play = node("button", { type: "button", className: "btn btn-primary btn-sm" });
  const redraw = node("button", { type: "button", className: "btn btn-outline-secondary btn-sm", textContent: "Another random draw" });
  const share = node("button", { type: "button", className: "btn btn-outline-secondary btn-sm", textContent: "Copy link" });
  const chart = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const figures = node("dl", { className: "figures" }), asked = node("p", { className: "asked" });
  const verdict = node("p", { role: "status" }), caption = node("figcaption");
  const label = (text, input) => node("label", {}, text + " ", input);
  const order = names.map((_, i) => i).sort((a, b) => (data.agents[b] > data.agents[a] ? 1 : -1));
  options(agent, order.map((i) => [i, names[i]]));
  agent.value = order.find((i) => truths[i] > 0.6 && truths[i] < 0.75) ?? order[0];
  chart.setAttribute("role", "img");
  const controls = [label("Agent", agent), play, label("Tasks run", steps)];
  if (!small) controls.push(label("Dollars a task", cost), redraw, share, label("Or a report of SWE-bench", file));
  place.replaceChildren(node("div", { className: "controls" }, ...controls), figures,
    node("div", { className: "charts" }, node("figure", {}, chart, caption)), asked, verdict);
  place.hidden = false;
  document.querySelectorAll(place.dataset.instead || "#none").forEach((figure) => (figure.hidden = true));

  let answers, bank, own, test, random, truth, rivals, timer, draw = 1, complaint = "";
  function choose(report) {
    own = report || null;
    const i = Number(agent.value);
    answers = report ? report.answers : answered[i];
    bank = data.banks[report ? data.banks.length - 1 : data.fold[i]];
    rivals = truths.filter((_, k) => report || k !== i);
    truth = answers.includes(null) ? null : mean(answers);
    test = adaptiveTest(bank, answers);
    random = randomSample(answers, test.length, draw * 1000 + i);
    steps.max = test.length;
  }
  function rank(now) {
    const place = (score) => 1 + rivals.filter((rival) => rival > score).length;
    return [place(now.score), place(now.high), place(now.low)];
  }
  function show(spoken = true) {
    const n = Math.min(Number(steps.value), test.length), now = test[n - 1], beside = random[n - 1], each = Number(cost.value);
    const whole = own && test.length < 60 ? null : count, who = own ? own.name : names[agent.value];
    const [at, best, worst] = rank(now), last = test.slice(Math.max(0, n - 3), n);
    const pair = (term, ...texts) => [node("dt", { textContent: term }), node("dd", {}, ...texts)];
    const pm = (e) => [node("b", { textContent: percent(e.score) }), ` (${percent(e.low)} to ${percent(e.high)})`];
    figures.replaceChildren(
      node("div", {}, ...pair("spent", node("b", { textContent: money(n * each) }), ` of ${money(count * each)}`)),
      node("div", {}, ...pair("adaptive test", ...pm(now))),
      node("div", {}, ...pair(`${n} random tasks`, ...pm(beside))),
      node("div", {}, ...pair("true score", node("b", { textContent: truth === null ? "unknown" : percent(truth) }), truth === null ? "" : ` (all ${count})`)),
      node("div", {}, ...pair("rank", node("b", { textContent: at }), ` (${best} to ${worst}) of ${rivals.length + 1}`)),
    );
    asked.replaceChildren("Last tasks: ", ...last.flatMap((s, k) => [k ? ", " : "", node("code", { textContent: tasks[s.item] }), s.right ? " solved" : " failed"]), ".");
    const flag = now.outside ? ` Flag: its ability is ${now.outside} that of all earlier agents, where the curves were never tested; use guarded_irt.` : "";
    if (spoken) verdict.textContent = complaint || `${who}: after ${n} of ${count} tasks the score is ${percent(now.score)}, ${percent(now.low)} to ${percent(now.high)}.${flag}`;
    chart.setAttribute("aria-label", `Score and interval after 1 to ${n} tasks, by the adaptive test and by random tasks`);
    const over = `the adaptive test's mean error after ${n} tasks is ${(100 * data.error[n - 1]).toFixed(1)} points, and ${(100 * data.holds[n - 1]).toFixed(0)}% of the intervals hold.`;
    caption.textContent = small ? `Over all ${data.agents.length} agents, each left out with its near-copies, ${over}` : `${who}: estimates with 95% intervals. ${own ? "The curves" : "It and its near-copies were left out; the curves"} come from the other agents. Over all ${data.agents.length}, each left out, ${over}`;
    paint(n);
    play.textContent = timer ? "Pause" : "Run task by task";
    if (small) return;
    keep({ ...(own ? { name: own.name, answers: packed(answers) } : { agent: data.agents[agent.value] }), tasks: n, dollars: each });
  }
  function paint(n) {
    const height = small ? 250 : 340, [width, put] = canvas(chart, height), side = 108;
    const x = (k) => 46 + (k / Math.max(test.length, 10)) * (width - 46 - side), y = (v) => 12 + (1 - v) * (height - 54);
    for (const t of [0, 0.25, 0.5, 0.75, 1]) {
      put("line", { x1: x(0), x2: width - side, y1: y(t), y2: y(t), class: "grid" });
      put("text", { x: 40, y: y(t) + 4, "text-anchor": "end" }, `${100 * t}%`);
    }
    for (const t of ticks(0, Math.max(test.length, 10))) put("text", { x: x(t), y: height - 24, "text-anchor": "middle" }, t);
    put("text", { x: x(test.length / 2), y: height - 6, "text-anchor": "middle" }, "tasks run");
    if (truth !== null) put("line", { x1: x(0), x2: width - side, y1: y(truth), y2: y(truth), class: "mark" });
    const series = [[random, colour("random"), "random"], [test, colour("adaptive_irt"), "adaptive"]];
    for (const [all, stroke] of series) {
      const part = all.slice(0, n), line = (key) => part.map((e, k) => `${x(k + 1)},${y(e[key])}`);
      put("polygon", { points: [...line("low"), ...line("high").reverse()].join(" "), fill: stroke, "fill-opacity": 0.22, stroke, "stroke-opacity": 0.6 });
      put("polyline", { points: line("score").join(" "), fill: "none", stroke, "stroke-width": 2.5 });
      put("circle", { cx: x(n), cy: y(part.at(-1).score), r: 4, fill: stroke });
    }
    const labels = series.map(([all, stroke, name]) => [name, all[n - 1].score, { stroke, "stroke-width": 3 }]);
    if (truth !== null) labels.push(["true score", truth, { class: "mark" }]);
    const at = apart(labels.map(([, v]) => y(v)), 17, 16, height - 50);
    labels.forEach(([name, , look], i) => {
      put("line", { x1: width - side + 6, x2: width - side + 22, y1: at[i], y2: at[i], ...look });
      put("text", { x: width - side + 27, y: at[i] + 5 }, name);
    });
  }
  const stop = () => (timer = clearInterval(timer));
  const fresh = (report) => (stop(), (complaint = ""), choose(report), show());
  const refuse = (error) => ((complaint = error.message), show());
  async function read(picked) {
    if (!picked) return;
    try {
      const report = JSON.parse(await picked.text());
      fresh({ name: picked.name.replace(/\.json$/, ""), answers: readReport(report, tasks) });
    } catch (error) {
      refuse(error instanceof SyntaxError ? new Error("This file is no JSON.") : error);
    }
  }
  agent.addEventListener("change", () => fresh());
  steps.addEventListener("input", () => (stop(), show()));
  cost.addEventListener("input", () => show());
  redraw.addEventListener("click", () => (draw++, fresh(own)));
  share.addEventListener("click", () => navigator.clipboard?.writeText(location.href).then(() => (verdict.textContent = "The link is copied: it holds the answers, nothing was sent.")));
  file.addEventListener("change", () => read(file.files[0]));
  play.addEventListener("click", () => {
    if (timer) return stop(), show();
    if (Number(steps.value) >= test.length || Number(steps.value) === 25) steps.value = 1;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return (steps.value = test.length), show();
    timer = setInterval(() => {
      steps.value = Number(steps.value) + 1;
      const done = Number(steps.value) >= test.length;
      if (done) stop();
      show(done);
    }, 120);
    show(false);
  });
  addEventListener("resize", () => paint(Math.min(Number(steps.value), test.length)));
  if (!small) {
    place.addEventListener("dragover", (event) => event.preventDefault());
    place.addEventListener("drop", (event) => (event.preventDefault(), read(event.dataTransfer.files[0])));
  }
  const old = small ? {} : state(), known = data.agents.indexOf(old.agent);
  if (old.dollars > 0) cost.value = old.dollars;
  if (known >= 0) agent.value = known;
  choose(old.answers ? { name: old.name || "Your agent", answers: unpacked(old.answers, count) } : undefined);
  if (old.tasks) steps.value = old.tasks;
  show();
}

if (typeof document !== "undefined")
  document.querySelectorAll(".score-your-agent").forEach((place) => scoreYourAgent(place, DEMONSTRATION));
