"The width that `plan` promises is the one that new models get"

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.small import table

from benchnb.cli.app import main
from benchnb.cli.score import describe_expected_precision, fit_on_table
from benchnb.data.sources import load
from benchnb.evaluation.planning import difference_spread
from benchnb.evaluation.recommend import recommend
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.live.bundles import load_bundle, publish
from benchnb.live.evaluation import Evaluation
from benchnb.stats.sample_size import detectable_difference

EMBEDDED = ["swebench_verified", "gso", "terminal_bench"]
DATA = ["helm_gsm8k", "ifeval", "mmlu_pro"]
TABLES = EMBEDDED + [pytest.param(name, marks=pytest.mark.slow) for name in DATA]


def at_most(scores, number, rng):
    "So many of the models, at random"
    return scores.select(models=np.sort(rng.permutation(len(scores))[:number]))


def begin(source, method, budget, folds=10, **how):
    "What `plan` begins"
    how = dict.fromkeys(("width", "level", "harness"), None) | {"seed": 0} | how
    how["budget"] = budget
    return Evaluation(fit_on_table(source, method, folds, how, json=True), **how)


def promised_and_delivered(name, method, sources, seed):
    "Width that `plan` prints, and mean width for models that were really held out"
    try:
        source, target = load(name).split("random", seed=seed)
    except FileNotFoundError:
        pytest.skip(f"{name} is not here")
    rng = np.random.default_rng(seed)
    source, target = at_most(source, sources, rng), at_most(target, 30, rng)
    live = begin(source, method, min(40, source.shape[1] // 2))
    found = simulate(live.method, target, guard=live.guard(live.conversation))
    text = re.search(
        r"about ± (\S+)\s+points|no usable", describe_expected_precision(live)
    )[1]
    return float(text or 50) / 50, np.mean(
        [high - low for low, high in (e.interval for e in found)]
    )


def check_widths(name, method, sources, trials):
    pairs = [promised_and_delivered(name, method, sources, n) for n in range(trials)]
    promised, delivered = np.mean(pairs, axis=0)
    assert abs(delivered / promised - 1) < 0.2, (promised, delivered)


@pytest.mark.slow
@pytest.mark.parametrize("sources", [8, 80])
@pytest.mark.parametrize("name", TABLES)
def test_the_width_is_that_of_new_models(name, sources):
    check_widths(name, "aipw", sources, trials=5)


@pytest.mark.slow
@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize("method", ["tailored_bench", "proeval"])
def test_also_of_methods_whose_interval_is_calibrated(method, name):
    check_widths(name, method, 80, trials=2)


@pytest.mark.night
@pytest.mark.parametrize("name", [*EMBEDDED, *DATA[:-1]])
@pytest.mark.parametrize("method", ["guarded_irt", "guarded_irt(rounds=5)", "p_irt"])
def test_also_of_guarded_methods(method, name):
    check_widths(name, method, 60, trials=2)


def test_without_sources_left_out_no_width_is_promised():
    assert "not known beforehand" in describe_expected_precision(
        begin(table(), "aipw", 12, folds=0)
    )


def test_a_bundle_promises_from_the_errors_that_it_carries(tmp_path):
    live = begin(table(), "kmeans", 12)
    publish(live.method, tmp_path / "with", errors=live.left_out_by_budget[12])
    printed = describe_expected_precision(load_bundle(tmp_path / "with"))
    like, _, newer = describe_expected_precision(live).partition(" points")
    assert printed == f"{like} points, wider for a model unlike the earlier ones"
    assert "for one that is newer than they are" in newer
    publish(prepare_method(get_method("kmeans").fit(table()), 12), tmp_path / "without")
    assert "not known" in describe_expected_precision(load_bundle(tmp_path / "without"))


class Stop(Exception):
    "Raised where a long run would begin"


@pytest.mark.parametrize(
    "line, begins",
    [
        (
            "plan FEW --budget 20 --out new --method kmeans",
            "evaluation.left_out.left_out_errors",
        ),
        ("recommend FEW --budget 20", "evaluation.recommend.recommend"),
        ("recommend FEW --plus-minus 5", "evaluation.recommend.recommend"),
    ],
)
def test_few_sources_are_named_before_the_run(
    line, begins, tmp_path, monkeypatch, capsys
):
    def stop(*given, **how):
        raise Stop

    monkeypatch.chdir(tmp_path)
    table().select(models=np.arange(12)).to_parquet("few.parquet")
    monkeypatch.setattr(f"benchnb.{begins}", stop)
    with pytest.raises(Stop):
        main(line.replace("FEW", "few.parquet").split())
    printed = " ".join(capsys.readouterr().out.split())
    assert "12 sources are few. Below 20, no item response model" in printed


@pytest.mark.parametrize(
    "line, begins",
    [
        ("plan WIDE --budget 5 --out new --method random", "cli.score.fit_on_table"),
        (
            "publish WIDE --budget 5 --out new --method kmeans",
            "evaluation.simulate.prepare_method",
        ),
        ("recommend WIDE --budget 5", "evaluation.recommend.recommend"),
        ("recommend WIDE --tasks", "evaluation.recommend.recommend_tasks"),
        ("recommend WIDE --difference 5", "evaluation.recommend.recommend"),
    ],
)
def test_what_was_read_is_said_with_its_gaps(
    line, begins, tmp_path, monkeypatch, capsys
):
    def stop(*given, **how):
        raise Stop

    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (24, 12)) * 1.0)
    frame = frame.set_axis([f"m{n}" for n in range(24)]).rename_axis("model")
    frame.iloc[2, 3:5] = np.nan
    frame.to_csv("wide.csv")
    monkeypatch.setattr(f"benchnb.{begins}", stop)
    with pytest.raises(Stop):
        main(line.replace("WIDE", "wide.csv").split())
    printed = " ".join(capsys.readouterr().out.split())
    assert "wide.csv: 24 models x 12 items" in printed
    assert "(1 model with gaps, most in m2)" in printed


