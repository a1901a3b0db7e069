// "How many do I need?": the measured number of items for a wanted ±, or the textbook's.
"use strict";

const DESIGNS = { guarded_irt: "chosen by guarded_irt", stratified: "stratified by difficulty", random: "at random" };

// as textbook_items in benchnb.stats.sample_size: items of a finite benchmark
function textbookItems(halfWidth, total, spread) {
  const endless = ((1.959963984540054 * spread) / halfWidth) ** 2;
  return Math.max(1, Math.ceil((endless * total) / (endless + total - 1) - 1e-9));
}

// the least and the greatest share of a random sample's items that a design needed
function sharesOf(tables, design, kind, points) {
  const measured = Object.values(tables).map((table) => table[kind]).filter(Boolean);
  const pairs = measured.map((table) => [table[design][points], table.random[points]]);
  const shares = pairs.filter(([own, random]) => own && random).map(([own, random]) => own / random);
  return shares.length ? [Math.min(...shares), Math.max(...shares)] : null;
}

// items of each design, [least, most]; null: more than were tried, or intervals that held too rarely
function itemsNeeded(tables, { data, items, score, points, kind }) {
  const table = tables[data], designs = Object.keys(DESIGNS);
  if (table) {
    const measured = table[kind] ?? table.beyond;
    return Object.fromEntries(designs.map((design) => [design, measured[design][points] && [measured[design][points], measured[design][points]]]));
  }
  const random = textbookItems(points / 100, items, Math.sqrt((score / 100) * (1 - score / 100)));
  const share = (design) => (design === "random" ? [1, 1] : sharesOf(tables, design, kind, points));
  return Object.fromEntries(designs.map((design) => [design, share(design)?.map((part) => Math.min(items, Math.ceil(part * random))) ?? null]));
}

// the design to plan with: the recommended one, unless it is not known or may need more than random items
function designToPlan(needed) {
  const most = (design) => needed[design]?.[1] ?? Infinity;
  if (most("guarded_irt") <= most("random") && needed.guarded_irt) return "guarded_irt";
  return most("stratified") <= most("random") && needed.stratified ? "stratified" : needed.random ? "random" : null;
}

function askHowMany(form) {
  const place = (name) => form.querySelector(`[data-answer=${name}]`), count = (n) => n.toLocaleString("en");
  const inWords = (range) => (!range ? "not known" : range[0] === range[1] ? count(range[0]) : `${count(range[0])} to ${count(range[1])}`);
  const UNKNOWN = " Not known: more items than were tried, or intervals that held too rarely.";
  const show = () => {
    const given = Object.fromEntries(new FormData(form)), table = HOW_MANY[given.data], few = given.sources === "few";
    const asked = { ...given, items: Number(given.items), score: Number(given.score), points: Number(given.points) };
    form.querySelectorAll("[data-for=another]").forEach((label) => (label.hidden = Boolean(table)));
    const wrong = table ? null : [...form.querySelectorAll("input")].find((input) => !input.value || !input.validity.valid);
    place("command").parentElement.hidden = Boolean(wrong);
    if (wrong) {
      place("items").textContent = wrong.name === "items" ? "Its items: a whole number, 2 or more." : "The score that you expect: a percentage from 1 to 99.";
      place("note").textContent = "";
      return;
    }
    const needed = itemsNeeded(HOW_MANY, asked), total = table ? table.items : asked.items;
    const told = Object.entries(DESIGNS).filter(([design]) => !few || design === "random");
    const best = few ? (needed.random ? "random" : null) : designToPlan(needed);
    const unknown = told.some(([design]) => !needed[design]);
    const parts = told.flatMap(([design, words], i) => [i ? "; " : "", node(design === best ? "strong" : "span", { textContent: inWords(needed[design]) }), ` ${words}`]);
    const of = `${given.points === "1" ? "± 1 point" : `± ${given.points} points`}, of ${count(total)} items: `;
    if (best) place("items").replaceChildren(`For ${of}`, ...parts, ".", unknown ? UNKNOWN : "");
    else place("items").textContent = `For ${of}no number is known (more items than were tried, or intervals that held too rarely). Run all of them, or compare two models on the same items, which takes fewer.`;
    const scores = table?.ships ? given.data : "SCORES", budget = needed[best]?.[1] ?? total;
    const method = few || best === "stratified" ? " --method stratified" : best === "random" ? " --method random" : "";
    place("command").textContent = `benchnb plan ${scores}${method} --budget ${budget} --out new`;
    place("note").textContent = !best ? "" : few ? "With fewer than twenty earlier models guarded_irt draws a stratified sample; its interval is a little narrower than that of random items. Without any, --method random."
      : !table ? `From the textbook's number for random items, and from the smallest and the largest share of it on the measured tables; the command takes the largest${best === "guarded_irt" ? "" : ", of the design that needs fewer"}.`
      : !table[given.kind] ? "Measured on this table for the newest agents only." : "Measured on this table, with models that were kept back.";
    keep(table ? (({ items, score, ...rest }) => rest)(given) : given);
  };
  const old = state();
  [...form.elements].forEach((control) => old[control.name] !== undefined && (control.value = old[control.name]));
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show();
}

if (typeof document !== "undefined") askHowMany(document.querySelector("form.how-many"));
