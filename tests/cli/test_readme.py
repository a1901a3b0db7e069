"""The commands of README.md, given in their order in an empty folder."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.harnesses import build_wheel, new_environment
from helpers.logs import right_or_wrong, write_lm_eval

from benchnb.cli.app import main, parse

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCKS = "".join(re.findall(r"```sh\n(.*?)```", README, flags=re.S)).splitlines()
COMMANDS = [shlex.split(x, comments=True)[1:] for x in BLOCKS if x[:8] == "benchnb "]
SLOW = ("compare", "recommend", "forecast")  # their options are checked alone


@pytest.mark.parametrize("argv", [a for a in COMMANDS if a[0] in SLOW], ids=" ".join)
def test_slow_commands_are_understood(argv):
    assert parse(argv).command


def test_all_others_work_in_an_empty_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    right = right_or_wrong(31, 120)
    for number in range(30):
        write_lm_eval("logs", f"m{number}", {"sums": right[number].tolist()})

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

CODE = re.findall(r"```python\n(.*?)```", README, flags=re.S)
SHOWN = re.search(r"(    .*\n)+", README.split(CODE[-1])[1])[0].split()
PRINT = "frame = over_trials(summary(frame))[{}]\nprint(frame.to_json())".format(
    re.findall(r"\[\[.*?\]\]$", CODE[-1].strip())[0][1:-1]
)


def check_example(python, cwd, **env):
    "The example prints what README.md shows, to the last digit"
    code = "".join(CODE) + PRINT
    done = subprocess.run(
        [python, "-c", code], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    rows = zip(*(column.values() for column in found.values()), strict=True)
    words = [
        f"{x:.4g}" if isinstance(x, float) else str(x)
        for number, row in enumerate(rows)
        for x in [number, *row]
    ]
    assert [*found, *words] == SHOWN


@pytest.mark.parametrize("kernel", ["Prescott", "Haswell", "SkylakeX"])
def test_the_example_prints_the_same_on_other_processors(kernel, tmp_path):
    "OpenBLAS rounds differently on each; where the kernel is unknown, its own is run"
    env = {"OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": "1"}
    check_example(sys.executable, tmp_path, **os.environ | env)


@pytest.mark.slow
def test_the_example_prints_the_same_with_the_newest_packages(tmp_path):
    "The wheel in an empty environment, with all that pip finds today"
    python = new_environment(tmp_path, build_wheel(tmp_path / "wheel")) / "python"
    check_example(python, tmp_path, PATH="/usr/bin:/bin", HOME=str(tmp_path))
