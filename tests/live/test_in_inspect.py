"""Inspect runs an adaptive evaluation itself (`make harnesses`): whatever happens, the
estimate in its log is that of a simulation with the same answers."""

import json
import shlex
import zlib

import numpy as np
import pandas as pd
import pytest
from helpers.harnesses import PYTHON, call, needed, start, wheel_unpacked

from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import simulate
from benchnb.harnesses.harness import get_harness
from benchnb.harnesses.inspect import log_parts
from benchnb.live.evaluation import Evaluation
from benchnb.live.in_inspect import fresh_evaluation

pytestmark = [needed, pytest.mark.slow]
ITEMS, BUDGET = 60, 20
MODELS = ["a" * n for n in range(1, 7)]
OLD = ",".join("mockllm/b" + name for name in MODELS)

# Several calls of inspect in one process: importing it takes longer than the samples
DRIVER = """
import json, os, sys
from inspect_ai._cli.main import main
sys.stderr = sys.stdout
for env, argv in json.load(open(sys.argv[1])):
    os.environ.update(env)
    sys.argv = ["inspect", *argv]
    try:
        main()
    except SystemExit as stop:
        print(argv[0], stop.code)
    except Exception as error:  # shown in one line by the command
        print(type(error).__name__, error)
    for name in env:
        del os.environ[name]
"""
TASK = """
import os, signal, zlib
import anyio
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.log._samples import sample_active
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver


def named(name, sample):
    return str(sample) in os.environ.get(name, "").split()


@solver
def guess():
    "Right for some samples, by the names of model and sample; and all kinds of trouble"
    async def solve(state, generate):
        name, sample = str(state.model).split("/")[-1], state.sample_id
        with open("ran.txt", "a") as file:
            file.write(f"{name} {sample}\\n")
        if len(Path("ran.txt").read_text().split("\\n")) == int(os.getenv("KILL", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
        if named("FAIL", sample) or named("ONCE", sample) and not Path("once").exists():
            Path("once").touch()
            raise RuntimeError("this sample is broken")
        if named("CANCEL", sample):
            sample_active().interrupt("cancel")
            await anyio.lowlevel.checkpoint()
        right = zlib.crc32(f"{name}{sample}".encode()) % 100 < 15 + 12 * len(name)
        right = int(sample) > 40 if name == "odd" else right  # only what is hard
        state.output = ModelOutput.from_content(name, "yes" if right else "no")
        return state
    return solve


@task
def arith(size: int = 60, ask: str = "Is {} a number?"):
    questions = [ask.format(n) for n in range(1, size + 1)]
    samples = [Sample(input=text, target="yes") for text in questions]
    return Task(dataset=samples, solver=guess(), scorer=match())
"""


def answers(model, lost=()):
    "What the task's solver makes of each sample"
    sums = [zlib.crc32(f"{model}{n}".encode()) for n in range(1, ITEMS + 1)]
    row = np.array([float(one % 100 < 15 + 12 * len(model)) for one in sums])
    row[[n - 1 for n in lost]] = np.nan
    return row


@pytest.fixture(scope="module")
def sources():
    "Thirty earlier models"
    rng = np.random.default_rng(0)
    skill, hard = np.linspace(-2, 2, 30), np.linspace(-1, 1, ITEMS)
    chance = 1 / (1 + np.exp(hard - skill[:, None]))
    items = pd.DataFrame({"task": "arith"}, [f"arith/{n + 1}" for n in range(ITEMS)])
    items["text"] = [f"Is {n + 1} a number?" for n in range(ITEMS)]
    models = pd.DataFrame(index=[f"m{n}" for n in range(30)])
    return Scores((rng.random(chance.shape) < chance).astype(float), items, models)


@pytest.fixture(scope="module")
def world(tmp_path_factory, sources):
    "A folder with the task and the sources, and this library as its wheel installs it"
    place = tmp_path_factory.mktemp("inspect")
    (place / "arith.py").write_text(TASK)
    (place / "driver.py").write_text(DRIVER)
    sources.to_parquet(place / "scores.parquet")
    return place, {"PYTHONPATH": str(wheel_unpacked(place))}


