"What an item cost, by the logs of each harness: tokens, seconds or dollars, as chosen"

import json

import pytest
from helpers.logs import eee_line, inspect_log, py_irt, write_eval, write_rows

from benchnb.harnesses.harness import import_logs
from benchnb.harnesses.logs import Choices


def costs(harness, path, unit):
    "The costs of the items, None where they are unknown"
    items = import_logs(harness, path, Choices(cost=unit)).items
    assert "cost" not in items or (items["cost_unit"] == unit).all()
    return items["cost"].tolist() if "cost" in items else None


def inspect_folder(folder, **more):
    "Two models, three samples each, with usage and times"
    for name, slow in (("m/a", 1.0), ("m/b", 3.0)):
        header, samples = inspect_log(name, "quiz", ["C", "I", "C"])
        for sample in samples:
            used = {"input_tokens": 100, "output_tokens": 5, "total_cost": 0.01 * slow}
            sample["model_usage"] = {name: used, "grader": dict(used)}
            sample |= {"working_time": slow * sample["id"], "total_time": 50.0} | more
        write_eval(folder / f"{name[-1]}.eval", header, samples)


def test_inspect_has_all_three(tmp_path):
    inspect_folder(tmp_path)
    wanted = {"tokens": [210] * 3, "seconds": [2, 4, 6], "usd": [0.04] * 3}
    for unit, mean in wanted.items():  # of two models
        assert costs("inspect", tmp_path, unit) == pytest.approx(mean)
    inspect_folder(tmp_path, working_time=None)  # the whole time stands in
    assert costs("inspect", tmp_path, "seconds") == [50] * 3
    inspect_folder(tmp_path, model_usage={"m/a": {"input_tokens": 1}})
    assert costs("inspect", tmp_path, "usd") is None


@pytest.mark.parametrize("odd", [-1, True, "12", [1], float("nan")])
def test_a_time_that_is_none_is_unknown(odd, tmp_path):
    inspect_folder(tmp_path, working_time=odd, total_time=None)
    assert costs("inspect", tmp_path, "seconds") is None


def test_harbor_has_all_three_and_its_forerunner_two(tmp_path):
    used = {"n_input_tokens": 900, "n_output_tokens": 100, "cost_usd": 0.5}
    for number, seconds in enumerate((60, 120)):
        work = {"started_at": "2026-01-05T10:00:00"}
        work["finished_at"] = f"2026-01-05T10:0{seconds // 60}:00"
        trial = {"task_name": "sort", "trial_name": f"t{number}"}
        trial |= {"verifier_result": {"rewards": {"reward": 1}}}
        trial |= {"agent_result": used, "agent_execution": work}
        place = tmp_path / "job" / f"sort.{number}" / "result.json"
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps(trial))
    for unit, cost in (("tokens", 1000), ("seconds", 90), ("usd", 0.5)):
        assert costs("harbor", tmp_path, unit) == [cost]  # mean of the trials
    old = {"task_id": "sort", "is_resolved": True, "total_input_tokens": 7}
    old |= {"total_output_tokens": 1, "agent_started_at": "2026-01-05T10:00:00"}
    old |= {"agent_ended_at": "2026-01-05T10:00:30"}
    (tmp_path / "results.json").write_text(json.dumps({"results": [old]}))
    for unit, cost in (("tokens", [8]), ("seconds", [30]), ("usd", None)):
        assert costs("harbor", tmp_path / "results.json", unit) == cost


def test_every_eval_ever_has_tokens_and_latency(tmp_path):
    more = {"token_usage": {"total_tokens": 17}, "performance": {"latency_ms": 250.0}}
    path = write_rows(tmp_path / "a_samples.jsonl", [eee_line("s", **more)])
    for unit, cost in (("tokens", [17]), ("seconds", [0.25]), ("usd", None)):
        assert costs("eee", path, unit) == cost
    assert costs("py-irt", py_irt(tmp_path), "seconds") is None
