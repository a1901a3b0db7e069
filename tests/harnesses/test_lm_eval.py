"""Logs of every harness: the same scores come out whatever the vintage, and whatever is
ambiguous or broken is a choice or one line. Damage of every kind is in test_fuzz."""

import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.logs import (
    EARLIER,
    TIME,
    VINTAGES,
    digest,
    document,
    inspect_log,
    lm_eval_row,
    of_vintage,
    refused,
    write_details,
    write_eval,
    write_lm_eval,
    write_results,
    write_rows,
)

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.harnesses.harness import get_harness, import_logs
from benchnb.harnesses.logs import Choices, as_hashes, find_logs

ANSWERS = {"sums": [1, 0, 1], "logic": [0, 1]}
read_lm_eval, read_inspect, read_helm, read_openllm = (
    get_harness(name).read for name in ("lm-eval", "inspect", "helm", "openllm")
)
is_lm_eval = get_harness("lm-eval").belongs
FIXTURES = Path(os.environ.get("BENCHNB_DATA", ".")).parent / "fixtures"
here = pytest.mark.skipif(not FIXTURES.is_dir(), reason="no real logs here")


# lm-evaluation-harness -----------------------------------------------------------


@pytest.mark.parametrize("vintage", VINTAGES)
def test_every_vintage_gives_the_same_scores(vintage, tmp_path):
    for model, shift in (("a/one", 0), ("a/two", 1)):
        answers = {t: np.roll(s, shift).tolist() for t, s in ANSWERS.items()}
        write_lm_eval(tmp_path, model, answers, vintage=vintage)
    scores = import_logs("lm-eval", tmp_path)
    assert list(scores.models.index) == ["a/one", "a/two"]
    assert " ".join(scores.items.index) == "logic/0 logic/1 sums/0 sums/1 sums/2"
    assert scores.values.tolist() == [[0, 1, 1, 0, 1], [1, 0, 1, 1, 0]]
    hashes = [digest(document(*pair))[:16] for pair in (("logic", 0), ("sums", 2))]
    assert [scores.items["hash"]["logic/0"], scores.items["hash"]["sums/2"]] == hashes
    assert scores.models["evaluated"].dt.year.eq(2026).all()


def test_jobs_change_nothing(tmp_path):
    for number in range(3):
        write_lm_eval(tmp_path, f"m{number}", ANSWERS)
    one, two = (import_logs("lm-eval", tmp_path, n_jobs=n) for n in (1, 2))
    assert one.fingerprint() == two.fingerprint()


def test_odd_texts_in_a_line_change_nothing(tmp_path):
    hard = [
        lm_eval_row("t", 3, 0.5, note={"filter": "inner"}),
        lm_eval_row("t", 4, 0.5, text='{"doc_id": 7, "filter": "x"}'),
        lm_eval_row("t", 5, 0.5, **{"é": [{"doc_hash": 1}], "ü\u2028": "\\"}),
        lm_eval_row("t", 6, float("nan")),
        {"acc": 1.0, "filter": "none", "doc_hash": "0" * 64, "doc_id": 7},
    ]
    (log,) = read_lm_eval(write_rows(tmp_path / f"samples_t_{TIME}.jsonl", hard))
    assert log.ids.tolist() == [3, 4, 5, 6, 7]
    assert repr(log.scores.tolist()) == "[0.5, 0.5, 0.5, nan, 1.0]"


def test_a_metric_that_is_a_list_is_not_offered(tmp_path):
    more = {"metrics": ["f1", "acc"], "f1": [1, 0]}
    write_lm_eval(tmp_path, "m", {"sums": [1, 0]}, **more)
    assert import_logs("lm-eval", tmp_path).values.tolist() == [[1, 0]]
    path = tmp_path / f"samples_late_{TIME}.jsonl"
    rows = [lm_eval_row("late", 0, 1), lm_eval_row("late", 1, [1, 0])]
    refused(lambda: read_lm_eval(write_rows(path, rows)), "acc", "1", "no number")