@pytest.mark.slow
@pytest.mark.parametrize("number", [12, pytest.param(24, marks=pytest.mark.night)])
def test_forecast_is_of_the_method_that_recommend_recommends(
    number, tmp_path, monkeypatch
):
    source = table().select(models=np.arange(number))
    source.to_parquet(tmp_path / "source.parquet")
    forecast = []

    def stop(scores, methods, *given, **how):
        forecast.extend(methods)
        raise Stop

    monkeypatch.setattr("benchnb.evaluation.planning.items_curve", stop)
    with pytest.raises(Stop):
        main(["recommend", str(tmp_path / "source.parquet"), "--plus-minus", "5"])
    assert recommend(source, source.shape[1] // 2).method in forecast
    if number < 20:
        assert not any("irt" in name for name in forecast)


SECRETS = {  # arguments of a model -> what is named
    "api_key=yzzy": "api_key",
    "bearer=yzzy": "bearer",
    "headers=yzzy": "headers",
    'header={"Authorization": "yzzy"}': "header",
    "OPENAI_API_KEY=yzzy": "OPENAI_API_KEY",
    "passwd=yzzy": "passwd",
    "credentials=yzzy": "credentials",
    "auth_token=yzzy": "auth_token",
    "cookie=yzzy": "cookie",
    "never_heard_of=yzzy": "never_heard_of",
    "base_url=https://me:yzzy@host/v1": "base_url",
    "base_url=https://yzzy@host/v1": "base_url",
    "base_url=me:yzzy@host": "base_url",
    "base_url=http://host/v1?key=yzzy": "base_url",
    "base_url=http://host bearer=yzzy": "bearer",
    "dtype=float16;bearer=yzzy": "dtype",
    "yzzy": "a value without a name",
    '{"model": "m", "extra": {"a": "yzzy"}}': "extra",
    '{"chat_template_args": {"key": "yzzy"}}': "key",
}


@pytest.mark.parametrize("secret, name", SECRETS.items())
def test_a_secret_is_neither_kept_nor_printed(
    secret, name, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    table().to_parquet("scores.parquet")
    given = secret if secret.startswith("{") else f"model=m,{secret}"
    words = ["plan", "scores.parquet", "--budget", "5", "--method", "random"]
    assert main([*words, "--out", "new", "--model-args", given]) == 2
    out, err = capsys.readouterr()
    assert f"--model-args must not hold {name}, it would be stored" in err
    assert "yzzy" not in out + err and not Path("new").exists()
    with pytest.raises(ValueError, match=f"must not hold {name},"):
        Evaluation(get_method("random").fit(table()), 5, model_args=given)


@pytest.mark.parametrize(
    "given",
    [
        "pretrained=org/new,revision=main,dtype=bfloat16,peft=org/lora",
        "model=gpt,base_url=http://localhost:8000/v1,num_concurrent=8,max_retries=3",
        '{"pretrained": "org/new", "chat_template_args": {"enable_thinking": false}}',
    ],
)
def test_arguments_of_a_model_that_are_no_secrets_are_kept(
    given, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    table().to_parquet("scores.parquet")
    words = ["plan", "scores.parquet", "--budget", "5", "--method", "random"]
    words += ["--harness", "lm-eval", "--out", "new"]
    assert main([*words, "--model-args", given]) == 0
    assert given.partition(",")[0] in capsys.readouterr().out
    assert Evaluation.load("new").plan.model_args == given


def test_a_slip_in_the_tables_name_is_named_before_the_budget(tmp_path, capsys):
    assert main(["plan", str(tmp_path / "none"), "--out", str(tmp_path / "x")]) == 2
    assert "no file or data set" in capsys.readouterr().err


def test_a_plan_with_one_list_says_which_differences_its_items_show():
    source = load("swebench_verified")
    smallest = detectable_difference(40, 500, difference_spread(source))
    said = f"differences of about {100 * smallest:.0f} points show"
    one_list = begin(source, "random", 40, folds=0)
    assert said in " ".join(describe_expected_precision(one_list).split())
    rounds = begin(source, "adaptive_irt", 40, folds=0)
    assert "points show" not in describe_expected_precision(rounds)