def inspect(world, *calls):
    "Calls of inspect, each with what is to happen to its samples"
    place, env = world
    (place / "calls.json").write_text(json.dumps(calls))
    return call(PYTHON, "driver.py", "calls.json", cwd=place, **env)


def small(models, logs, *more, how=f"budget={BUDGET}"):
    "The arguments of an adaptive run"
    argv = ["eval", "benchnb/small", "-T", "task=arith.py", "-T", how]
    argv += ["-T", "sources=scores.parquet", "--log-dir", logs, "--model"]
    return [*argv, ",".join(f"mockllm/{name}" for name in models), *more]


def results(place, pattern):
    "Model and metrics of each log that was finished"
    found = {}
    for path in sorted(place.glob(pattern)):
        header, _, _ = log_parts(path)
        if header["status"] == "success":
            scores = header["results"]["scores"]
            parts = {m: x["value"] for s in scores for m, x in s["metrics"].items()}
            found[header["eval"]["model"].removeprefix("mockllm/")] = parts
    return found


def simulated(sources, row):
    "The estimate of a simulation"
    method = get_method("guarded_irt").fit(sources)
    return simulate(method, Scores(row[None], sources.items), BUDGET)[0]


def check(found, sources, row):
    "The metrics of a log are those of the simulation"
    wanted = simulated(sources, row)
    if not wanted.flags - {"unscored"}:
        assert found["estimate"] == pytest.approx(wanted.score, abs=1e-9)
        assert [found["low"], found["high"]] == pytest.approx(wanted.interval, abs=1e-9)
        if not found.get("unchecked"):  # the guard's word: a simulation has none
            assert found["rank"] == wanted.rank
    assert found["asked"] == BUDGET and found["unscored"] == len(wanted.unscored)


@pytest.mark.night
def test_six_models_killed_and_retried(world, sources):
    place, env = world
    argv = [PYTHON, "-m", "inspect_ai", *small(MODELS, "six")]
    done = start(*argv, cwd=place, **env, KILL="60")
    assert done.returncode == -9 and not results(place, "six/*")
    logs = sorted(str(path) for path in place.glob("six/*.eval"))
    inspect(world, ({}, ["eval-retry", *logs, "--log-dir", "six"]))
    found = results(place, "six/*.eval")
    assert sorted(found) == MODELS
    for model in MODELS:
        check(found[model], sources, answers(model))
    ran = (place / "ran.txt").read_text().split("\n")
    assert len(ran) < 6 * BUDGET + 60  # what was logged is not run again


def test_samples_that_fail_are_unscored_and_those_repaired_count(world, sources):
    place, _ = world
    first = Evaluation(get_method("guarded_irt").fit(sources), BUDGET).ask()
    lost = " ".join(name.removeprefix("arith/") for name in first[1:4])
    tolerant = small(["aaaa"], "lost", "--no-fail-on-error")
    inspect(
        world,
        ({"FAIL": lost}, tolerant),
        ({"CANCEL": lost}, small(["aaaa"], "cancelled")),
        ({"ONCE": "1"}, ["eval-set", *small(["aaaa"], "set")[1:], "--retry-wait", "0"]),
    )
    row = answers("aaaa", lost=map(int, lost.split()))
    for logs in ("lost", "cancelled"):
        (found,) = results(place, f"{logs}/*.eval").values()
        assert found["unscored"] == 3
        check(found, sources, row)
    assert (place / "once").exists()
    check(results(place, "set/*.eval")["aaaa"], sources, answers("aaaa"))


