// node ask.mjs PACKAGES INDEX WORDS < questions: the pages that the site's search finds, as JSON
import fs from "fs";
import { pathToFileURL } from "url";
const [packages, index, words, script] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(path).href);
const { default: MiniSearch } = await load(`${packages}/minisearch/dist/es/index.js`);
const { stemmer } = await load(`${packages}/stemmer/index.js`);
const { makeSearch } = await load(script);
const documents = JSON.parse(fs.readFileSync(index, "utf8"));
const search = makeSearch({ documents, words: fs.readFileSync(words, "utf8") }, MiniSearch, stemmer);
const questions = fs.readFileSync(0, "utf8").split("\n").filter(Boolean);
const told = (page) => ({ page: page.rows[0].page, anchor: page.rows[0].anchor, snippet: page.rows[0].snippet });
console.log(JSON.stringify(questions.map((question) => search(question).slice(0, 5).map(told))));
