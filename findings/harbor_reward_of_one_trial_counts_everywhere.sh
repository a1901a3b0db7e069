#!/usr/bin/env bash
# harbor 0.26.0 (Python 3.12 or newer: PYTHON=python3.12). The verifier of one trial writes
# a second reward beside the main one, say tests_passed; those of the other trials do not.
# One would guess that the mean of tests_passed is over the trials that have it, and that
# the job's "mean" stays.
# Seen: a trial without the key counts 0 (1.0 in the only trial that was measured becomes
# 0.25), and "mean" is gone, the main reward stands under its own name. Of two agents, the
# one whose verifier wrote the key more often is ahead, and who looks for "mean" finds none.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3.12}" -m venv env
env/bin/pip install -q --disable-pip-version-check --no-deps harbor==0.26.0

cat > run.py <<'PY'
from importlib.metadata import version

from harbor.metrics.mean import Mean

alike = [{"reward": 1}, {"reward": 0}, {"reward": 1}, {"reward": 1}]
mixed = [{"reward": 1, "tests_passed": 1.0}, *alike[1:]]
print(version("harbor"))
print("one reward each:", Mean().compute(alike))
print("two in the first:", Mean().compute(mixed))
PY

env/bin/python run.py > seen 2> errors || { cat errors; exit 1; }
cat seen
cat > expected <<'TXT'
0.26.0
one reward each: {'mean': 0.75}
two in the first: {'reward': 0.75, 'tests_passed': 0.25}
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
