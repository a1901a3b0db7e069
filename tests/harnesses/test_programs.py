"""Logs that real programs wrote just now (`make harnesses`): each is read, and gives
its program's number, or the line says why not"""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from benchnb.harnesses.harness import guess_harness, import_logs
from benchnb.harnesses.logs import Choices
from tools.programs import read_programs

PROGRAMS = read_programs()
SCRIPTS = Path(__file__).parent / "programs"
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "true",
    "NO_COLOR": "1",
}
pytestmark = pytest.mark.slow


def needs(name):
    "Skip a test whose program is not installed, and say how it is"
    here = PROGRAMS[name].is_installed
    return pytest.mark.skipif(
        not here, reason=f"python -m tools.programs {name} (make harnesses)"
    )


def run(command, folder, success=(0,), **env):
    "A program in a folder, to its end; without our own packages in its way"
    own = {n: x for n, x in os.environ.items() if n != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=own | QUIET | env,
        capture_output=True,
        text=True,
        timeout=600,
    )
    said = done.stdout[-1500:] + done.stderr[-1500:]
    assert done.returncode in success, said


def script(name, folder):
    "What the script of a program writes"
    run([PROGRAMS[name].python, SCRIPTS / f"run_{name}.py"], folder)


def read(harness, place, **choices):
    "The table, and what became of the program's own number"
    assert guess_harness(place).name == harness
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = import_logs(harness, place, Choices(**choices))
    return scores, scores.models["reconciled"].iloc[0]


@needs("swebench")
def test_swebench(tmp_path):
    script("swebench", tmp_path)
    scores, own_number = read("swebench", tmp_path / "reports")
    assert scores.shape == (1, 7) and np.nansum(scores.values) == 2
    assert "the harness reports 25.0 points" in own_number  # of all eight
    assert "the harness counts other items than the log holds (8 and 7)" in own_number


@needs("harbor")
def test_harbor(tmp_path):
    script("harbor", tmp_path)
    scores, own_number = read("harbor", tmp_path / "jobs")
    assert own_number == "equal" and scores.shape == (1, 7)
    missing = scores.items.index[np.isnan(scores.values[0])]
    assert [name[-2:] for name in missing] == ["t4", "t6"]  # no reward that counts


@needs("promptfoo")
def test_promptfoo(tmp_path):
    for name in ("run_promptfoo.yaml", "run_promptfoo.js"):
        (tmp_path / name).write_text((SCRIPTS / name).read_text())
    tools = PROGRAMS["promptfoo"].folder / "node_modules/.bin"
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    command = [tools / "promptfoo", "eval", "-c", "run_promptfoo.yaml", "--no-cache"]
    command += ["-j", "1", "--no-progress-bar", "--no-table", "-o", "results.json"]
    config = {"PATH": path, "PROMPTFOO_CONFIG_DIR": str(tmp_path / "config")}
    run(command, tmp_path, success=(0, 100), **config)  # 100: some answers are wrong
    scores, own_number = read("promptfoo", tmp_path / "results.json")
    values = scores.values[0]
    assert np.isnan(values).sum() == 1 and np.nansum(values) == 1
    assert "the harness counts what has no score as 0 (1 of 4)" in own_number


@needs("helm")
def test_helm(tmp_path):
    command = [PROGRAMS["helm"].folder / "bin/helm-run", "--suite", "s", "-n", "1"]
    command += ["--run-entries", "simple_mcqa:model=simple/model1"]
    run([*command, "--max-eval-instances", "5"], tmp_path)
    runs = tmp_path / "benchmark_output/runs"
    scores, own_number = read("helm", runs, metric=("exact_match",))
    assert own_number == "equal" and [*scores.models.index] == ["simple/model1"]
    assert {*scores.items["metric"]} == {"exact_match"}


def test_the_list_of_programs_is_read_whole():
    lines = Path(sys.modules["tools.programs"].ROOT, "tools/harnesses.txt").read_text()
    entries = [x for x in lines.splitlines() if x and not x.startswith("#")]
    assert len(PROGRAMS) == len(entries)
    assert {"lm-eval", "inspect", "helm", "promptfoo"} <= {*PROGRAMS}
    assert all(program.version for program in PROGRAMS.values())
