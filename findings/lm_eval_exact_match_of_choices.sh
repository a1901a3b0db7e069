#!/usr/bin/env bash
# lm-eval 0.4.13. A multiple-choice task of one's own lists the metrics acc and exact_match.
# One would guess that both say the same of a single question: acc is 1 where the most
# likely choice is the right one, and then the answer matches exactly.
# Seen: for multiple choice exact_match is 1 where the right choice is what greedy decoding
# would have written. A model may choose right every time and have an exact_match of 0.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --disable-pip-version-check lm-eval==0.4.13

cat > exam.yaml <<'YAML'
task: exam
dataset_path: json
dataset_kwargs: {data_files: {test: exam.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{q}}"
doc_to_choice: ["yes", "no"]
doc_to_target: 0
metric_list:
  - {metric: acc}
  - {metric: exact_match}
YAML
for k in 1 2 3 4; do echo "{\"q\": \"Is $k a number?\"}"; done > exam.jsonl

cat > run.py <<'PY'
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager


class Likes(LM):
    "Finds yes more likely than no, and would have written something else"

    def loglikelihood(self, requests, **options):
        return [(-1.0 if "yes" in r.args[1] else -2.0, False) for r in requests]

    def loglikelihood_rolling(self, requests, **options):
        raise NotImplementedError

    def generate_until(self, requests, **options):
        raise NotImplementedError


exam = TaskManager(include_path=".")
done = simple_evaluate(model=Likes(), tasks=["exam"], task_manager=exam)
scores = done["results"]["exam"]
print(scores["acc,none"], scores["exact_match,none"])
PY

seen=$(HF_HUB_OFFLINE=1 env/bin/python run.py 2> errors | tail -1) || { cat errors; exit 1; }
echo "acc and exact_match of a model that chooses right every time: $seen"
[ "$seen" = "1.0 0.0" ] || { cat errors; echo "it is no longer so"; exit 1; }
