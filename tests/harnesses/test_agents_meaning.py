"""Agents' harnesses and promptfoo: which rewards count, what makes another task or
another agent, and the harness's own number beside what the items give."""

import json
import warnings

import numpy as np
import pytest
from helpers.logs import (
    harbor_trial,
    promptfoo_row,
    promptfoo_sums,
    raised,
    refused,
    swebench_run,
    tau_run,
    write_harbor,
    write_json,
    write_promptfoo,
    write_rows,
)

from benchnb.cli.app import main
from benchnb.harnesses.harness import get_harness, guess_harness, import_logs
from benchnb.harnesses.logs import Choices, Failure
from benchnb.live.answers import check_as_before, logged_settings


def read(harness, place, **choices):
    "A table, the lines that were said, and what became of the harness's numbers"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = import_logs(harness, place, Choices(**choices))
    said = " ".join(str(warning.message) for warning in caught)
    return scores, said, dict(scores.models.get("reconciled", {}))


def means(scores):
    "The score of every model"
    return {
        name: round(float(x), 3) for name, x in scores.performance().to_dict().items()
    }


# Harbor: rewards that do not count -------------------------------------------------

LIMIT = raised("ApiRateLimitError", False)
STEPS = [{"step_name": "a"}, {"step_name": "b", "exception_info": LIMIT}]


@pytest.mark.parametrize(
    "marks, counts",
    [
        ({"reward_valid": False}, False),
        ({"reward_valid": False, "exception_info": LIMIT}, False),
        ({"exception_info": LIMIT}, False),  # older: only the policy says it
        ({"step_results": STEPS}, False),
        ({"reward_valid": True, "exception_info": raised("AgentTimeoutError")}, True),
        ({"exception_info": raised("AgentTimeoutError", True)}, True),
        ({"exception_info": raised("SomeError")}, True),  # an exception alone
        ({"exception_info": raised("AgentTimeoutError")}, True),  # the agent's own
        ({"exception_info": raised("ContextWindowExceededError")}, True),
        ({"exception_info": raised("ApiRateLimitError")}, False),  # older: no mark
        ({"exception_info": raised("ApiOverloadedError")}, False),
        ({"exception_info": raised("EnvironmentStartTimeoutError")}, False),
        ({"exception_info": raised("CancelledError")}, False),
        ({"exception_info": raised("ApiRateLimitError"), "reward_valid": True}, True),
        ({"exception_info": raised("ApiRateLimitError", True)}, True),  # overridden
        ({"step_results": [{"exception_info": raised("RateLimitError")}]}, False),
        ({"step_results": [{"exception_info": None}]}, True),
    ],
)
def test_a_reward_counts_unless_harbor_says_otherwise(marks, counts, tmp_path):
    trials = [harbor_trial(f"t{n}", float(n < 5)) for n in range(6)]
    void = [harbor_trial(f"v{n}", 0.0, **marks) for n in range(4)]
    write_harbor(tmp_path / "job", [*trials, *void], 5 / 6 if not counts else 0.5)
    scores, _, reconciled = read("harbor", tmp_path)
    assert means(scores) == {"terminus-2 m": 0.5 if counts else 0.833}
    assert np.isnan(scores.values).sum() == (0 if counts else 4)
    assert set(reconciled.values()) == {"equal"}
    file = next((tmp_path / "job").glob("v0*/result.json"))
    (log,) = get_harness("harbor").read(file)
    assert log.failures[0] == ("" if counts else Failure.INVALID)


def test_older_jobs_count_what_a_broken_environment_left_behind(tmp_path):
    "Of three kinds of zero, two are no answers; the job's own mean has them all"
    trials = [harbor_trial(f"t{n}", float(n < 4)) for n in range(6)]
    late = raised("AgentTimeoutError")
    trials.append(harbor_trial("late", 0.0, exception_info=late))
    trials.append(harbor_trial("cut", 0.0, exception_info=raised("ApiRateLimitError")))
    gone = raised("EnvironmentStartTimeoutError")
    trials.append(harbor_trial("gone", None, exception_info=gone))
    scores, _, reconciled = read(
        "harbor", write_harbor(tmp_path / "job", trials, 4 / 9)
    )
    assert means(scores) == {"terminus-2 m": round(4 / 7, 3)}
    (line,) = reconciled.values()
    assert "reports 44.4 points by reward, the items give 57.1" in line
    assert "marked as invalid (1 of 9)" in line
    reasons = {}
    for file in (tmp_path / "job").glob("*/result.json"):
        (log,) = get_harness("harbor").read(file)
        reasons[log.ids[0]] = log.failures[0]
    assert reasons["gone"] == Failure.INFRASTRUCTURE
    assert reasons["cut"] == Failure.INVALID and reasons["late"] == ""


@pytest.mark.parametrize("error", [None, "RuntimeError"])
def test_a_trial_with_a_runtime_only_has_no_score(error, tmp_path):
    trials = [
        harbor_trial(f"t{n}", {"reward": float(n), "runtime": 0.5, "cost": 9.5})
        for n in range(2)
    ]
    lost = {"exception_info": raised(error)} if error else {}
    trials.append(harbor_trial("t2", {"runtime": 0.5}, **lost))
    scores, *_ = read("harbor", write_harbor(tmp_path / "job", trials))
    assert means(scores) == {"terminus-2 m": 0.5}
    (log,) = get_harness("harbor").read(tmp_path / "job" / "t2__2" / "result.json")
    assert np.isnan(log.scores[0]) and log.failures[0] == Failure.ERROR


@pytest.mark.parametrize("name", ["unsafe_actions", "runtime", "cost"])
def test_a_reward_of_what_is_bad_is_asked_for(name, tmp_path):
    trials = [harbor_trial(f"t{n}", {name: 0.25}) for n in range(2)]
    place = write_harbor(tmp_path / "job", trials)
    refused(lambda: read("harbor", place), name, "direction")
    assert means(read("harbor", place, direction="lower")[0]) == {"terminus-2 m": 0.75}


