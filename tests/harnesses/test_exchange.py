"""Public formats: Every Eval Ever, py-irt, OpenCompass and the archives; what is read
fast is what is read line by line, and what is written is read again."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.logs import eee_line, lm_eval_row, of_vintage
from hypothesis import given, settings
from hypothesis import strategies as st

from benchnb.data.files import AmbiguousFile
from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.harnesses import logs as harness_logs
from benchnb.harnesses.harness import export_scores, get_harness, import_logs
from benchnb.harnesses.lm_eval import read_samples
from benchnb.harnesses.logs import Choices

FIXTURES = Path(os.environ.get("BENCHNB_DATA", ".")).parent / "fixtures" / "eee"
here = pytest.mark.skipif(not FIXTURES.is_dir(), reason="no real files here")


def write_eee(folder, model, task, scores, **about):
    "A file of the datastore, with the results beside it"
    place = folder / "data" / task / model
    place.mkdir(parents=True)
    rows = [eee_line(f"s{n}", score, model, task) for n, score in enumerate(scores)]
    path = place / "f3a1_samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    metric = {"lower_is_better": about.pop("lower", False)}
    results = [{"evaluation_name": task, "metric_config": metric}]
    about |= {"evaluation_results": results}
    (place / "f3a1.json").write_text(json.dumps(about))
    return path


# Fast and line by line -----------------------------------------------------------

FILTERS = st.sampled_from(["strict", "loose", None])
VALUES = st.sampled_from([1.0, 0, True, None, float("nan"), "0.5", [1], 10**400, "x"])
BREAKS = st.sampled_from(["", "{", "\ud800", '{"doc_id": 1}', "[]", "\n", "  "])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(FILTERS, VALUES), min_size=1, max_size=8), BREAKS, st.data())
def test_blocks_are_read_as_their_lines(rows, broken, data):
    lines = [
        (
            json.dumps(lm_eval_row("t", n, value, filter=name))
            if name
            else json.dumps(of_vintage(lm_eval_row("t", n, value), "2024-05"))
        )
        for n, (name, value) in enumerate(rows)
    ]
    lines.insert(data.draw(st.integers(0, len(lines))), broken)
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    path = Path(os.environ["PYTEST_FOLDER"], "samples_t.jsonl")
    path.write_bytes(text + b"\n" * data.draw(st.booleans()))

    def outcome():
        try:
            return repr(read_samples(str(path), Choices(("acc",), ("strict", "0"))))
        except ValueError as error:
            return str(error)

    fast = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness_logs, "LARGE", 0)
        assert outcome() == fast


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_FOLDER", str(tmp_path))


# Every Eval Ever -----------------------------------------------------------------


@pytest.mark.data
@here
def test_the_fixture_of_every_eval_ever_needs_only_a_direction():
    (path,) = FIXTURES.glob("*_samples.jsonl")
    for place in (path, FIXTURES):
        with pytest.raises(AmbiguousFile, match="nothing says whether more of"):
            import_logs("eee", place)
        scores = import_logs("eee", place, Choices(direction="higher"))
        assert scores.values.tolist() == [[1]] and scores.items["cost"].tolist() == [17]
        assert scores.items["hash"].tolist() == ["9c94305328f8e703"]


@pytest.mark.data
@here
def test_what_is_written_is_valid_by_the_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((FIXTURES / "instance_level_eval.schema.json").read_text())
    export_scores(
        load("terminal_bench_trials").select(models=[0, 1]), "eee", tmp_path / "a"
    )
    lines = (tmp_path / "a").read_text().splitlines()
    for row in [*lines[:5], json.dumps(eee_line("s"))]:
        jsonschema.validate(json.loads(row), schema)


def test_a_whole_datastore(tmp_path):
    for model, shift in (("acme/small", 0), ("acme/large", 1)):
        for task in ("sums", "logic"):
            scores = np.roll([1, 0, 0], shift).tolist()
            write_eee(tmp_path, model, task, scores, evaluation_timestamp="1750000000")
    scores = import_logs("eee", tmp_path)
    assert scores.shape == (2, 6) and set(scores.items["task"]) == {"sums", "logic"}
    assert (
        scores.values.sum() == 4 and scores.models["evaluated"].dt.year.eq(2025).all()
    )


def test_a_metric_that_is_better_when_lower(tmp_path):
    path = write_eee(tmp_path, "acme/small", "sums", [1, 0], lower=True)
    with pytest.raises(AmbiguousFile, match="lower is better for 'score'"):
        get_harness("eee").read(path)
    scores = import_logs("eee", path, Choices(direction="lower"))
    assert scores.values.tolist() == [[0, 1]]


def test_blanks_and_the_other_versions(tmp_path):
    path = tmp_path / "a_samples.jsonl"
    rows = [eee_line(f"s{v}", schema_version=v)
            for v in ("0.2.1", "instance_level_eval_0.2.2", "0.3.0")]  # fmt: skip
    rows[1]["evaluation"] = {"score": float("nan"), "is_correct": None}
    path.write_text("\n\n".join(map(json.dumps, rows)))
    assert str(get_harness("eee").read(path)[0].scores.tolist()) == "[1.0, nan, 1.0]"


# Handing on ----------------------------------------------------------------------


@pytest.mark.parametrize("format", ["eee", "py-irt"])
@pytest.mark.parametrize("counted", [False, True])
def test_round_trip(format, counted, tmp_path):
    rng = np.random.default_rng(0)
    runs = rng.integers(1, 5, (6, 20)) if counted else np.ones((6, 20))
    values = rng.binomial(runs.astype(int), 0.6) / runs
    values[rng.random(values.shape) < 0.1] = np.nan
    names = [f"{task}/{n}" for task in ("a", "b") for n in range(10)]
    items = pd.DataFrame({"task": [n[0] for n in names]}, names)
    table = Scores(
        values, items, [f"org/m{n}" for n in range(6)], runs if counted else None
    )
    path = tmp_path / "mine_samples.jsonl"
    export_scores(table, format, path)
    how = Choices(repeated="trials") if counted and format == "eee" else Choices()
    again = import_logs(format, path, how).select(items=names)
    np.testing.assert_array_equal(again.values, table.values)
    assert list(again.models.index) == list(table.models.index)
    if counted:
        np.testing.assert_array_equal(again.trials, table.trials)
    if format == "eee":
        assert again.items["task"].tolist() == items["task"].tolist()