@pytest.mark.parametrize("vintage", ["2024-11", "2024-05"])
def test_two_filters_are_a_choice(vintage, tmp_path):
    rows = [
        of_vintage(lm_eval_row("t", n, score, filter=name), vintage)
        for name, score in (("strict", 0), ("flexible", 1))
        for n in range(3)
    ]
    path = write_rows(tmp_path / "m" / f"samples_t_{TIME}.jsonl", rows)
    names = ("strict", "flexible") if vintage == "2024-11" else ("0", "1")
    refused(lambda: read_lm_eval(path), "filter", *map(repr, names))
    for name, score in zip(names, (0, 1), strict=True):
        (log,) = read_lm_eval(path, Choices(filter=(name,)))
        assert log.scores.tolist() == [score] * 3


def test_an_interrupted_file_is_a_choice(tmp_path):
    place = write_lm_eval(tmp_path, "m", {"t": [1, 0, 1]})
    path = place / f"samples_t_{TIME}.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-50])
    refused(lambda: read_lm_eval(path), "cut short", "interrupted='keep' or 'skip'")
    (log,) = read_lm_eval(path, Choices(interrupted="keep"))
    assert log.scores.tolist() == [1, 0]
    assert read_lm_eval(path, Choices(interrupted="skip")) == []
    # whole lines, but fewer than the results say
    path.write_text("".join(whole.splitlines(True)[:2]))
    sizes = {"n-samples": {"t": {"original": 5, "effective": 3}}}
    write_results(place, "m", ["t"], **sizes)
    refused(lambda: read_lm_eval(path), "cut short", "2 of 3")
    # a subset that was run to its end is whole
    sizes["n-samples"]["t"]["effective"] = 2
    write_results(place, "m", ["t"], **sizes)
    os.utime(place / f"results_{TIME}.json", (1, 1))
    assert len(read_lm_eval(path)[0].ids) == 2
    path.write_text("")
    refused(lambda: read_lm_eval(path), "holds no samples")
    assert read_lm_eval(path, Choices(interrupted="skip")) == []


def test_two_runs_of_a_model(tmp_path):
    write_lm_eval(tmp_path, "m", {"t": {0: 1, 1: 1}}, EARLIER)
    write_lm_eval(tmp_path, "m", {"t": {2: 0, 3: 0}}, TIME)
    scores = import_logs("lm-eval", tmp_path)  # they complete each other
    assert scores.values.tolist() == [[1, 1, 0, 0]]
    write_lm_eval(tmp_path, "m", {"t": {1: 0, 2: 0}}, TIME)
    refused(
        lambda: import_logs("lm-eval", tmp_path), "t/1", "'m'", EARLIER, TIME, "'mean'"
    )
    for how, value in (("first", 1), ("last", 0), ("mean", 0.5)):
        found = import_logs("lm-eval", tmp_path, Choices(repeated=how)).values
        assert found.tolist() == [[1, value, 0]]


def test_ids_of_an_unsorted_list_are_found_out(tmp_path):
    for number in range(3):
        write_lm_eval(tmp_path, f"m{number}", {"t": [1, 0, 1, 0]})
    rows = [lm_eval_row("t", n, n % 2) for n in (0, 2, 3)]  # in the order asked
    for row, wrong in zip(rows, (3, 0, 2), strict=True):  # as the list was given
        row["doc_id"] = wrong
    write_rows(tmp_path / "new" / f"samples_t_{TIME}.jsonl", rows)
    refused(
        lambda: import_logs("lm-eval", tmp_path), "new", "unsorted list", "match='hash'"
    )
    found = import_logs("lm-eval", tmp_path, Choices(match="hash"))
    assert repr(found.values[3].tolist()) == "[0.0, nan, 0.0, 1.0]"
    assert found.shape == (4, 4)


def test_a_metric_that_is_better_when_lower_is_refused(tmp_path):
    place = write_lm_eval(tmp_path, "m", {"t": [1, 0]})
    write_results(place, "m", ["t"], higher_is_better={"t": {"acc": False}})
    refused(lambda: import_logs("lm-eval", tmp_path), "lower is better", "acc")


# Finding files -------------------------------------------------------------------


