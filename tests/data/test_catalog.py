"Fetching from a hub: a local server that counts what is asked of it"

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchnb.data import sources
from benchnb.data.sources import CATALOG, fetch_source, plan_fetch
from benchnb.harnesses.harness import import_logs

constants = pytest.importorskip("huggingface_hub.constants")
COMMIT = "0123456789" * 4


class Hub(BaseHTTPRequestHandler):
    "The few answers of the hub that a fetch asks for"

    def log_message(self, *args):
        pass

    def say(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server, span = self.server, self.headers.get("Range")
        server.asked.append((self.command, self.path, span))
        if self.path.startswith("/api/"):
            entries = [
                {"path": name, "rfilename": name, "type": "file", "size": len(data)}
                | {"oid": "x", "blobId": "x", "lfs": server.lfs(name, data)}
                for name, data in server.files.items()
            ]
            about = {"id": "kensho/WILD", "sha": COMMIT, "siblings": entries}
            tree = "/tree/" in self.path
            return self.say(200, json.dumps(entries if tree else about).encode())
        data = server.files[self.path.rpartition(f"{COMMIT}/")[2].partition("?")[0]]
        tag = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X_Repo_Commit": COMMIT}
        tag |= {"X_Linked_Size": str(len(data)), "Accept_Ranges": "bytes"}
        if span is None:
            return self.say(200, data, **tag)
        first, last = re.match(r"bytes=(\d+)-(\d*)", span).groups()
        self.say(206, data[int(first) : int(last or len(data)) + 1], **tag)


def about(data, wrong):
    "What the hub knows of a large file"
    digest = hashlib.sha256(data).hexdigest()
    known = {"oid": digest, "size": len(data), "pointerSize": 1}
    return known | {"sha256": "0" * 64 if wrong else digest}


@pytest.fixture
def server(monkeypatch):
    "A hub with one data set of two files"
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    columns = {name: ["a"] * 500 for name in ("model", "task")}
    columns |= {"item_id": np.arange(500), "score": np.arange(500) % 2.0}
    columns |= dict.fromkeys(("input_tokens", "output_tokens"), np.ones(500))
    texts = np.random.default_rng(0).bytes(500 * 400).hex()
    columns["answer"] = [texts[800 * n : 800 * (n + 1)] for n in range(500)]
    place = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), place, row_group_size=100)
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as httpd:
        httpd.url = f"http://127.0.0.1:{httpd.server_port}"
        httpd.files = {"data.parquet": place.getvalue().to_pybytes(), "README.md": b"x"}
        httpd.asked, httpd.wrong = [], False
        httpd.lfs = lambda name, data: about(data, httpd.wrong)
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


def test_only_the_columns_are_fetched(server, tmp_path):
    plan = plan_fetch("wild", endpoint=server.url)
    assert plan.revision == COMMIT and list(plan.files) == ["data.parquet"]
    assert "Apache 2.0" in str(plan) and "0.4 MB" in str(plan)
    assert not [path for _, path, _ in server.asked if "resolve" in path]
    (path,) = fetch_source(plan, tmp_path, server.url)
    spans = [span.split("=")[1].split("-") for _, _, span in server.asked if span]
    size = sum(int(last) - int(first) + 1 for first, last in spans)
    assert size < 0.3 * plan.files["data.parquet"][0]
    assert "answer" not in pq.read_schema(path).names
    scores = import_logs("wild", tmp_path)
    assert scores.shape == (1, 500) and scores.values.mean() == 0.5
    server.asked.clear()
    assert fetch_source(plan, tmp_path, server.url) == [path] and not server.asked


def test_a_whole_file_is_compared_with_its_checksum(server, tmp_path, monkeypatch):
    whole = CATALOG.loc[["wild"]].assign(columns="")
    monkeypatch.setattr(sources, "CATALOG", whole)
    plan = plan_fetch("wild", endpoint=server.url)
    (path,) = fetch_source(plan, tmp_path, server.url)
    assert path.read_bytes() == server.files["data.parquet"]
    server.wrong = True
    other = plan_fetch("wild", endpoint=server.url)
    with pytest.raises(ValueError, match="SHA-256 differs"):
        fetch_source(other, tmp_path / "other", server.url)
    assert not list((tmp_path / "other").rglob("data.parquet"))


def test_a_fetch_that_failed_goes_on(server, tmp_path):
    server.files["data-2.parquet"] = server.files["data.parquet"]
    plan = plan_fetch("wild", endpoint=server.url)
    second = server.files.pop("data-2.parquet")
    with pytest.raises(OSError, match="import that folder as wild"):
        fetch_source(plan, tmp_path, server.url)
    server.files["data-2.parquet"] = second
    server.asked.clear()
    assert len(fetch_source(plan, tmp_path, server.url)) == 2
    assert not [path for _, path, _ in server.asked if path.endswith("/data.parquet")]


def test_offline_the_error_names_the_place_of_the_files(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(OSError) as caught:
        plan_fetch("openeval", "ifeval")
    said = str(caught.value)
    assert "\n" not in said and "huggingface.co/datasets/Open-Eval-Commons" in said
    assert "import that folder as openeval" in said


@pytest.mark.parametrize("name", ["data/../../../x.parquet", "data\\..\\x.parquet"])
def test_a_file_of_the_hub_stays_in_the_folder(server, name):
    server.files[name] = server.files["data.parquet"]
    with pytest.raises(ValueError, match="leads out of the folder: not fetched"):
        plan_fetch("wild", endpoint=server.url)


def test_a_commit_that_is_a_path_is_refused(server, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "COMMIT", f"{tmp_path}/out")
    with pytest.raises(ValueError, match="no commit: not fetched"):
        plan_fetch("wild", endpoint=server.url)
