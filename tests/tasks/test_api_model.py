"What the chapter on API models does not show: faults, deadlines, secrets"

import json
import math
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from helpers.language_models import FEW, LONG, TOYS

import benchnb.tasks.api_model as api_model
from benchnb.tasks.api_model import Endpoint
from benchnb.tasks.local_model import LocalModel
from benchnb.tasks.prompts import FLAN
from benchnb.tasks.transfer import transfer_matrix


@contextmanager
def served(reply):
    "A server on a free port; reply gets the number of the request and its body"
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((dict(self.headers), body))
            status, head, data = reply(len(seen), body)
            self.send_response(status)
            for name, value in head.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def said(text, logprobs=None):
    choice = {"text": text, "logprobs": logprobs}
    answer = {"choices": [choice], "usage": {"total_tokens": 7}}
    return 200, {}, json.dumps(answer).encode()


def echo_of(pair):
    "A server with log-probabilities: the small model behind vLLM's format"
    import torch

    def reply(_, body):
        text, (model, tokenizer) = body["prompt"], pair
        coded = tokenizer(text, return_offsets_mapping=True)
        ids, starts = coded["input_ids"], [a for a, _ in coded["offset_mapping"]]
        with torch.inference_mode():
            steps = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        found = [steps[n - 1, ids[n]].item() for n in range(1, len(ids))]
        more = {"text_offset": [*starts, len(text)]}
        more["token_logprobs"] = [None, *found, -1.0]
        return said(text + " red", more)

    return reply


@pytest.mark.parametrize("scoring", ["likelihood", "perplexity"])
def test_an_endpoint_with_log_probabilities_agrees_with_the_model(llama, scoring):
    few = FEW | dict(scoring=scoring, seeds=1, queries=4)
    with served(echo_of(llama)) as (url, seen):
        server = Endpoint(url, "m", key="secret", workers=2)
        found = transfer_matrix([*TOYS[:2], LONG], server, **few)
        assert server.tokens == 7 * len(seen)
    truth = transfer_matrix([*TOYS[:2], LONG], llama, **few)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-4)
    assert seen[0][0]["Authorization"] == "Bearer secret"
    assert "secret" not in repr(server) + server.identity()


FAULTS = {
    "429": (429, {"Retry-After": "0.01"}, b"{}"),
    "500": (500, {}, b"oops"),
    "garbage": (200, {}, b"<html>gateway</html>"),
    "no choices": (200, {}, b'{"choices": []}'),
    "empty": (200, {}, b""),
}


def quick(url, **more):
    return Endpoint(url, "m", **dict(retries=3, wait=0.001, workers=2) | more)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_is_no_fault(fault):
    def reply(number, body):
        return FAULTS[fault] if number % 2 else said(" a\nb")

    few = FEW | dict(scoring="exact", queries=2)
    with served(reply) as (url, seen):
        found = transfer_matrix(TOYS[:1], quick(url, workers=1), **few)
    assert len(seen) == 8 and 0 <= found.values.min() <= 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_one_clear_line_and_nothing_is_lost(tmp_path, fault):
    journal, few = tmp_path / "cells.journal", FEW | dict(scoring="exact", queries=2)
    with served(lambda n, body: FAULTS[fault] if n > 4 else said(" a")) as (url, _):
        with pytest.raises(ConnectionError, match="no answer in 4 tries") as error:
            transfer_matrix(TOYS[:2], quick(url), journal=journal, **few)
        assert "\n" not in str(error.value)
        assert f"finished cells are in the journal '{journal}'" in str(error.value)
    with served(lambda n, body: said(" a")) as (url, seen):
        server = quick(url)
        server.identity = lambda: journal_of(error)  # the same server, mended
        transfer_matrix(TOYS[:2], server, journal=journal, **few)
    assert len(seen) == 2 * 6


def journal_of(error):
    "The identity of the server that an error names"
    return f"{str(error.value).split()[0]} m"


