"""Damaged and malicious logs: a table or one clear line, never a crash, a hang, or a
file outside the folder."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.logs import (
    TIME,
    inspect_log,
    write_details,
    write_eval,
    write_helm,
    write_lm_eval,
)
from helpers.small import files_in
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchnb.harnesses import inspect as harnesses
from benchnb.harnesses.inspect import read_inspect
from benchnb.harnesses.lm_eval import read_lm_eval
from benchnb.harnesses.logs import FORMATS, Choices, import_logs

QUIET = settings(
    max_examples=75,  # minutes of it are in a slow test
    deadline=20_000,  # a hang, even where many tests share a processor
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
LAX = Choices(("acc", "choice", "exact_match"), repeated="mean", interrupted="keep")
STRICT = Choices(model="m", task="t")


def lm_eval(folder):
    return write_lm_eval(folder, "m", {"t": [1, 0, 1]}) / f"samples_t_{TIME}.jsonl"


def inspect_eval(folder, **kwargs):
    head, samples = inspect_log("m", "quiz", ["C", "I"], epochs=2)
    return write_eval(folder / "a.eval", head, samples, **kwargs)


def inspect_zstd(folder):
    return inspect_eval(folder, zstd=True)


def inspect_json(folder):
    head, samples = inspect_log("m", "quiz", ["C", "I"])
    path = folder / "a.json"
    path.write_text(json.dumps(head | {"samples": samples, "reductions": None}))
    return path


def helm(folder):
    return write_helm(folder, "m", "quiz", [1, 0]) / "per_instance_stats.json"


def details(folder):
    return write_details(folder, "o/m", "t", [1, 0])


def third(folder):
    return write_details(folder, "o/m", "t", [1, 0], "lighteval")


def table(folder):
    path = folder / "a.csv"
    path.write_text("model,item,score,task\nm,q1,1,a\nm,q2,0,a\n")
    return path


def wide(folder):
    path = folder / "a.tsv"
    path.write_text("model\tq1\tq2\nm\t1\t0\nn\t\t0.5\n")
    return path


def lines(folder):
    path = folder / "a.jsonl"
    path.write_text('{"model": "m", "item": "q", "score": 1}\n' * 2)
    return path


def swebench(folder):
    path = folder / "agent.run.json"
    lists = {"submitted_ids": ["a-1", "a-2"], "resolved_ids": ["a-1"]}
    path.write_text(json.dumps(lists | {"unresolved_ids": ["a-2"], "error_ids": []}))
    return path


def harbor(folder):
    path = folder / "results.json"
    trials = [{"task_id": name, "is_resolved": name < "b"} for name in "aabc"]
    path.write_text(json.dumps({"results": trials}))
    return path


def eee(folder):
    path = folder / "f3_samples.jsonl"
    row = {"schema_version": "0.3.0", "model_id": "m", "evaluation_name": "t"}
    row |= {"input": {"raw": "How?"}, "evaluation": {"score": 1, "is_correct": True}}
    row |= {"sample_hash": "9c94305328f8e703", "token_usage": {"total_tokens": 3}}
    path.write_text("".join(json.dumps(row | {"sample_id": n}) + "\n" for n in "ab"))
    return path


def py_irt(folder):
    path = folder / "a.jsonl"
    counts = {"q1": {"successes": 1, "trials": 2}, "q2": {"successes": 0, "trials": 1}}
    rows = [{"subject_id": name, "responses": counts} for name in "mn"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def opencompass(folder):
    path = folder / "a.json"
    rows = {"0": {"correct": True}, "1": {"correct": [True, False]}}
    path.write_text(json.dumps({"accuracy": 75.0, "details": rows | {"type": "GEN"}}))
    return path


def parquet(folder, columns):
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def wild(folder):
    columns = {"model": ["m", "n"], "task": ["t", "t"], "item_id": ["a", "a"]}
    tokens = dict.fromkeys(["score", "input_tokens", "output_tokens"], [1, 0])
    return parquet(folder, columns | tokens)


def measurement_db(folder):
    columns = {"subject_id": ["m", "n"], "item_id": ["a", "a"], "response": [1.0, 0.0]}
    more = {"benchmark_id": ["t", "t"], "test_condition": ["none", None]}
    return parquet(folder, columns | more)


def openeval(folder):
    scores = [{"metric": [{"name": "acc"}], "value": [1.0]}] * 2
    columns = {"response_id": ["a_m_0", "b_m_0"], "model": [{"name": "m"}] * 2}
    return parquet(folder, columns | {"scores": scores})


def lighteval(folder):
    return third(folder)


WRITERS = {
    eee: "eee",
    py_irt: "py-irt",
    opencompass: "opencompass",
    wild: "wild",
    measurement_db: "measurement-db",
    openeval: "openeval",
    lighteval: "lighteval",
    swebench: "swebench",
    harbor: "harbor",
    lm_eval: "lm-eval",
    inspect_eval: "inspect",
    inspect_zstd: "inspect",
    inspect_json: "inspect",
    helm: "helm",
    details: "openllm",
    table: "table",
    wide: "table",
    lines: "table",
}


def a_table_or_one_line(format, path):
    "Import must end in one of two ways, and touch no file"
    before = files_in(path.parent)
    for choices in (LAX, STRICT):
        try:
            scores = import_logs(format, path, choices)
        except (ValueError, TypeError, OSError) as error:
            message = str(error)
            assert message and "\n" not in message and len(message) < 12_000, message
        else:
            assert scores.shape[0] and scores.shape[1]
    assert files_in(path.parent) == before


NUMBERS = ["1e999", "-1e999", "9" * 5000, "NaN", "Infinity", "-0", "1e-999"]
ODD = [b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b'"', b"\\", b"[" * 5000]
ODD += [b"{" * 50, b"\r", b"\n", b"null", b"{}", b"[]", b"true", b'"\\ud800"', b"''"]
ODD += [word.encode() for word in NUMBERS]


@st.composite
def damage(draw, data):
    "The same bytes, damaged in one to three ways"
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data), 1)))
        size = draw(st.integers(0, 40))
        new = draw(st.sampled_from(ODD) | st.binary(max_size=8))
        how = draw(st.sampled_from(["cut", "replace", "repeat", "flip", "insert"]))
        if how == "cut":
            data = data[:at]
        elif how == "replace":
            data = data[:at] + new + data[at + size :]
        elif how == "repeat":
            data = data[:at] + data[at : at + size] * 3 + data[at:]
        elif how == "insert":
            data = data[:at] + new + data[at:]
        elif at < len(data):
            bit = draw(st.integers(0, 7))
            data = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
    return data


@pytest.mark.parametrize("writer", WRITERS)
def test_damaged_bytes(writer, tmp_path):
    path = writer(tmp_path)
    whole = path.read_bytes()

    @QUIET
    @given(damage(whole))
    def check(data):
        path.write_bytes(data)
        a_table_or_one_line(WRITERS[writer], path)

    check()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def parts_of(value, path=()):
    "Every place in a JSON value"
    yield path
    if isinstance(value, (dict, list)):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in inside:
            yield from parts_of(part, (*path, key))


def replaced(value, path, new):
    "The value with another at one place"
    if not path:
        return new
    value = value.copy()
    value[path[0]] = replaced(value[path[0]], path[1:], new)
    return value


@pytest.mark.parametrize(
    "writer", [lm_eval, inspect_json, helm], ids=lambda w: w.__name__
)
def test_other_values_at_every_place(writer, tmp_path):
    path = writer(tmp_path)
    jsonl = path.suffix == ".jsonl"
    text = path.read_text()
    whole = (
        [json.loads(line) for line in text.splitlines()] if jsonl else json.loads(text)
    )
    places = list(parts_of(whole))

    @QUIET
    @given(st.sampled_from(places), JSON)
    def check(place, new):
        value = replaced(whole, place, new)
        rows = value if jsonl and isinstance(value, list) else [value]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        a_table_or_one_line(WRITERS[writer], path)

    check()


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    "data",
    [b"", b"\x00" * 1000, b"[" * 200_000, b'{"a":' * 100_000, b"\n" * 1000,
     b"PK\x03\x04", b"PAR1PA", b'{"doc_id": 1, ', "ünï".encode("utf-16"), b"\xff" * 9],
    ids="empty nul deep deeper lines zip parquet head utf16 ff".split(),
)  # fmt: skip
def test_files_that_are_no_logs(writer, data, tmp_path):
    path = writer(tmp_path)
    path.write_bytes(data)
    with pytest.raises((ValueError, OSError)) as caught:
        import_logs(WRITERS[writer], path, LAX)
    assert "\n" not in str(caught.value) and path.name in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "latin-1"])
def test_other_encodings(encoding, tmp_path):
    path = lm_eval(tmp_path)
    path.write_bytes(path.read_text().replace("?", "é").encode(encoding))
    a_table_or_one_line("lm-eval", path)
    path = inspect_json(tmp_path)
    path.write_bytes(path.read_text().encode(encoding))
    a_table_or_one_line("inspect", path)


def test_deep_nesting_in_a_line(tmp_path):
    path = lm_eval(tmp_path)
    deep = "[" * 100_000 + "]" * 100_000
    path.write_text('{"doc_id": 0, "doc": ' + deep + ', "acc": 1}\n')
    with pytest.raises(ValueError, match="line 1 .* nested too deeply"):
        read_lm_eval(path)


@pytest.mark.parametrize("zstd", [False, True])
def test_a_zip_bomb_is_refused(zstd, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHNB_MEMORY_GB", "0.001")
    head, samples = inspect_log("m", "quiz", ["C"])
    samples[0]["input"] = " " * 2**22
    path = write_eval(tmp_path / "a.eval", head, samples, zstd)
    assert path.stat().st_size < 20_000
    with pytest.raises(ValueError, match="'summaries.json' takes over 0.001 GB"):
        read_inspect(path)


def test_a_zstd_frame_that_lies_about_its_size(tmp_path):
    path = tmp_path / "a.eval"
    data = bytearray(pa.compress(b"[]" + b" " * 1000, "zstd", asbytes=True))
    data[5:9] = b"\xff\xff\xff\x7f"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", bytes(data))
    text = path.read_bytes().replace(
        b"\x14\x00\x00\x00\x00\x00", b"\x14\x00\x00\x00\x5d\x00"
    )
    path.write_bytes(text)
    a_table_or_one_line("inspect", path)


@pytest.mark.parametrize(
    "name", ["../out.json", "/etc/out.json", "samples/../../x.json"]
)
def test_names_that_lead_out_of_an_archive(name, tmp_path):
    place = tmp_path / "deep" / "logs"
    head, samples = inspect_log("m", "quiz", ["C", "I"])
    path = write_eval(place / "a.eval", head, samples, **{name: {"evil": 1}})
    before = files_in(tmp_path)
    assert read_inspect(path)[0].scores.tolist() == [1, 0]
    assert files_in(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_minutes_of_damage(writer, tmp_path):
    script = Path(__file__).with_name("fuzz_importers.py")
    minutes = os.environ.get("BENCHNB_FUZZ_MINUTES", "10")
    command = [sys.executable, script, "--only", writer.__name__, "--minutes", minutes]
    done = subprocess.run(
        [*command, "--keep", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_unpickled_or_evaluated():
    folder = Path(harnesses.__file__).parent
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    for word in (r"pickle\.load", r"\beval\(", r"\bexec\(", "allow_pickle=True"):
        assert not re.search(word, text), word
    assert set(WRITERS.values()) == set(FORMATS)  # every format is in these tests
