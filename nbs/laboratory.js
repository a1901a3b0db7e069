// The laboratory: Python in a worker studies a table that never leaves the browser
(() => {
  const at = (id) => document.getElementById(id);
  let worker, waiting, name, studied;

  const say = (text) => (at("laboratory-says").textContent = text);
  const start = async () => {
    if (worker) return;
    const answer = await fetch("run/cells/stats-intervals.json");
    if (!answer.ok) throw new Error("this copy of the site was made without Python for browsers");
    const { version, bytes } = await answer.json();
    worker = new Worker(`run/worker.js?v=${version}`);
    let step = "Python";
    worker.onmessage = ({ data }) => {
      step = data.step ?? step;
      if (data.got) say(`loading ${step}: ${(data.got / 1e6).toFixed(0)} of ${(bytes / 1e6).toFixed(0)} MB`);
      if (data.text) say(data.text);
      if (data.ready) say("the table is being studied");
      if (data.failed) say(`Python could not be loaded: ${data.failed}. Reload the page to try again.`);
      if (data.done) {
        const { resolve, reject } = waiting;
        data.error ? reject(new Error(data.error.replace(/ \(line \d+\)$/, "").replace(/^\w*Error: /, ""))) : resolve(JSON.parse(data.shown.at(-1)[1]));
      }
    };
  };
  // Python is told names as JSON, which are strings in Python too
  const ask = async (call, given, file) => {
    await start();
    at("halt").hidden = false;
    const source = `import laboratory\nlaboratory.Text(laboratory.${call}(${given.map((x) => JSON.stringify(x)).join(", ")}))`;
    return new Promise((resolve, reject) => {
      waiting = { resolve, reject };
      worker.postMessage({ source, name: "cell 1", key: 1, ...file });
    }).finally(() => (at("halt").hidden = true));
  };

  // a chart whose scale begins at `bottom`, with round numbers on both axes
  const axes = (svg, widest, bottom, top, label) => {
    svg.closest("figure").hidden = false;
    const high = 300, side = 118, [width, put] = canvas(svg, high);
    const x = (v) => 46 + (v / widest) * (width - 46 - side), y = (v) => 12 + ((top - v) / (top - bottom)) * (high - 62);
    for (const t of ticks(bottom, top)) {
      put("line", { x1: x(0), x2: width - side, y1: y(t), y2: y(t), class: "grid" });
      put("text", { x: 40, y: y(t) + 4, "text-anchor": "end" }, t);
    }
    for (const t of ticks(0, widest, width < 500 ? 3 : 5)) put("text", { x: x(t), y: high - 30, "text-anchor": "middle" }, t);
    put("text", { x: 46, y: high - 8 }, label);
    return { put, x, y, right: width - side, foot: high - 50 };
  };
  // lines with their bands; the name of each at its end
  const lines = ({ put, x, y, right, foot }, series) => {
    for (const { points, stroke } of series.filter((one) => one.points.length > 1)) {
      const corner = (key) => points.map((p) => `${x(p.x)},${y(p[key])}`);
      put("polygon", { points: [...corner("up"), ...corner("down").reverse()].join(" "), fill: stroke, "fill-opacity": 0.18 });
      put("polyline", { points: corner("y").join(" "), fill: "none", stroke, "stroke-width": 2 });
    }
    const at = apart(series.map(({ points }) => y(points.at(-1).y)), 17, 16, foot);
    series.forEach(({ stroke, name, look }, i) => {
      put("line", { x1: right + 6, x2: right + 22, y1: at[i], y2: at[i], ...(look || { stroke, "stroke-width": 3 }) });
      put("text", { x: right + 27, y: at[i] + 5 }, name);
    });
  };

  const showStudy = (study) => {
    studied = study;
    at("findings").hidden = false;
    at("advice").textContent = `${study.models} models, ${study.items} items. ${study.sentence}`;
    const series = unique(study.rows.map((row) => row.method)).map((method) => ({
      name: method,
      stroke: colour(method),
      points: study.rows.filter((row) => row.method === method).map((row) => {
        const error = 200 * (row.mae_se ?? 0), y = 100 * row.mae;
        return { x: row.budget, y, up: y + error, down: Math.max(0, y - error) };
      }),
    }));
    const every = series.flatMap(({ points }) => points);
    lines(axes(at("curves"), Math.max(...every.map((p) => p.x)), 0, Math.max(...every.map((p) => p.up)), "across: items asked. Up: error in points"), series);
    at("curves-caption").textContent = `Mean absolute error on models that were held out: ${study.trials} trials of ${study.method}, ${study.draws} of random items. Bands are two standard errors.`;
    at("list").href = URL.createObjectURL(new Blob([study.list.join("\n") + "\n"], { type: "text/plain" }));
    at("list").textContent = `Download the list of ${study.list.length} items (${study.method})`;
    at("command").textContent = `benchnb plan ${name} --budget ${study.budget} --out my_model`;
  };

  const showPath = ({ method, truth, steps, random }) => {
    const series = [["random", random], [method, steps]].map(([name, results]) => ({
      name,
      stroke: colour(name),
      points: results.map((s) => ({ x: s.items, y: 100 * s.score, up: 100 * (s.high ?? s.score), down: 100 * (s.low ?? s.score) })),
    }));
    const every = series.flatMap(({ points }) => points.flatMap((p) => [p.up, p.down])).concat(100 * truth);
    const widest = steps.at(-1).items, low = Math.max(0, Math.min(...every) - 2), top = Math.min(100, Math.max(...every) + 2);
    const chart = axes(at("path"), widest, low, top, "across: results in. Up: score in points");
    chart.put("line", { x1: chart.x(0), x2: chart.right, y1: chart.y(100 * truth), y2: chart.y(100 * truth), class: "mark" });
    const level = { x: widest, y: 100 * truth, up: 100 * truth, down: 100 * truth };
    lines(chart, [...series, { name: "true score", points: [level], look: { class: "mark" } }]);
    const last = steps.at(-1), points = (v) => (100 * v).toFixed(1), guard = last.flags.length ? `Guard: ${last.flags.join(", ")}` : method === "guarded_irt" ? "Guard: in range" : "";
    at("path-caption").textContent = `After ${last.items} items ${method} says ${points(last.score)} points (${points(last.low)} to ${points(last.high)}), random items ${points(random.at(-1).score)}; on all items it is ${points(truth)}. ${[guard, last.said].filter(Boolean).join("; ")}.`;
  };

  const careful = async (work) => {
    at("study").disabled = at("watch").disabled = true;
    try {
      await work();
    } catch (error) {
      say(error.message);
    }
    at("study").disabled = false;
    at("watch").disabled = !studied;
  };
  at("study").onclick = () => careful(async () => {
    const file = at("file").files[0], budget = Math.round(+at("items").value) || 40;
    name = file ? file.name : at("table").value;
    studied = null;
    at("findings").hidden = true;
    say("the table is being studied");
    const given = file && { file: name, content: new Uint8Array(await file.arrayBuffer()) };
    showStudy(await ask("study", [name, budget], given));
    const names = await ask("models", [name]);
    at("model").replaceChildren(...names.map((model) => new Option(model)));
    at("method").value = studied.method;
    say("");
  });
  at("watch").onclick = () => careful(async () => {
    say("the model is being evaluated");
    showPath(await ask("steps", [name, at("model").value, at("method").value, studied.budget]));
    say("");
  });
  at("halt").onclick = () => {
    worker?.terminate();
    worker = null;
    waiting?.reject(new Error("stopped"));
  };
})();
