"""Small files that would take gigabytes, and names that would command a terminal or a
spreadsheet: limits hold whatever the format."""

import bz2
import csv
import gzip
import json
import os
import subprocess
import sys
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.logs import helm_instance, inspect_log, write_eval, write_helm
from hypothesis import given
from hypothesis import strategies as st

from benchnb.cli.app import main
from benchnb.data import tables
from benchnb.data.files import read_arrays, refuse_repeated_keys
from benchnb.data.tables import read_tables
from benchnb.data.untrusted import (
    PARSED_BYTES_PER_BYTE,
    check_memory,
    escape_control_characters,
    memory_limit,
    parse_json,
    shorten_texts,
    strip_apostrophes,
    write_csv,
)
from benchnb.harnesses.harness import import_logs
from benchnb.live.store import check_answers
from benchnb.stats.genetic_search import Search

# Memory --------------------------------------------------------------------------

IMPORT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))  # if it fails
from benchnb.data.sources import load_table
from benchnb.harnesses.harness import import_logs
from benchnb.live.store import check_answers
from benchnb.harnesses.logs import Choices
from benchnb.live.bundles import load_bundle
kind, path = sys.argv[1:]
CHOICES = {
    "lm-eval": dict(metric=("acc",), model="m", task="t"),
    "openllm": dict(metric=("acc",), model="m"),
    "inspect": dict(interrupted="keep"),
}
try:
    if kind == "load":
        load_table(path)
    elif kind == "bundle":
        load_bundle(path)
    else:
        import_logs(kind, path, Choices(**CHOICES.get(kind, {})))
except (ValueError, OSError) as error:
    print(error)
else:
    print("read")