def test_epochs_are_trials_and_old_logs_get_the_metric(world, sources):
    place, env = world
    full = ["eval", "arith.py", "--model", "mockllm/aaa", "--log-dir", "full"]
    inspect(world, ({}, small(["aaa"], "epochs", "--epochs", "3")), ({}, full))
    row = dict(zip(sources.items.index, answers("aaa"), strict=True))
    live = Evaluation(get_method("guarded_irt").fit(sources), BUDGET, source=sources)
    while asked := live.ask():
        live.tell({name: {str(n): row[name] for n in range(3)} for name in asked})
    found = results(place, "epochs/*.eval")["aaa"]
    assert found["estimate"] == pytest.approx(live.estimate().score, abs=1e-9)

    (log,) = map(str, place.glob("full/*.eval"))
    method, where = get_method("aipw").fit(sources), place / "plan"
    plan = Evaluation(method, BUDGET, folder=where, source=sources)
    argv = ["score", log, "--metric", "benchnb/full_score", "--action", "append"]
    again = {"BENCHNB_SOURCES": "plan"}
    inspect(world, (again, [*argv, "--output-file", "scored.eval"]))
    plan.tell({name: row[name] for name in plan.ask()})
    found = results(place, "scored.eval")["aaa"]
    assert found["estimate"] == pytest.approx(plan.estimate().score, abs=1e-9)


def finished(place, pattern):
    "Header and number of samples of each log that was finished, by model"
    parts = [log_parts(path)[:2] for path in sorted(place.glob(pattern))]
    done = [one for one in parts if one[0]["status"] == "success"]
    return [(one["eval"]["model"].split("/")[1], one, len(ran)) for one, ran in done]


def in_order(sources, place, **how):
    "A fitted method, and a fresh evaluation whose list it asks"
    live = fresh_evaluation(str(place / "scores.parquet"), "aipw", **how)
    method = get_method("aipw").fit(sources)
    method.begins_with = live.method.begins_with
    return method, live


def test_early_stopping_killed_and_retried_is_a_simulation(world, sources):
    "One at a time or many, two models, a kill, a lost sample: always one estimate"
    place, env = world
    argv = ["-T", "method=aipw", "--no-fail-on-error", "--max-samples"]
    narrow = {"how": "plus_minus=15"}
    method, live = in_order(sources, place, plus_minus=15)
    lost = [int(live.ask()[3].removeprefix("arith/"))]
    fail = {"FAIL": str(*lost)}
    ran = (
        len(open(place / "ran.txt").readlines()) if (place / "ran.txt").exists() else 0
    )
    both = [
        PYTHON,
        "-m",
        "inspect_ai",
        *small(MODELS[2:4], "narrow", *argv, "7", **narrow),
    ]
    done = start(*both, cwd=place, **env, **fail, KILL=str(ran + 30))
    assert done.returncode == -9 and not finished(place, "narrow/*.eval")
    logs = sorted(map(str, place.glob("narrow/*.eval")))
    retry = ["eval-retry", *logs, "--log-dir", "narrow"]
    inspect(
        world, (fail, retry), (fail, small(["aaa"], "narrow", *argv, "1", **narrow))
    )
    found = finished(place, "narrow/*.eval")
    assert sorted(model for model, _, _ in found) == ["aaa", "aaa", "aaaa"]
    assert max(x["metadata"]["benchnb"]["asked"] for _, x, _ in found) > len(live.ask())
    for model, header, count in found:
        said, stopped = (
            header["metadata"]["benchnb"],
            header["results"]["early_stopping"],
        )
        row = Scores(answers(model, lost)[None], sources.items)
        wanted = simulate(method, row, int(said["asked"]))[0]
        assert said["estimate"] == pytest.approx(wanted.score, abs=1e-6)
        assert said["unscored"] == 1 and said["high"] - said["low"] <= 0.3
        assert said["reason"] == "the interval is at most ± 15 points"
        assert {one["reason"] for one in stopped["early_stops"]} == {said["reason"]}
        assert said["asked"] <= count < said["asked"] + 2 * 7  # in flight, twice
        assert len(stopped["early_stops"]) == ITEMS - count > 0
        kept = stopped["metadata"]
        assert stopped["manager"] == "benchnb" and kept["estimate"] == said["estimate"]


