"""Named data sets: downloads from a local server, damaged files; and facts about the
real data, where BENCHNB_DATA is set."""

import hashlib
import io
import json
import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pooch
import pytest

from benchnb.data import sources
from benchnb.data.sources import fetch, harness_order, load
from tools.run import ROOT

pooch.get_logger().setLevel("ERROR")


class Quiet(SimpleHTTPRequestHandler):
    "Serves a folder, counts the requests, and cuts files short whose name says so"

    def do_GET(self):
        self.server.asked.append(self.path)
        if "short" not in self.path:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x" * 10)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    "A server of the folder tmp_path/public at server.url"
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    public = tmp_path / "public"
    public.mkdir()
    handler = partial(Quiet, directory=str(public))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        httpd.asked, httpd.public = [], public
        httpd.url = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


def stop(server):
    "Take the server down: nobody listens at its port any more"
    server.shutdown()
    server.server_close()


def publish(server, path, content):
    "Put bytes on the server; their checksum"
    file = server.public / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def files_in(folder):
    "Names of all files below a folder"
    return [path.name for path in Path(folder).rglob("*") if path.is_file()]


def one_line(error):
    "The message of an error, which must be one line"
    message = str(error.value)
    assert "\n" not in message
    return message


# fetch


def test_second_fetch_needs_no_server(server, tmp_path):
    sha = publish(server, "lab/repo/abc/answers.txt", b"right answers")
    get = partial(fetch, "lab/repo/abc/answers.txt", sha, tmp_path / "cache")
    first = get(server.url + "/")
    stop(server)
    assert get(server.url) == first and first.read_bytes() == b"right answers"
    assert server.asked == ["/lab/repo/abc/answers.txt"]
    assert files_in(tmp_path / "cache") == ["answers.txt"]


def test_same_file_name_of_two_commits_does_not_clash(server, tmp_path):
    for commit in ("one", "two"):
        sha = publish(server, f"lab/repo/{commit}/a.txt", commit.encode())
        path = fetch(f"lab/repo/{commit}/a.txt", sha, tmp_path / "cache", server.url)
        assert path.read_text() == commit


def test_another_file_is_refused_and_not_kept(server, tmp_path):
    publish(server, "lab/repo/abc/answers.txt", b"a login page")
    sha = hashlib.sha256(b"right answers").hexdigest()
    with pytest.raises(ValueError, match="SHA-256 differs") as error:
        fetch("lab/repo/abc/answers.txt", sha, tmp_path / "cache", server.url)
    assert "/lab/repo/abc/answers.txt" in one_line(error)
    assert files_in(tmp_path / "cache") == []


def test_file_changed_in_the_cache_is_fetched_again(server, tmp_path):
    sha = publish(server, "lab/repo/abc/a.txt", b"right")
    path = fetch("lab/repo/abc/a.txt", sha, tmp_path / "cache", server.url)
    path.write_bytes(b"wrong")
    assert fetch("lab/repo/abc/a.txt", sha, path.parents[3], server.url) == path
    assert path.read_bytes() == b"right"
    path.write_bytes(b"wrong")
    stop(server)
    with pytest.raises(OSError, match="no connection"):
        fetch("lab/repo/abc/a.txt", sha, path.parents[3], server.url)


def test_missing_file_on_the_server(server, tmp_path):
    with pytest.raises(OSError, match="the server says 404") as error:
        fetch("lab/repo/abc/none.txt", "0" * 64, tmp_path / "cache", server.url)
    assert "set BENCHNB_DATA" in one_line(error)
    assert files_in(tmp_path / "cache") == []


def test_server_down(server, tmp_path):
    stop(server)
    with pytest.raises(OSError, match="no connection") as error:
        fetch("lab/repo/abc/a.txt", "0" * 64, tmp_path / "cache", server.url)
    assert "set BENCHNB_DATA" in one_line(error)


def test_download_cut_short_is_not_kept(server, tmp_path):
    with pytest.raises((OSError, ValueError)) as error:
        fetch("lab/repo/abc/short.txt", "0" * 64, tmp_path / "cache", server.url)
    assert "short.txt" in one_line(error)
    assert files_in(tmp_path / "cache") == []


