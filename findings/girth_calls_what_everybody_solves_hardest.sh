#!/usr/bin/env bash
# girth 0.8.0 (numpy 2.4.6, scipy 1.17.1). A two-parameter model (twopl_mml) is fitted to a
# table of 20 items and 300 respondents; one of the items is answered right by everybody.
# One would guess that this item is the easiest, as it is where one respondent of 300 fails
# at it, and as it is for rasch_mml.
# Seen: it gets the largest difficulty there is, 6, and the smallest discrimination; by the
# fit the average respondent solves it with a probability of 0.23. With one wrong answer of
# 300 it is -6 and 1.00. In a benchmark with items that all models solve, these look like
# the hardest, and are chosen or left out as such. Nothing is raised.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --disable-pip-version-check --no-deps \
  girth==0.8.0 numpy==2.4.6 scipy==1.17.1

cat > run.py <<'PY'
from importlib.metadata import version

import numpy as np
from girth import rasch_mml, twopl_mml

random = np.random.default_rng(seed=0)
difficulty = np.linspace(-1.5, 1.5, 20)[:, np.newaxis]
ability = random.standard_normal(300)
p_correct = 1 / (1 + np.exp(difficulty - ability))
answers = (random.random(p_correct.shape) < p_correct).astype(int)

print(version("girth"))
for fit in (rasch_mml, twopl_mml):
    for n_wrong in (0, 1):
        answers[0] = 1
        answers[0, :n_wrong] = 0
        fitted = fit(answers)
        location = fitted["Difficulty"][0]
        slope = np.broadcast_to(fitted["Discrimination"], 20)[0]
        p_average = 1 / (1 + np.exp(slope * location))
        harder = int(np.sum(fitted["Difficulty"] > location))
        figures = f"difficulty {location:.1f}, solved by the average {p_average:.2f}"
        print(f"{fit.__name__}, {n_wrong} wrong: {figures}, {harder} items harder")
PY

env/bin/python run.py > seen 2> errors || { cat errors; exit 1; }
cat seen
cat > expected <<'TXT'
0.8.0
rasch_mml, 0 wrong: difficulty -6.0, solved by the average 1.00, 19 items harder
rasch_mml, 1 wrong: difficulty -6.0, solved by the average 1.00, 19 items harder
twopl_mml, 0 wrong: difficulty 6.0, solved by the average 0.23, 0 items harder
twopl_mml, 1 wrong: difficulty -6.0, solved by the average 1.00, 19 items harder
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