def test_places_are_files_folders_and_patterns(tmp_path):
    paths = [write_lm_eval(tmp_path, f"m{n}", {"t": [1]}) for n in range(3)]
    file = paths[1] / f"samples_t_{TIME}.jsonl"
    assert len(find_logs([tmp_path], is_lm_eval)) == 3
    assert find_logs([file, paths[1]], is_lm_eval) == [file]
    assert len(find_logs([f"{tmp_path}/m[01]"], is_lm_eval)) == 2
    assert len(find_logs([f"{tmp_path}/**/samples*"], is_lm_eval)) == 3
    refused(lambda: find_logs([tmp_path / "no"], is_lm_eval), "no file or folder")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(lambda: find_logs([empty], is_lm_eval, "log"), "no log in", "empty")


def test_links_in_a_circle_and_pipes_are_not_read(tmp_path):
    place = write_lm_eval(tmp_path, "m", {"t": [1]})
    (place / "circle").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(place / "samples_pipe.jsonl")
    assert import_logs("lm-eval", tmp_path).shape == (1, 1)


# Inspect -------------------------------------------------------------------------


@pytest.mark.parametrize("zstd", [False, True])
def test_inspect_scores_costs_and_dates(zstd, tmp_path):
    head, samples = inspect_log("m", "quiz", ["C", "I", "P", None, 0.25, {}])
    write_eval(tmp_path / "a.eval", head, samples, zstd)
    scores = import_logs("inspect", tmp_path)
    assert repr(scores.values[0].tolist()) == "[1.0, 0.0, 0.5, nan, 0.25, nan]"
    assert (scores.items["cost"] == 105).all()
    assert str(scores.models["evaluated"].iloc[0]) == "2025-12-19 12:36:45"


def test_inspect_reducers(tmp_path):
    head, samples = inspect_log("m", "quiz", ["C", "I"], epochs=3)
    samples[0]["scores"]["choice"]["value"] = "I"
    head["eval"]["config"] = {"epochs_reducer": ["mode", "at_least_1"]}
    done = [
        {"scorer": "choice", "reducer": name, "samples": [
            {"sample_id": 1, "value": value}, {"sample_id": 2, "value": 0}]}
        for name, value in (("mode", "C"), ("at_least_1", 0.75))
    ]  # fmt: skip
    path = write_eval(tmp_path / "a.eval", head, samples, **{"reductions.json": done})
    refused(lambda: read_inspect(path), "reducer", "'mode'", "'at_least_1'")
    for name, value in (("mode", 1), ("at_least_1", 0.75), ("mean", 2 / 3)):
        found = read_inspect(path, Choices(reducer=name))[0].scores
        np.testing.assert_allclose(found, [value, 0])


# The leaderboard's files ---------------------------------------------------------


def test_a_shifted_file_of_the_leaderboard_is_found_out(tmp_path):
    for name in ("o/a", "o/b"):
        write_details(tmp_path, name, "arc", [1, 0, 1])
    path = write_details(tmp_path, "o/c", "arc", [1, 0, 1])
    frame = pd.read_parquet(path).iloc[1:]
    frame.to_parquet(path, index=False)
    with pytest.warns(UserWarning, match="matched by their documents"):
        scores = import_logs("openllm", tmp_path)
    values = scores.values.tolist()
    assert values[:2] == [[1, 0, 1]] * 2 and values[2][1:] == [0, 1]
    assert np.isnan(values[2][0])
    assert scores.items["by_position"].all()
    name = path.rename(tmp_path / path.name)
    refused(lambda: read_openllm(name), "no folder", "model='...'")


# Real logs -----------------------------------------------------------------------


@pytest.mark.data
@here
def test_real_logs_of_lm_eval():
    found = import_logs("lm-eval", FIXTURES / "lm_eval", Choices(interrupted="keep"))
    assert found.shape == (1, 10) and found.models["n_params"].iloc[0] == 93069280
    refused(lambda: import_logs("lm-eval", FIXTURES / "lm_eval"), "10 of 5000")