def test_address_without_protocol_and_cache_that_is_a_file(server, tmp_path):
    with pytest.raises(OSError, match="cannot download nowhere/a.txt") as error:
        fetch("a.txt", "0" * 64, tmp_path, "nowhere")
    one_line(error)
    (tmp_path / "file").write_text("")
    sha = publish(server, "lab/a.txt", b"right")
    with pytest.raises(OSError, match="cannot download") as error:
        fetch("lab/a.txt", sha, tmp_path / "file", server.url)
    one_line(error)


# gsm8k by download


def npy(values, **kwargs):
    "The bytes of an .npy file"
    file = io.BytesIO()
    np.save(file, values, **kwargs)
    return file.getvalue()


def made_up(n_source=4, n_target=3, n_items=7):
    "Matrices and questions like those of gsm8k; every question has its own length"
    rng = np.random.default_rng(0)
    source, target = (
        rng.integers(0, 2, (n, n_items)).astype(float) for n in (n_source, n_target)
    )
    question = [f"What is {i} + {i}?\u2028Tell." for i in range(n_items)]
    answer = ["add\n" * i + f"#### {2 * i}" for i in range(n_items)]
    return source, target, pd.DataFrame({"question": question, "answer": answer})


@pytest.fixture
def gsm8k_server(server, monkeypatch):
    "A function that puts made-up files on the server, with their checksums"

    def put(source, target, lines):
        content = {"source": source, "target": target, "questions": lines}
        paths = {part: f"lab/repo/abc/{part}" for part in content}
        files = {
            part: (path, publish(server, path, content[part]))
            for part, path in paths.items()
        }
        monkeypatch.setattr(sources, "GSM8K_FILES", files)
        return server

    return put


def json_lines(questions):
    return questions.to_json(orient="records", lines=True).encode()


def write_gsm8k(folder, source, target, questions, names=()):
    "The same as files in a folder"
    folder = Path(folder, "gsm8k")
    folder.mkdir(parents=True)
    np.savez_compressed(
        folder / "gsm8k.npz", source=np.uint8(source), target=np.uint8(target)
    )
    order = harness_order(len(questions))
    columns = questions.iloc[order].assign(
        column=range(len(order)), openai_test_index=order, final=""
    )
    columns.to_parquet(folder / "gsm8k_test_questions.parquet")
    if names:
        pd.DataFrame(names, columns=["row", "best", "mismatch", "ties"]).to_csv(
            folder / "model_name_matches.csv"
        )


def test_download_gives_the_table_of_the_folder(gsm8k_server, tmp_path):
    source, target, questions = made_up()
    server = gsm8k_server(npy(source), npy(target), json_lines(questions))
    far = load("gsm8k", cache=tmp_path / "cache", base_url=server.url)
    write_gsm8k(tmp_path / "data", source, target, questions)
    near = load("gsm8k", folder=tmp_path / "data")
    assert near.fingerprint() == far.fingerprint()
    pd.testing.assert_frame_equal(near.items, far.items)
    pd.testing.assert_frame_equal(near.models, far.models)
    names = [(1, "lab/Yi-6B", 0, 1), (2, "a", 0, 2), (3, "b", 1, 1), (5, "L2", 0, 1)]
    write_gsm8k(tmp_path / "named", source, target, questions, names)
    named = load("gsm8k", folder=tmp_path / "named")
    np.testing.assert_array_equal(named.values, far.values)
    pd.testing.assert_frame_equal(named.items, far.items)
    assert list(named.models["part"]) == list(far.models["part"])
    changed = named.models.index != far.models.index
    assert list(np.flatnonzero(changed)) == [1, 5]  # exact and unique matches only
    assert list(named.models["family"].dropna()) == ["yi", "llama"]


