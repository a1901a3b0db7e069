"""Named data sets: downloads from a local server, damaged files; and facts about the
real data, where BENCHNB_DATA is set."""

import hashlib
import io
import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pooch
import pytest
from helpers.small import files_in

from benchnb.data import sources
from benchnb.data.sources import fetch_file, harness_order, load

pooch.get_logger().setLevel("ERROR")
FILE, SHA = "lab/repo/abc/a.txt", hashlib.sha256(b"right").hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    "Serves a folder, and counts the requests"

    def do_GET(self):
        self.server.asked.append(self.path)
        return super().do_GET()

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    "A server of the folder tmp_path/public, in place of the public one"
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    handler = partial(Quiet, directory=str(tmp_path / "public"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        httpd.asked, httpd.public = [], tmp_path / "public"
        url = f"http://127.0.0.1:{httpd.server_port}"
        monkeypatch.setattr(sources, "PUBLIC", url)
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


def publish(server, path, content):
    "Put bytes on the server; their checksum"
    file = server.public / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def refused(make, words, kind=ValueError):
    "The error is one line with these words"
    with pytest.raises(kind, match=words) as error:
        make()
    assert "\n" not in str(error.value)


# fetch


def test_the_cache_is_used_and_checked(server, tmp_path):
    publish(server, FILE, b"right")
    get = partial(fetch_file, FILE, SHA)
    path = get()
    assert get() == path and path.read_bytes() == b"right"
    assert server.asked == [f"/{FILE}"]
    path.write_bytes(b"wrong")
    assert get().read_bytes() == b"right" and len(server.asked) == 2
    path.write_bytes(b"wrong")
    server.shutdown()
    server.server_close()
    refused(get, "ConnectionError.*set BENCHNB_DATA", OSError)


def test_what_cannot_be_fetched_is_one_line_and_not_kept(server, tmp_path, monkeypatch):
    publish(server, FILE, b"a login page")
    get = partial(fetch_file, sha256=SHA)
    refused(lambda: get(FILE), "a.txt is another file .SHA-256 differs")
    refused(lambda: get("lab/none.txt"), "HTTPError.*set BENCHNB_DATA", OSError)
    assert not files_in(tmp_path / "cache")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    refused(lambda: get(FILE), "cannot download", OSError)


# gsm8k


def npy(values):
    "The bytes of an .npy file"
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def made_up(n_source=4, n_target=3, n_items=7):
    "Matrices and questions like those of gsm8k; every question has its own length"
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (n_source + n_target, n_items)).astype(float)
    question = [f"What is {i} + {i}?\u2028Tell." for i in range(n_items)]
    answer = ["add\n" * i + f"#### {2 * i}" for i in range(n_items)]
    questions = pd.DataFrame({"question": question, "answer": answer})
    return values[:n_source], values[n_source:], questions


@pytest.fixture
def gsm8k(server, monkeypatch):
    "A function that puts made-up files on the server, and loads them from there"

    def get(source, target, questions, **how):
        if isinstance(questions, pd.DataFrame):
            questions = questions.to_json(orient="records", lines=True).encode()
        files = {"source": source, "target": target, "questions": questions}
        for part, content in files.items():
            content = npy(content) if isinstance(content, np.ndarray) else content
            path = f"lab/repo/abc/{part}"
            files[part] = path, publish(server, path, content)
        monkeypatch.setattr(sources, "GSM8K_FILES", files)
        return load("gsm8k", **how)

    return get


def write_gsm8k(folder, source, target, questions, names=()):
    "The same as files in a folder"
    folder = Path(folder, "gsm8k")
    folder.mkdir(parents=True)
    parts = dict(source=source.astype(np.uint8), target=target.astype(np.uint8))
    np.savez_compressed(folder / "gsm8k.npz", **parts)
    order = harness_order(len(questions))
    columns = {"column": range(len(order)), "openai_test_index": order, "final": ""}
    questions = questions.iloc[order].assign(**columns)
    questions.to_parquet(folder / "gsm8k_test_questions.parquet")
    if names:
        found = pd.DataFrame(names, columns=["row", "best", "mismatch", "ties"])
        found.to_csv(folder / "model_name_matches.csv")


def test_download_gives_the_table_of_the_folder(gsm8k, tmp_path):
    source, target, questions = made_up()
    far = gsm8k(source, target, questions)
    order = harness_order(7)
    assert list(far.items["steps"]) == list(order)  # length i: question i
    assert list(far.items["text"]) == list(questions["question"][order])
    np.testing.assert_array_equal(far.values, np.vstack([source, target]))
    write_gsm8k(tmp_path / "data", source, target, questions)
    near = load("gsm8k", folder=tmp_path / "data")
    assert near.fingerprint() == far.fingerprint()
    pd.testing.assert_frame_equal(near.items, far.items)
    pd.testing.assert_frame_equal(near.models, far.models)
    names = [(1, "lab/Yi-6B", 0, 1), (2, "a", 0, 2), (3, "b", 1, 1), (5, "L2", 0, 1)]
    write_gsm8k(tmp_path / "named", source, target, questions, names)
    named = load("gsm8k", folder=tmp_path / "named")
    np.testing.assert_array_equal(named.values, far.values)
    changed = named.models.index != far.models.index
    assert list(np.flatnonzero(changed)) == [1, 5]  # exact and unique matches only
    assert list(named.models["family"].dropna()) == ["yi", "llama"]


def test_a_folder_comes_before_a_download(server, gsm8k, tmp_path, monkeypatch):
    source, target, questions = made_up()
    write_gsm8k(tmp_path / "data", 1 - source, target, questions)
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path / "data"))
    near = gsm8k(source, target, questions)
    np.testing.assert_array_equal(near.values[:4], 1 - source)
    assert server.asked == []
    assert sources.data_sets().loc["gsm8k", "where"] == "BENCHNB_DATA"
    (tmp_path / "other").mkdir()
    far = gsm8k(source, target, questions, folder=tmp_path / "other")
    np.testing.assert_array_equal(far.values[:4], source)
    monkeypatch.delenv("BENCHNB_DATA")
    where = sources.data_sets()["where"]
    assert where["gsm8k"] == "download" and where["ifeval"] == "embedded"


