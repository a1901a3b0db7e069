#!/usr/bin/env bash
# promptfoo 0.123.1 (node 22.22 or newer). A model answers four tests, and another model
# grades the answers (llm-rubric); for two of them the grader cannot be reached.
# One would guess that these two are errors, as they are where the model itself cannot be
# reached (promptfoo counts passed and failed tests and errors), or that they are not judged.
# Seen: they are failed tests with a score of 0, for the rubric and for its opposite
# (not-llm-rubric) alike, and enter the named metric; the count of errors is 0. Only a mark
# deep in the record (graderError in the metadata of a component) tells an outage of the
# grader from a wrong answer. The model that ran while the grader was down looks worse.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
npm init -y > /dev/null
# what is optional weighs a gigabyte; of it only the database for this system is needed
system=$(node -p "process.platform + '-' + process.arch")
[[ $system != linux-* ]] || system=$system-gnu
npm install --no-audit --no-fund --loglevel=error --omit=optional \
  node@22.23.3 promptfoo@0.123.1 "@libsql/$system@0.5.29"
export PATH=$place/node_modules/.bin:$PATH PROMPTFOO_CONFIG_DIR=$place/config
export PROMPTFOO_DISABLE_TELEMETRY=1 PROMPTFOO_DISABLE_UPDATE=1
export PROMPTFOO_DISABLE_REMOTE_GENERATION=true

cat > model.js <<'JS'
module.exports = class {
  id() { return 'model'; }
  async callApi() { return { output: 'an answer' }; }
};
JS
cat > grader.js <<'JS'
// finds every answer polite, none rude; cannot be reached where the rubric says so
module.exports = class {
  id() { return 'grader'; }
  async callApi(prompt) {
    if (prompt.includes('while the grader is down')) return { error: 'overloaded' };
    const pass = prompt.includes('is polite');
    const verdict = { pass, score: pass ? 1 : 0, reason: 'as seen' };
    return { output: JSON.stringify(verdict) };
  }
};
JS
cat > exam.yaml <<'YAML'
prompts: ["question"]
providers: ["file://model.js"]
defaultTest: {options: {provider: "file://grader.js"}}
tests:
  - assert: [{type: llm-rubric, value: "is polite", metric: good}]
  - assert: [{type: not-llm-rubric, value: "is rude", metric: good}]
  - assert: [{type: llm-rubric, value: "is polite, while the grader is down", metric: good}]
  - assert: [{type: not-llm-rubric, value: "is rude, while the grader is down", metric: good}]
YAML
# a test that did not pass ends the program with 100
promptfoo eval -c exam.yaml --no-cache -o log.json > messages 2>&1 || [ $? = 100 ] || {
  cat messages
  exit 1
}

cat > show.js <<'JS'
const { results } = JSON.parse(require('fs').readFileSync('log.json', 'utf8'));
const { successes, failures, errors } = results.stats;
console.log(`${successes} passed, ${failures} failed, ${errors} errors`);
const { metrics } = results.prompts[0];
console.log(`good ${metrics.namedScores.good} of ${metrics.namedScoresCount.good}`);
const failed = results.results.filter((row) => !row.success);
const marks = failed.map((row) => row.gradingResult.componentResults[0].metadata);
console.log(marks.map((mark) => `graderError ${mark.graderError}`).join(', '));
JS
promptfoo --version > seen
node show.js >> seen || { cat messages; exit 1; }
cat seen
cat > expected <<'TXT'
0.123.1
2 passed, 2 failed, 0 errors
good 2 of 4
graderError true, graderError true
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
