"What an item cost, by the logs of each harness: tokens, seconds or dollars, as chosen"

import json

import numpy as np
import pytest
from helpers.logs import inspect_log, write_eval

from benchnb.cli.app import main
from benchnb.data.costs import cost_unit
from benchnb.harnesses.harness import import_logs
from benchnb.harnesses.logs import Choices


def inspect_folder(folder, **more):
    "Two models, three samples each, with usage and times"
    for name, slow in (("m/a", 1.0), ("m/b", 3.0)):
        header, samples = inspect_log(name, "quiz", ["C", "I", "C"])
        for sample in samples:
            used = {"input_tokens": 100, "output_tokens": 5, "total_cost": 0.01 * slow}
            sample["model_usage"] = {name: used, "grader": dict(used)}
            sample |= {"working_time": slow * sample["id"], "total_time": 50.0} | more
        write_eval(folder / f"{name[-1]}.eval", header, samples)


@pytest.mark.parametrize(
    ("unit", "costs"),
    [("tokens", [210] * 3), ("seconds", [2, 4, 6]), ("usd", [0.04] * 3)],
)
def test_inspect_has_all_three(unit, costs, tmp_path):
    inspect_folder(tmp_path)
    scores = import_logs("inspect", tmp_path, Choices(cost=unit))
    assert scores.items["cost"].tolist() == pytest.approx(costs)  # mean of two models
    assert cost_unit(scores.items) == unit


def test_the_whole_time_stands_in_and_an_unknown_price_is_unknown(tmp_path):
    inspect_folder(tmp_path, working_time=None)
    scores = import_logs("inspect", tmp_path, Choices(cost="seconds"))
    assert scores.items["cost"].tolist() == [50] * 3
    inspect_folder(tmp_path, model_usage={"m/a": {"input_tokens": 1}})
    scores = import_logs("inspect", tmp_path, Choices(cost="usd"))
    assert "cost" not in scores.items and cost_unit(scores.items) is None


@pytest.mark.parametrize("odd", [-1, True, "12", [1], float("nan")])
def test_a_time_that_is_none_is_unknown(odd, tmp_path):
    inspect_folder(tmp_path, working_time=odd, total_time=None)
    assert "cost" not in import_logs("inspect", tmp_path, Choices(cost="seconds")).items


def test_harbor_has_all_three_and_its_forerunner_two(tmp_path):
    used = {"n_input_tokens": 900, "n_output_tokens": 100, "cost_usd": 0.5}
    work = {"started_at": "2026-01-05T10:00:00", "finished_at": "2026-01-05T10:01:00"}
    for number, seconds in enumerate((60, 120)):
        work["finished_at"] = f"2026-01-05T10:0{seconds // 60}:00"
        trial = {"task_name": "sort", "trial_name": f"t{number}"}
        trial |= {"verifier_result": {"rewards": {"reward": 1}}}
        trial |= {"agent_result": used, "agent_execution": work}
        place = tmp_path / "job" / f"sort.{number}" / "result.json"
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps(trial))
    for unit, cost in (("tokens", 1000), ("seconds", 90), ("usd", 0.5)):
        scores = import_logs("harbor", tmp_path, Choices(cost=unit))
        assert scores.items["cost"].tolist() == [cost]  # mean of the trials
    old = {"task_id": "sort", "is_resolved": True, "total_input_tokens": 7}
    old |= {"total_output_tokens": 1, "agent_started_at": "2026-01-05T10:00:00"}
    old |= {"agent_ended_at": "2026-01-05T10:00:30"}
    place = tmp_path / "run" / "results.json"
    place.parent.mkdir()
    place.write_text(json.dumps({"results": [old]}))
    for unit, cost in (("tokens", 8), ("seconds", 30)):
        scores = import_logs("harbor", place, Choices(cost=unit))
        assert scores.items["cost"].tolist() == [cost]
    assert "cost" not in import_logs("harbor", place, Choices(cost="usd")).items


def test_every_eval_ever_has_tokens_and_latency(tmp_path):
    path = tmp_path / "a_samples.jsonl"
    row = {"schema_version": "0.3.0", "model_id": "m", "evaluation_name": "e"}
    row |= {"sample_id": "1", "evaluation": {"score": 1.0, "is_correct": True}}
    row |= {"token_usage": {"total_tokens": 17}, "performance": {"latency_ms": 250.0}}
    path.write_text(json.dumps(row) + "\n")
    for unit, cost in (("tokens", 17), ("seconds", 0.25)):
        scores = import_logs("eee", path, Choices(cost=unit))
        assert scores.items["cost"].tolist() == [cost]
        assert cost_unit(scores.items) == unit
    assert "cost" not in import_logs("eee", path, Choices(cost="usd")).items


def test_a_format_with_tokens_alone_gives_no_seconds(tmp_path):
    "Tokens are never passed off as seconds"
    rows = [{"subject_id": "m", "responses": {"q1": True}}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for unit in ("tokens", "seconds"):
        assert "cost" not in import_logs("py-irt", path, Choices(cost=unit)).items


def test_the_command_names_the_unit_and_refuses_another(tmp_path, capsys):
    inspect_folder(tmp_path / "logs")
    out = tmp_path / "s.parquet"
    argv = ["import", "inspect", str(tmp_path / "logs"), "--out", str(out)]
    assert main([*argv, "--cost", "seconds"]) == 0
    assert "costs in seconds: 100% of the items" in capsys.readouterr().out
    assert main([*argv, "--cost", "euros"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "benchnb: error: cost='euros' is no choice: say tokens, seconds, usd\n"
    )
    assert np.isfinite(import_logs("inspect", tmp_path / "logs").items["cost"]).all()
