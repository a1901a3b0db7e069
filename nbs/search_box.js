// The box of the search: opened by its button, by / or by Ctrl+K; arrows and Enter choose.
import { makeSearch } from "./search.js";
import MiniSearch from "./minisearch.js";
import { stemmer } from "./stemmer.js";

const base = new URL("./", import.meta.url).href; // of the site
const NAMES = { guide: "Guide", results: "Results", book: "Book", course: "Course", library: "Library", reference: "Reference" };
const make = (name, attributes = {}, ...children) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
};

const input = make("input", { type: "search", placeholder: "Search the book", autocomplete: "off" });
input.setAttribute("aria-label", "Search the book");
const list = make("ol", { className: "hits" }), told = make("p", { className: "told" });
told.setAttribute("role", "status");
const box = make("dialog", { className: "search-box" }, make("form", { method: "dialog" }, input), told, list);
box.setAttribute("aria-label", "Search");
document.body.append(box);

let search = null;
const ready = fetch(`${base}search_index.json`)
  .then((answer) => answer.json())
  .then((data) => (search = makeSearch(data, MiniSearch, stemmer)))
  .catch(() => (told.textContent = "The search could not be loaded: it needs the site on a server."));

const address = (row) => `${base}${row.page}${row.anchor ? `#${row.anchor}` : ""}`;
function hit(row, page, first) {
  const link = make("a", { href: address(row), className: first ? "page" : "section" });
  if (first) link.append(make("strong", { textContent: page.title.split(":")[0] }), make("small", { textContent: NAMES[page.part] }));
  if (row.section) link.append(make("span", { className: "head", textContent: row.section }));
  const words = row.snippet.words.flatMap(({ text, hit }) => [hit ? make("mark", { textContent: text }) : text, " "]);
  link.append(make("span", { className: "text" }, row.snippet.before ? "… " : "", ...words, row.snippet.after ? "…" : ""));
  return make("li", {}, link);
}

function show() {
  const question = input.value.trim(), pages = question && search ? search(question).slice(0, 12) : [];
  list.replaceChildren(...pages.flatMap((page) => page.rows.map((row, i) => hit(row, page, i === 0))));
  told.textContent = question && search && !pages.length ? "Nothing has these words." : "";
}

let typed; // a search takes a tenth of a second: not one for each letter
input.addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(show, 80);
});
box.addEventListener("keydown", (event) => {
  const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    (links[at + step] ?? (step < 0 ? input : links.at(-1)))?.focus();
  } else if (event.key === "Enter" && document.activeElement === input) {
    event.preventDefault();
    clearTimeout(typed);
    show();
    const first = list.querySelector("a");
    if (first) location.href = first.href;
  }
});
list.addEventListener("click", (event) => event.target.closest("a") && box.close());
box.addEventListener("click", (event) => event.target === box && box.close());

export function open(question = input.value) {
  input.value = question;
  if (!box.open) box.showModal();
  input.select();
  ready.then(show);
}
