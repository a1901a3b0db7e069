"The small benchmarks that ship with the library work from their folder alone"

import json
import subprocess
import sys
from pathlib import Path

import pytest

import benchnb
from benchnb.data.files import resource_path
from benchnb.data.sources import load

BUNDLES = {"swebench_verified": 50, "terminal_bench": 20}
USE = """
import json, sys
from benchnb.live.bundles import load_bundle
evaluation = load_bundle(sys.argv[1])
answers = json.load(open(sys.argv[2]))
while items := evaluation.ask():
    evaluation.tell({item: answers[item] for item in items})
estimate = evaluation.estimate()
print(json.dumps([estimate.score, *estimate.interval, len(estimate.items)]))
"""


@pytest.mark.parametrize("name, tasks", BUNDLES.items())
def test_a_bundle_is_enough(name, tasks, tmp_path):
    folder = tmp_path / "bundle"
    folder.mkdir()
    for path in Path(resource_path("bundles"), f"{name}_{tasks}").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    scores = load(name)
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert size < 100_000 + 500 * scores.shape[1]  # three curves of every item
    answers = dict(zip(scores.items.index, scores.values[0].tolist(), strict=True))
    asked = json.loads((folder / "subset.json").read_text())
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    command = [sys.executable, "-P", "-c", USE, folder, tmp_path / "answers.json"]
    empty = {"PYTHONPATH": str(Path(benchnb.__file__).parents[1])}  # and nothing else
    how = dict(cwd=tmp_path, env=empty, capture_output=True, text=True)
    done = subprocess.run(command, **how)
    assert done.returncode == 0, done.stderr
    score, low, high, count = json.loads(done.stdout)
    assert count == tasks and low <= score <= high and asked
    assert abs(score - scores.truth().iloc[0]) < 0.15


@pytest.mark.parametrize("name, tasks", BUNDLES.items())
def test_the_certificate_is_of_this_table(name, tasks):
    folder = Path(resource_path("bundles"), f"{name}_{tasks}")
    kept = json.loads((folder / "certificate.json").read_text())
    assert kept["sources"] == load(name).fingerprint() and kept["budget"] == tasks
    near = kept["measured"]["like the sources"]
    assert near["error"] < 0.8 * near["random_error"] and near["coverage"] > 0.93