def test_a_gate_does_not_fail_on_invalid_trials(tmp_path, capsys):
    "Forty of 120 trials were cut by a rate limit; of the others none differs"
    old = [harbor_trial(f"t{n}", float(n % 2)) for n in range(120)]
    void = {"reward_valid": False, "exception_info": LIMIT}
    new = [
        harbor_trial(f"t{n}", 0.0, **void) if n < 40 else trial
        for n, trial in enumerate(old)
    ]
    write_harbor(tmp_path / "old", old)
    write_harbor(tmp_path / "new", new)
    main(["gate", str(tmp_path / "old"), str(tmp_path / "new"), "--json"])
    printed = capsys.readouterr()
    assert '"FAIL"' not in printed.out + printed.err


def test_a_trial_that_was_run_again_is_no_rival(tmp_path):
    trials = [harbor_trial(f"t{n}", float(n < 3)) for n in range(5)]
    dead = raised("InternalServerError", False)
    lost = [
        harbor_trial(f"t{n}", None, exception_info=dead, reward_valid=False)
        for n in (1, 4)
    ]
    write_harbor(tmp_path / "job", [*lost, *trials])
    for repeated in ("error", "first", "trials"):
        scores, *_ = read("harbor", tmp_path, repeated=repeated)
        assert means(scores) == {"terminus-2 m": 0.6}


def test_harbors_mean_over_trials_is_not_the_mean_over_tasks(tmp_path):
    trials = [harbor_trial("a", x) for x in (1.0, 1.0, 1.0)] + [harbor_trial("b", 0.0)]
    scores, _, reconciled = read("harbor", write_harbor(tmp_path / "job", trials, 0.75))
    assert means(scores) == {"terminus-2 m": 0.5}
    (line,) = reconciled.values()
    assert "reports 75.0 points by reward, the items give 50.0" in line
    assert "mean over runs" in line


# Harbor: several rewards ---------------------------------------------------------


def several(folder, last=None):
    "Six trials with two rewards, of which two are correct"
    trials = [
        harbor_trial(f"t{n}", {"format": 1.0, "correctness": float(n < 2)})
        for n in range(6)
    ]
    if last:
        trials[-1] = harbor_trial("t5", last)
    mean = {"format": 1.0, "correctness": 2 / 6}
    return write_harbor(folder / "job", trials, mean, mean)


def test_of_several_rewards_one_is_chosen_and_named(tmp_path, capsys):
    place = several(tmp_path)
    refused(lambda: read("harbor", place), "several metrics", "'format', 'correctness'")
    refused(lambda: read("harbor", place, metric=("x",)), "no metric 'x'", "'format'")
    for metric, score in (("correctness", 0.333), ("format", 1.0)):
        scores, _, reconciled = read("harbor", place, metric=(metric,))
        assert means(scores) == {"terminus-2 m": score}
        assert set(reconciled.values()) == {"equal"}
        assert {*scores.items["metric"]} == {metric}
        assert {*scores.items["direction"]} == {"higher"}
    out = str(tmp_path / "f.parquet")
    words = ["import", "harbor", str(place), "--metric", "correctness", "--out", out]
    assert main(words) == 0
    assert "metric: correctness" in capsys.readouterr().out


@pytest.mark.parametrize("job", [True, False])
def test_a_trial_without_the_chosen_reward_is_unscored(job, tmp_path):
    place = several(tmp_path, last={"format": 1.0})
    if not job:
        (place / "result.json").unlink()
    scores, _, reconciled = read("harbor", place, metric=("correctness",))
    assert means(scores) == {"terminus-2 m": 0.4}
    assert np.isnan(scores.values).sum() == 1
    assert not job or "what has no score as 0 (1 of 6)" in min(reconciled.values())


def test_the_reward_called_so_or_the_only_one_needs_no_choice(tmp_path):
    pair = [harbor_trial("a", {"quality": 0.0, "reward": 1.0}), harbor_trial("b", 0.5)]
    scores, *_ = read("harbor", write_harbor(tmp_path / "pair", pair))
    assert means(scores) == {"terminus-2 m": 0.75}
    assert {*scores.items["metric"]} == {"reward"}
    alone = [harbor_trial(n, {"accuracy": x}) for n, x in (("a", 1), ("b", 0))]
    scores, *_ = read(
        "harbor", write_harbor(tmp_path / "alone", alone, 0.5, ["accuracy"])
    )
    assert {*scores.items["metric"]} == {"accuracy"}
    mixed = [harbor_trial("a", {"accuracy": 1}), harbor_trial("b", {"speed": 1})]
    place = write_harbor(tmp_path / "mixed", mixed)
    refused(lambda: read("harbor", place), "metric", "accuracy", "speed")


# Harbor: tasks and agents ------------------------------------------------------------


@pytest.mark.parametrize("by", ["package", "source"])
def test_tasks_of_one_name_are_kept_apart_by_package_or_source(by, tmp_path):
    rows = [("alpha", "fix", 1.0), ("beta", "fix", 0.0), ("beta", "map", 1.0)]
    trials = []
    for origin, name, reward in [*rows, ("alpha", "sort", 1.0)]:
        full = f"{origin}/{name}" if by == "package" else name
        source = "exam" if by == "package" else origin
        trials.append(harbor_trial(full, reward, source=source, task_checksum="cc"))
    scores, said, _ = read("harbor", write_harbor(tmp_path / "job", trials))
    assert sorted(scores.items.index) == ["alpha/fix", "beta/fix", "map", "sort"]
    assert means(scores) == {"terminus-2 m": 0.75}
    assert "'fix'" in said and "kept apart" in said


