#!/usr/bin/env bash
# inspect_ai 0.3.285. Questions with four choices are answered with a single letter, and
# the scorer exact() compares the answer with the letter of the right choice.
# One would guess that a model which always says the right letter has an accuracy of 1.
# Seen: "A" is taken for an article and left out; then nothing is left to compare, and the
# answer is wrong, whatever it is. Where A is right, no model can score: the model that
# always says the right letter gets 0.75, and one that never says A loses nothing. B to D
# are as expected, and match() finds A. A sign is left out as well: exact() takes 3 for -3.
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
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import exact, match
from inspect_ai.solver import solver


@solver
def answers_from_metadata():
    async def solve(state, generate):
        answer = state.metadata["answer"]
        state.output = ModelOutput.from_content("mockllm/model", answer)
        return state

    return solve


def run(scorer, targets, answers):
    samples = [
        Sample(input="Which one?", target=target, metadata={"answer": answer})
        for target, answer in zip(targets, answers)
    ]
    dataset = MemoryDataset(samples)
    task = Task(dataset=dataset, solver=answers_from_metadata(), scorer=scorer)
    log = eval(task, model="mockllm/model", log_dir="logs", display="none")[0]
    (metric, *_) = log.results.scores[0].metrics.values()
    return metric.value


print(version("inspect_ai"))
print("exact, always right:", run(exact(), "ABCD", "ABCD"))
print("match, always right:", run(match(), "ABCD", "ABCD"))
print("exact, right but for A:", run(exact(), "ABCD", "DBCD"))
print("exact, 3 for -3:", run(exact(), ["-3"], ["3"]))
PY

env/bin/python run.py > seen 2> errors || { cat errors; exit 1; }
cat seen
cat > expected <<'TXT'
0.3.285
exact, always right: 0.75
match, always right: 1.0
exact, right but for A: 0.75
exact, 3 for -3: 1.0
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
