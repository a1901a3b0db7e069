#!/usr/bin/env bash
# execnb 0.1.18 (fastcore 1.14.5), which runs the notebooks of nbdev. A notebook is run again
# and stored, after a cell was edited so that it shows nothing any more: its last line was an
# expression and is an assignment now.
# One would guess that every output of the stored notebook was made by this run, as with
# `jupyter nbconvert --execute`.
# Seen: the output from before the edit stays under the cell, "3" beside `x = 4`, while a cell
# that shows something has its new output. A page rendered from the notebook shows a result
# that no line of it makes. Here the runner empties the outputs of each cell before it runs.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv env
env/bin/pip install -q --disable-pip-version-check execnb==0.1.18 fastcore==1.14.5

cat > make.py <<'PY'
import json

old = {"output_type": "execute_result", "execution_count": 1, "metadata": {}}
old["data"] = {"text/plain": ["3"]}
cells = [
    {
        "cell_type": "code",
        "id": f"cell-{number}",
        "execution_count": 1,
        "metadata": {},
        "outputs": [old],
        "source": [source],
    }
    for number, source in enumerate(["x = 4", "x + 1"])
]
book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
json.dump(book, open("edited.ipynb", "w"))
PY
cat > show.py <<'PY'
import json
from importlib.metadata import version

print(version("execnb"))
for cell in json.load(open("stored.ipynb"))["cells"]:
    shown = ["".join(output["data"]["text/plain"]) for output in cell["outputs"]]
    print("".join(cell["source"]), "shows", shown)
PY

env/bin/python make.py
env/bin/exec_nb edited.ipynb --dest stored.ipynb > run 2>&1 || { cat run; exit 1; }
env/bin/python show.py > seen
cat seen
cat > expected <<'TXT'
0.1.18
x = 4 shows ['3']
x + 1 shows ['5']
TXT
diff expected seen || { echo "it is no longer so"; exit 1; }