def test_an_edited_task_is_refused_by_its_checksum(tmp_path):
    old = [harbor_trial(f"t{n}", 1.0) for n in range(6)]
    new = [harbor_trial(f"t{n}", 0.0, model="n") for n in range(6)]
    for trial in new[2:]:
        trial["task_checksum"] += "e"
        trial["task_checksum"] = trial["task_checksum"][::-1]
    write_harbor(tmp_path / "old", old)
    write_harbor(tmp_path / "new", new)
    refused(lambda: read("harbor", tmp_path), "another document", "match='hash'")
    scores, *_ = read("harbor", tmp_path, match="hash")
    common = ~np.isnan(scores.values).any(0)
    assert common.sum() == 2 and scores.items["hash"].notna().all()


@pytest.mark.parametrize(
    "low, high, words",
    [
        (
            {"kwargs": {"reasoning_effort": "low"}},
            {"kwargs": {"reasoning_effort": "high"}},
            "reasoning_effort=",
        ),
        ({"version": "2.0.1"}, {"version": "2.1.0"}, "version="),
        ({"kwargs": {"temperature": 0}}, {"kwargs": {"temperature": 1}}, "temperature"),
        ({"provider": "openai"}, {"provider": "azure"}, "provider="),
    ],
)
@pytest.mark.parametrize("same_tasks", [True, False])
def test_an_agent_with_other_settings_is_another_agent(
    same_tasks, low, high, words, tmp_path
):
    names = "abcde", "abcde" if same_tasks else "fghij"
    for place, settings, solved, tasks in (
        ("low", low, "a", names[0]),
        ("high", high, "abcdfghi", names[1]),
    ):
        trials = [harbor_trial(n, float(n in solved), **settings) for n in tasks]
        write_harbor(tmp_path / place, trials)
    scores, *_ = read("harbor", tmp_path)
    assert sorted(means(scores).values()) == [0.2, 0.8]
    assert all(words in name for name in scores.models.index)


SERVERS = [{"name": "browser", "url": "http://a", "headers": {"x": "s3cr3t"}}]


@pytest.mark.parametrize("provider", ["p", None])
@pytest.mark.parametrize(
    "name, value, words",
    [
        ("skills", ["org/debugging@v1"], "skills=org/debugging@v1"),
        ("mcp_servers", SERVERS, "mcp_servers=browser:#"),
        ("import_path", "mine.agents:Mine", "import_path=mine.agents:Mine"),
        ("env", {"EXTRA_STEPS": "s3cr3t"}, "env=EXTRA_STEPS"),
        ("kwargs", {"extra_env": {"EXTRA_STEPS": "s3cr3t"}}, "env=EXTRA_STEPS"),
        ("resume_trajectory", True, "resume_trajectory=true"),
        ("load_trajectory", "a.json", "load_trajectory=#"),
    ],
)
def test_what_an_agent_was_given_is_part_of_its_name(
    name, value, words, provider, tmp_path
):
    for place, tasks in (("plain", "ab"), ("given", "cd")):
        trials = [harbor_trial(n, 1.0, provider=provider) for n in tasks]
        for trial in trials if place == "given" else ():
            trial["config"]["agent"][name] = value
        write_harbor(tmp_path / place, trials)
    scores, said, _ = read("harbor", tmp_path)
    assert "terminus-2 m" in scores.models.index and len(scores.models) == 2
    assert words in scores.models.index[0] + scores.models.index[1]
    assert "s3cr3t" not in said + "".join(scores.models.index)


def test_how_a_run_is_kept_makes_no_other_agent(tmp_path):
    "Nor does a provider that one trial does not name"
    kept = {"session_id": "a", "record_terminal_session": True, "seed": 1}
    for number, kwargs in enumerate([kept, kept | {"session_id": "b", "seed": 2}, {}]):
        provider = "p" if number else None
        trial = harbor_trial(f"t{number}", 1.0, kwargs=kwargs, provider=provider)
        trial["config"]["agent"] |= {"n_concurrent": number, "base_url": f"h{number}"}
        trial["config"]["agent"] |= {"skills": [], "mcp_servers": []}
        trial["config"]["agent"]["env"] = {"OPENAI_API_KEY": f"{number}"}
        write_harbor(tmp_path / str(number), [trial])
    scores, said, _ = read("harbor", tmp_path)
    assert [*scores.models.index] == ["terminus-2 m"] and not said


def test_a_provider_that_is_not_written_is_none_told_before(tmp_path):
    told = []
    for name, provider in (("a", "p"), ("b", None), ("c", "q")):
        trial = harbor_trial("a", 1.0, provider=provider)
        place = write_harbor(tmp_path / name, [trial]) / "a__0" / "result.json"
        told.append(logged_settings(get_harness("harbor").read(place)))
    check_as_before(told[1], told[0])
    check_as_before(told[2], told[1])
    refused(lambda: check_as_before(told[2], told[0]), "provider is q")


def test_further_instructions_make_another_task(tmp_path):
    for model, texts in (("m", []), ("n", ["Be quick."])):
        trial = harbor_trial("a", 1.0, model=model)
        trial["config"]["extra_instructions"] = texts
        write_harbor(tmp_path / model, [trial])
    refused(lambda: read("harbor", tmp_path), "extra_instructions")


def test_a_secret_argument_is_never_written(tmp_path):
    kwargs = [{"api_key": "s3cr3t", "header": f"s3cr3t{n}"} for n in range(2)]
    trials = [harbor_trial("a", 1.0, kwargs=kwargs[0], version="1")]
    trials.append(harbor_trial("a", 1.0, kwargs=kwargs[1], version="2"))
    scores, said, _ = read("harbor", write_harbor(tmp_path / "job", trials))
    assert len(scores.models) == 2
    assert "s3cr3t" not in said + "".join(scores.models.index)


def test_more_time_makes_another_task(tmp_path):
    for number in (1.0, 4.0):
        trial = harbor_trial("a", 1.0, model=f"m{number:g}")
        trial["config"]["timeout_multiplier"] = number
        write_harbor(tmp_path / f"job{number:g}", [trial])
    refused(lambda: read("harbor", tmp_path), "timeout_multiplier")
    scores, *_ = read("harbor", tmp_path, differing=("timeout_multiplier",))
    assert len(scores.models) == 2


