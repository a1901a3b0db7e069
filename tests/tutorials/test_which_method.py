"""Which method: every combination of answers has one method, with the stored figures"""

import itertools
import json
import re
import shlex

import pandas as pd
import pytest

from benchnb.cli.app import parse
from benchnb.evaluation.registry import get_method
from benchnb.papers.published import read_stored_results
from tools.run import ROOT

NB = json.loads((ROOT / "nbs/tutorials/which_method.ipynb").read_text("utf-8"))
[PAGE] = [
    html
    for cell in NB["cells"]
    for out in cell.get("outputs", [])
    if 'class="answers"' in (html := "".join(out.get("data", {}).get("text/html", "")))
]
CHOICES = {}
for name, value in re.findall(r'type="radio" name="(\w+)" value="(\w+)"', PAGE):
    CHOICES.setdefault(name, []).append(value)
ANSWERS = [
    ({k: set(v.split()) for k, v in re.findall(r'data-(\w+)="([^"]*)"', head)}, text)
    for head, text in re.findall(r"<li ([^>]*)>(.*?)</li>", PAGE)
]
ALL = [dict(zip(CHOICES, c, strict=True)) for c in itertools.product(*CHOICES.values())]


def answers_to(choice):
    fits = [all(choice[k] in when[k] for k in choice) for when, _ in ANSWERS]
    return [text for (_, text), fit in zip(ANSWERS, fits, strict=True) if fit]


def test_five_questions_and_one_answer_to_each_combination():
    assert len(CHOICES) == 5 and len(ALL) == 64
    assert {len(answers_to(choice)) for choice in ALL} == {1}
    used = {text for choice in ALL for text in answers_to(choice)}
    assert len(used) == len(ANSWERS)  # none that nobody is shown


def stored(choice, method):
    "The stored figures that an answer must show: one of each table"
    split, need = choice["new"], choice["need"]  # noqa: F841 (named in queries)
    value = {"order": "kendall", "interval": "coverage"}.get(need, "relative")
    if method == "collaborative_filtering":
        cells = read_stored_results().query("paper == @method and table == 'figure 5'")
        found = cells.set_index(["row", "column"])["reproduced"]
        names = ["MMLU-Pro, subjects", "MMLU-Pro, categories", "leaderboard, random"]
        label, chance = "Collaborative filtering, ratio 0.1", "Random, ratio 0.1"
        columns = [f"{name} / mae" for name in names]
        ours = found.loc[[(label, column) for column in columns]]
        return ours / found.loc[[(chance, column) for column in columns]].to_numpy()
    if choice["sources"] == "few":
        rows = pd.read_csv(ROOT / "nbs/results/planning.csv")
        rows = rows.query("curve == 'sources' and sources == 5 and split == @split")
        rows = rows.set_index(["data", "method"])
        if value == "relative":
            chance = rows["mae"].xs("random", level="method")
            return rows["mae"].xs(method, level="method") / chance
    elif choice["items"] == "graded":
        rows = pd.read_csv(ROOT / "nbs/results/graded.csv").query("split == @split")
        return rows.set_index(["data", "method"])["relative"].xs(method, level=1)
    else:
        rows = pd.read_csv(ROOT / "nbs/results/field.csv")
        rows = rows.query("budget == 50 and split == @split")
        rows = rows.set_index(["data", "method"])
    found = rows[value].xs(method, level="method")
    return found - rows[value].xs("random", level="method") * (need == "order")


@pytest.mark.parametrize("choice", ALL, ids=lambda choice: "-".join(choice.values()))
def test_each_number_is_that_of_the_stored_table(choice):
    [text] = answers_to(choice)
    method = re.search(r"Take <a [^>]*><code>([\w()=]+)</code>", text)[1]
    get_method(method)
    command = re.search(r"<code>benchnb (.*?)</code>", text)[1]
    assert command.startswith("plan ") and parse(shlex.split(command)).command
    named = {"guarded_irt": "", "guarded_irt(rounds=5)": "--rounds 5 "}
    assert f"SCORES {named.get(method, f'--method {method} ')}--budget" in command
    said = re.search(r"([-+\d.%]+) \(([-+\d.%]+) to ([-+\d.%]+)\)", text).groups()
    row = stored(choice, method)
    scale = 100 if said[0].endswith("%") else 1
    wanted = [scale * x for x in (row.mean(), row.min(), row.max())]
    assert [float(s.strip("%")) for s in said] == pytest.approx(
        wanted, abs=0.00501 * max(1, scale)
    )
