"What a harness could not score is reported by its kind, apart from wrong answers"

import json

import numpy as np
import pytest
from helpers.logs import inspect_log, write_eval

from benchnb import get_method
from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.harnesses.harness import get_harness
from benchnb.harnesses.logs import Choices, Failure
from benchnb.live.answers import log_answers
from benchnb.live.bundles import find_bundle, load_bundle
from benchnb.live.evaluation import Evaluation

TIMEOUT, BROKEN = Failure.TIMEOUT, Failure.INFRASTRUCTURE


def kinds(harness, path, choices=None):
    "Item, kind of failure; of those that failed"
    (log,) = get_harness(harness).read(path, choices or Choices())
    return {str(n): why for n, why in zip(log.ids, log.failures, strict=True) if why}


def test_a_report_of_infrastructure_failures_is_no_score_of_1(tmp_path, capsys):
    asked = load_bundle(find_bundle("swebench-verified-50")).ask()
    lists = {"resolved_ids": asked[:2], "unresolved_ids": asked[2:]}
    lists |= {"infra_failure_ids": asked[2:48], "error_ids": asked[47:49]}
    lists["unresolved_ids"] = asked[48:]
    path = tmp_path / "agent.run.json"
    path.write_text(json.dumps(lists))
    wanted = dict.fromkeys(asked[2:48], BROKEN) | {asked[48]: Failure.COUNTED}
    assert kinds("swebench", path) == wanted
    assert main(["estimate", "--bundle", "swebench-verified-50", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "46 infrastructure; counted as wrong the score would be 2.5 points" in out
    assert (
        "interval" not in out.partition("rank")[0]
        or "46 of the 50 items asked have no score" in out
    )
    assert "rank 1 of" not in out
    args = ["estimate", "--bundle", "swebench-verified-50", str(path), "--json"]
    assert main(args) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["failures"] == {"infrastructure": 46}
    assert found["interval"] == [None, None] and found["rank"] is None
    assert found["bounds"][0] < 0.2 < 0.9 < found["bounds"][1]


def test_samples_of_inspect_fail_by_error_limit_or_refusal(tmp_path):
    header, samples = inspect_log("m", "t", {n: float(n < 3) for n in range(1, 8)})
    for sample in samples[2:]:
        sample["scores"] = None
    samples[2]["error"] = {"message": "x", "traceback": "y"}
    samples[3]["limit"] = {"type": "time", "limit": 60.0}
    samples[4]["output"] = {"choices": [{"stop_reason": "content_filter"}]}
    samples[5]["limit"] = "working"  # as a summary has it
    samples[6]["limit"] = "token"
    write_eval(tmp_path / "a.eval", header, samples)
    wanted = {"3": "error", "4": TIMEOUT, "5": "refused", "6": TIMEOUT, "7": "error"}
    assert kinds("inspect", tmp_path / "a.eval") == wanted


@pytest.mark.parametrize(
    "more, kind",
    [
        ({"exception_info": {"exception_type": "AgentTimeoutError"}}, TIMEOUT),
        (
            {"exception_info": {"exception_type": "EnvironmentStartTimeoutError"}},
            BROKEN,
        ),
        ({"exception_info": {"exception_type": "ValueError"}}, Failure.ERROR),
        ({"failure_mode": "agent_timeout"}, TIMEOUT),
        ({"failure_mode": "unset"}, ""),
        ({"exception_info": None}, ""),
    ],
)
def test_trials_without_a_reward_fail_by_what_the_harness_says(tmp_path, more, kind):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"task_name": "a", "verifier_result": None} | more))
    (log,) = get_harness("harbor").read(path)
    assert np.isnan(log.scores[0]) and log.failures[0] == kind
    reward = {"verifier_result": {"rewards": {"reward": 0.0}}}
    path.write_text(json.dumps({"task_name": "a"} | more | reward))
    (log,) = get_harness("harbor").read(path)
    if kind == BROKEN:  # nothing that a verifier says of it counts
        assert np.isnan(log.scores[0]) and log.failures[0] == Failure.INVALID
    else:
        assert log.scores[0] == 0 and log.failures[0] == ""  # it was verified: wrong