# SWE-bench -----------------------------------------------------------------------

NAMES = [f"org__repo-{n}" for n in range(20)]


def test_an_evaluation_that_failed_is_no_score_of_0(tmp_path):
    report = swebench_run([], [], 20, failed_ids=NAMES, submitted_ids=NAMES)
    path = write_json(tmp_path / "agent.run.json", report)
    (log,) = get_harness("swebench").read(path)
    assert np.isnan(log.scores).all() and {*log.failures} == {Failure.INFRASTRUCTURE}
    words = ["import", "swebench", str(tmp_path), "--out", str(tmp_path / "f.parquet")]
    assert main(words) == 2
    report = swebench_run(NAMES[:8], NAMES[8:16], 20, failed_ids=NAMES[12:])
    write_json(path, report)  # four of these have a verdict all the same
    scores, _, reconciled = read("swebench", tmp_path)
    assert means(scores) == {"agent": 0.5}
    assert "reports 40.0 points" in reconciled["agent"]
    assert "no score as 0 (4 of 20)" in reconciled["agent"]


def test_instances_that_were_not_submitted_are_said(tmp_path, capsys):
    lists = {"empty_patch_ids": NAMES[12:14], "error_ids": NAMES[14:15]}
    lists |= {"incomplete_ids": NAMES[15:]}
    report = swebench_run(NAMES[:8], NAMES[8:12], 20, **lists)
    write_json(tmp_path / "agent.run.json", report)
    scores, said, reconciled = read("swebench", tmp_path)
    assert means(scores) == {"agent": 0.533} and len(scores.items) == 15
    assert "5 of 20 instances were not submitted" in said
    assert "reports 40.0 points by resolved" in reconciled["agent"]
    whole = swebench_run(NAMES[:11], NAMES[11:])
    write_json(tmp_path / "full.run.json", whole)
    words = ["import", "swebench", str(tmp_path), "--out", str(tmp_path / "f.parquet")]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "on the 15 items that have a score of every model" in out
    assert "highest score: 73.3 points (full)" in out


def test_failures_of_the_infrastructure_are_unscored_ambiguous_ones_count(tmp_path):
    lists = {"error_ids": NAMES[11:12], "infra_failure_ids": [NAMES[5], NAMES[11]]}
    lists |= {"ambiguous_failure_ids": NAMES[6:8]}
    report = swebench_run(NAMES[:5], NAMES[5:11], 12, **lists)
    write_json(tmp_path / "agent.run.json", report)
    scores, _, reconciled = read("swebench", tmp_path)
    assert means(scores) == {"agent": 0.5}
    assert {*scores.items["metric"]} == {"resolved"}
    assert "reports 41.7 points" in reconciled["agent"]


def swebench_logs(folder, report, instances):
    "A run as SWE-bench 5 leaves it: logs, and its report beside them"
    logs = folder / "logs" / "run_evaluation" / "r1" / "org__agent"
    for name, text in instances.items():
        place = logs / name
        place.mkdir(parents=True)
        if text is not None:
            (place / "report.json").write_text(text)
    if report:
        write_json(folder / "org__agent.r1.json", report)
    return folder / "logs"


@pytest.mark.parametrize("listed", [True, False])
def test_one_run_reads_the_same_from_its_report_and_its_logs(listed, tmp_path):
    "Of eight instances: broken, out of memory, without a container, an empty patch"
    verdicts = {
        name: json.dumps({name: {"resolved": n < 2}})
        for n, name in enumerate(NAMES[:5])
    }
    broken = {NAMES[5]: "", NAMES[6]: None, "stray__x-1": '{"stray__x-1": {}}'}
    lists = {"error_ids": NAMES[5:7], "infra_failure_ids": [NAMES[2], NAMES[6]]}
    lists |= {"completed_ids": NAMES[:6], "empty_patch_ids": [NAMES[7]]}
    lists |= {"submitted_ids": [*NAMES[:8], "stray__x-1"]}
    report = swebench_run(NAMES[:2], NAMES[2:5], 8, **lists)
    logs = swebench_logs(tmp_path, report if listed else None, verdicts | broken)
    scores, said, _ = read("swebench", logs)
    found = dict(zip(scores.items.index, scores.values[0].tolist(), strict=True))
    if not listed:
        assert found[NAMES[0]] == 1 and found[NAMES[5]] == 0 and NAMES[6] not in found
        assert "AGENT.RUN.json" in said
        return
    own, *_ = read("swebench", tmp_path / "org__agent.r1.json")
    wanted = dict(zip(own.items.index, own.values[0].tolist(), strict=True))
    assert {*map(str, found.items())} == {*map(str, wanted.items())}
    assert [*own.models.index] == [*scores.models.index] == ["org__agent"]
    both, *_ = read("swebench", tmp_path)
    assert means(both) == means(own) == {"org__agent": 0.333}


# promptfoo ----------------------------------------------------------------------


def test_an_error_of_the_provider_is_no_wrong_answer(tmp_path):
    rows = [promptfoo_row(f"q{n}", float(n < 3) if n < 5 else None) for n in range(8)]
    path = write_promptfoo(tmp_path / "r.json", rows, [promptfoo_sums(rows, "m")])
    assert guess_harness(path).name == "promptfoo"
    scores, _, reconciled = read("promptfoo", path)
    assert means(scores) == {"m": 0.6} and np.isnan(scores.values).sum() == 3
    assert "reports 37.5 points by success" in reconciled["m"]
    assert "no score as 0 (3 of 8)" in reconciled["m"]
    for row in rows:  # of an older version, which has no failureReason
        if row.pop("failureReason") != 2:
            row["gradingResult"] = {"pass": row["success"]}
    scores, *_ = read("promptfoo", write_promptfoo(path, rows))
    assert means(scores) == {"m": 0.6}