@pytest.mark.data
@here
def test_real_logs_of_inspect():
    place = FIXTURES / "inspect"
    keep = Choices(interrupted="keep")
    one, two = (
        read_inspect(place / f"data_arc_{m}.json", keep) for m in ("qwen", "sonnet")
    )
    assert one[0].model == "ollama/qwen2.5:0.5b" and len(one[0].ids) == 3
    assert one[0].hashes.tolist() == two[0].hashes.tolist()[:3]
    (log,) = read_inspect(place / "mmlu-summary-choices.eval")
    assert log.scores.tolist() == [0] and log.cost.tolist() == [156]
    both = [read_inspect(place / f"log_formats.{e}")[0] for e in ("eval", "json")]
    assert both[0].scores.tolist() == both[1].scores.tolist()
    assert both[0].hashes.tolist() == both[1].hashes.tolist()
    (log,) = read_inspect(next(place.glob("*popularity*")))
    assert len(log.ids) == 10 and np.isnan(log.scores).all()


@pytest.mark.data
@here
def test_real_logs_of_helm():
    exact = Choices(metric=("exact_match",))
    found = import_logs("helm", FIXTURES / "helm", exact)
    assert list(found.models.index) == ["openai/gpt2"]
    assert found.items["task"].nunique() == 2 and found.items["hash"].notna().all()
    assert (found.items["cost"] > 100).all()


# Memory --------------------------------------------------------------------------


def test_a_large_file_takes_little_memory(tmp_path):
    "100 MB of prompts; of each line only its tail is kept"
    path = tmp_path / "m" / f"samples_t_{TIME}.jsonl"
    path.parent.mkdir()
    with open(path, "w") as file:
        for number in range(2000):
            row = lm_eval_row("t", number, number % 2, pad=25_000)
            file.write(json.dumps(row) + "\n")
    assert path.stat().st_size > 95e6
    tracemalloc.start()
    scores = import_logs("lm-eval", tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
    assert isinstance(scores, Scores) and scores.shape == (1, 2000)


def test_two_files_of_other_questions_say_so_and_are_not_paired(tmp_path, capsys):
    for name, task in (("o/a", "t"), ("o/b", "u")):
        place = write_lm_eval(tmp_path / name[-1], name, {task: [1, 0, 1, 0]})
        for path in place.glob("samples_u_*"):
            path.rename(str(path).replace("samples_u_", "samples_t_"))
    places = [tmp_path / "a", tmp_path / "b"]
    refused(lambda: import_logs("lm-eval", places), "(4 of 4 items differ) than in '")
    argv = ["paired", *map(str, places), "--format", "lm-eval"]
    assert main(argv) == 2
    assert "is another document in A than in B (4 of 4" in capsys.readouterr().err


@pytest.mark.parametrize("texts", [[digest(1), digest(2)], ["a b" * 7, "c d" * 7]])
def test_hashes_read_at_once_are_those_read_one_by_one(texts):
    one_by_one = [as_hashes([text, None])[0] for text in texts]
    assert as_hashes(texts).tolist() == one_by_one
    spaced = "ab " + "0" * 17  # of even length, and digits but for the space
    assert as_hashes([spaced]).tolist() == as_hashes([spaced, None])[:1].tolist()


def test_an_edited_key_of_the_same_documents_is_said(tmp_path):
    write_lm_eval(tmp_path, "o/m", {"t": [1, 0, 1]})
    path = write_lm_eval(tmp_path, "o/n", {"t": [1, 0, 1]}) / f"samples_t_{TIME}.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1]["target_hash"] = digest("C")
    write_rows(path, rows)
    with pytest.warns(UserWarning, match="right answer of 1 of 3 items is another"):
        import_logs("lm-eval", tmp_path)


def test_packed_samples_and_results_alone_say_what_to_do(tmp_path):
    write_results(tmp_path / "o__m", "o/m", ["t"])
    refused(lambda: import_logs("lm-eval", tmp_path), "--log_samples")
    path = tmp_path / "o__m" / f"samples_t_{TIME}.jsonl.gz"
    path.write_bytes(b"")
    refused(lambda: import_logs("lm-eval", tmp_path), path.name, "unpack it first")
    refused(lambda: import_logs("lm-eval", path), path.name, "unpack it first")