def test_column_k_is_question_order_k(gsm8k_server, tmp_path):
    source, target, questions = made_up(n_items=9)
    server = gsm8k_server(npy(source), npy(target), json_lines(questions))
    table = load("gsm8k", cache=tmp_path, base_url=server.url)
    assert list(table.items["steps"]) == list(harness_order(9))  # length i: question i
    assert list(table.items["text"]) == list(questions["question"][harness_order(9)])
    np.testing.assert_array_equal(table.values, np.vstack([source, target]))


def test_folder_wins_and_a_folder_without_the_set_does_not(
    gsm8k_server, tmp_path, monkeypatch
):
    source, target, questions = made_up()
    server = gsm8k_server(npy(source), npy(target), json_lines(questions))
    write_gsm8k(tmp_path / "data", 1 - source, target, questions)
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path / "data"))
    get = partial(load, "gsm8k", cache=tmp_path / "cache", base_url=server.url)
    np.testing.assert_array_equal(get().values[:4], 1 - source)
    assert server.asked == []
    (tmp_path / "other").mkdir()
    np.testing.assert_array_equal(get(tmp_path / "other").values[:4], source)
    assert len(server.asked) == 3
    assert sources.data_sets().loc["gsm8k", "where"] == "BENCHNB_DATA"
    monkeypatch.delenv("BENCHNB_DATA")
    where = sources.data_sets()["where"]
    shipped = where[where == "embedded"].index
    assert where["gsm8k"] == "download" and {"zoo", "swebench_verified"} <= set(shipped)
    elsewhere = where.drop(["gsm8k", *shipped])
    assert set(elsewhere) == {"not here: set BENCHNB_DATA"}


class Trap:
    "Runs code when unpickled"

    def __reduce__(self):
        return (os.mkdir, ("trapped",))


def test_nothing_is_unpickled(gsm8k_server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source, target, questions = made_up()
    trap = np.array([Trap()], dtype=object)
    server = gsm8k_server(npy(trap), npy(target), json_lines(questions))
    with pytest.raises(ValueError, match="no readable .npy file") as error:
        load("gsm8k", cache=tmp_path / "cache", base_url=server.url)
    one_line(error)
    write_gsm8k(tmp_path / "data", source, target, questions)
    np.savez(tmp_path / "data/gsm8k/gsm8k.npz", source=trap, target=target)
    with pytest.raises(ValueError, match="no readable .npz file") as error:
        load("gsm8k", folder=tmp_path / "data")
    one_line(error)
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
        ("questions", b"", "question"),
    ],
)
def test_files_that_do_not_fit(gsm8k_server, tmp_path, part, content, message):
    source, target, questions = made_up()
    files = {"source": npy(source), "target": npy(target)}
    files["questions"] = json_lines(questions)
    server = gsm8k_server(*(files | {part: content}).values())
    with pytest.raises(ValueError, match=message) as error:
        load("gsm8k", cache=tmp_path / "cache", base_url=server.url)
    one_line(error)


# files in a folder


def test_unknown_names_and_sets_that_are_not_here(tmp_path, monkeypatch):
    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    with pytest.raises(ValueError, match="did you mean 'openllm_v1/arc'\\?") as error:
        load("openllm_v1/ark")
    one_line(error)
    with pytest.raises(ValueError, match="no data set '': 'benchnb data' lists all"):
        load("")
    for name, source in sources.SOURCES.iterrows():
        if source.file and name != "gsm8k":
            with pytest.raises(FileNotFoundError) as error:
                load(name, folder=tmp_path)
            for part in (name, source.public, " @ ", "BENCHNB_DATA", source.file):
                assert part in one_line(error)
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path / "slip"))
    for call in (partial(load, "gsm8k"), sources.data_sets):
        with pytest.raises(FileNotFoundError, match="BENCHNB_DATA is .*slip") as error:
            call()
        one_line(error)
    assert len(load("zoo")) > 0  # needs no folder