class Trap:
    "Runs code when unpickled"

    def __reduce__(self):
        return (os.mkdir, ("trapped",))


def test_nothing_is_unpickled(gsm8k, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source, target, questions = made_up()
    trap = np.array([Trap()], dtype=object)
    refused(lambda: gsm8k(trap, target, questions), "no readable .npy file")
    write_gsm8k(tmp_path / "data", source, target, questions)
    np.savez(tmp_path / "data/gsm8k/gsm8k.npz", source=trap, target=target)
    refused(lambda: load("gsm8k", folder=tmp_path / "data"), "no readable .npz file")
    assert not Path("trapped").exists()


@pytest.mark.parametrize(
    "part, content, message",
    [
        ("source", npy(np.zeros(3)), "no matrix"),
        ("source", b"", "no readable .npy"),
        ("target", npy(np.zeros((3, 6))), "dimension|items has"),
        ("target", npy(np.full((3, 7), 2.0)), "outside"),
        ("questions", b'{"question": "a", "answer": ', "no readable JSONL"),
        ("questions", b'{"question": "a"}\n', "answer"),
        ("questions", b'{"question": "a", "answer": "b"}\n', "items"),
    ],
)
def test_files_that_do_not_fit(gsm8k, part, content, message):
    parts = dict(zip(("source", "target", "questions"), made_up(), strict=True))
    refused(lambda: gsm8k(**(parts | {part: content})), message)


# files in a folder


def test_unknown_names_and_sets_that_are_not_here(tmp_path, monkeypatch):
    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    refused(lambda: load("openllm_v1/ark"), "did you mean 'openllm_v1/arc'\\?")
    words = "musr.*benchmark-prediction.*BENCHNB_DATA.*benchpred.npz"
    refused(lambda: load("musr", folder=tmp_path), words, FileNotFoundError)
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path / "slip"))
    for call in (partial(load, "gsm8k"), sources.data_sets):
        refused(call, "BENCHNB_DATA is .*slip", FileNotFoundError)
    assert len(load("ifeval")) > 0  # needs no folder


def test_damaged_npz_never_passes_and_is_named(tmp_path):
    path = tmp_path / "a.npz"
    right = {"a": np.arange(40, dtype=np.uint8), "b": np.array(["x", "y"])}
    np.savez_compressed(path, **right)
    whole, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    damaged = [whole[:n] for n in range(0, len(whole), 7)]
    for at in rng.integers(0, len(whole), 300):
        changed = bytearray(whole)
        changed[at] ^= 1 << rng.integers(8)
        damaged.append(bytes(changed))
    for content in [*damaged, b"text", npy(np.zeros(3)), b"PK\x03\x04", whole[9:]]:
        path.write_bytes(content)
        try:
            arrays = sources.read_arrays(path, ["a", "b"])
        except ValueError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            refused += 1
        else:  # a flip in a field that nobody reads
            for name in right:
                np.testing.assert_array_equal(arrays[name], right[name])
    assert refused > 200


