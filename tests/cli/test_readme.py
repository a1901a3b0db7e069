"""The commands of README.md, given in their order in an empty folder."""

import json
import re
import shlex
from pathlib import Path

import pytest
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
