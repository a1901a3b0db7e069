"Logs of an evaluation that are told in several goes are of one system"

import pytest
from helpers.logs import harbor_trial, write_harbor, write_lm_eval_run
from helpers.variants import write_inspect

from benchnb.cli.app import main
from benchnb.live.evaluation import Evaluation


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    "Give a command; what it printed, or the line of its error"
    monkeypatch.chdir(tmp_path)

    def give(line):
        code = main(line.split())
        out, err = capsys.readouterr()
        return err if code else out

    return give


def lm_eval(folder, numbers, model="me/new", **results):
    "Documents of a task that one model answered, in a run with these settings"
    scores = {"t": {number: number % 2 for number in numbers}}
    write_lm_eval_run(folder, model, scores, **results)


def lm_eval_sources():
    for k in range(6):
        lm_eval("sources", range(12), f"m{k}")
    return "lm-eval"


def harbor(folder, numbers, effort=None):
    kwargs = {"reasoning_effort": effort} if effort else {}
    tasks = [harbor_trial(f"t{n}", float(n % 2), kwargs=kwargs) for n in numbers]
    write_harbor(folder, tasks)


CONFIG = {"model": "hf", "model_args": {"pretrained": "me/new"}}
PEFT = {"model": "hf", "model_args": {"pretrained": "me/new", "peft": "me/x"}}
PAIRS = {
    "peft": ({"config": CONFIG}, {"config": PEFT}),
    "chat_template": (
        {"chat_template": None, "chat_template_sha": None, "config": CONFIG},
        {"chat_template": "{{x}}", "chat_template_sha": "ab" * 32, "config": CONFIG},
    ),
}


@pytest.mark.parametrize("setting", PAIRS)
def test_a_second_log_of_another_system_is_refused_by_the_setting(call, setting):
    before, after = PAIRS[setting]
    lm_eval_sources()
    call("import lm-eval sources --out s.parquet")
    call("plan s.parquet --method aipw --budget 10 --out run")
    lm_eval("first", range(5), **before)
    lm_eval("second", range(5, 12), **after)
    lm_eval("third", range(5, 12), **before)
    assert "told" in call("tell run first")
    kept = Evaluation.load("run").told.fingerprint()
    refused = call("tell run second")
    assert f"--differing {setting}" in refused and "told before" in refused
    assert Evaluation.load("run").told.fingerprint() == kept
    assert "exact" in call("tell run third")
    call("plan s.parquet --method aipw --budget 10 --out two")
    call("tell two first")
    assert "exact" in call(f"tell two second --differing {setting}")


def test_another_effort_of_an_agent_and_of_inspect(call):
    for k in range(6):
        trials = [harbor_trial(f"t{n}", float(n % 2), model=f"m{k}") for n in range(8)]
        write_harbor(f"jobs/{k}", trials)
    call("import harbor jobs --out h.parquet")
    call("plan h.parquet --method aipw --budget 6 --out run")
    harbor("first", range(4), "low")
    harbor("second", range(4, 8), "high")
    call("tell run first")
    assert "--differing reasoning_effort" in call("tell run second")
    for k in range(6):
        write_inspect_log(f"logs/{k}.json", f"m{k}", "CICI")
    call("import inspect logs --out i.parquet")
    call("plan i.parquet --method aipw --budget 4 --out again")
    effort = {"model_generate_config": {"reasoning_effort": "low"}}
    write_inspect_log("one.json", "new", "C", **effort)
    effort = {"model_generate_config": {"reasoning_effort": "high"}}
    write_inspect_log("all.json", "new", "CICI", **effort)
    call("tell again one.json")
    assert "--differing reasoning_effort" in call("tell again all.json")


def write_inspect_log(path, model, scores, **about):
    from pathlib import Path

    Path(path).parent.mkdir(exist_ok=True)
    write_inspect(Path(path), [*scores], model, **about)
