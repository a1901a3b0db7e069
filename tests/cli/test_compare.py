"benchnb compare: early rows, what the table says, and the next command"

import math

import pandas as pd
import pytest
from helpers.small import table

from benchnb.cli.app import main
from benchnb.cli.study import FirstTrial, conclusion, noted
from benchnb.data.render import RemainingTime
from benchnb.evaluation.compare import Comparison, compare

QUICK = ["random", "stratified"]


def made(errors, trials=6, budget=20):
    "A comparison in which a method has these errors, trial by trial"
    rows = [
        {"method": name, "budget": budget, "trial": trial, "target": f"m{target}"}
        | {"truth": 0.5, "score": 0.5 + error[trial] * (1, -1)[target % 2]}
        | {"low": 0.4, "high": 0.6, "asked": budget, "cost": math.nan}
        | {"kind": "", "notes": "", "flags": "", "seconds": 0.1}
        for name, error in errors.items()
        for trial in range(trials)
        for target in range(4)
    ]
    return Comparison(pd.DataFrame(rows))


CLOSE = {
    "adaptive_irt": [0.02, 0.05, 0.03, 0.04, 0.02, 0.05],
    "guarded_irt": [0.03, 0.04, 0.04, 0.03, 0.03, 0.05],
}
APART = {
    "adaptive_irt": [0.06, 0.09, 0.07, 0.08, 0.06, 0.09],
    "guarded_irt": [0.03, 0.05, 0.04, 0.04, 0.03, 0.05],
}


def test_the_sentence_says_who_leads_and_whether_that_is_clear():
    text = conclusion(made(CLOSE))
    assert text.startswith("Least error: adaptive_irt at 20 items, though these trials")
    assert "adaptive_irt is not what we recommend" in text
    assert "stronger than all earlier ones" in text
    text = conclusion(made(APART))
    assert text == "Least error: guarded_irt at 20 items."


def test_a_single_trial_decides_nothing():
    assert "do not decide" in conclusion(made(APART, trials=1))


def test_an_exact_tie_names_all_who_lead():
    same = APART["guarded_irt"]
    errors = {"random": same, "guarded_irt": same, "kmeans": APART["adaptive_irt"]}
    text = conclusion(made(errors))
    assert "guarded_irt and random at 20 items, equal to each other" in text
    assert "kmeans" not in text
    text = conclusion(made({"random": same, "adaptive_irt": same}))
    assert "adaptive_irt is not what we recommend" in text


def test_a_design_based_method_that_leads_is_not_warned_of():
    errors = {"aipw": APART["guarded_irt"], "random": APART["adaptive_irt"]}
    assert "recommend" not in conclusion(made(errors))


def test_budgets_with_one_leader_are_named_together():
    both = [made(APART, budget=budget).frame for budget in (15, 25, 50)]
    text = conclusion(Comparison(pd.concat(both, ignore_index=True)))
    assert text == "Least error: guarded_irt at 15, 25 and 50 items."


def test_notes_are_counted_in_two_lines():
    frame = made({f"method_{n}": [0.1] * 6 for n in range(12)}).frame
    assert noted(frame) == ""
    text = noted(frame.assign(notes="the sample alone"))
    assert text.startswith(
        "Estimates with a note, such as a fallback: method_0 24 of 24"
    )
    assert len(text) <= 2 * 79


def test_the_last_line_is_the_command_to_score_a_model(tmp_path, capsys):
    table().to_parquet(tmp_path / "table.parquet")
    argv = [str(tmp_path / "table.parquet"), "--methods", "random,stratified"]
    assert main(["compare", *argv, "--budgets", "6,12", "--trials", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("Score a model of your own: benchnb plan ")
    assert "--budget 12 --out mine" in lines[-1]
    assert any(line.startswith("Least error: ") for line in lines)
    assert " interval" in lines[4] and "width" not in lines[4]
    assert any("± " in line and "random" in line for line in lines)


# Early rows -----------------------------------------------------------------------


def test_the_first_trial_is_shown_while_the_others_run(capsys, monkeypatch):
    monkeypatch.delenv("BENCHNB_PROGRESS", raising=False)
    first = FirstTrial(trials=3, wait=0)
    told = []

    def watch(rows):
        told.append(rows)
        first(rows)

    frame = compare(table(), QUICK, [6, 12], 3, first_trial=watch).frame
    lines = capsys.readouterr().err.splitlines()
    assert "1 of 3 trials" in lines[0] and lines[0].endswith("items")
    assert [line.split()[0] for line in lines[1:]] == QUICK
    for rows, line in zip(told, lines[1:], strict=True):
        assert set(rows["trial"]) == {0} and set(rows["budget"]) == {6, 12}
        part = frame[(frame["trial"] == 0) & (frame["method"] == line.split()[0])]
        off = (part["score"] - part["truth"]).abs()
        errors = off.groupby(part["budget"]).mean()
        assert line.split()[1:] == [f"{100 * error:.2f}" for error in errors]


def test_a_short_comparison_shows_only_its_result(capsys):
    compare(table(), QUICK, [6], 2, first_trial=FirstTrial(trials=2, wait=60))
    assert capsys.readouterr().err == ""


def test_nothing_is_shown_where_progress_is_silenced(capsys, monkeypatch):
    monkeypatch.setenv("BENCHNB_PROGRESS", "0")
    compare(table(), QUICK, [6], 2, first_trial=FirstTrial(trials=2, wait=0))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("split", ["date", "random"])
def test_runs_go_trial_by_trial_over_all_methods(split, monkeypatch):
    done = []
    from benchnb.evaluation import compare as module

    def watch(self, kind, seconds):
        done.append(kind)
        finish(self, kind, seconds)

    finish = module.RemainingTime.finish
    monkeypatch.setattr(module.RemainingTime, "finish", watch)
    compare(table(), QUICK, [6, 12], 3, split=split, progress=True)
    runs = [kind for kind in done if kind[1] != module.FIT]
    once = [(name, budget) for name in QUICK for budget in (6, 12)]
    assert runs == once * 3
    assert done.count(("random", module.FIT)) == (1 if split == "date" else 3)


def test_the_time_to_go_weighs_steps_by_what_their_kind_took():
    pace = RemainingTime(["fit", *["slow"] * 3, *["fast"] * 30])
    pace.finish("fit", 1.0)
    for _ in range(10):
        pace.finish("fast", 0.1)
    assert math.isnan(pace.to_go())  # no slow one was seen
    pace.finish("slow", 8.0)
    pace.begun -= 5  # two processors: 10 seconds of work in 5
    assert pace.to_go() == pytest.approx((2 * 8 + 20 * 0.1) / 2, rel=1e-2)