peak = [x for x in open("/proc/self/status") if x.startswith("VmHWM")][0]
print(int(peak.split()[1]) // 1024)
"""
GB, LIMIT = 0.2, 650  # allowed for one file; MB, with what the libraries take


def peak(kind, path, allowed=GB):
    "What the import said, and the most memory that the process ever had, in MB"
    call = [sys.executable, "-c", IMPORT, kind, str(path)]
    there = os.environ | {"BENCHNB_MEMORY_GB": str(allowed)}
    done = subprocess.run(call, capture_output=True, text=True, env=there)
    assert done.stdout, done.stderr[-500:]
    said, memory = done.stdout.strip().rsplit("\n", 1)
    return said, int(memory)


LISTS = b"[" + b"[[[]]]," * 1_500_000 + b"0]"  # 10 MB of text, 400 MB of lists


def archive(path, entries, zstd=False):
    "An .eval file whose entries are given as bytes"
    head, samples = inspect_log("m", "quiz", ["C", "I"])
    texts = {"header.json": json.dumps(head).encode()} | entries
    if "summaries.json" not in texts:
        texts["summaries.json"] = json.dumps(samples).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in texts.items():
            if text is not None:
                file.writestr(name, text)
    return path


def one_member(folder):
    return archive(folder / "a.eval", {"reductions.json": LISTS})


def packed_with_zstd(folder):
    head, samples = inspect_log("m", "quiz", ["C"])
    lists = [[[[]]]] * 1_500_000
    return write_eval(folder / "a.eval", head | {"x": lists}, samples, True)


def many_members(folder):
    "Each member fits, all of them together do not"
    scores = ",".join(f'"s{n}": {{"value": 1}}' for n in range(40_000))
    row = '{"id": %d, "epoch": 1, "input": "?", "scores": {' + scores + "}}"
    rows = {f"samples/{n}_epoch_1.json": (row % n).encode() for n in range(40)}
    return archive(folder / "a.eval", {"summaries.json": None} | rows)


def json_log(folder):
    path = folder / "a.json"
    path.write_bytes(b'{"status": "success", "x": ' + LISTS + b"}")
    return path


def helm_log(folder):
    run = write_helm(folder, "m", "quiz", [1])
    row = json.dumps(helm_instance("id", 1)).encode()
    text = b"[" + (row + b",") * 80_000 + row + b"]"
    (run / "per_instance_stats.json").write_bytes(text)
    return run


def long_line(folder):
    path = folder / "samples_t.jsonl"
    path.write_bytes(b'{"doc_id": 0, "acc": 1, "doc": ' + LISTS + b"}\n")
    return path


def packed_line(folder):
    path = folder / "a.jsonl.zst"
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(b'{"model": "m", "item": "q", "score": 1, "x": ' + LISTS + b"}\n")
    return path


def packed_cell(folder):
    path = folder / "a.csv.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(b"model,item,score,text\nm,q,1,")
        for _ in range(600):
            file.write(b"x" * 10**6)
    return path


def a_square(folder):
    "A row for each of 30,000 models and items: a table of 900,000,000 cells"
    path = folder / "a.csv"
    rows = "".join(f"m{n},q{n},1\n" for n in range(30_000))
    path.write_text("model,item,score\n" + rows)
    return path


def texts(rows, size=5 * 10**6):
    "One long text in every row of a column, stored once"
    return pa.DictionaryArray.from_arrays(np.zeros(rows, "i4"), ["x" * size])


def dictionary(folder, rows=200):
    items = [f"q{n}" for n in range(rows)]
    table = pa.table({"model": ["m"] * rows, "item": items, "score": [1.0] * rows})
    pq.write_table(table.append_column("text", texts(rows)), folder / "a.parquet")
    return folder / "a.parquet"


def dictionary_of_details(folder):
    path = folder / "details_t.parquet"
    pq.write_table(pa.table({"example": texts(200), "acc": [1.0] * 200}), path)
    return path


def rows_without_end(folder):
    "50,000,000 equal rows, in row groups of 5,000,000"
    size, path = 5_000_000, folder / "a.parquet"
    zeros = pa.array(np.zeros(size, "i4"))
    names = pa.DictionaryArray.from_arrays(zeros, ["m"])
    table = pa.table({"model": names, "item": names, "score": zeros})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(10):
            writer.write_table(table)
    return path


BOMBS = {
    one_member: "inspect",
    packed_with_zstd: "inspect",
    many_members: "inspect",
    json_log: "inspect",
    helm_log: "helm",
    long_line: "lm-eval",
    packed_line: "table",
    packed_cell: "table",
    a_square: "table",
    dictionary: "load",
    dictionary_of_details: "openllm",
    rows_without_end: "table",
}


QUICK = [one_member, dictionary]  # a zip file, Parquet
SLOW = [pytest.param(b, marks=pytest.mark.slow) for b in BOMBS if b not in QUICK]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("bomb", QUICK + SLOW, ids=lambda bomb: bomb.__name__)
def test_a_small_file_takes_little_memory(bomb, tmp_path):
    path = bomb(tmp_path)
    said, memory = peak(BOMBS[bomb], path)
    assert memory < LIMIT, (memory, said)
    if said != "read":
        assert "\n" not in said and "of memory: BENCHNB_MEMORY_GB=N allows more" in said
        assert path.name in said


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHNB_MEMORY_GB", "0.01")
    with pytest.raises(ValueError, match="a table takes over 0.01 GB of memory: BENC"):
        check_memory(10**8, "a table")
    monkeypatch.setenv("BENCHNB_MEMORY_GB", "0.2")
    check_memory(10**8)
    for wrong in ("much", "0", "-1", "nan"):
        monkeypatch.setenv("BENCHNB_MEMORY_GB", wrong)
        with pytest.raises(ValueError, match=f"BENCHNB_MEMORY_GB='{wrong}' is no numb"):
            memory_limit()


WORST = ["[[[]]],", "[],", "{},", '{"a":[1]},', "1.5,", '"ab",', '"\\u20ac",']
WORST += ['{"":0},', "[" * 900 + "]" * 900 + ",", '"\\n",', '"\U0001f600aaaaaaaaaaaa",']


@pytest.mark.parametrize("part", WORST)
def test_no_json_grows_more_than_the_small_texts_are_allowed_to(part):
    text = ("[" + part * (20_000 // len(part) + 1) + "0]").encode()
    tracemalloc.start()
    parse_json(text, pairs=refuse_repeated_keys)
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size < PARSED_BYTES_PER_BYTE * len(text)


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
def test_packed_tables_are_the_same_as_plain_ones(ending, tmp_path):
    text = b"model,item,score\n" + b"".join(b"m,q%d,0.5\n" % n for n in range(5000))
    pack = {"gz": gzip.compress, "bz2": bz2.compress}
    pack["zst"] = lambda data: pa.compress(data, "zstd", asbytes=True)
    path = tmp_path / f"a.csv.{ending}"
    path.write_bytes(pack[ending](text))
    assert read_tables([path]).values.tolist() == [[0.5] * 5000]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=f"a.csv.{ending}"):
        read_tables([path])


READ = pd.read_csv

# Wide tables -----------------------------------------------------------------------


@pytest.mark.slow
def test_many_columns_are_read_or_refused_soon(tmp_path):
    path, size = tmp_path / "a.csv", 4000
    head = "model," + ",".join(f"q{n}" for n in range(size))
    path.write_text(head + "\n" + "m" + ",1" * size + "\n")
    scores = read_tables([path])
    assert scores.shape == (1, size) and scores.values.all()
    path.write_text("item,score," + head + "\n" + "q,1,m" + ",7" * size + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.PerformanceWarning)
        assert read_tables([path]).items["q7"].tolist() == [7]


def test_import_reads_a_table_once(tmp_path, monkeypatch):
    rows, read = "".join(f"m{n},q,1\n" for n in range(999)), []
    (tmp_path / "a.csv").write_text("model,item,score\n" + rows)

    def counted(file, nrows=None, **how):
        read.append(nrows)
        return READ(file, nrows=nrows, **how)

    monkeypatch.setattr(tables.pd, "read_csv", counted)
    main(["import", "table", f"{tmp_path}/a.csv", "--out", f"{tmp_path}/b.parquet"])
    assert read == [None, 1]


def test_two_columns_of_one_name_are_an_error(tmp_path):
    files = {"a.csv": "model,q1,q1\nm,1,0\n", "a.tsv": "model\tq1\tq1\nm\t1\t0\n"}
    files["a.jsonl"] = '{"model": "m", "q1": 1, "q1": 0}\n'
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    twice = pa.table([["m"], [1.0], [0.0]], names=["model", "q1", "q1"])
    pq.write_table(twice, tmp_path / "a.parquet")
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match=f"{path.name}': .*'q1' twice"):
            read_tables([path])


def test_what_one_process_reads_the_other_reads_alike(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text('{"model": "m", "007": 1, "2020-01-01": 0}\n')
    here = read_tables([path])
    assert list(here.items.index) == ["007", "2020-01-01"]
    monkeypatch.setattr(tables, "is_small_text", lambda path: False)
    assert read_tables([path]).fingerprint() == here.fingerprint()
    path.write_text('{"model": "m", "item": "q", "score": "bad"}\n')
    with pytest.raises(ValueError, match="a.jsonl': score 'bad' of model 'm'"):
        read_tables([path])
    path.write_text("{")
    with pytest.raises(ValueError, match="a.jsonl': Expecting"):
        read_tables([path])


# Names -------------------------------------------------------------------------------

NAMES = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'=1", "''@", "'x", "x=1", "ünï"]


def test_no_cell_of_a_csv_is_a_formula(tmp_path):
    frame = pd.DataFrame({"model": NAMES, "score": -0.5})
    write_csv(frame, tmp_path / "a.csv", index=False)
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert not [row for row in rows if row[0][:1] in "=+-@\t\r"]
    assert all(row[1] == "-0.5" for row in rows[1:])
    with open(tmp_path / "a.csv", newline="") as file:
        again = strip_apostrophes(pd.read_csv(file, dtype={"model": str}))
    assert list(again["model"]) == NAMES
    long = pd.DataFrame({"model": ["=m", "'=m"], "item": "q", "score": 1})
    write_csv(long, tmp_path / "b.csv", index=False)
    assert list(read_tables([tmp_path / "b.csv"]).models.index) == ["=m", "'=m"]


@pytest.mark.slow
@given(st.text())
def test_escaped_text_does_nothing(name):
    assert escape_control_characters(name).isprintable() and escape_control_characters(
        escape_control_characters(name)
    ) == escape_control_characters(name)


FLIPS = """
import sys
from pathlib import Path
from benchnb.data.untrusted import parquet_batches
path = Path(sys.argv[1])
whole, refused = path.read_bytes(), 0
start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
for at in range(start, len(whole), 3):
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    try:
        list(parquet_batches(path, 10))
    except Exception:
        refused += 1
print(refused)
"""


def test_a_damaged_end_of_a_parquet_file_does_not_end_the_process(tmp_path):
    "Arrow 26 aborts where the sizes of a column contradict each other"
    scores = [{"metric": [{"name": "acc"}], "value": [1.0]}] * 2
    columns = {"response": ["a", "b"], "model": [{"name": "m"}] * 2, "scores": scores}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    command = [sys.executable, "-c", FLIPS, tmp_path / "a.parquet"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and int(done.stdout) > 100, done.stderr[-500:]


# Archives ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 97])
def test_what_cannot_be_unpacked_in_steps_is_refused(method, tmp_path):
    "A kilobyte of bzip2 or LZMA becomes gigabytes at the first byte that is read"
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w", method if method < 97 else 0) as file:
        for name in ("header.json", "array.npy"):
            file.writestr(name, b" " * 10**6)
    if method == 97:  # a number that Python does not know
        local, central = b"\x14\x00\x00\x00\x00\x00", b"\x14\x00" * 2 + b"\x00" * 4
        data = path.read_bytes().replace(central, central[:-2] + b"a\x00")
        path.write_bytes(data.replace(local, local[:-2] + b"a\x00"))
    readers = {
        "is no log of Inspect: 'header": lambda: import_logs("inspect", path),
        "cut short.*: 'header": lambda: read_arrays(path, ["array"]),
        "is no state of a search": lambda: Search.load(path),
    }
    for where, read in readers.items():
        with pytest.raises(ValueError, match=where) as found:
            read()
        cause = found.value.__cause__ or found.value
        assert f"is packed by method {method}: pack it again" in str(cause)


def test_an_array_that_promises_more_than_there_is(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as file:
        head = {"descr": "<f8", "fortran_order": False, "shape": (10**14,)}
        with file.open("array.npy", "w") as part:
            np.lib.format.write_array_header_1_0(part, head)
    for read in (lambda: read_arrays(path, ["array"]), lambda: Search.load(path)):
        with pytest.raises(ValueError, match="a.npz' is no"):
            read()


LONG = "7" * 900
FILES = {  # name of a file -> a text with something long
    "score.csv": f"model,item,score\nm,i,{LONG}\n",
    "text.csv": f"model,item,score\nm,i,{'x' * 900}\n",
    "item.csv": f"model,item,score\nm,{'y' * 900},7\n",
    "path.csv": f"model,item,score\nm,/{'y' * 900},7\n",
    "quote.csv": f"model,item,score\nm,\"it's {'y' * 900}\",7\n",
    "words.csv": f"model,item,score\nm,{'y ' * 450},7\n",
    "twice.csv": f"model,item,score\nm,{LONG},1\nm,{LONG},0\n",
    "column.csv": f"model,item,{LONG}\nm,i,1\n",
    "wide.csv": f"model,i,j\nm,0.5,{LONG}\nn,1,0\n",
    "score.jsonl": f'{{"model": "m", "item": "i", "score": {LONG}}}\n',
    "negative.jsonl": f'{{"model": "m", "item": "i", "score": -{LONG}}}\n',
    "list.jsonl": f'{{"model": "m", "item": "i", "score": [{"7," * 900}7]}}\n',
}


@pytest.mark.parametrize("name, text", FILES.items())
def test_a_message_repeats_little_of_what_was_read(name, text, tmp_path, capsys):
    folder = tmp_path / ("f" * 90)
    folder.mkdir()
    (folder / name).write_text(text)
    words = [str(folder / name), "--out", str(tmp_path / "o.parquet")]
    assert main(["import", "table", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and str(folder / name) in error
    rest = error.replace(str(folder / name), "PATH")
    assert len(rest) < 400, rest
    assert not any(part * 80 in rest for part in ("7", "x", "y", "y ", "7,", "7, "))


@pytest.mark.parametrize("score", [10**400, -(10**400), "9" * 900, [7] * 900, {"r": 9}])
def test_a_told_score_that_is_none_is_one_short_line(score):
    with pytest.raises((ValueError, TypeError)) as caught:
        check_answers({"i": score})
    assert "'i'" in str(caught.value) and len(str(caught.value)) < 200


def test_a_short_message_stays_as_it_is():
    for text in ("it's 'a' and \"b\" c's", "'" * 90, "a 'b", f"x={'y' * 70}"):
        assert shorten_texts(text) == text
    long = "z" * 100
    assert shorten_texts(f"no item {long!r}", typed=f"tell {long}").count("z") == 100