def test_passed_score_and_named_scores_are_metrics(tmp_path, capsys):
    points = [1.0, 1.0, 0.7, 0.6, 0.5, 0.2]
    named = [{"Accuracy": float(n < 3)} | {"Tone": 0.5} for n in range(6)]
    del named[5]["Accuracy"]
    rows = [
        promptfoo_row(f"q{n}", x, metrics=own, success=x >= 0.5)
        | {"failureReason": int(x < 0.5)}
        for n, (x, own) in enumerate(zip(points, named, strict=True))
    ]
    sums = promptfoo_sums(rows, "m")
    sums["metrics"] |= {"namedScores": {"Accuracy": 3.0, "Tone": 3.0}}
    sums["metrics"] |= {"namedScoresCount": {"Accuracy": 5, "Tone": 6}}
    path = write_promptfoo(tmp_path / "r.json", rows, [sums])
    for metric, score in (
        ("success", 0.833),
        ("score", 0.667),
        ("Accuracy", 0.6),
        ("Tone", 0.5),
    ):
        chosen = () if metric == "success" else (metric,)
        scores, _, reconciled = read("promptfoo", path, metric=chosen)
        assert means(scores) == {"m": score}
        assert {*reconciled.values()} == {"equal"}
        assert {*scores.items["metric"]} == {metric}
    refused(lambda: read("promptfoo", path, metric=("x",)), "'x'", "'success', 'score'")
    two = tmp_path / "s.json"
    for row in rows:
        row["provider"] = {"id": "n", "label": ""}
    write_promptfoo(two, rows)
    table = str(tmp_path / "t.parquet")
    words = ["import", "promptfoo", str(path), str(two), "--metric", "score"]
    assert main([*words, "--out", table]) == 0
    plan = ["plan", table, "--method", "random", "--budget", "3", "--folds", "0"]
    assert main([*plan, "--out", str(tmp_path / "plan")]) == 0
    capsys.readouterr()
    tell = ["tell", str(tmp_path / "plan"), str(two), "--format", "promptfoo"]
    assert main([*tell, "--metric", "success"]) == 2
    assert "metric" in capsys.readouterr().err


def test_an_item_is_what_its_variables_are(tmp_path):
    "Tuesday's tests in another order, one gone: no item differs"
    marks = {f"q{n}": float(n % 2) for n in range(6)}
    for day, names in (("monday", [*marks]), ("tuesday", [*marks][:0:-1])):
        rows = [
            promptfoo_row(name, marks[name], place, model=day)
            for place, name in enumerate(names)
        ]
        write_promptfoo(tmp_path / f"{day}.json", rows)
    scores, *_ = read("promptfoo", tmp_path)
    common = ~np.isnan(scores.values).any(0)
    assert common.sum() == 5 and (scores.values[0] == scores.values[1])[common].all()
    assert means(scores) == {"monday": 0.5, "tuesday": 0.6}


def test_another_assertion_makes_another_question(tmp_path):
    rows = [promptfoo_row(f"q{n}", 1.0) for n in range(3)]
    other = json.loads(json.dumps(rows))
    other[1]["testCase"]["assert"][0]["type"] = "contains"
    write_promptfoo(tmp_path / "a.json", rows)
    for row in other:
        row["provider"]["id"] = "n"
    write_promptfoo(tmp_path / "b.json", other)
    refused(lambda: read("promptfoo", tmp_path), "another document")
    both = [*rows, *(row | {"provider": {"id": "m"}} for row in other[1:2])]
    both = [row | {"provider": {"id": "m"}} for row in both]
    path = write_promptfoo(tmp_path / "both" / "c.json", both)
    scores, *_ = read("promptfoo", path)
    assert len(scores.items) == 4


def test_copies_of_repeat_are_runs_of_one_test(tmp_path):
    "The copies have numbers of their own; only their variables are the same"
    answers = {"a": (1.0, 1.0, 1.0), "b": (1.0, 0.0, 0.0), "c": (0.0, None, 0.0)}
    rows = [
        promptfoo_row(name, x, 3 * n + copy)
        for n, (name, copies) in enumerate(answers.items())
        for copy, x in enumerate(copies)
    ]
    path = write_promptfoo(tmp_path / "r.json", rows, [promptfoo_sums(rows, "m")])
    scores, *_ = read("promptfoo", path)
    assert len(scores.items) == 3 and scores.trials.sum() == 8
    assert means(scores) == {"m": round(4 / 9, 3)}


@pytest.mark.parametrize("kind", ["prompts", "labels", "configs", "files"])
def test_one_provider_is_several_systems(kind, tmp_path):
    "By the prompt, by the label, or by the settings alone"
    marks = (1.0, 0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0, 0.0)
    rows = []
    columns = []
    for number, answers in enumerate(marks):
        label = ("cold", "hot")[number] if kind == "labels" else ""
        text = ("Q: {{q}}", "Think: {{q}}")[
            number if kind in ("prompts", "files") else 0
        ]
        own = [
            promptfoo_row(f"q{n}", x, n, promptIdx=number)
            | {"provider": {"id": "m", "label": label}, "prompt": {"label": text}}
            for n, x in enumerate(answers)
        ]
        rows += own
        columns.append(promptfoo_sums(own, label or "m") | {"raw": text, "label": text})
    providers = [{"id": "m", "config": {"temperature": n}} for n in range(2)]
    if kind == "files":
        for number in range(2):
            part = [
                row | {"promptIdx": 0} for row in rows if row["promptIdx"] == number
            ]
            write_promptfoo(tmp_path / f"{number}.json", part, [columns[number]])
    else:
        given = providers if kind == "configs" else ()
        write_promptfoo(tmp_path / "r.json", rows, columns, given)
    scores, _, reconciled = read("promptfoo", tmp_path)
    assert sorted(means(scores).values()) == [0.2, 0.8]
    assert {*reconciled.values()} == {"equal"}
    word = {"prompts": "prompt=", "configs": "temperature=", "files": "prompt="}.get(
        kind
    )
    assert all((word or "") in name for name in scores.models.index)
    if kind == "labels":
        assert means(scores) == {"cold": 0.2, "hot": 0.8}