def test_the_pause_that_a_server_asks_for_is_kept():
    times = []

    def reply(number, body):
        times.append(time.monotonic())
        return (429, {"Retry-After": "0.4"}, b"") if number == 1 else said("a")

    with served(reply) as (url, _):
        assert quick(url).ask([{"prompt": "p"}])[0]["choices"][0]["text"] == "a"
    assert times[1] - times[0] >= 0.4


def test_a_server_that_says_nothing_times_out():
    with served(lambda n, body: time.sleep(1) or said("a")) as (url, seen):
        with pytest.raises(ConnectionError, match="2 tries .*timed out"):
            quick(url, timeout=0.1, retries=1).ask([{"prompt": "p"}])
        time.sleep(1)


def test_no_journal_is_spoken_of_where_none_was_named():
    server = quick("http://127.0.0.1:9", retries=0)
    with pytest.raises(ConnectionError, match="run the same call again$"):
        transfer_matrix(TOYS, server, **FEW | dict(scoring="exact"))


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(retries=-1), "retries must be a whole number of at least 0, got -1"),
        (dict(workers=0), "workers must be a whole number of at least 1, got 0"),
        (dict(workers=1.5), "workers must be a whole number of at least 1, got 1.5"),
        (dict(timeout="a"), "timeout must be a number between 0 and 1e.06, got 'a'"),
        (dict(timeout=0), "timeout must be a number between 0 and 1e.06, got 0"),
        (dict(timeout=None), "timeout must be a number between 0 and 1e.06, got None"),
        (dict(wait=float("nan")), "wait must be a number between 0 and 1e.06, got nan"),
        (dict(key="secret\n"), "^key must be one line of plain ASCII: strip its newl"),
        (dict(key=7), "^key must be one line"),
        (dict(model=""), "model must be a name on the server"),
        (dict(url="http://a b"), "url must be .* without blanks"),
        (dict(url="http://me:secret@a"), "a key goes into key="),
        (dict(url="http://a/v1?key=secret"), "a key goes into key="),
        (dict(url="ftp://a"), "url must be http://"),
    ],
)
def test_a_server_that_cannot_be_asked(change, message):
    with pytest.raises(ValueError, match=message) as error:
        Endpoint(**dict(url="http://localhost:1", model="m") | change)
    assert "\n" not in str(error.value) and "secret" not in str(error.value)


def test_what_will_not_pass_is_not_tried_again():
    with served(lambda n, body: (404, {}, b'{"error": "no model m"}')) as (url, seen):
        with pytest.raises(
            ValueError, match="HTTP 404: .*no model m.*check url, model"
        ):
            transfer_matrix(TOYS, quick(url, workers=1), **FEW | dict(scoring="exact"))
    assert len(seen) == 1


def test_without_log_probabilities_only_exact_match_is_left():
    with served(lambda n, body: said(" a")) as (url, seen):
        for scoring in ("likelihood", "perplexity"):
            with pytest.raises(ValueError, match="gives no log-prob.*scoring='exact'"):
                transfer_matrix(TOYS, quick(url), scoring=scoring, **FEW)
        assert len(seen) == 2  # it is noticed at the first answer


