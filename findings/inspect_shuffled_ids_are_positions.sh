#!/usr/bin/env bash
# inspect_ai 0.3.285. A dataset whose records have no ids is read with shuffle=True and a
# seed; --sample-id (sample_id=) then names samples by the numbers that Inspect gave them.
# One would guess that sample 1 is the first record of the file, whatever the seed.
# Seen: without auto_id the numbers are places after the shuffle, so that the same id asks
# another question with another seed; with auto_id=True they are places in the file.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --disable-pip-version-check inspect_ai==0.3.285

cat > run.py <<'PY'
import json

from inspect_ai import Task, eval
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import match

with open("exam.jsonl", "w") as file:
    for k in range(6):
        file.write(json.dumps({"input": f"question {k}", "target": "yes"}) + "\n")


def asked(seed, **options):
    data = json_dataset("exam.jsonl", shuffle=True, seed=seed, **options)
    task = Task(dataset=data, scorer=match())
    how = dict(log_dir="logs", display="none", sample_id=[1, 2, 3])
    log = eval(task, model="mockllm/model", **how)[0]
    return [(s.id, s.input) for s in sorted(log.samples, key=lambda s: s.id)]


plain = [asked(seed) for seed in (1, 2, 3)]
named = [asked(seed, auto_id=True) for seed in (1, 2, 3)]
first = [(k + 1, f"question {k}") for k in range(3)]
same = all(one == plain[0] for one in plain)
print(same, plain[2] == first, all(one == first for one in named))
PY

seen=$(env/bin/python run.py 2> errors) || { cat errors; exit 1; }
echo "plain ids: the same for all seeds, the file's order; auto_id: the file's order: $seen"
[ "$seen" = "False False True" ] || { echo "it is no longer so"; exit 1; }
