// The search of the site: words in any order, by their stems, and words that mean the same
// (search_words.txt); guides before chapters, chapters before the reference. MiniSearch finds,
// here stand the words of a question and what is shown. Loaded when somebody begins to type.

const FILLER = new Set(
  ("a an and are as at be by can did do does enough for from get have how i if in into is it its me my need of on one or our should " +
    "that the their them there this to too use want was we what when where which who why will with would you your").split(" "),
);
// parts of the site, as a reader wants them: how much a find in each counts
const PARTS = { guide: 2.2, results: 1.5, book: 1.6, course: 0.9, library: 0.9, reference: 0.5 };
const FIELDS = { title: 3, summary: 2, section: 2, text: 1 };
const SAME = 0.7; // what a find by a word that means the same counts
const WHOLE = 0.8; // what a title counts that has the whole question
const EXACT = 3; // what is added where it is the question
// beside the name of a function these words ask for its entry in the reference
const OF_CODE = new Set("api class function method signature arguments parameters options docs documentation reference".split(" "));

const words = (text) => text.toLowerCase().normalize("NFKD").match(/[\p{L}\p{N}_]+(?:['’]\p{L}+)?/gu) ?? [];

// lines of search_words.txt: phrases of one line mean the same
function readWords(text, stem) {
  return text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter(Boolean)
    .map((line) => line.split(",").map((phrase) => words(phrase).map(stem)).filter((phrase) => phrase.length));
}

const begins = (list, phrase, at) => phrase.every((word, i) => list[at + i] === word);

// a question as concepts: each a list of phrases, the first of which stands in the question
function concepts(question, groups, stem) {
  const all = words(question).map(stem), list = [];
  const filler = (word) => FILLER.has(word) || FILLER.has(word.replace(/['’].*/, ""));
  const plain = words(question).map(filler);
  for (let at = 0; at < all.length; ) {
    let best = null, length = 0;
    for (const group of groups)
      for (const phrase of group)
        if (phrase.length > length && begins(all, phrase, at)) [best, length] = [group, phrase.length];
    if (best) list.push([all.slice(at, at + length), ...best.filter((phrase) => !begins(all, phrase, at) || phrase.length !== length)]);
    else if (!plain[at]) list.push([[all[at]]]);
    at += length || 1;
  }
  return list.length ? list : all.map((word) => [[word]]);
}

// the words around the first that was asked for, those asked for marked
function snippet(row, hit, length = 28) {
  const parts = (row.text || row.summary || "").split(/\s+/), first = Math.max(0, parts.findIndex((part) => words(part).some(hit)));
  const from = Math.max(0, first - 6), part = parts.slice(from, from + length);
  return { before: from > 0, after: from + length < parts.length, words: part.map((text) => ({ text, hit: words(text).some(hit) })) };
}

export function makeSearch(data, MiniSearch, stemmer) {
  // tailored_bench is found as one word and by its parts
  const stem = (word) => stemmer(word.replace(/['’]s?$|_/g, ""));
  const stems = (word) => (word.includes("_") ? [word, ...word.split("_")].map(stem) : stem(word));
  const groups = readWords(data.words, stem);
  const index = new MiniSearch({ fields: Object.keys(FIELDS), storeFields: ["page", "title", "part", "anchor", "section", "summary", "text"], tokenize: words, processTerm: stems });
  index.addAll(data.documents);
  const entries = new Set(data.documents.filter((row) => row.part === "reference").map((row) => row.title.toLowerCase()));
  // the name of an entry, where a question asks for one: "compare function"
  const entryOf = (question) => {
    const all = words(question).filter((word) => !FILLER.has(word)), rest = all.filter((word) => !OF_CODE.has(word));
    return rest.length === 1 && rest.length < all.length && entries.has(rest[0]) ? rest[0] : null;
  };
  const asIs = { tokenize: (text) => [text], processTerm: (term) => term };
  // sections that have all words of a phrase, and how much each tells of it
  const find = (list, last) =>
    index.search(
      { combineWith: "AND", queries: list.map((word, i) => ({ ...asIs, queries: [word], prefix: last && i === list.length - 1 && word.length > 2, fuzzy: word.length > 5 ? 0.15 : false })) },
      { boost: FIELDS, bm25: { k: 1.2, b: 0.4, d: 0.3 } },
    );
  return (question) => {
    const entry = entryOf(question);
    const asked = concepts(entry ?? question, groups, stem), rows = new Map();
    asked.forEach((phrases, k) =>
      phrases.forEach((list, i) =>
        find(list, !i && k === asked.length - 1).forEach((row) => {
          const known = rows.get(row.id) ?? { ...row, told: asked.map(() => 0) };
          known.told[k] = Math.max(known.told[k], row.score * (i ? SAME : 1));
          rows.set(row.id, known);
        }),
      ),
    );
    const pages = new Map();
    for (const row of rows.values()) {
      const key = row.page + row.title, page = pages.get(key) ?? { title: row.title, part: row.part, told: asked.map(() => 0), rows: [] };
      const share = row.told.filter(Boolean).length / asked.length;
      page.rows.push({ ...row, score: row.told.reduce((sum, x) => sum + x, 0) * share });
      page.told = page.told.map((x, k) => Math.max(x, row.told[k]));
      pages.set(key, page);
    }
    // a page counts by its best section, by how much of the question stands on it, and by its name
    const tokens = (text) => words(text).map(stem), filler = new Set([...FILLER].map(stem));
    const inside = (phrases, list) => phrases.find((phrase) => list.some((_, at) => begins(list, phrase, at)));
    // 1: the heading is the question; 0: it has nothing of it
    const matches = (heading) => {
      const list = tokens(heading), told = asked.map((phrases) => inside(phrases, list)).filter(Boolean);
      const plain = list.filter((word) => !filler.has(word)).length || list.length;
      const own = asked.filter((phrases) => told.includes(phrases[0])).length, same = told.length - own;
      return ((own + SAME * same) / asked.length) * Math.min(1, new Set(told.flat()).size / (plain || 1));
    };
    // a title that has every word of the question is its page, however long it is
    const named = ({ title, part }) => {
      const list = tokens(title);
      const whole = asked.length > 1 && asked.every((phrases) => inside([phrases[0]], list));
      const match = Math.max(matches(title.split(":")[0]), whole ? WHOLE : 0);
      return 1 + 2 * match ** 0.5 + (match === 1 && part !== "reference" ? EXACT : 0);
    };
    const rate = (page) => {
      const share = page.told.filter(Boolean).length / asked.length, part = entry && page.part === "reference" ? 6 : PARTS[page.part];
      page.rows.forEach((row) => (row.score *= 1 + 2 * (row.section ? matches(row.section) : 0)));
      return Math.max(...page.rows.map((row) => row.score)) * share ** 2 * part * named(page);
    };
    const wanted = new Set(asked.flat(2)), hit = (word) => !FILLER.has(word) && [stems(word)].flat().some((term) => wanted.has(term));
    return [...pages.values()]
      .map((page) => ({ ...page, score: rate(page), rows: page.rows.sort((a, b) => b.score - a.score).slice(0, 3).map((row) => ({ ...row, snippet: snippet(row, hit) })) }))
      .sort((a, b) => b.score - a.score);
  };
}
