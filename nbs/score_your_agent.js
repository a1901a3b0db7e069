// "Score your agent" and the chart of the home page: guarded_irt's list in one round, its guard and
// a random sample of the same size. Estimates: guarded_irt.js; data: tools/demonstration.py.
"use strict";

// the first tasks of a random order: their mean, and wilson_interval with effective_size
function randomSample(answers, order) {
  const total = answers.length, steps = [];
  let right = 0;
  order.forEach((item, k) => {
    const n = k + 1;
    right += answers[item];
    const score = right / n, q = (1.959963984540054 ** 2 * (total - n)) / (n * (total - 1));
    const centre = (score + q / 2) / (1 + q), half = Math.sqrt(q * score * (1 - score) + q ** 2 / 4) / (1 + q);
    steps.push({ item, score, low: Math.max(0, centre - half), high: Math.min(1, centre + half) });
  });
  return steps;
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

// what a report's answers are to a list of tasks: all of it, at least half of it, or other tasks
function reportKind(list, answers) {
  const seen = list.items.map((item) => answers[item]), scored = seen.filter((answer) => answer !== null).length;
  if (2 * scored >= seen.length) return { kind: scored === seen.length ? "list" : "part", items: list.items, seen, scored };
  const items = answers.map((_, item) => item).filter((item) => answers[item] !== null);
  return { kind: "other", items, seen: items.map((item) => answers[item]), scored };
}

const FEWEST = 5; // results: an estimate from fewer says nothing

// the estimate after the first n results
function estimateAfter(fitted, list, reading, n) {
  const { kind, items, seen } = reading;
  if (kind === "other") return curvesAlone(fitted, list, items.slice(0, n), seen.slice(0, n));
  if (kind === "list" && n === items.length && fitted.ease) return reportedEstimate(fitted, list, seen);
  return guardedEstimate(fitted, list, seen.map((answer, k) => (k < n ? answer : null)));
}

const points = (score, digits = 1) => (100 * score).toFixed(digits);

// "55.5 \u00b1 8.9 points", or both ends where the interval is not symmetric
function withInterval({ score, low, high }) {
  const half = (high - low) / 2, symmetric = Math.abs(low + high - 2 * score) < 0.0005;
  return [points(score), symmetric ? ` ± ${points(half)} points` : ` points (${points(low)} to ${points(high)})`];
}

// what the guard found, and what follows from it
function guardSentence(fitted, reading, now) {
  const many = `the ${fitted.sources} earlier agents`, sample = "the list's random sample";
  const flags = now.flags || [], end = flags.includes("above") ? "best" : "worst";
  const extreme = flags.includes("above") || flags.includes("below") ? ` Its score is ${end === "best" ? "above the best" : "below the worst"} of them.` : "";
  if (now.fallback) return `Its answers do not follow ${many}, so they are not used: AIPW on ${sample} estimates it.${extreme}`;
  if (now.unchecked) return `Unchecked, so no rank: its answers cannot show that it is like ${many}, for whom the interval is made.`;
  if (now.guard === "in range") return `In range: its answers follow ${many}, whose item curves estimate it.${extreme}`;
  const why = now.guard === "misfit" ? `Misfit: it answers unlike ${many}` : `Out of range: it may be stronger than ${many} (probability ${Math.round(100 * now.outside)}%)`;
  const share = Math.round(100 * now.weight); // of the sample in the mixture
  return `${why}. ${now.design ? `Only ${sample} estimates it.` : `The estimate is ${share}% ${sample} and ${100 - share}% the curves.`}${extreme}`;
}

// what a report is, where it is not the list's results alone
function reportSentence(data, reading, answers) {
  const scored = answers.filter((answer) => answer !== null).length, size = data.list.items.length;
  if (scored === answers.length) return `All ${scored} tasks have a result, so the true score is known. The estimate is what the list of ${size} alone says.`;
  if (reading.kind === "part") return `${reading.scored} of the list's ${size} tasks have a result; the interval takes the others to be missing at random.`;
  if (reading.kind === "list") return scored > size ? `Of ${scored} results, those of the list's ${size} tasks are used: only they were drawn at random.` : "";
  const noun = scored === 1 ? "This task is" : `These ${scored} tasks are`;
  return `${noun} not a random sample: ${reading.scored} of ${size} tasks of the list have a result. Estimated by item curves alone, which nothing checks here; how the tasks were chosen is not in the interval. Run the list for an estimate to rely on: benchnb plan ${data.bundle} --out my_agent.`;
}

function scoreYourAgent(place, data, reports) {
  const small = place.classList.contains("small"), tasks = data.tasks, count = tasks.length;
  const answered = data.answers.map((text) => bits(text, count)), mean = (answers) => sumOf(answers) / answers.length;
  const truths = answered.map(mean), names = data.agents.map((name) => name.replace(/^(\d{4})(\d\d)\d\d_/, "$1-$2 "));
  const money = (x) => `$${x.toFixed(x < 100 ? 2 : 0)}`, sizes = Object.keys(data.lists).map(Number);
  const older = readFitted(data.fitted);
  let bundle; // read when the first report comes

  const agent = node("select"), size = node("select"), steps = node("input", { type: "range", min: 1 });
  const cost = node("input", { type: "number", min: 0, step: 0.05, value: 1 });
  const file = node("input", { type: "file", accept: ".json,application/json" });
  const play = node("button", { type: "button", className: "btn btn-primary btn-sm" });
  const redraw = node("button", { type: "button", className: "btn btn-outline-secondary btn-sm", textContent: "Another draw" });
  const share = node("button", { type: "button", className: "btn btn-outline-secondary btn-sm", textContent: "Copy link" });
  const chart = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const figures = node("dl", { className: "figures" }), asked = node("p", { className: "asked" });
  const notice = node("p", { className: "notice", role: "status" }), caption = node("figcaption");
  const result = node("div", {}, figures, node("div", { className: "charts" }, node("figure", {}, chart, caption)));
  const label = (text, input) => node("label", {}, text + " ", input);
  const order = names.map((_, i) => i).sort((a, b) => (data.agents[b] > data.agents[a] ? 1 : -1));
  options(agent, order.map((i) => [i, names[i]]));
  options(size, sizes.map((n) => [n, `${n} tasks`]), 25);
  agent.value = data.first;
  chart.setAttribute("role", "img");
  const controls = [label("Agent", agent), play, label("Results in", steps)];
  if (!small) controls.splice(1, 0, label("List", size));
  if (!small) controls.push(label("Dollars a task", cost), redraw, share);
  if (reports) controls.push(label("Or a report of SWE-bench", file));
  place.replaceChildren(node("div", { className: "controls" }, ...controls), notice, result, asked);
  place.hidden = false;
  document.querySelectorAll(place.dataset.instead || "#none").forEach((figure) => (figure.hidden = true));

  let answers, fitted, list, own, reading, path, random, truth, rivals, timer, draw = 0, turn = 0;
  function choose(report) {
    own = report || null;
    const i = Number(agent.value);
    if (own) bundle = bundle || readFitted(reports.fitted);
    fitted = own ? bundle : older;
    list = own ? reports.list : data.lists[size.value][draw % data.lists[size.value].length];
    answers = own ? own.answers : answered[i];
    reading = reportKind(list, answers);
    rivals = fitted.scores;
    truth = answers.includes(null) ? null : mean(answers);
    path = [];
    random = truth === null ? null : randomSample(answers, data.random[draw % data.random.length].slice(0, reading.items.length));
    steps.min = Math.min(FEWEST, reading.items.length);
    steps.max = reading.items.length; // before the value, which it limits
    steps.value = reading.items.length;
  }
  const after = (n) => (path[n] = path[n] || estimateAfter(fitted, list, reading, n)); // computed once
  const stride = () => Math.ceil(reading.items.length / 25); // a long list: every second result, or fourth
  const until = (n) => [...Array(n).keys()].map((k) => k + 1).filter((k) => k === n || k % stride() === 0).filter((k) => k >= Number(steps.min) && path[k]);
  const scoredBy = (n) => reading.seen.slice(0, n).some((answer) => answer !== null);
  // one estimate at a time, so that the page stays alive
  async function fill() {
    const mine = ++turn;
    for (let n = stride(); n < reading.items.length; n += stride()) {
      if (path[n] || n < Number(steps.min) || !scoredBy(n)) continue;
      await new Promise((resume) => setTimeout(resume));
      if (mine !== turn) return;
      after(n);
    }
    paint(Number(steps.value));
  }
  function show(spoken = true) {
    let n = Number(steps.value);
    while (!scoredBy(n)) steps.value = ++n;
    const now = after(n), beside = random?.[n - 1], each = Number(cost.value), total = reading.items.length;
    const place = (score) => 1 + rivals.filter((rival) => rival > score).length, who = own ? own.name : names[agent.value];
    const pair = (term, ...texts) => node("div", {}, node("dt", { textContent: term }), node("dd", {}, ...texts));
    const shown = (e) => {
      const [score, rest] = withInterval(e), off = truth === null ? "" : `, off by ${points(Math.abs(e.score - truth))}`;
      return [node("b", { textContent: score }), rest + off];
    };
    const name = reading.kind === "other" ? `item curves, ${n} tasks` : `guarded_irt, ${n === total ? now.count : `${n} of ${total}`} tasks`;
    const guard = now.fallback ? "unlike the others" : now.guard;
    const rows = [pair(name, ...shown(now))];
    if (beside) rows.push(pair(`${n} random tasks`, ...shown(beside)));
    if (truth !== null) rows.push(pair(`true score, all ${count}`, node("b", { textContent: points(truth) }), " points"));
    rows.push(pair("guard", node("b", { className: guard === "in range" ? "in" : "out", textContent: guard === "none" ? "cannot be applied" : guard })));
    if (!small && reading.kind !== "other" && !now.unchecked) rows.push(pair("rank", node("b", { textContent: place(now.score) }), ` (${place(now.high)} to ${place(now.low)}) of ${rivals.length + 1}`));
    if (!small) rows.push(pair("spent", node("b", { textContent: money(now.count * each) }), ` of ${money(count * each)}`));
    figures.replaceChildren(...rows);
    const last = reading.items.slice(Math.max(0, n - 3), n).map((item, k) => [tasks[item], answers[item], k]);
    if (!small) asked.replaceChildren("Last results: ", ...last.flatMap(([task, answer, k]) => [k ? ", " : "", node("code", { textContent: task }), answer === null ? " missing" : answer ? " solved" : " failed"]), ".");
    const about = own ? reportSentence(reports, reading, answers) : "", guarded = reading.kind === "other" ? "" : guardSentence(fitted, reading, now);
    if (spoken) notice.textContent = [`${who}: ${withInterval(now).join("")}.`, guarded, about].filter(Boolean).join(" ");
    notice.classList.toggle("warning", now.guard !== "in range" || Boolean(now.fallback) || reading.kind !== "list");
    chart.setAttribute("aria-label", `Score and interval after 1 to ${n} results: ${name}${beside ? ", and as many random tasks" : ""}`);
    caption.textContent = own ? `${who}: estimates with 95% intervals, as results come in. The item curves come from ${fitted.sources} agents; if yours is one of them, they have seen it.` : newestCaption(Number(size.value));
    paint(n);
    play.textContent = timer ? "Pause" : "Run the list";
    if (small) return;
    keep({ ...(own ? { name: own.name, answers: packed(answers) } : { agent: data.agents[agent.value], list: size.value, draw }), results: n, dollars: each });
  }
  function newestCaption(n) {
    const measured = (method) => data.measured[method].points[n].toFixed(1), { holds, trials } = data.measured.guarded_irt;
    const who = `The ${data.agents.length} newest agents, with the item curves of ${fitted.sources} older ones.`;
    if (small) return who;
    return `${who} Over all of them, and ${trials[n]} draws of the list, guarded_irt's error after ${n} tasks is ${measured("guarded_irt")} points, that of random tasks ${measured("random")}; ${(100 * holds[n]).toFixed(0)}% of its intervals hold the true score. The bar below the axis is its guard.`;
  }
  function paint(n) {
    const height = small ? 262 : 350, [width, put] = canvas(chart, height), side = 118, total = Math.max(reading.items.length, 10);
    const x = (k) => 46 + (k / total) * (width - 46 - side), y = (v) => 12 + (1 - v) * (height - 76);
    for (const t of [0, 0.25, 0.5, 0.75, 1]) {
      put("line", { x1: x(0), x2: width - side, y1: y(t), y2: y(t), class: "grid" });
      put("text", { x: 40, y: y(t) + 4, "text-anchor": "end" }, 100 * t);
    }
    for (const t of ticks(0, total)) put("text", { x: x(t), y: height - 24, "text-anchor": "middle" }, t);
    put("text", { x: x(total / 2), y: height - 6, "text-anchor": "middle" }, "results in; up: score in points");
    if (truth !== null) put("line", { x1: x(0), x2: width - side, y1: y(truth), y2: y(truth), class: "mark" });
    const own = until(n).map((k) => ({ k, ...path[k] })), labels = [];
    const series = [[own, colour("guarded_irt"), reading.kind === "other" ? "item curves" : "guarded_irt"]];
    if (random) series.unshift([random.slice(0, n).map((e, k) => ({ k: k + 1, ...e })).slice(Number(steps.min) - 1), colour("random"), "random"]);
    for (const [part, stroke, name] of series) {
      const line = (key) => part.map((e) => `${x(e.k)},${y(e[key])}`);
      put("polygon", { points: [...line("low"), ...line("high").reverse()].join(" "), fill: stroke, "fill-opacity": 0.22, stroke, "stroke-opacity": 0.6 });
      put("polyline", { points: line("score").join(" "), fill: "none", stroke, "stroke-width": 2.5 });
      put("circle", { cx: x(n), cy: y(part.at(-1).score), r: 4, fill: stroke });
      labels.push([name, part.at(-1).score, { stroke, "stroke-width": 3 }]);
    }
    if (truth !== null) labels.push(["true score", truth, { class: "mark" }]);
    const at = apart(labels.map(([, v]) => y(v)), 17, 16, height - 72);
    labels.forEach(([name, , look], i) => {
      put("line", { x1: width - side + 6, x2: width - side + 22, y1: at[i], y2: at[i], ...look });
      put("text", { x: width - side + 27, y: at[i] + 5 }, name);
    });
    if (reading.kind === "other") return;
    own.forEach((e, i) => { // the guard: a bar below the axis
      const from = i ? own[i - 1].k : Number(steps.min) - 1, fill = e.guard === "in range" && !e.fallback ? colour("guarded_irt") : "#d06a1a";
      put("rect", { x: x(from), y: y(0) + 7, width: Math.max(1, x(e.k) - x(from)), height: 7, fill, "data-guard": e.guard });
    });
    put("text", { x: width - side + 6, y: y(0) + 15 }, own.at(-1).fallback ? "unlike the others" : own.at(-1).guard);
  }
  const stop = () => (timer = clearInterval(timer));
  const fresh = (report) => {
    stop();
    choose(report);
    result.hidden = asked.hidden = false;
    show();
    fill();
  };
  // a file that cannot be read: nothing of an earlier result stays
  const refuse = (error) => {
    stop();
    turn++;
    result.hidden = asked.hidden = true;
    notice.classList.add("warning");
    notice.textContent = error.message;
    history.replaceState(null, "", location.pathname);
  };
  async function read(picked) {
    if (!picked) return;
    try {
      const report = JSON.parse(await picked.text());
      fresh({ name: picked.name.replace(/\.json$/, ""), answers: readReport(report, tasks) });
    } catch (error) {
      refuse(error instanceof SyntaxError ? new Error(`${picked.name} is no JSON: drop the report that SWE-bench's harness or sb-cli wrote.`) : error);
    }
    file.value = ""; // the same file may be chosen again
  }
  agent.addEventListener("change", () => fresh());
  size.addEventListener("change", () => fresh());
  steps.addEventListener("input", () => (stop(), show()));
  cost.addEventListener("input", () => show());
  redraw.addEventListener("click", () => (draw++, fresh(own)));
  share.addEventListener("click", () => navigator.clipboard?.writeText(location.href).then(() => (notice.textContent = "The link is copied: it holds the answers, nothing was sent.")));
  file.addEventListener("change", () => read(file.files[0]));
  play.addEventListener("click", () => {
    if (timer) return stop(), show();
    if (Number(steps.value) >= reading.items.length) steps.value = steps.min;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return (steps.value = reading.items.length), show();
    timer = setInterval(() => {
      steps.value = Number(steps.value) + stride();
      const done = Number(steps.value) >= reading.items.length;
      if (done) stop();
      show(done);
    }, 160);
    show(false);
  });
  addEventListener("resize", () => result.hidden || paint(Number(steps.value)));
  if (reports) {
    place.addEventListener("dragover", (event) => event.preventDefault());
    place.addEventListener("drop", (event) => (event.preventDefault(), read(event.dataTransfer.files[0])));
  }
  const old = small ? {} : state(), named = data.agents.indexOf(old.agent);
  if (old.dollars > 0) cost.value = old.dollars;
  if (named >= 0) agent.value = named;
  if (sizes.includes(Number(old.list))) size.value = old.list;
  if (old.draw > 0) draw = Math.floor(old.draw);
  choose(old.answers && reports ? { name: old.name || "Your agent", answers: unpacked(old.answers, count) } : undefined);
  if (old.results >= 1) steps.value = old.results;
  show();
  fill();
}

if (typeof document !== "undefined")
  document.querySelectorAll(".score-your-agent").forEach((place) => scoreYourAgent(place, DEMONSTRATION, typeof REPORTS === "undefined" ? null : REPORTS));