def test_a_decision_ends_a_run(world, sources):
    "All answers count, and the reason is in the log; an adaptive run has one, too"
    place, _ = world
    aipw = {"how": f"budget={ITEMS}"}
    few = ["-T", "method=aipw", "-T", "within=20"]
    inspect(
        world,
        ({}, small(["aaaaaa"], "within", *few, **aipw)),
        ({}, small(["aaa"], "adaptive")),
    )
    method, _ = in_order(sources, place, budget=ITEMS)
    ((model, header, count),) = finished(place, "within/*.eval")
    said, row = header["metadata"]["benchnb"], Scores(
        answers(model)[None], sources.items
    )
    assert said["reason"].startswith("You may stop: the score is known to within 20")
    assert said["asked"] == count < ITEMS
    wanted = simulate(method, row, count)[0]
    assert said["estimate"] == pytest.approx(wanted.score, abs=1e-6)
    ((_, header, count),) = finished(place, "adaptive/*.eval")
    said = header["metadata"]["benchnb"]
    assert count == BUDGET and said["reason"] == "all items of the budget were run"


def test_bad_input_is_named(world):
    place, _ = world
    out = inspect(
        world,
        ({}, small(["aaa"], "none", "-T", "size=7")),
        ({}, small(["aaa"], "none", "-T", "metric=f1")),
        ({}, small(["aaa"], "none", "-T", "within=10")),
    )
    assert "53 of 60 items of the sources are no samples of 'arith'" in out
    assert "stopping needs a method such as aipw" in out
    assert "'f1'" in out and not list(place.glob("none/*"))


SCORERS = """
from benchnb.data.scores import Scores
from benchnb.live.in_inspect import small
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes, match

table = Scores.from_parquet("scores.parquet")
table.items = table.items.drop(columns="text", errors="ignore")
table.to_parquet("plain.parquet")
table.items["metric"] = "match"
table.to_parquet("match.parquet")
data = [Sample(input="yes?", target="yes", id=n + 1) for n in range(len(table.items))]
cases = ("match.parquet", None), ("plain.parquet", None), ("match.parquet", "includes")
for name, metric in cases:
    task = Task(dataset=data, scorer=[includes(), match()], name="arith")
    try:
        print(small(task, name, "random", 20, metric=metric).name)
    except Exception as error:
        print(error)
"""


def test_the_metric_of_the_sources_holds(world):
    place, env = world
    out = call(PYTHON, "-c", SCORERS, cwd=place, **env).splitlines()
    assert out[0] == "arith" and "choose metric from 'includes', 'match'" in out[1]
    assert "'includes' is not the metric of the sources on arith, 'match'" in out[2]


def test_other_questions_under_the_same_ids_are_refused_as_by_tell(world):
    place, env = world
    other = ["-T", "ask=Is {} prime?"]
    whole = "eval arith.py --model mockllm/aaa --log-dir prime".split()
    inspect(
        world,
        ({}, [*"eval arith.py --log-dir hashed --model".split(), OLD]),
        ({}, [*whole, *other]),
    )
    own = [PYTHON, "-m", "benchnb"]
    call(*own, *"import inspect hashed --out h.parquet".split(), cwd=place, **env)
    plan = "plan h.parquet --method random --budget 20 --harness inspect --out told"
    call(*own, *plan.split(), cwd=place, **env)
    told = start(*own, "tell", "told", "prime", cwd=place, **env)
    assert told.returncode == 2 and "or let ask differ (--differing ask)" in told.stderr
    told = start(*own, *"tell told prime --differing ask".split(), cwd=place, **env)
    assert told.returncode == 2 and "another document" in told.stderr
    same = [x.replace("scores.parquet", "h.parquet") for x in small(["aaa"], "same")]
    out = inspect(world, ({}, [*same, *other]))
    assert "another document" in out and "Traceback" not in out
    out = inspect(world, ({}, small(["aaa"], "same", *other)))  # a table with texts
    assert "another document" in out and "correct their texts" in out
    assert not list(place.glob("same/*"))
    inspect(world, ({}, same))
    assert results(place, "same/*")["aaa"]["asked"] == BUDGET


