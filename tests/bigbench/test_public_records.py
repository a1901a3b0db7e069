"Public records: the files of each schema, what is refused and how"

import json

import numpy as np
import pandas as pd
import pytest

from benchnb.bigbench.public_records import (
    RECORD_SOURCES,
    bigbench_records,
    filter_steps,
    load_public_records,
    read_bigbench,
)
from benchnb.bigbench.records import RecordFeatures, check_records

# BIG-bench's JSON files

BIG_FAMILIES = ["BIG-G T=0", "BIG-G T=1", "BIG-G sparse", "GPT", "PaLM", "Gopher"]


TASKS = {  # one with two parts, one of ROUGE, and one per filter
    "sums": [
        ("sums:one", 0, "exact_str_match", 0.5),
        ("sums:one", 2, "exact_str_match", 0.6),
        ("sums:two", 0, "exact_str_match", 0.1),
        ("sums", 0, "exact_str_match", 0.3),
    ],
    "retell": [("retell", 1, "rougeLsum", 42.0)],
    "dialogue": [("dialogue", 0, "exact_str_match", 0.9)],
    "zeros": [("zeros", 0, "exact_str_match", 0.0)],
    "tiny": [("tiny", 0, "multiple_choice_grade", 0.4)],
    "odd": [("odd", 0, "bleu", 20.0)],
}


def score_file(family, size, entries):
    "A score file as BIG-bench writes them; entries: (part, shots, metric, score)"
    names = ["subtask_description", "number_of_shots", "preferred_score", "score_dict"]
    scores = [
        dict(zip(names, (*entry[:3], {entry[2]: entry[3], "log": -3.0}), strict=True))
        for entry in entries
    ]
    model = dict(model_family=family, model_name=f"{size:g}", total_params=size)
    model["non_embedding_params"] = 0.9 * size
    model["flop_matched_non_embedding_params"] = 0  # BIG-bench's "unknown"
    return {"model": model, "scores": scores}


def write_bigbench(folder):
    "A small BIG-bench of seven families"
    for task, entries in TASKS.items():
        results = folder / task / "results"
        results.mkdir(parents=True)
        for number, family in enumerate([*BIG_FAMILIES, "T5"]):
            for size in (1e9, 8e9):
                found = json.dumps(score_file(family, size, entries))
                (results / f"scores_{number}_{size:g}.json").write_text(found)
        (results / "plot.json").write_text("[1, 2]")  # no score file
    (folder / "dialogue" / "task.py").touch()
    for part, count in {"sums/one": 200, "sums/two": 101, "tiny": 100}.items():
        (folder / part).mkdir(exist_ok=True)
        examples = json.dumps({"examples": [{"input": "", "target": ""}] * count})
        (folder / part / "task.json").write_text(examples)


def test_six_filters_of_json_files(tmp_path):
    write_bigbench(tmp_path)
    steps = filter_steps(read_bigbench(tmp_path))
    models, entries = 14, 9
    counts = [2 * models * entries, 2 * models * (entries - 1), 2 * 12 * (entries - 1)]
    counts += [2 * 12 * (entries - 2), 12 * 6, 12 * 5, 12 * 4]
    assert [len(left) for left in steps.values()] == counts
    found = bigbench_records(tmp_path)
    assert set(found["subtask"]) == {"sums:one", "sums:two", "retell"}
    assert set(found["family"]) == set(BIG_FAMILIES)
    rouge = found[found["metric"] == "rougeLsum"]
    np.testing.assert_allclose(rouge["score"], 0.42)
    assert found["flop_matched_params"].isna().all()
    np.testing.assert_allclose(
        found["non_embedding_params"], 0.9 * found["total_params"]
    )


def test_bigbench_that_is_not_there_or_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match="no score files in"):
        read_bigbench(tmp_path)
    write_bigbench(tmp_path)
    path = next(tmp_path.glob("sums/results/scores*.json"))
    path.write_text(path.read_text()[:50])
    with pytest.raises(ValueError, match="is no readable JSON"):
        read_bigbench(tmp_path)


def test_bigbench_by_name_from_json_files(tmp_path, monkeypatch):
    write_bigbench(tmp_path / "bigbench" / "benchmark_tasks")
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path))
    assert len(load_public_records("bigbench")) == 48


# the named tables, from small files of each schema


def write_bbh(path):
    "Two models, two tasks and their mean, two prompts, two ways to read answers"
    rows = [
        [model, kind, task, 3, how, 0.4, family, size]
        for model, family, size in [("lab/owl-1b", "Owl", 1.1), ("lab/fox", "Fox", 7)]
        for kind in ("bbh_fewshot", "bbh_cot_fewshot")
        for task in ("navigate", "snarks", "overall")
        for how in ("flexible-extract", "strict-match")
    ]
    names = ["model", "kind", "task", "shots", "filter", "score", "family", "size_B"]
    pd.DataFrame(rows, columns=names).to_csv(path, index=False)


