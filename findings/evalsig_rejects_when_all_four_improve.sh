#!/usr/bin/env bash
# evalsig 0.1.2 (numpy 2.4.6, scipy 1.17.1, pyarrow 26.0.1). `gate` compares a candidate with
# a baseline on a few tasks that the baseline fails, and is to allow an improvement of 5
# points. Its rule: significant and large enough is ALLOW; not significant, and too few tasks
# to detect 5 points, is INCONCLUSIVE; else REJECT.
# One would guess that four tasks are too few whatever happens, and that solving all four
# speaks at least as much for the candidate as solving three.
# Seen: three of four solved is INCONCLUSIVE ("collect ~615 more paired items"), four of four
# is REJECT with exit code 1, five of five is ALLOW. Where all differences are equal their
# standard deviation is 0, and the smallest detectable effect is reported as 0.0000: the run
# counts as large enough to have seen anything. The same holds for two tasks on which both
# agree. The interval is [1, inf] then: a candidate that is better for certain is rejected.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --disable-pip-version-check --no-deps \
  evalsig==0.1.2 numpy==2.4.6 scipy==1.17.1 pyarrow==26.0.1

cat > run.py <<'PY'
from importlib.metadata import version

from evalsig import ItemResult, RunFrame, gate


def run(name, scores):
    items = tuple(ItemResult(f"task {n}", float(x)) for n, x in enumerate(scores))
    return RunFrame(name, name, "tasks", "accuracy", items)


print(version("evalsig"))
for solved, tasks in ((3, 4), (4, 4), (5, 5)):
    baseline = run("baseline", [0] * tasks)
    candidate = run("candidate", [1] * solved + [0] * (tasks - solved))
    report = gate(baseline, candidate, min_delta=0.05)
    seen = report.comparison
    low, high = seen.ci
    figures = f"interval [{low:.2f}, {high}], detectable {seen.mde:.4f}"
    print(f"{solved} of {tasks}: {report.verdict.value} ({report.exit_code}), {figures}")
same = gate(run("a", [1, 0]), run("b", [1, 0]), min_delta=0.05)
print(f"2 tasks, the same: {same.verdict.value} ({same.exit_code})")
PY

env/bin/python run.py > seen 2> errors || { cat errors; exit 1; }
cat seen
cat > expected <<'TXT'
0.1.2
3 of 4: INCONCLUSIVE (2), interval [0.39, inf], detectable 0.6216
4 of 4: REJECT (1), interval [1.00, inf], detectable 0.0000
5 of 5: ALLOW (0), interval [1.00, inf], detectable 0.0000
2 tasks, the same: REJECT (1)
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