def test_damaged_neighbours_of_a_matrix_are_named(tmp_path):
    write_gsm8k(tmp_path, *made_up(), [(0, "a", 0, 1)])
    csv = tmp_path / "gsm8k/model_name_matches.csv"
    parquet = tmp_path / "gsm8k/gsm8k_test_questions.parquet"
    get = partial(load, "gsm8k", folder=tmp_path)
    csv.write_text("row,best\n0,a\n")
    refused(get, "model_name_matches.csv")
    csv.unlink()
    pd.DataFrame({"column": [0]}).to_parquet(parquet)
    refused(get, "no column 'openai_test_index'")
    parquet.write_bytes(b"PAR1")
    refused(get, "gsm8k_test_questions.parquet")
    parquet.unlink()
    refused(get, "gsm8k_test_questions.parquet", FileNotFoundError)


def test_openllm_joined_and_in_parts(tmp_path):
    arrays = {}
    for k, name in enumerate(sources.SCENARIOS):  # all but the last model are in all
        values = np.array([[1] * (k + 1), [0] * (k + 1), [1] + [255] * k], np.uint8)
        arrays[name] = values
        arrays[f"{name}__models"] = np.array(["lab/Yi-6B", "b", f"only-{name}"])
        arrays[f"{name}__items"] = np.array([f"i{i}" for i in range(k + 1)])
        arrays[f"{name}__full_score"] = np.array([0.1 * k, 0.5, np.nan], np.float32)
    (tmp_path / "openllm-v1-union").mkdir()
    np.savez(tmp_path / "openllm-v1-union/openllm_v1_union.npz", **arrays)
    table = load("openllm_v1", folder=tmp_path)
    assert table.shape == (2, 21) and list(table.models.index) == ["lab/Yi-6B", "b"]
    np.testing.assert_allclose(table.items.groupby("task")["weight"].sum(), 1)
    np.testing.assert_allclose(table.models["full_score"], [0.25, 0.5], atol=1e-6)
    assert list(table.models["family"].dropna()) == ["yi"]
    part = load("openllm_v1/mmlu", folder=tmp_path)
    assert part.shape == (3, 6) and np.isnan(part.values).sum() == 5
    assert set(part.items.index) <= set(table.items.index)
    with pytest.raises(ValueError, match="mmlu/i0"):  # an item in two tables
        sources.join_scenarios({"a": part, "b": part})


def test_language_models_that_ship_need_no_folder(monkeypatch):
    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    table, part = load("mmlu_pro"), load("mmlu_pro/questions")
    assert np.isnan(table.values).sum() == 1713 and not np.isnan(part.values).any()
    assert part.items["text"].notna().all() and part.items["task"].nunique() == 14
    counts = part.items["task"].value_counts()
    assert counts.min() == 100 and len(part.items) == table.items["text"].notna().sum()
    assert table.items["subject"].nunique() == 56
    same = table.select(items=part.items.index)
    np.testing.assert_array_equal(same.values, part.values)
    for name in ("helm_gsm8k", "helm_medqa", "ifeval"):
        where = sources.data_sets().loc[name]
        assert where["where"] == "embedded"
        assert load(name).shape == (where["models"], where["items"])


# names


def test_family_by_the_rule():
    names = (
        "codellama/CodeLlama-34b Undi95/ReMM-v2.2-L2-13B x/airoboros-l2-7b x/XL2-7b "
    )
    names += (
        "a/Mixtral-8x7B lab/Mistral-Mixtral-merge x/dolphin-2.2 x/phi3_x x/phixtral "
    )
    names += "facebook/opt-66b lab/optimised kyujinpy/PlatYi-34B"
    wanted = ["llama", "llama", "llama", None, "mixtral", None, None, "phi", None]
    wanted += ["opt", None, None]
    assert [sources.family_from_name(name) for name in names.split()] == wanted


# the real data


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", sources.SOURCES.index[1:])
def test_sizes_are_those_of_the_catalogue(name):
    table = load(name)
    size = *table.shape, table.items["task"].nunique()
    assert size == tuple(sources.SOURCES.loc[name, ["models", "items", "tasks"]])
    assert 0.1 < table.performance().mean() < 0.8