def write_harness(path):
    "Pythia with checkpoints and another batch size; LLaMA in the folder beside it"
    rows = []
    for family, folder, last in [
        ("pythia-v0", "pythia-1.4b", 71500),
        ("pythia-v1", "pythia-1.4b", 143000),
        ("pythia-v1", "pythia-1b-bf16", 143000),
        ("pythia-v1", "pythia-70m-deduped", 143000),
        ("pythia-v1", "pythia-1b-0.5MtokBS", 572000),
    ]:
        for step in (1000, last):
            for shots, setting in [(0, "zero-shot"), (5, "five-shot")]:
                for task in ("hendrycksTest-art", "blimp_x", "piqa"):
                    score = 0.25 if step == 1000 else 0.5
                    rows.append([family, folder, step, setting, task, shots, score, ""])
    rows.append(["opt", "", -1, "", "piqa", 0, 0.6, "opt-1.3b.json"])
    names = "family model_dir step setting task num_fewshot score file".split()
    frame = pd.DataFrame(rows, columns=names).assign(metric="acc")
    worse = frame.assign(metric="acc_norm")
    pd.concat([frame, worse]).to_parquet(path)
    rows = [
        ["llama", "llama-7B", "piqa", "acc", 0.8, 0.0],
        ["llama", "llama-7B", "piqa", "acc", 0.7, 0.0],  # the same again
        ["llama", "llama-7B", "hendrycksTest-art", "acc", 0.4, 5.0],
        ["llama", "llama-7B", "triviaqa", "acc", 0.4, 5.0],  # not in Pythia's
        ["opt", "opt-1.3b", "piqa", "acc", 0.1, 0.0],  # there already
        ["llama", "llama-7B", "piqa", "acc", 0.8, 8.0],
    ]
    names = "family model task metric score num_fewshot".split()
    more = path.parents[1] / "lm-eval-harness-results"
    more.mkdir()
    pd.DataFrame(rows, columns=names).to_parquet(more / "results_long.parquet")


def write_benchpress(path):
    "Two models; a benchmark in Elo is left out"
    frame = pd.DataFrame(
        {"id": ["a-1", "b-2"], "gpqa": [50, None], "elo": [1200, 1300]}
    )
    frame.to_csv(path, index=False)
    facts = pd.DataFrame({"id": ["a-1", "b-2"], "provider": ["A", "B"]})
    facts.to_csv(path.parent / "benchpress_models.csv", index=False)


SMALL = {  # name: writer, records, families
    "bbh": (write_bbh, 8, {"Owl", "Fox"}),
    "harness": (
        write_harness,
        4 * 6 + 1 + 2,
        {"pythia-v0", "pythia-v1", "pythia-v1-deduped", "opt", "llama"},
    ),
    "benchpress": (write_benchpress, 1, {"A"}),
}


@pytest.fixture(params=SMALL)
def small(request, tmp_path):
    "A folder of data sets with one small table: (folder, name, its path)"
    path = tmp_path / RECORD_SOURCES[request.param][0]
    path.parent.mkdir()
    SMALL[request.param][0](path)
    return tmp_path, request.param, path


def test_small_file_of_each_schema(small):
    folder, name, _ = small
    _, count, families = SMALL[name]
    found = load_public_records(name, folder)
    assert (len(found), set(found["family"])) == (count, families)
    again = check_records(found, unknown_size="keep")
    pd.testing.assert_frame_equal(again, found)
    assert np.isfinite(RecordFeatures().fit_transform(found)).all()


def test_damaged_files_are_named(small):
    folder, name, path = small
    path.write_bytes(b"\x00\x01 no table")
    with pytest.raises((ValueError, FileNotFoundError), match=path.name):
        load_public_records(name, folder)


def test_last_checkpoint_of_each_version(tmp_path):
    path = tmp_path / RECORD_SOURCES["harness"][0]
    path.parent.mkdir()
    write_harness(path)
    found = load_public_records("harness", tmp_path)
    pythia = found[found["family"].str.startswith("pythia")]
    assert set(pythia["score"]) == {0.5}
    assert set(pythia["model"]) == {"pythia-1.4b", "pythia-1b", "pythia-70m"}
    assert set(found["task"]) == {"mmlu", "blimp", "piqa"}
    zero_shot = found[(found["family"] == "llama") & (found["shots"] == 0)]
    assert zero_shot["score"].tolist() == [0.8]