def test_costs_of_promptfoo(tmp_path):
    path = write_promptfoo(tmp_path / "r.json", [promptfoo_row("a", 1.0)])
    for unit, cost in (("tokens", 12), ("seconds", 0.5), ("usd", 0.25)):
        scores, *_ = read("promptfoo", path, cost=unit)
        assert scores.items["cost"].tolist() == [cost]


# Tables of tau-bench and tau2 --------------------------------------------------------


def tau_rows(rewards, **more):
    "Rows of tau-bench: task, trial, reward, and what the agent did"
    return [
        {"task_id": task, "trial": trial, "reward": reward, "info": {"source": "u"}}
        | {"traj": [{"role": "user"}]}
        | {name: values[task][trial] for name, values in more.items()}
        for task, own in enumerate(rewards)
        for trial, reward in enumerate(own)
    ]


def test_rows_of_one_agent_are_named(tmp_path, capsys):
    rewards = [[1.0] * 4] * 3 + [[0.0] * 4, [0.0, 1.0, 0.0, 1.0]]
    path = write_rows(tmp_path / "airline.jsonl", tau_rows(rewards))
    refused(lambda: read("table", path), "does not say which model")
    scores, *_ = read("table", path, model="agent-a")
    assert means(scores) == {"agent-a": 0.7} and scores.trials.tolist() == [[4] * 5]
    words = ["import", "table", str(path), "--model", "agent-a"]
    words += ["--columns", "item=task_id,score=reward", "--repeated", "trials"]
    assert main([*words, "--out", str(tmp_path / "f.parquet")]) == 0
    out = capsys.readouterr().out
    assert "read as a long table" in out and "70.0 points (agent-a)" in out
    twice = write_rows(tmp_path / "twice.jsonl", tau_rows(rewards) * 2)
    refused(lambda: read("table", twice, model="a"), "has two scores", "repeated")


def test_trials_that_tau2_leaves_out_have_no_score(tmp_path):
    ends = [["user_stop", "infrastructure_error"], ["max_steps", "user_stop"]]
    ends += [["infrastructure_error"] * 2, ["context_window_exceeded", "agent_stop"]]
    rewards = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    path = write_rows(tmp_path / "a.jsonl", tau_rows(rewards, termination_reason=ends))
    scores, said, _ = read("table", path, model="m")
    assert means(scores) == {"m": 0.5} and scores.trials.tolist() == [[1, 2, 0, 1]]
    assert "termination_reason" in said and "4 rows" in said


@pytest.mark.parametrize("by_name", [True, False])
def test_tasks_of_two_domains_are_ten(by_name, tmp_path):
    for domain, solved in (("airline", 1), ("retail", 4)):
        lines = [f"a,{n},{int(n < solved)}" for n in range(5)]
        head = "model,task_id,reward"
        (tmp_path / f"{domain}.csv").write_text("\n".join([head, *lines]))
    columns = {"item": "task_id", "score": "reward"} if by_name else {}
    for repeated in ("trials", "error"):
        with pytest.warns(UserWarning, match="several files"):
            scores = import_logs(
                "table", tmp_path, Choices(repeated=repeated), columns=columns
            )
        assert len(scores.items) == 10 and means(scores) == {"a": 0.5}
        assert [*scores.items["task"].unique()] == ["airline", "retail"]
    scores, *_ = read("table", tmp_path, task="both", repeated="trials")
    assert len(scores.items) == 5


def test_tau2_is_read_with_its_domains_and_marks(tmp_path):
    outcomes = [("0", 1.0), ("0", "infrastructure_error"), ("1", 0.0), ("1", 1.0)]
    outcomes += [("2", "infrastructure_error"), ("3", "context_window_exceeded")]
    run = tau_run([*outcomes, ("3", 0.0)])
    run["simulations"][4]["reward_info"] = {"reward": 0.0}  # graded, and left out
    path = write_json(tmp_path / "m_airline.json", run)
    assert guess_harness(path).name == "tau"
    scores, *_ = read("tau", path)
    assert means(scores) == {"m": 0.5} and scores.trials.tolist() == [[1, 2, 0, 1]]
    (log,) = get_harness("tau").read(path)
    assert [*log.failures].count(Failure.INVALID) == 3
    write_json(tmp_path / "m_retail.json", tau_run([("0", 0.0)], "retail"))
    scores, *_ = read("tau", tmp_path)
    assert [*scores.items.index] == [*(f"airline/{n}" for n in range(4)), "retail/0"]
    assert {*scores.items["metric"]} == {"reward"}


def test_tau_bench_lists_are_read_and_agents_kept_apart(tmp_path):
    for domain in ("airline", "retail"):
        path = write_json(
            tmp_path / f"{domain}.json", tau_rows([[1.0, 0.0], [0.0, 0.0]])
        )
    refused(lambda: read("tau", path), "which model")
    scores, said, _ = read("tau", tmp_path, model="a")
    assert len(scores.items) == 4 and means(scores) == {"a": 0.25}
    assert "kept apart" in said
    scores, *_ = read("tau", path, model="a", task="retail")
    assert [*scores.items.index] == ["retail/0", "retail/1"]
    (tmp_path / "efforts").mkdir()
    for effort, reward in (("low", 0.0), ("high", 1.0)):
        agent = {"llm": "m", "llm_args": {"reasoning_effort": effort}}
        run = tau_run([("0", reward)], agent_info=agent)
        write_json(tmp_path / "efforts" / f"{effort}.json", run)
    scores, *_ = read("tau", tmp_path / "efforts")
    assert sorted(means(scores)) == [
        f"m (reasoning_effort={effort})" for effort in ("high", "low")
    ]


# Further reports ----------------------------------------------------------------