@pytest.mark.parametrize(
    "format", ["eval", pytest.param("json", marks=pytest.mark.night)]
)
def test_the_log_of_a_model_above_all_sources_says_so(world, sources, format):
    "Flags and notes stand in the log's metadata; an ordinary model's log has none"
    place, _ = world
    best = "a" * 8  # always right
    both = small([best, "aaaa"], f"best_{format}", "--log-format", format)
    odd = small(["odd"], f"best_{format}", "-T", "method=guarded_irt")
    inspect(world, ({}, both), ({}, [*odd, "--log-format", format]))
    live = Evaluation(get_method("guarded_irt").fit(sources), BUDGET, source=sources)
    while asked := live.ask():
        live.tell(dict.fromkeys(asked, 1.0))
    wanted, found = live.estimate(), {}
    assert "out of range" in wanted.flags and wanted.notes
    for path in place.glob(f"best_{format}/*.{format}"):
        header, samples, _ = log_parts(path)
        assert len(samples) == BUDGET
        found[header["eval"]["model"].removeprefix("mockllm/")] = header
    said = found[best]["metadata"]["benchnb"]
    assert said["flags"] == sorted(wanted.flags)
    assert said["notes"] == list(wanted.notes)
    odd = found["odd"]["metadata"]["benchnb"]
    assert "misfit" in odd["flags"] and odd["notes"]
    assert not found["aaaa"]["metadata"]["benchnb"]["notes"]
    plain = Scores(sources.values, sources.items.drop(columns="text"), sources.models)
    plain.to_parquet(place / "plain.parquet")
    argv = small(["aaaa"], f"plain_{format}", "--log-format", format)
    inspect(world, ({}, [x.replace("scores.", "plain.") for x in argv]))
    (path,) = place.glob(f"plain_{format}/*.{format}")
    (note,) = log_parts(path)[0]["metadata"]["benchnb"]["notes"]
    assert "questions could not be checked" in note
    scores = results(place, f"best_{format}/*.{format}")
    assert scores[best]["out_of_range"] == scores["odd"]["misfit"] == 1
    assert "flags" not in scores["aaaa"] and "misfit" not in scores["aaaa"]


def test_what_is_missing_is_one_line(world):
    place, _ = world
    only = ["eval", "benchnb/small", "--model", "mockllm/a", "--log-dir", "none", "-T"]
    out = inspect(
        world, ({}, [*only, "sources=scores.parquet"]), ({}, [*only, "task=arith.py"])
    )
    nope = [x.replace("arith.py", "nope.py") for x in small(["a"], "none")]
    assert "no file or task 'nope.py'" in inspect(world, ({}, nope))
    assert "say which task" in out and "say which sources" in out
    assert "Traceback" not in out and not list(place.glob("none/*"))


def test_from_logs_to_an_estimate_in_three_commands_one_of_them_killed(world):
    place, env = world
    inspect(world, ({}, [*"eval arith.py --log-dir old --model".split(), OLD]))
    own = [PYTHON, "-m", "benchnb"]
    call(*own, *"import inspect old --out old.parquet".split(), cwd=place, **env)
    plan = "plan old.parquet --method guarded_irt --budget 20 --harness inspect"
    out = call(*own, *plan.split(), "--out", "new", cwd=place, **env)
    line = next(x for x in out.splitlines() if x.startswith("inspect eval arith.py@"))
    line = line.replace("YOUR_MODEL", "mockllm/aaaa").replace("new/logs", "printed")
    inspect(world, ({}, shlex.split(line)[1:]))
    ((log,),) = map(get_harness("inspect").read, place.glob("printed/*.eval"))
    row = dict(zip(range(1, ITEMS + 1), answers("aaaa"), strict=True))
    assert log.scores.tolist() == [row[number] for number in log.ids]
    run = [*own, *"run new --json --".split(), PYTHON.parent / "inspect"]
    run += "eval arith.py --model mockllm/aaaa --max-samples 1".split()
    ran = len((place / "ran.txt").read_text().split("\n"))
    done = start(*run, cwd=place, **env, KILL=str(ran + 12))
    assert done.returncode == 2 and "run the same command again" in done.stderr
    assert list(place.glob("new/logs/round_1.part/*.eval"))
    found = json.loads(call(*run, cwd=place, **env))
    wanted = simulated(Scores.from_parquet(place / "old.parquet"), answers("aaaa"))
    assert found["score"] == pytest.approx(wanted.score, abs=1e-6)
    assert len((place / "ran.txt").read_text().split("\n")) < ran + 12 + BUDGET
