"""README.md word for word in a fresh clone; its commands and those of First steps in an
empty folder."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.harnesses import build_wheel, new_environment
from helpers.logs import right_or_wrong, write_lm_eval

from benchnb.cli.app import main, parse
from benchnb.data.files import resource_path
from benchnb.data.sources import load
from benchnb.live.bundles import load_bundle

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
STEPS = json.loads((ROOT / "nbs/tutorials/first_steps.ipynb").read_text("utf-8"))
TEXTS = [README, *("".join(cell["source"]) for cell in STEPS["cells"])]
BLOCKS = "".join(
    re.findall(r"```(?:ba)?sh\n(.*?)```", "\n".join(TEXTS), flags=re.S)
).splitlines()
COMMANDS = [shlex.split(x, comments=True)[1:] for x in BLOCKS if x[:8] == "benchnb "]
SLOW = ("compare", "recommend")  # their options are checked alone


def write_report(path):
    "What SWE-bench's harness writes of an agent, on the 50 tasks of the bundle"
    agents = load("swebench_verified")
    asked = load_bundle(resource_path("bundles/swebench_verified_50")).ask()
    strong = agents.performance().sort_values().index[-14]  # as there
    right = agents.select(models=[strong], items=asked).values[0] == 1
    report = {"submitted_ids": asked, "completed_ids": asked}
    report["resolved_ids"] = np.array(asked)[right].tolist()
    report["unresolved_ids"] = np.array(asked)[~right].tolist()
    report |= {"empty_patch_ids": [], "error_ids": []}
    path.write_text(json.dumps(report))


@pytest.mark.slow
def test_readme_word_for_word_in_a_fresh_clone(tmp_path):
    "But `make test`, which runs these tests: `.ci/run` has both of the two commands"
    clone, venv = tmp_path / "benchnb", tmp_path / "venv"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    text = (clone / "README.md").read_text("utf-8")
    blocks = re.findall(r"```(bash|sh|python)\n(.*?)```", text, flags=re.S)
    dropped = ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    env = {k: v for k, v in os.environ.items() if k not in dropped}
    env["PATH"] = f"{venv / 'bin'}{os.pathsep}{env['PATH']}"
    write_report(clone / "report.json")
    left_out = ["test"] + ["run"] * bool(os.environ.get("BENCHNB_README_RUN"))
    for language, block in blocks:
        code = block
        if language != "python":
            code = re.sub(rf"(?m)^make ({'|'.join(left_out)})\b.*\n", "", code)
            command = ["bash", "-ec", code]
        else:
            command = ["python", "-c", code]
        how = {"cwd": clone, "env": env, "capture_output": True, "text": True}
        done = subprocess.run(command, **how)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        if "estimate" in code:
            shown = re.search(r"(?m)(?:^    .*\n)+", text.partition(block)[2])[0]
            first, *lines = shown.splitlines()
            assert first[6:] in code and len(lines) > 2
            assert all(line[4:] in done.stdout for line in lines)
    assert [language for language, _ in blocks] == ["bash", "sh", "python"]
    assert "run" in left_out or (clone / "out" / "agents.png").stat().st_size > 1000


def test_ci_runs_the_two_commands_of_readme():
    "They are executed as they stand"
    script = (ROOT / ".ci" / "run").read_text()
    [finder] = re.findall(r"< <\((awk .*)\)\n", script)
    how = {"cwd": ROOT, "capture_output": True, "text": True, "check": True}
    done = subprocess.run(["bash", "-c", finder], **how)
    first = README.partition("```sh\n")[2].partition("```")[0]
    assert done.stdout == first and "make run" in first and "make test" in first


@pytest.mark.parametrize("argv", [a for a in COMMANDS if a[0] in SLOW], ids=" ".join)
def test_slow_commands_are_understood(argv):
    assert parse(argv).command


@pytest.mark.slow
def test_all_others_work_in_an_empty_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_report(tmp_path / "report.json")
    right = right_or_wrong(31, 120)
    for number in range(30):
        write_lm_eval("logs", f"m{number}", {"sums": right[number].tolist()})

    tasks, draw = [*"abcde"], np.random.default_rng(0)
    matrix = pd.DataFrame(draw.random((5, 5)), pd.Index(tasks, name="task"), tasks)
    matrix.to_csv("matrix.csv")
    records = pd.DataFrame(draw.random((30, 5)), columns=tasks).rename_axis("model")
    records.iloc[0, 0] = np.nan
    records.stack(future_stack=True).rename_axis(["model", "task"]).rename(
        "score"
    ).to_csv("records.csv")

    def answer(folder, row):
        wanted = json.loads(Path(folder, "samples_1.json").read_text())["sums"]
        answers = {number: int(right[row][number]) for number in sorted(wanted)}
        write_lm_eval(f"{folder}/logs", folder, {"sums": answers})
        return ["tell", folder, f"{folder}/logs"]

    for argv in COMMANDS:
        if argv[0] in SLOW:
            continue
        if argv[0] == "paired":  # the second model goes the same way
            plan = next(a for a in COMMANDS if a[:2] == ["plan", "scores.parquet"])
            assert main([*plan[:-1], argv[2]]) == 0
            assert main(answer(argv[2], 29)) == 0
        if argv[0] == "run":  # by hand, as the text beside it says
            assert argv[2:4] == ["--", "lm_eval"] and parse(argv).command
            argv = answer(argv[1], 30)
        assert main(argv) == 0, (argv, capsys.readouterr().err)
        out, err = capsys.readouterr()
        assert out and not err, (argv, err)
    assert main(["estimate", "my_model"]) == 0
    assert "score  " in capsys.readouterr().out


# The Python example -------------------------------------------------------------------

CELLS = [c for c in STEPS["cells"] if "hide" not in "".join(c["source"])]
CODE = ["".join(c["source"]) + "\n" for c in CELLS if c["cell_type"] == "code"]
[*_, EXAMPLE] = [c for c in CELLS if c["cell_type"] == "code"]
SHOWN = "".join(EXAMPLE["outputs"][0]["data"]["text/plain"]).splitlines()
PRINT = "\nprint(comparison.table.to_json(orient='records'))"


def check_example(python, cwd, env):
    """The example of First steps prints what it shows, as far as processors agree

    Every digit of a random sample. k-means is decided by rounding where points are
    tied, OpenBLAS rounds as the processor does, and p_irt's items are k-means': there
    the figures agree within two standard errors."""
    how = {"cwd": cwd, "env": env, "capture_output": True, "text": True}
    done = subprocess.run([python, "-c", "".join(CODE) + PRINT], **how)
    if done.returncode == -signal.SIGILL:
        pytest.skip("this processor has no such instructions")
    assert done.returncode == 0, done.stderr[-3000:]
    columns, found = SHOWN[0].split(), json.loads(done.stdout)
    assert len(found) == len(SHOWN) - 1
    for row, line in zip(found, SHOWN[1:], strict=True):
        shown = dict(zip(columns, line.split()[1:], strict=True))
        print(shown, {name: row[name] for name in columns})
        assert row["method"] == shown["method"]
        if row["method"] == "p_irt":
            mae, error = float(shown["mae"]), float(shown["mae_se"])
            assert abs(row["mae"] - mae) < 2 * error
        else:
            assert {name: f"{row[name]:.4g}" for name in columns[3:]} == {
                name: shown[name] for name in columns[3:]
            }


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["Prescott", "Haswell", "SkylakeX"])
def test_the_example_on_other_processors(kernel, tmp_path):
    "Kernels of OpenBLAS; one that this processor cannot run is skipped"
    env = {"OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": "1"}
    check_example(sys.executable, tmp_path, os.environ | env)


SETTINGS = (Path(__file__).parents[2] / "settings.ini").read_text("utf-8")
PYTHONS = re.search(r"^pythons = (.*)$", SETTINGS, flags=re.M)[1].split()


def find_python(version):
    "A Python of this version that starts; pyenv's commands may stand for none"
    names = [shutil.which(f"python{version}")]
    names += Path.home().glob(f".pyenv/versions/{version}.*/bin/python")
    for name in filter(None, names):
        if subprocess.run([name, "-c", ""], capture_output=True).returncode == 0:
            return name


@pytest.mark.night  # what the packages of today do is news for tomorrow
@pytest.mark.parametrize("version", PYTHONS)
def test_the_first_screen_with_the_newest_packages(version, tmp_path):
    "The wheel in an empty environment of each Python, with all that pip finds today"
    base = find_python(version)
    if base is None:
        pytest.skip(f"no python{version}")
    python = new_environment(tmp_path, build_wheel(tmp_path), base=base)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    check_example(python, tmp_path, env)
    done = subprocess.run(
        [python, "-m", "benchnb", "list", "bundles"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
    )
    assert done.returncode == 0 and b"swebench-verified-50" in done.stdout