def test_an_outage_of_the_grader_is_no_wrong_answer(tmp_path):
    "promptfoo itself counts them as failed tests"
    rows = [promptfoo_row(f"q{n}", 1.0, metrics={"good": 1.0}) for n in range(4)]
    for row, is_down in zip(rows, (False, False, True, True), strict=True):
        part = {"assertion": {"metric": "good"}, "metadata": {"graderError": is_down}}
        row["gradingResult"] = {"componentResults": [part]}
        if is_down:
            row |= {"success": False, "score": 0, "failureReason": 1}
            row["namedScores"] = {"good": 0.0, "short": 1.0}
    path = write_promptfoo(tmp_path / "r.json", rows, [promptfoo_sums(rows, "m")])
    for metric in ("success", "score", "good"):
        scores, *_ = read("promptfoo", path, metric=(metric,))
        assert means(scores) == {"m": 1.0} and np.isnan(scores.values).sum() == 2
    (log,) = get_harness("promptfoo").read(path, Choices(metric=("short",)))
    assert np.nansum(log.scores) == 2  # another assertion, which was not graded


def test_a_job_in_which_no_container_started(tmp_path):
    error = raised("RuntimeError")
    lost = [harbor_trial(f"t{n}", None, exception_info=error) for n in range(5)]
    write_harbor(tmp_path / "job", lost)
    words = ["import", "harbor", str(tmp_path), "--out", str(tmp_path / "f.parquet")]
    assert main(words) == 2
    write_harbor(tmp_path / "job", [*lost[:3], harbor_trial("t3"), lost[4]])
    scores, *_ = read("harbor", tmp_path)
    assert means(scores) == {"terminus-2 m": 1.0}
    assert np.isnan(scores.values).sum() == 4


def test_partial_credit_of_an_agent_that_ran_out_of_time_counts(tmp_path):
    late = {"exception_info": raised("AgentTimeoutError", True), "reward_valid": True}
    trials = [harbor_trial("a", 0.8, **late), harbor_trial("b", 0.0)]
    scores, _, reconciled = read("harbor", write_harbor(tmp_path / "job", trials, 0.4))
    assert (
        means(scores) == {"terminus-2 m": 0.4} and min(reconciled.values()) == "equal"
    )


@pytest.mark.parametrize(
    "report",
    [
        {"total_instances": 300, "failed_instances": 300, "resolved_instances": 0},
        swebench_run([], [], 0, submitted_ids=[], error_ids=[]),
    ],
)
def test_a_report_that_names_nothing_is_refused(report, tmp_path):
    path = write_json(tmp_path / "agent.run.json", report)
    refused(lambda: read("swebench", path), "agent.run.json", "no")


# Further marks, settings and names -------------------------------------------------


def test_the_accuracy_of_terminal_bench_is_compared(tmp_path):
    "Its own accuracy counts a trial without a verdict, and one that never began, as 0"
    outcomes = [
        ("a", True, "unset"),
        ("b", False, "unset"),
        ("c", None, "test_timeout"),
    ]
    outcomes.append(("d", False, "agent_installation_failed"))
    trials = [
        {"task_id": name, "is_resolved": x, "failure_mode": mode}
        for name, x, mode in outcomes
    ]
    path = tmp_path / "results.json"
    write_json(path, {"results": trials[:3], "accuracy": 1 / 3})
    scores, _, reconciled = read("harbor", path)
    assert [*means(scores).values()] == [0.5]
    (line,) = reconciled.values()
    assert "reports 33.3 points by accuracy, the items give 50.0" in line
    write_json(path, {"results": trials, "accuracy": 0.25})
    (log,) = get_harness("harbor").read(path)
    assert np.array_equal(log.scores, [1, 0, np.nan, np.nan], equal_nan=True)
    assert log.failures[3] == Failure.INVALID


def test_a_larger_machine_makes_another_task(tmp_path):
    for model, memory in (("m", 2048), ("n", 16384)):
        trials = [harbor_trial("a", 1.0, model=model)]
        environment = {"override_memory_mb": memory, "override_cpus": None}
        trials[0]["config"]["environment"] = environment
        write_harbor(tmp_path / model, trials)
    refused(lambda: read("harbor", tmp_path), "let override_memory_mb differ")


@pytest.mark.parametrize("metric", ["success", "score"])
def test_a_test_that_asserts_nothing_measures_nothing(metric, tmp_path):
    rows = [
        promptfoo_row(says, x, n) for n, (says, x) in enumerate([("a", 1), ("b", 0)])
    ]
    rows.append(promptfoo_row("c", 1, 2))
    rows[2]["testCase"]["assert"] = []
    rows[2]["gradingResult"] = {"pass": True, "score": 1, "reason": "No assertions"}
    path = write_promptfoo(tmp_path / "o.json", rows, [promptfoo_sums(rows, "m")])
    scores, _, reconciled = read("promptfoo", path, metric=(metric,))
    assert means(scores) == {"m": 0.5} and np.isnan(scores.values).sum() == 1
    assert "marked as invalid (1 of 3)" in reconciled["m"]


def test_another_grader_makes_another_question(tmp_path):
    for model, grader in (
        ("m", "openai:x"),
        ("n", {"id": "anthropic:y", "config": {}}),
    ):
        rows = [promptfoo_row("a", 1, model=model)]
        rows[0]["testCase"]["options"] = {"provider": grader}
        write_promptfoo(tmp_path / f"{model}.json", rows)
    refused(lambda: read("promptfoo", tmp_path), "openai:x", "let grader differ")


def test_a_named_score_of_harm_is_asked_for(tmp_path):
    rows = [promptfoo_row("a", 1, metrics={"Toxicity": 0.25, "Tone": 0.5})]
    path = write_promptfoo(tmp_path / "o.json", rows)
    refused(lambda: read("promptfoo", path, metric=("Toxicity",)), "direction='lower'")
    lower = read("promptfoo", path, metric=("Toxicity",), direction="lower")
    assert means(lower[0]) == {"m": 0.75}
    assert means(read("promptfoo", path, metric=("Tone",))[0]) == {"m": 0.5}


