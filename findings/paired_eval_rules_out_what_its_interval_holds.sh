#!/usr/bin/env bash
# paired-eval 0.4.0. Two systems ran the same 100 tasks; each solves 20 that the other does
# not. `interpret` gives the verdict on what `paired_compare` found: the README's "bounded
# null (with the effect it rules out)".
# One would guess that an effect that is ruled out lies outside the 95% interval of the same
# result.
# Seen: the interval reaches from -13 to +13 points, and the verdict is that 8% and more are
# ruled out. The figure is the smallest win rate that 100 tasks detect if one system wins and
# the other never does, so it depends on the number of tasks alone: with 4 wins each it is 8%
# too, where the interval ends at 6. The text says "a one-sided win rate"; a reader who takes
# `rules_out` for the difference is misled the more, the more two systems disagree.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --disable-pip-version-check --no-deps paired-eval==0.4.0

cat > run.py <<'PY'
from importlib.metadata import version

from paired_eval import interpret, paired_compare

print(version("paired-eval"))
for wins in (20, 4):
    a = [1] * wins + [0] * wins + [1] * (100 - 2 * wins)
    b = [0] * wins + [1] * wins + [1] * (100 - 2 * wins)
    verdict = interpret(paired_compare(a, b), lang="en")
    low, high = verdict["diff_ci"]
    text = verdict["text"].partition(";")[2].partition("(")[0].strip()
    print(f"{wins} wins each: {low:+.2f} to {high:+.2f}; {text}")
PY

env/bin/python run.py > seen 2> errors || { cat errors; exit 1; }
cat seen
cat > expected <<'TXT'
0.4.0
20 wins each: -0.13 to +0.13; this design can only rule out a one-sided win rate >= 8%
4 wins each: -0.06 to +0.06; this design can only rule out a one-sided win rate >= 8%
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