@pytest.fixture(scope="module")
def transformers_serve(llama, tmp_path_factory):
    "transformers serve on a folder, on a free port, ended by its own pid"
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    folder = tmp_path_factory.mktemp("served")
    for part in llama:
        part.save_pretrained(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", code, "serve", str(folder), "--port", str(port)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    with open(folder / "log.txt", "w") as log:
        server = subprocess.Popen(
            [*command, "--device", "cpu"], env=environment, stdout=log, stderr=log
        )
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + 90
    try:
        while server.poll() is None and time.monotonic() < until:
            try:
                urllib.request.urlopen(f"{url}/health", timeout=2)
                break
            except OSError:
                time.sleep(0.2)
        else:
            pytest.fail((folder / "log.txt").read_text()[-2000:])
        yield url, str(folder)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def test_a_real_server_writes_what_the_model_writes(transformers_serve, llama):
    server = Endpoint(*transformers_serve, workers=2, retries=2, stop=False)
    local = LocalModel(*llama)
    context = FLAN.context(TOYS[0], TOYS[0].examples[:3])
    queries = [FLAN.query.format(input=e.input) for e in TOYS[1].examples[:4]]
    found = server.generate(server.start(context), queries, 3)
    assert found == local.generate(local.start(context), queries, 3)
    assert server.tokens > 0


def test_a_real_server_gives_a_matrix_by_exact_match(transformers_serve, llama):
    few = FEW | dict(scoring="exact", queries=2, seeds=1, limit=3)
    server = Endpoint(*transformers_serve, workers=2, retries=2, stop=False)
    found = transfer_matrix(TOYS[:2], server, **few)
    truth = transfer_matrix(TOYS[:2], llama, **few)
    np.testing.assert_array_equal(found.values, truth.values)


def test_a_real_server_without_log_probabilities_says_so(transformers_serve):
    server = Endpoint(*transformers_serve, retries=0)
    with pytest.raises(ValueError, match="use scoring='exact'|HTTP 4"):
        transfer_matrix(TOYS[:2], server, **FEW)


@pytest.mark.parametrize("slow", ["head", "body"])
def test_the_deadline_covers_the_whole_answer(slow):
    "A server that sends a byte now and then is not waited for"
    start = b"HTTP/1.1 200 OK\r\n" + (b"\r\n" if slow == "body" else b"")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            link, _ = server.accept()
            with link:
                link.recv(9999)
                link.sendall(start)
                while True:
                    link.sendall(b"x")
                    time.sleep(0.05)

        def run():
            try:
                drip()
            except OSError:  # the client is gone
                pass

        threading.Thread(target=run, daemon=True).start()
        url, began = f"http://127.0.0.1:{server.getsockname()[1]}", time.monotonic()
        with pytest.raises(ConnectionError, match="timed out after 0.5 s"):
            quick(url, timeout=0.5, retries=0).ask([{"prompt": "p"}])
        assert time.monotonic() - began < 2


def test_an_answer_that_does_not_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(api_model, "LARGEST", 2**20)
    with served(lambda n, body: (200, {}, b"x" * 2**21)) as (url, _):
        with pytest.raises(ValueError, match="sent more than 1 MiB"):
            quick(url).ask([{"prompt": "p"}])


def test_a_redirect_is_not_followed_and_the_key_stays_at_home():
    with served(lambda n, body: said("a")) as (other, seen):
        with served(lambda n, body: (307, {"Location": other}, b"")) as (url, _):
            with pytest.raises(ValueError, match="HTTP 307"):
                quick(url, key="secret").ask([{"prompt": "p"}])
    assert not seen


def test_a_key_that_the_server_repeats_is_not_shown():
    with served(lambda n, body: (401, {}, b"wrong key secret")) as (url, _):
        with pytest.raises(ValueError, match=r"HTTP 401: wrong key \*\*\*") as error:
            quick(url, key="secret").ask([{"prompt": "p"}])
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("value", [None, math.nan, -math.inf, "-1"])
def test_a_log_probability_that_is_no_number_is_no_answer(value):
    def reply(_, body):
        text = body["prompt"]
        return said(
            text, dict(text_offset=[0, len(text) - 1], token_logprobs=[-1, value])
        )

    with served(reply) as (url, _), pytest.raises(ValueError, match="as log-probab"):
        quick(url).logprobs("Input:", [("red or blue", (" red", " blue"))])


def test_an_endpoint_can_be_asked_where_a_loop_is_running():
    import asyncio

    async def inside():
        return quick(url).ask([{"prompt": "p"}] * 3)

    with served(lambda n, body: said("a")) as (url, _):
        assert len(asyncio.run(inside())) == 3
