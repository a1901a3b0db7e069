// The laboratory: Python in a worker studies a table that never leaves the browser
(() => {
  const at = (id) => document.getElementById(id);
  const NS = "http://www.w3.org/2000/svg", BLUE = "#2a7fc4";
  const COLOURS = { random: "#808080", stratified: "#d06a1a", aipw: "#15906a", p_irt: "#8f7c10" }; // as in the book
  const WIDE = 640, HIGH = 300, LEFT = 48, BELOW = 40;
  let worker, waiting, name, known;

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

  const draw = (tag, parent, facts, text) => {
    const made = document.createElementNS(NS, tag);
    Object.entries(facts).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const axes = (svg, xs, top, label, bottom = 0) => {
    svg.replaceChildren();
    svg.closest("figure").hidden = false;
    svg.setAttribute("viewBox", `0 0 ${WIDE} ${HIGH}`);
    const right = Math.max(...xs), x = (v) => LEFT + ((WIDE - LEFT - 130) * v) / right;
    const y = (v) => HIGH - BELOW - ((HIGH - BELOW - 14) * (v - bottom)) / (top - bottom);
    [...new Set(xs)].forEach((v) => draw("text", svg, { x: x(v), y: HIGH - 22, "text-anchor": "middle", fill: "currentColor", "font-size": 12 }, v));
    for (let k = 0; k <= 4; k++) {
      const v = bottom + ((top - bottom) * k) / 4;
      draw("line", svg, { x1: LEFT, x2: WIDE - 130, y1: y(v), y2: y(v), stroke: "currentColor", "stroke-opacity": 0.2 });
      draw("text", svg, { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end", fill: "currentColor", "font-size": 12 }, (100 * v).toFixed(top - bottom < 0.1 ? 1 : 0));
    }
    draw("text", svg, { x: (WIDE - 130 + LEFT) / 2, y: HIGH - 4, "text-anchor": "middle", fill: "currentColor", "font-size": 12 }, label);
    return [x, y];
  };
  const band = (svg, points, colour) => {
    const path = [...points.map((p) => [p.x, p.up]), ...points.toReversed().map((p) => [p.x, p.down])];
    draw("polygon", svg, { points: path.map((p) => p.join(",")).join(" "), fill: colour, "fill-opacity": 0.18 });
    draw("polyline", svg, { points: points.map((p) => `${p.x},${p.y}`).join(" "), fill: "none", stroke: colour, "stroke-width": 2 });
  };

  const showStudy = (found) => {
    known = found;
    at("findings").hidden = false;
    at("advice").textContent = `${found.models} models, ${found.items} items. ${found.sentence}`;
    const top = Math.max(...found.rows.map((row) => row.mae + 2 * (row.mae_se ?? 0)));
    const [x, y] = axes(at("curves"), found.rows.map((row) => row.budget), top, "items asked");
    const labels = [];
    [...new Set(found.rows.map((row) => row.method))].forEach((method) => {
      const points = found.rows.filter((row) => row.method === method).map((row) => {
        const error = 2 * (row.mae_se ?? 0);
        return { x: x(row.budget), y: y(row.mae), up: y(row.mae + error), down: y(Math.max(0, row.mae - error)) };
      });
      band(at("curves"), points, COLOURS[method]);
      labels.push({ method, colour: COLOURS[method], y: points.at(-1).y, x: points.at(-1).x });
    });
    labels.sort((a, b) => a.y - b.y).forEach((label, n) => {
      label.y = Math.max(label.y, n ? labels[n - 1].y + 14 : 0);
      draw("text", at("curves"), { x: label.x + 6, y: label.y + 4, fill: label.colour, "font-size": 12 }, label.method);
    });
    at("curves-caption").textContent = `Mean absolute error in points, ${found.trials} trials; bands are two standard errors.`;
    at("list").href = URL.createObjectURL(new Blob([found.list.join("\n") + "\n"], { type: "text/plain" }));
    at("list").textContent = `Download a list of ${found.list.length} items (stratified)`;
    at("command").textContent = `benchnb compare ${name} --methods random,stratified,aipw,p_irt,guarded_irt --budgets 20,${found.budget}`;
  };

  const showPath = ({ truth, steps }) => {
    const all = steps.flatMap((s) => [s.low, s.high, s.score]).filter((v) => v !== null).concat(truth);
    const low = Math.max(0, Math.min(...all) - 0.02), high = Math.min(1, Math.max(...all) + 0.02);
    const [x, y] = axes(at("path"), steps.map((s) => s.items), high, "items asked", low);
    const points = steps.map((s) => ({ x: x(s.items), y: y(s.score), up: y(Math.min(high, s.high ?? s.score)), down: y(Math.max(low, s.low ?? s.score)) }));
    band(at("path"), points, BLUE);
    draw("line", at("path"), { x1: LEFT, x2: WIDE - 130, y1: y(truth), y2: y(truth), stroke: "currentColor", "stroke-dasharray": "5 4" });
    draw("text", at("path"), { x: WIDE - 124, y: y(truth) + 4, fill: "currentColor", "font-size": 12 }, "score on all items");
    const last = steps.at(-1);
    at("path-caption").textContent = `Score in points with its interval. After ${last.items} items: ${(100 * last.score).toFixed(1)}, on all items ${(100 * truth).toFixed(1)}. ${last.said}.`;
  };

  const careful = async (work) => {
    at("study").disabled = at("watch").disabled = true;
    try {
      await work();
    } catch (error) {
      say(error.message);
    }
    at("study").disabled = false;
    at("watch").disabled = !known;
  };
  at("study").onclick = () => careful(async () => {
    const file = at("file").files[0], budget = Math.round(+at("items").value) || 40;
    name = file ? file.name : at("table").value;
    known = null;
    at("findings").hidden = true;
    say("the table is being studied");
    const given = file && { file: name, content: new Uint8Array(await file.arrayBuffer()) };
    showStudy(await ask("study", [name, budget], given));
    const names = await ask("models", [name]);
    at("model").replaceChildren(...names.map((model) => new Option(model)));
    say("");
  });
  at("watch").onclick = () => careful(async () => {
    say("the model is being evaluated");
    showPath(await ask("steps", [name, at("model").value, at("method").value, known.budget]));
    say("");
  });
  at("halt").onclick = () => {
    worker?.terminate();
    worker = null;
    waiting?.reject(new Error("stopped"));
  };
})();
