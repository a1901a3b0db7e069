"""Names that command a terminal, a shell, a spreadsheet or rich: shown, and no more."""

import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from helpers.small import write_fork

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method
from benchnb.live.evaluation import Evaluation

CLEAR, TURN = "\x1b[2J\x1b[31m", "\u202e"
ODD = [f"{CLEAR}m", "two\nlines", f"{TURN}abc", "[red]x[/red]", "[/]", "\x9bm", "\rm"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    "A table whose models, tasks and items all have odd names"
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    models = [f"{name}{n}" for n in range(4) for name in ODD]
    items = pd.DataFrame({"task": [ODD[n % 7] for n in range(28)]})
    items.index = [f"{name}{n}" for n in range(4) for name in ODD]
    Scores(rng.integers(0, 2, (28, 28)), items, models).to_parquet("odd.parquet")
    long = pd.DataFrame({"model": models, "item": "q", "score": 1, "task": "t"})
    long["score"] = np.linspace(0, 1, len(long))
    long.to_json("odd.jsonl", orient="records", lines=True)
    return tmp_path


CALLS = [
    "compare odd.parquet --methods random --budgets 4 --trials 1",
    "recommend odd.parquet --tasks --trials 2 --budget 3",
    "import table odd.jsonl --out new.parquet",
    "predict odd.jsonl --predictors model_task",
    "plan odd.parquet --method random --budget 4 --out new --harness list",
    f"plan odd.parquet --method random --budget 4 --out '{CLEAR}' --harness list",
    "plan odd.parquet --method random --budget 4 --out new --harness inspect",
    "compare '[/]'",
    "compare '[red]x[/red]'",
    f"compare {shlex.quote(CLEAR)}",
    "list methods '[/]'",
]


@pytest.mark.parametrize("line", CALLS)
def test_nothing_that_is_printed_commands_a_terminal(line, place, capsys):
    code = main(shlex.split(line))
    said, errors = capsys.readouterr()
    assert code in (0, 2) and said + errors
    for text in (said, errors):
        assert all(row.isprintable() for row in text.split("\n")), text
    assert len(errors.strip().split("\n")) == 1
    for name in ("[/]", "[red]x[/red]"):
        assert name not in line or name in errors


def test_a_report_shows_odd_names(place, capsys):
    table = Scores.from_parquet("odd.parquet")
    live = Evaluation(get_method("random").fit(table), budget=7, folder="live")
    live.tell(dict.fromkeys(live.ask(), np.nan) | {live.ask()[0]: 1.0})
    assert main(["estimate", "live", "--tasks"]) == 0
    said = capsys.readouterr().out
    assert all(row.isprintable() for row in said.split("\n")) and "\\x" in said
    card = table._repr_html_()
    assert all(row.isprintable() for row in card.split("\n")) and "[2J" in card


@pytest.mark.slow
def test_two_processors_print_no_raw_warning(place):
    "In a process of its own, as a user starts it: its own processes import the plug-in"
    named = write_fork(place, "Warns")
    module = place / "warns_module.py"
    warn = "import warnings; warnings.warn('beware')"
    text = module.read_text().replace("type(self).fits += 1", warn)
    module.write_text(text)
    how = f"--methods {named} --budgets 4 --trials 2 --jobs"
    for jobs in "12":
        command = [sys.executable, "-m", "benchnb", "compare", "odd.parquet"]
        done = subprocess.run(
            [*command, *how.split(), jobs], cwd=place, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        raw = done.stderr.strip().splitlines()
        assert set(raw) == {"benchnb: note: beware"}, raw