def test_a_setting_of_one_provider_alone_is_said(tmp_path):
    for model, config in (("m", {"temperature": 1}), ("n", {})):
        rows = [promptfoo_row("a", 1, model=model)]
        provider = {"id": model, "config": config}
        write_promptfoo(tmp_path / f"{model}.json", rows, providers=[provider])
    _, said, _ = read("promptfoo", tmp_path)
    assert "models answered with other temperature: 1 (m), not set (n)" in said


def test_a_task_that_tau2_edited_is_another_one(tmp_path):
    for model, action in (("m", "cancel"), ("n", "refund"), ("o", "cancel")):
        run = tau_run([("0", 1.0), ("1", 0.0)], model=model)
        criteria = [{"actions": [{"name": "look"}]}, {"actions": [{"name": action}]}]
        run["tasks"] = [
            {"id": str(n), "evaluation_criteria": own, "user_scenario": {"n": n}}
            for n, own in enumerate(criteria)
        ]
        if model == "o":  # a later version writes more names, and says nothing by them
            run["tasks"][0] |= {"initial_state": None, "annotations": ["x"]}
        write_json(tmp_path / f"{model}.json", run)
    files = [tmp_path / f"{model}.json" for model in "mno"]
    refused(lambda: read("tau", files[:2]), "airline/1 is another document")
    assert read("tau", files[::2])[0].shape == (2, 2)


@pytest.mark.parametrize(
    "setting, place, value",
    [
        ("policy", ("environment_info", "policy"), "be kind"),
        ("user_temperature", ("user_info", "llm_args"), {"temperature": 1.0}),
        ("user_guidelines", ("user_info", "global_simulation_guidelines"), "be short"),
    ],
)
def test_another_policy_or_user_makes_another_task(setting, place, value, tmp_path):
    user = {"llm": "u", "llm_args": {"temperature": 0}}
    user["global_simulation_guidelines"] = "talk"
    for model in "mn":
        run = tau_run([("0", 1.0)], model=model, user_info=dict(user))
        run["info"]["environment_info"]["policy"] = "be strict"
        if model == "n":
            run["info"][place[0]][place[1]] = value
        write_json(tmp_path / f"{model}.json", run)
    refused(lambda: read("tau", tmp_path), f"let {setting} differ")


def test_a_run_that_tau2_stored_as_a_folder(tmp_path):
    run = tau_run([("0", 1.0), ("1", 0.0), ("2", "infrastructure_error")])
    trials = run.pop("simulations")
    (tmp_path / "simulations").mkdir()
    run["simulation_index"] = []
    for trial in trials:
        write_json(tmp_path / "simulations" / f"{trial['id']}.json", trial)
        reward = (trial["reward_info"] or {}).get("reward")
        names = ("id", "task_id", "termination_reason", "agent_cost", "duration")
        run["simulation_index"].append(
            {n: trial[n] for n in names} | {"reward": reward}
        )
    write_json(tmp_path / "results.json", run)
    assert guess_harness(tmp_path).name == "tau"
    scores, *_ = read("tau", tmp_path)
    assert means(scores) == {"m": 0.5} and np.isnan(scores.values).sum() == 1


def test_reports_that_name_one_agent_may_be_runs_of_it_or_two_agents(tmp_path):
    for run, solved in (("first", ["a-1"]), ("second", ["a-2"])):
        other = [name for name in ("a-1", "a-2") if name not in solved]
        write_json(tmp_path / f"me__agent.{run}.json", swebench_run(solved, other))
    two = "if these are two models, rename the file or folder of one (AGENT)"
    refused(lambda: read("swebench", tmp_path), "'me__agent' has two scores", two)
    scores, *_ = read("swebench", tmp_path, repeated="trials")
    assert scores.trials.tolist() == [[2, 2]] and means(scores) == {"me__agent": 0.5}
    with pytest.raises(ValueError) as caught:  # the user says that it is one
        read("swebench", tmp_path, model="agent")
    assert "two models" not in str(caught.value)


def test_what_every_run_is_called_is_no_agent(tmp_path):
    for agent, solved in (("one", ["a-1"]), ("two", [])):
        other = [name for name in ("a-1", "a-2") if name not in solved]
        (tmp_path / agent).mkdir()
        for name in ("final_report.json", "output.report.json"):
            write_json(tmp_path / agent / name, swebench_run(solved, other))
    scores, *_ = read("swebench", tmp_path)
    assert means(scores) == {"one": 0.5, "two": 0.0}


def test_a_trial_in_two_folders_is_one_run(tmp_path):
    trials = [harbor_trial("a", x, id=f"run{n}") for n, x in enumerate((1.0, 0.0))]
    write_harbor(tmp_path / "job", trials)
    write_harbor(tmp_path / "copy of job", trials)
    scores, said, _ = read("harbor", tmp_path)
    assert scores.trials.tolist() == [[2]] and means(scores) == {"terminus-2 m": 0.5}
    assert "2 runs lie in two files: each counts once" in said
    write_harbor(tmp_path / "copy of job", [trials[0], trials[1] | trials[0]])
    write_harbor(tmp_path / "edited", [harbor_trial("a", 0.0, id="run0")])
    refused(lambda: read("harbor", tmp_path), "run 'run0' of", "leave one of the files")


@pytest.mark.parametrize("harness", ["harbor", "inspect", "tau", "promptfoo"])
def test_a_file_of_another_program_is_not_taken_for_a_log(harness):
    evalplus = {"hash": "x", "eval": {"HumanEval/0": [{"plus_status": "pass"}]}}
    deepeval = {"results": [{"name": "case", "success": True}], "testRunId": 1}
    for raw in (evalplus, deepeval):
        assert not get_harness(harness).holds(raw)


def test_a_folder_with_logs_of_two_harnesses_is_not_guessed(tmp_path):
    write_harbor(tmp_path / "job", [harbor_trial("a")])
    assert guess_harness(tmp_path).name == "harbor"
    write_json(tmp_path / "me.run_report.json", swebench_run(["a-1"], ["a-2"]))
    refused(
        lambda: guess_harness(tmp_path), "harbor (result.json)", "swebench (me.run_re"
    )
