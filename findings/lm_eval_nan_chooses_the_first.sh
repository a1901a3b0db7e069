#!/usr/bin/env bash
# lm-eval 0.4.13. A model computes NaN in place of log-likelihoods, as it happens where half
# precision overflows or a checkpoint is damaged, and is given a multiple-choice task.
# One would guess that the run stops, that its score is NaN, or that it scores nothing.
# Seen: NaN counts as choosing the first choice, acc has a standard error, and nothing is
# said. A model without any answer gets 1.0 in a task whose first choice is always right
# (truthfulqa_mc1, which comes with lm-eval, has doc_to_target: 0) and as much as a blind
# guess elsewhere, so that it ranks among the models that answered.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --disable-pip-version-check lm-eval==0.4.13

for right in 0 1; do
  cat > exam_$right.yaml <<YAML
task: exam_$right
dataset_path: json
dataset_kwargs: {data_files: {test: exam.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{q}}"
doc_to_choice: ["yes", "no"]
doc_to_target: $right
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
YAML
done
for k in 1 2 3 4; do echo "{\"q\": \"Is $k a number?\"}"; done > exam.jsonl

cat > run.py <<'PY'
from importlib.metadata import version

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager


class Overflowing(LM):
    "Has no opinion: its log-likelihoods are not numbers"

    def loglikelihood(self, requests, **options):
        return [(float("nan"), False) for _ in requests]

    def loglikelihood_rolling(self, requests, **options):
        raise NotImplementedError

    def generate_until(self, requests, **options):
        raise NotImplementedError


tasks = ["exam_0", "exam_1"]
manager = TaskManager(include_path=".", include_defaults=False)
done = simple_evaluate(model=Overflowing(), tasks=tasks, task_manager=manager)
print(version("lm-eval"))
for task in tasks:
    scores = done["results"][task]
    print(f"{task}: acc {scores['acc,none']}, stderr {scores['acc_stderr,none']}")
PY

HF_HUB_OFFLINE=1 env/bin/python run.py > seen 2> errors || { cat errors; exit 1; }
cat seen
cat > expected <<'TXT'
0.4.13
exam_0: acc 1.0, stderr 0.0
exam_1: acc 0.0, stderr 0.0
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