def test_kinds_of_failures_are_kept_in_the_folder(tmp_path):
    table = Scores(np.random.default_rng(0).integers(0, 2, (8, 20)).astype(float))
    fitted = get_method("random").fit(table)
    live = Evaluation(fitted, 10, folder=tmp_path / "a")
    asked = live.ask()
    live.tell(dict.fromkeys(asked[:7], 1.0) | {asked[7]: TIMEOUT, asked[8]: np.nan})
    live.tell({asked[9]: {"run 1": Failure.REFUSED, "run 2": np.nan}})
    again = Evaluation.load(tmp_path / "a")
    assert again.told.failures == {asked[7]: TIMEOUT, asked[9]: Failure.REFUSED}
    assert again.report()["failures"] == {"timeout": 1, "refused": 1}
    again.tell({asked[7]: 1.0})  # run again
    assert Evaluation.load(tmp_path / "a").report()["failures"] == {"refused": 1}


def test_answers_of_logs_name_the_failure_in_place_of_a_score(tmp_path):
    path, names = tmp_path / "agent.run.json", ["a__a-1", "a__a-2"]
    lists = {"resolved_ids": names[:1], "infra_failure_ids": names[1:]}
    path.write_text(json.dumps(lists))
    table = Scores(np.ones((2, 2)))
    items = table.items.set_axis(names)
    found = log_answers(get_harness("swebench").read(path), items)
    assert found == {"a__a-1": 1.0, "a__a-2": BROKEN}


def test_errors_that_count_as_wrong_are_counted_and_may_be_run_again(tmp_path, capsys):
    folder, path = str(tmp_path / "a"), tmp_path / "agent.run.json"
    assert main(["plan", "swebench-verified-50", "--out", folder]) == 0
    asked = Evaluation.load(folder).ask()
    lists = {"resolved_ids": asked[5:20], "unresolved_ids": asked[20:]}
    path.write_text(json.dumps(lists | {"error_ids": asked[:5]}))
    capsys.readouterr()
    words = "5 of 50 results ended in an error and count as wrong"
    assert main(["tell", folder, str(path)]) == 0
    assert words in " ".join(capsys.readouterr().out.split())
    assert main(["estimate", "--bundle", "swebench-verified-50", str(path)]) == 0
    assert words in " ".join(capsys.readouterr().out.split())
    assert main(["estimate", folder, "--md", f"{folder}/report.md"]) == 0
    assert words in (tmp_path / "a" / "report.md").read_text()
    before = Evaluation.load(folder).estimate().score
    path.write_text(json.dumps(lists | {"resolved_ids": asked[:20]}))
    assert main(["tell", folder, str(path)]) == 0  # run again
    assert "ended in an error" not in capsys.readouterr().out
    live = Evaluation.load(folder)
    assert live.estimate().score > before and not live.told.failures


def test_a_submission_without_patches_or_logs_says_so(tmp_path, capsys):
    live = load_bundle(find_bundle("swebench-verified-50"))
    asked = live.ask()
    lists = {"resolved": asked[:20], "no_generation": asked[20:23]}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(lists | {"no_logs": asked[23:24]}))
    assert main(["estimate", "--bundle", "swebench-verified-50", str(path)]) == 0
    said = capsys.readouterr()
    assert "4 of 50 results ended in an error" in " ".join(said.out.split())
    assert "does not say all that was run" in said.err  # they may not have been run


def test_a_weak_agents_submission_is_read(tmp_path, capsys):
    "Of the leaderboard's layout, with one task solved; a bare list may be of anything"
    live = load_bundle(find_bundle("swebench-verified-50"))
    one = {"resolved": live.ask()[:1]}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(one | {"no_generation": [], "no_logs": []}))
    call = ["estimate", "--bundle", "swebench-verified-50", str(path)]
    assert main(call) == 0 and "score" in capsys.readouterr().out
    path.write_text(json.dumps(one))
    assert main(call) == 2 and "only what was resolved" in capsys.readouterr().err
    path.write_text(json.dumps(one | {"no_generation": one["resolved"]}))
    assert main(call) == 2
    assert "both in resolved and no_generation" in capsys.readouterr().err


def test_a_submission_that_names_all_it_ran_leaves_out_the_rest(tmp_path, capsys):
    live = load_bundle(find_bundle("swebench-verified-50"))
    asked = live.ask()
    run = [*asked[:20], *(n for n in live.items.index if n not in asked)][:220]
    lists = {"resolved": run[:9], "generated": run, "no_generation": []}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(lists))
    assert main(["estimate", "--bundle", "swebench-verified-50", str(path)]) == 2
    assert "30 items of 'swebench-verified-50' missing" in capsys.readouterr().err
