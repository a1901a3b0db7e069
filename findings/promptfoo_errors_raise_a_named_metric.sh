#!/usr/bin/env bash
# promptfoo 0.123.1 (node 22.22 or newer). Two providers are compared on four tests with one
# assertion each, which is given a metric's name. One provider answers every test and is
# right three times; the other fails with an error three times and is right once.
# One would guess that the named metric says the same as the score and the share of passed
# tests, since all three come from that one assertion.
# Seen: a provider's error is 0 in the score and is no pass, but does not enter the named
# metric: there the provider that broke down has 1 of 1, the other one 3 of 4. So the order
# of the two turns, and the more often a provider fails, the fewer tests judge it.
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

cat > provider.js <<'JS'
// says what the test's variable holds; the fragile one answers the first test only
module.exports = class {
  constructor(options) { this.fragile = options.config.fragile; }
  id() { return 'scripted'; }
  async callApi(prompt, context) {
    if (this.fragile && prompt !== 'question 0') return { error: 'overloaded' };
    return { output: context.vars.says };
  }
};
JS
cat > exam.yaml <<'YAML'
prompts: ["question {{number}}"]
providers:
  - {id: "file://provider.js", label: steady, config: {fragile: false}}
  - {id: "file://provider.js", label: fragile, config: {fragile: true}}
defaultTest: {assert: [{type: equals, value: "yes", metric: right}]}
tests:
  - {vars: {number: 0, says: "yes"}}
  - {vars: {number: 1, says: "yes"}}
  - {vars: {number: 2, says: "yes"}}
  - {vars: {number: 3, says: "no"}}
YAML
# a test that did not pass ends the program with 100
promptfoo eval -c exam.yaml --no-cache -o log.json > messages 2>&1 || [ $? = 100 ] || {
  cat messages
  exit 1
}

cat > show.js <<'JS'
const { results } = JSON.parse(require('fs').readFileSync('log.json', 'utf8'));
for (const { provider, metrics } of results.prompts) {
  const named = `${metrics.namedScores.right} of ${metrics.namedScoresCount.right}`;
  const counts = `${metrics.testPassCount} passed, ${metrics.testErrorCount} errors`;
  console.log(`${provider}: score ${metrics.score}, ${counts}, right ${named}`);
}
JS
promptfoo --version > seen
node show.js >> seen || { cat messages; exit 1; }
cat seen
cat > expected <<'TXT'
0.123.1
steady: score 3, 3 passed, 0 errors, right 3 of 4
fragile: score 1, 1 passed, 3 errors, right 1 of 1
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
