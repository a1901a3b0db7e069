// Cells of a chapter that run in the page; this script is loaded by the first click
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(0)} MB`;
const make = (tag, className, text = "") => {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
};

export class Page {
  constructor(here, base, plan) {
    Object.assign(this, { here, base, plan, cells: [], waiting: [], worker: null });
  }

  async open() {
    const [answer] = await Promise.all([
      fetch(`${this.base}cells/${this.here.replaceAll("/", "-")}.json`),
      new Promise((done) => {
        const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: `${this.base}run.css`, onload: done, onerror: done });
        document.head.append(sheet);
      }),
    ]);
    ({ cells: this.cells, version: this.version, bytes: this.bytes } = await answer.json());
    this.cells.forEach((cell, place) => this.dress(cell, place));
    this.bar = make("div", "run-status");
    this.says = make("span", "", "");
    this.says.setAttribute("role", "status");
    this.meter = make("progress", "");
    this.meter.setAttribute("aria-label", "loaded");
    this.bar.append(this.says, this.meter);
    this.bar.append(this.button("Stop", () => this.stop()), this.button("Reset", () => this.reset()));
    document.body.append(this.bar);
  }

  button(text, action, title = "") {
    const made = make("button", "run-button", text);
    made.type = "button";
    made.title = title;
    made.onclick = action;
    return made;
  }

  // what a cell of the page gets: an editor, buttons, and a place for what it shows
  dress(cell, place) {
    cell.original = cell.source;
    cell.source = localStorage.getItem(this.key(cell)) ?? cell.source;
    cell.exercise = cell.original.includes("...  # your");
    cell.element = document.getElementById(cell.id);
    cell.bar = cell.element?.querySelector(".run-bar");
    if (!cell.bar || cell.why) return;
    cell.output = make("div", "run-output");
    cell.code = cell.element.querySelector(":scope > :is(.sourceCode, .code-fold)");
    cell.stored = [...cell.element.children].filter((one) => one !== cell.code && !one.matches(".run-bar"));
    cell.bar.replaceChildren(
      this.button(cell.exercise ? "Check" : "Run", () => this.run(place), cell.exercise ? "runs what this exercise rests on, then its check (Ctrl+Enter)" : "runs what above it has not run yet, then this cell (Ctrl+Enter)"),
      this.button("Run all above", () => this.all(place - 1)),
      this.button(cell.code ? "Edit" : "Code", () => this.edit(cell, place)),
    );
    cell.element.append(cell.output);
    if (cell.exercise || cell.source !== cell.original) this.edit(cell, place, false);
  }

  key(cell) {
    return `benchnb ${this.here} ${cell.id}`;
  }

  edit(cell, place, focus = true) {
    if (!cell.editor) {
      cell.editor = make("textarea", "run-editor");
      cell.editor.value = cell.source;
      cell.editor.spellcheck = false;
      cell.editor.setAttribute("aria-label", "code of this cell; Ctrl+Enter runs it");
      const size = () => (cell.editor.rows = cell.editor.value.split("\n").length + 1);
      cell.editor.oninput = () => {
        cell.source = cell.editor.value;
        cell.ran = false;
        localStorage.setItem(this.key(cell), cell.source);
        size();
      };
      cell.editor.onkeydown = (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run(place);
      };
      size();
      if (cell.code) cell.code.hidden = true;
      cell.bar.before(cell.editor);
      cell.bar.append(this.button("Original", () => {
        cell.editor.value = cell.source = cell.original;
        localStorage.removeItem(this.key(cell));
        cell.ran = false;
        size();
      }, "puts back the code of the book"));
    }
    if (focus) cell.editor.focus();
  }

  // the cells up to a place that have not run; of an exercise also its check
  run(place) {
    this.cells[place].ran = false;
    let last = place;
    if (this.cells[place].exercise)
      while (last + 1 < this.cells.length && !/^check\(/m.test(this.cells[last].source)) last++;
    this.cells.slice(place, last + 1).forEach((cell) => (cell.ran = false));
    this.asked = this.cells[place];
    if (this.asked.exercise) this.show(this.asked, [["text", "running"]]);
    this.all(last, this.asked);
  }

  // an exercise needs only what its check rests on
  all(last, target) {
    const needed = (place) => place <= last && (target?.needs?.includes(place) ?? true);
    const left = this.cells.filter((cell, place) => needed(place) && !cell.ran && !cell.why);
    this.waiting = left.map((cell) => ({ cell, of: left.length, target }));
    this.next();
  }

  next() {
    if (this.busy) return;
    const job = (this.busy = this.waiting.shift());
    if (!job) return this.say("");
    job.text = "";
    this.work();
    const place = this.cells.indexOf(job.cell) + 1;
    if (this.ready) this.tell();
    if (job.cell.bar) job.cell.element.classList.add("run-now");
    this.worker.postMessage({ source: job.cell.source, name: `cell ${place}`, key: place });
  }

  tell() {
    this.say(`running cell ${this.cells.indexOf(this.busy.cell) + 1} of ${this.cells.length}`);
  }

  work() {
    if (this.worker) return;
    this.ready = false;
    this.worker = new Worker(`${this.base}worker.js?v=${this.version}`);
    this.worker.onmessage = ({ data }) => this.heard(data);
    this.worker.onerror = (error) => this.heard({ failed: error.message });
    this.say("loading Python");
  }

  heard(data) {
    if (data.step) this.step = data.step;
    if (data.got || data.step) {
      this.say(`loading ${this.step}: ${megabytes(data.got ?? 0)} of ${megabytes(this.bytes)}`, (data.got ?? 0) / this.bytes);
    }
    if (data.ready) {
      this.ready = true;
      this.tell();
    }
    if (data.failed) {
      this.stop(`Python could not be loaded: ${data.failed}. Reload the page to try again.`);
    }
    if (data.text !== undefined && this.busy) this.busy.text += `${data.text}\n`;
    if (data.done) this.finished(data);
  }

  finished({ shown, error }) {
    const { cell, text, target } = this.busy;
    this.busy = null;
    cell.ran = !error;
    cell.element?.classList.remove("run-now");
    const places = new Set([cell]);
    if (error || /^check\(/m.test(cell.source)) places.add(target);
    [cell.shown, cell.error] = [shown, error];
    for (const place of places)
      if (place?.output) this.show(place, text ? [["text", text], ...shown] : shown, error, place !== cell);
    if (error) {
      this.waiting = [];
      return this.say(`cell ${this.cells.indexOf(cell) + 1} stopped: ${error.split("\n")[0]}`);
    }
    this.next();
  }

  show(cell, shown, error, other) {
    const parts = shown.map(([kind, text]) => {
      const made = make("div", `run-${kind} cell-output`);
      if (kind === "html") {
        made.innerHTML = text;
        made.querySelectorAll("table").forEach((table) => table.classList.add("table", "table-sm", "table-striped", "small"));
      } else if (kind === "svg") {
        const picture = Object.assign(document.createElement("img"), { src: `data:image/svg+xml,${encodeURIComponent(text)}` });
        picture.alt = cell.element.querySelector(".cell-output img")?.alt || "figure of this cell, drawn anew";
        picture.className = "img-fluid figure-img";
        made.append(picture);
      } else made.append(make("pre", "", text));
      return made;
    });
    if (error) parts.push(make("pre", "run-error", other ? `a cell above: ${error}` : error));
    if (!cell.output.isConnected) cell.element.append(cell.output);
    cell.stored.forEach((one) => (one.hidden = parts.length > 0));
    cell.output.replaceChildren(...parts);
  }

  say(text, share) {
    this.says.textContent = text;
    this.meter.hidden = share === undefined;
    if (share !== undefined) this.meter.value = Math.min(1, share);
    this.bar.hidden = !text;
    this.bar.querySelector("button").hidden = !this.busy;
  }

  stop(why = "stopped; the next run starts Python anew, and what is above the cell runs again") {
    this.worker?.terminate();
    this.busy?.cell.element?.classList.remove("run-now");
    Object.assign(this, { worker: null, busy: null, waiting: [], ready: false });
    this.cells.forEach((cell) => (cell.ran = false));
    this.say(why);
  }

  reset() {
    this.stop("a fresh start: the page shows the stored results; your code stays");
    this.cells.forEach((cell) => {
      cell.output?.replaceChildren();
      cell.stored?.forEach((one) => (one.hidden = false));
    });
  }
}
