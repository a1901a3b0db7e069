#!/usr/bin/env bash
# inspect_ai 0.3.285. A scorer gives two scores for each sample, in a dict: the answer's
# quality and its format. Of one sample in four the quality could not be judged.
# One would guess that None and NaN say the same (there is no score), and that Inspect,
# which counts unscored samples, counts this one.
# Seen: NaN is left out and counted as unscored (mean 1.0 over three samples); None is a
# score of 0 (mean 0.75 over four) and counts as scored. So two graders of equal opinion
# rank models differently, by how they write that they have none.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --disable-pip-version-check inspect_ai==0.3.285

cat > run.py <<'PY'
from importlib.metadata import version

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import solver

GRADES = {
    "none": {"quality": None, "format": 1},
    "nan": {"quality": float("nan"), "format": 1},
}


@solver
def asks_nobody():
    async def solve(state, generate):
        return state

    return solve


@scorer(metrics={"quality": [mean()], "format": [mean()]})
def grader():
    async def score(state, target):
        return Score(value=state.metadata["grades"])

    return score


print(version("inspect_ai"))
for name, unjudged in GRADES.items():
    grades = [{"quality": 1, "format": 1}] * 3 + [unjudged]
    samples = [Sample(input="Why?", metadata={"grades": each}) for each in grades]
    dataset = MemoryDataset(samples)
    task = Task(dataset=dataset, solver=asks_nobody(), scorer=grader())
    log = eval(task, model="mockllm/model", log_dir="logs", display="none")[0]
    quality = next(each for each in log.results.scores if each.name == "quality")
    counts = f"{quality.scored_samples} scored, {quality.unscored_samples} unscored"
    print(f"{name}: mean {quality.metrics['mean'].value}, {counts}")
PY

env/bin/python run.py > seen 2> errors || { cat errors; exit 1; }
cat seen
cat > expected <<'TXT'
0.3.285
none: mean 0.75, 4 scored, 0 unscored
nan: mean 1.0, 3 scored, 1 unscored
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