def test_damaged_npz_never_passes_and_is_named(tmp_path):
    path = tmp_path / "a.npz"
    right = {
        "a": np.arange(40, dtype=np.uint8).reshape(5, 8),
        "b": np.array(["x", "y"]),
    }
    np.savez_compressed(path, **right)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [whole[:n] for n in range(0, len(whole), 7)]
    for at in rng.integers(0, len(whole), 300):
        changed = bytearray(whole)
        changed[at] ^= 1 << rng.integers(8)
        damaged.append(bytes(changed))
    damaged += [b"text", npy(np.zeros(3)), b"PK\x03\x04", whole[9:]]
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            arrays = sources.read_arrays(path, ["a", "b"])
        except ValueError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            refused += 1
        else:  # a flip in a field that nobody reads
            np.testing.assert_array_equal(arrays["a"], right["a"])
            np.testing.assert_array_equal(arrays["b"], right["b"])
    assert refused > 200


def test_damaged_neighbours_of_a_matrix_are_named(tmp_path):
    source, target, questions = made_up()
    write_gsm8k(tmp_path, source, target, questions, [(0, "a", 0, 1)])
    folder = tmp_path / "gsm8k"
    csv, parquet = (
        folder / "model_name_matches.csv",
        folder / "gsm8k_test_questions.parquet",
    )
    csv.write_text("row,best\n0,a\n")
    with pytest.raises(ValueError, match="model_name_matches.csv") as error:
        load("gsm8k", folder=tmp_path)
    one_line(error)
    csv.unlink()
    pd.DataFrame({"column": [0]}).to_parquet(parquet)
    with pytest.raises(ValueError, match="no column 'openai_test_index'") as error:
        load("gsm8k", folder=tmp_path)
    one_line(error)
    parquet.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="gsm8k_test_questions.parquet") as error:
        load("gsm8k", folder=tmp_path)
    one_line(error)
    parquet.unlink()
    with pytest.raises(FileNotFoundError, match="gsm8k_test_questions.parquet"):
        load("gsm8k", folder=tmp_path)


def write_openllm(folder):
    "Six tiny scenarios; every model but the last of each is in all"
    arrays = {}
    for k, name in enumerate(sources.SCENARIOS):
        values = np.array([[1] * (k + 1), [0] * (k + 1), [1] + [255] * k], np.uint8)
        arrays[name] = values
        arrays[f"{name}__models"] = np.array(["lab/Yi-6B", "b", f"only-{name}"])
        arrays[f"{name}__items"] = np.array([f"i{i}" for i in range(k + 1)])
        arrays[f"{name}__full_score"] = np.array([0.1 * k, 0.5, np.nan], np.float32)
    folder = folder / "openllm-v1-union"
    folder.mkdir()
    np.savez_compressed(folder / "openllm_v1_union.npz", **arrays)


def test_openllm_joined_and_alone(tmp_path):
    write_openllm(tmp_path)
    table = load("openllm_v1", folder=tmp_path)
    assert table.shape == (2, 21) and list(table.models.index) == ["lab/Yi-6B", "b"]
    np.testing.assert_allclose(table.items.groupby("task")["weight"].sum(), 1)
    np.testing.assert_allclose(table.models["full_score"], [0.25, 0.5], atol=1e-6)
    assert list(table.models["family"].dropna()) == ["yi"]
    alone = load("openllm_v1/mmlu", folder=tmp_path)
    assert alone.shape == (3, 6) and np.isnan(alone.values).sum() == 5
    assert np.isnan(alone.models["full_score"]["only-mmlu"])
    assert set(alone.items.index) <= set(table.items.index)
    with pytest.raises(ValueError, match="mmlu/i0"):  # an item in two tables
        sources.join_scenarios({"a": alone, "b": alone})


