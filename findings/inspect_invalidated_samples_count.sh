#!/usr/bin/env bash
# inspect_ai 0.3.285. A person marks samples of a log as invalid (invalidate_samples: the
# grader was down, say) and lets the metrics be computed again (recompute_metrics).
# One would guess that accuracy is then the mean of the samples that are still valid.
# Seen: the log says that it has invalidated samples, and accuracy counts them as before:
# two of four wrong answers are invalid, and accuracy stays 0.5, not 1.0.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --disable-pip-version-check inspect_ai==0.3.285

cat > run.py <<'PY'
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import ProvenanceData, invalidate_samples, recompute_metrics
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver


@solver
def scripted():
    async def solve(state, generate):
        text = state.metadata["says"]
        state.output = ModelOutput.from_content("mockllm/model", text)
        return state

    return solve


def accuracy(log):
    return log.results.scores[0].metrics["accuracy"].value


samples = [
    Sample(id=f"q{k}", input="Is it?", target="yes", metadata={"says": text})
    for k, text in enumerate(["yes", "no", "yes", "no"])
]
task = Task(dataset=MemoryDataset(samples), solver=scripted(), scorer=match())
log = eval(task, model="mockllm/model", log_dir="logs", display="none")[0]
before = accuracy(log)
wrong = [s.uuid for s in log.samples if s.scores["match"].value == "I"]
reason = ProvenanceData(author="reader", reason="the grader was down")
log = invalidate_samples(log, wrong, reason)
recompute_metrics(log)
marked = sum(s.invalidation is not None for s in log.samples)
print(before, marked, log.invalidated, accuracy(log), log.results.completed_samples)
PY

seen=$(env/bin/python run.py 2> errors) || { cat errors; exit 1; }
echo "accuracy before, samples marked, log marked, accuracy after, samples counted: $seen"
[ "$seen" = "0.5 2 True 0.5 4" ] || { echo "it is no longer so"; exit 1; }