def test_mmlu_pro_with_questions_of_another_order_is_refused(tmp_path):
    folder = tmp_path / "mmlu-pro"
    folder.mkdir()
    matrix = np.array([[1, 255], [0, 1]], np.uint8)
    ids, models = np.array([7, 9], np.int32), np.array(["Yi-6B", "b"])
    np.savez(folder / "mmlu_pro.npz", correct=matrix, models=models, question_id=ids)
    facts = pd.DataFrame(
        {
            "question_id": [7, 9],
            "category": ["law", "health"],
            "src": ["ori_mmlu-jurisprudence", "stemez-Biology"],
            "question": ["Which?", "Who?"],
            "options": [["this", "that"], ["me", "you"]],
        }
    )
    facts.to_parquet(folder / "items.parquet")
    table = load("mmlu_pro", folder=tmp_path)
    assert list(table.items["subject"].fillna("-")) == ["jurisprudence", "-"]
    assert table.items["text"]["mmlu_pro/9"] == "Who?\nme\nyou"
    assert np.isnan(table.values[0, 1])
    facts[::-1].to_parquet(folder / "items.parquet")
    with pytest.raises(ValueError, match="the two files in .* differ") as error:
        load("mmlu_pro", folder=tmp_path)
    one_line(error)


# names


@pytest.mark.parametrize(
    "name, family",
    [
        ("codellama/CodeLlama-34b-hf", "llama"),
        ("Undi95/ReMM-v2.2-L2-13B", "llama"),
        ("Sao10K/WinterGoddess-1.4x-70B-L2", "llama"),
        ("jondurbin/airoboros-l2-7b-gpt4-m2.0", "llama"),
        ("x/XL2-7b", None),
        ("mistralai/Mistral-7B-v0.1", "mistral"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral"),
        ("lab/Mistral-Mixtral-merge", None),
        ("cognitivecomputations/dolphin-2.2", None),
        ("microsoft/phi-2", "phi"),
        ("cloudyu/phi3_x", "phi"),
        ("SkunkworksAI/phixtral", None),
        ("facebook/opt-66b", "opt"),
        ("lab/optimised", None),
        ("facebook/galactica", None),
        ("kyujinpy/PlatYi-34B", None),
        ("", None),
    ],
)
def test_family_by_the_rule(name, family):
    assert sources.family(name) == family


def test_a_model_listed_three_times():
    names = list(sources.named_models(np.array(["b", "a", "b", "b"])).index)
    assert names == ["b", "a", "b #2", "b #3"]


# the real data

DATA = os.environ.get("BENCHNB_DATA", "")
real = pytest.mark.skipif(not DATA, reason="BENCHNB_DATA is not set")


@real
@pytest.mark.parametrize("name", sources.SOURCES.index[1:])
def test_sizes_are_those_of_the_catalogue(name):
    table = load(name)
    size = *table.shape, table.items["task"].nunique()
    assert size == tuple(sources.SOURCES.loc[name, ["models", "items", "tasks"]])
    place = "BENCHNB_DATA" if sources.SOURCES.loc[name, "file"] else "embedded"
    assert sources.data_sets().loc[name, "where"] == place
    complete = (
        "gsm8k",
        "helm",
        "ifeval",
        "musr",
        "mrpc",
        "rte",
        "openllm_v1/hellaswag",
    )
    if name.startswith((*complete, "openllm_v1/mmlu")):
        assert not np.isnan(table.values).any()
    assert 0.1 < table.performance().mean() < 0.8


@real
def test_gsm8k_downloaded_is_gsm8k_from_the_folder(gsm8k_server, tmp_path):
    near = load("gsm8k", folder=DATA)
    half = {
        part: near.values[near.models["part"] == part].astype(np.float64)
        for part in ("source", "target")
    }
    raw = pd.read_parquet(Path(DATA, "gsm8k", "gsm8k_test_questions.parquet"))
    lines = raw.sort_values("openai_test_index")[["question", "answer"]]
    server = gsm8k_server(npy(half["source"]), npy(half["target"]), json_lines(lines))
    far = load("gsm8k", cache=tmp_path, base_url=server.url)
    np.testing.assert_array_equal(far.values, near.values)
    pd.testing.assert_frame_equal(far.items, near.items)
    assert list(far.models["part"]) == list(near.models["part"])


@real
def test_stored_outputs_hold_no_question_of_the_real_data():
    book = ROOT / "nbs/data/sources.ipynb"
    cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
    stored = "".join(str(cell.get("outputs", "")) for cell in cells)
    for text in load("gsm8k").items["text"]:
        assert text[:30] not in stored
