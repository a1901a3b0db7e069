"What the chapter on API models does not show: faults, deadlines, secrets"

import gzip
import json
import logging
import math
import os
import re
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
import urllib.request
from base64 import b64encode
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import numpy as np
import pytest
from helpers.language_models import FEW, TOYS
from helpers.vllm_server import STARTS, tokenizer_like, vllm_like

import benchnb.tasks.api_model as api_model
from benchnb.tasks.api_model import Endpoint
from benchnb.tasks.local_model import LocalModel, small_model
from benchnb.tasks.prompts import FLAN, Task
from benchnb.tasks.transfer import transfer_matrix


@contextmanager
def running(handler):
    "The address of a server on a free port"
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def served(reply):
    "A server on a free port; reply gets the number of the request and its body"
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(sent or b"null")
            seen.append((dict(self.headers), body))
            status, head, data = reply(len(seen), body)
            self.send_response(status)
            for name, value in head.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST  # of a client that follows redirects

        def log_message(self, *_):
            pass

    with running(Handler) as url:
        yield url, seen


def said(text, logprobs=None):
    choice = {"text": text, "logprobs": logprobs}
    answer = {"choices": [choice], "usage": {"total_tokens": 7}}
    return 200, {}, json.dumps(answer).encode()


WORDS = "red green blue pink".split()
PAIRS = [(f"{a} or {b}", a, (a, b)) for a in WORDS for b in WORDS if a != b]
FREE = [(f"{a} or {b}", f"{a} or {b} or {a}") for a in WORDS for b in WORDS if a != b]


@pytest.fixture(scope="module", params=list(STARTS))
def spoken(request):
    "A model whose tokenizer begins a text with a token of its own, or with none"
    tasks = [Task("pairs", PAIRS), Task("free", FREE)]
    texts = [FLAN.context(task, task.examples) for task in tasks]
    tokenizer = tokenizer_like(request.param, [*texts, *WORDS])
    return small_model(texts, spread=0.2, tokenizer=tokenizer)


def letters(count):
    "Questions whose options are the same four letters"
    rng = np.random.default_rng(0)
    texts = (" or ".join(rng.permutation(WORDS)) for _ in range(count))
    return [
        (f"{n} {text}", "ABCD"[n % 4], tuple("ABCD")) for n, text in enumerate(texts)
    ]


@pytest.mark.parametrize("scoring", ["likelihood", "perplexity", "exact"])
def test_an_endpoint_scores_as_the_model_does(spoken, scoring):
    "Tokenizers with a start token and without, answers of one token and of several"
    few = FEW | dict(scoring=scoring, seeds=1, queries=4, limit=1)
    long = [(q, a, (a, f"{a} or {b}", b)) for q, a, (_, b) in PAIRS]
    tasks = [Task("pairs", PAIRS), Task("long", long)]
    with vllm_like(spoken) as (url, seen):
        server = Endpoint(url, "m", workers=2, tokenizer=spoken[1])
        found = transfer_matrix(tasks, server, **few)
    truth = transfer_matrix(tasks, spoken, **few)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-3)
    assert server.tokens == seen["tokens"] and 0 < seen["connections"] <= 2


def test_log_probabilities_are_those_of_the_model(spoken):
    "To 1e-4, and different for the options of a question"
    asks = [(f"Input:\n{q}\nOutput:", tuple(f" {o}" for o in os)) for q, _, os in PAIRS]
    asks += [(q, (*os, f"{os[0]} or{os[1]}")) for q, os in asks[:3]]
    local, context = LocalModel(*spoken), FLAN.context(Task("t", FREE), FREE_SHOWN)
    with vllm_like(spoken) as (url, seen):
        server = Endpoint(url, "m", tokenizer=spoken[1], top=len(spoken[1]))
        found = server.logprobs(server.start(context), asks)
    truth = local.logprobs(local.start(context), asks)
    for one, two in zip(found, truth, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)
        assert np.ptp(one[:, 0]) > 1e-3


FREE_SHOWN = [Task("t", FREE).examples[n] for n in range(3)]


def test_one_request_holds_many_questions_and_a_question_is_one_prompt():
    task = Task("t", letters(67), dev=[("which?", "A"), ("why?", "B"), ("who?", "C")])
    model = small_model([FLAN.context(task, [*task.examples, *task.dev])])
    with vllm_like(model) as (url, seen):
        server = Endpoint(url, "m", workers=3, tokenizer=model[1])
        transfer_matrix([task], server, **FEW | dict(seeds=2))
    assert seen["prompts"] == 2 * 67 and len(seen["bodies"]) == 2 * 3
    assert seen["connections"] <= 3  # kept open from one cell to the next


def test_an_option_that_is_not_shown_is_below_all_that_are(spoken):
    "With one token shown, the best option is known all the same"
    asks = [(f"Input:\n{q}\nOutput:", tuple(f" {o}" for o in os)) for q, _, os in PAIRS]
    local = LocalModel(*spoken)
    with vllm_like(spoken) as (url, _):
        server = Endpoint(url, "m", tokenizer=spoken[1], top=1)
        found = server.logprobs(server.start("Input:\nred"), asks)
    truth = local.logprobs(local.start("Input:\nred"), asks)
    assert [f[:, 0].argmax() for f in found] == [t[:, 0].argmax() for t in truth]
    assert any(np.isinf(f).any() for f in found)


def test_a_server_that_names_no_tokens_is_asked_by_echo(spoken, monkeypatch):
    import helpers.vllm_server as vllm

    plain = vllm.choice_of
    monkeypatch.setattr(
        vllm,
        "choice_of",
        lambda pair, n, p, body: plain(
            pair, n, p, body | {"return_tokens_as_token_ids": False}
        ),
    )
    asks = [(f"Input:\n{q}\nOutput:", tuple(f" {o}" for o in os)) for q, _, os in PAIRS]
    with vllm_like(spoken) as (url, seen):
        server, local = Endpoint(url, "m", tokenizer=spoken[1]), LocalModel(*spoken)
        found = [server.logprobs(server.start("Input:"), asks) for _ in range(2)]
    truth = local.logprobs(local.start("Input:"), asks)
    np.testing.assert_allclose(found, [truth] * 2, atol=1e-4)
    assert seen["prompts"] == 12 + 24 + 24  # once in vain, then never again


def test_answers_that_are_too_few_are_an_error():
    with served(lambda n, body: said("a")) as (url, _):
        with pytest.raises(ValueError, match="answered 1 of 3 prompts .*use prompts=1"):
            quick(url, prompts=3).generate("p", ["a", "b", "c"], 1)


FAULTS = {
    "429": (429, {"Retry-After": "0.01"}, b"{}"),
    "500": (500, {}, b"oops"),
    "garbage": (200, {}, b"<html>gateway</html>"),
    "no choices": (200, {}, b'{"choices": []}'),
    "empty": (200, {}, b""),
    "list": (200, {}, b'[{"choices": []}]'),
    "null": (200, {}, b"null"),
    "null inside": (200, {}, b'{"choices": [null]}'),
    "a number": (200, {}, b'{"choices": [{"text": 7}]}'),
    "NaN": (200, {}, b'{"choices": [{"text": NaN}]}'),
    "words": (200, {}, b'{"choices": "text"}'),
    "long number": (200, {}, b"9" * 5000),
    "nested": (200, {}, b"[" * 200_000),
    "nested objects": (200, {}, b'{"choices":' * 100_000),
    "bad bytes": (200, {}, b'{"choices": [{"text": "\xff\xfe"}]}'),
    "broken off": (200, {}, b'{"choices": [{"text": " re'),
    "shorter than announced": (200, {"Content-Length": "999"}, said(" a")[2]),
    "an error broken off": (500, {"Content-Length": "999"}, b"o"),
    "a refusal broken off": (401, {"Content-Length": "999"}, b"o"),
    "no number of bytes": (200, {"Content-Length": "many"}, b"{}"),
}


def quick(url, **more):
    how = dict(retries=3, wait=0.001, workers=2, prompts=1) | more
    return Endpoint(url, "m", **how)


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
        (dict(url="http://a b"), "url must be .* no blanks"),
        (dict(url="http://me:secret@a", key="k"), "url has a password, and there is"),
        (dict(url="http://me:secret"), "url must be http://"),
        (dict(url="http://me:secret@"), "url must be http://"),
        (dict(url="http://a/v1?key=secret#x"), "url must be http://"),
        (dict(url="http://[secret"), "url must be http://"),
        (dict(url="http://a:99999"), "url must be http://"),
        (dict(url=None), "url must be http://"),
        (dict(url="ftp://a"), "url must be http://"),
    ],
)
def test_a_server_that_cannot_be_asked(change, message):
    with pytest.raises(ValueError, match=message) as error:
        Endpoint(**dict(url="http://localhost:1", model="m") | change)
    assert "\n" not in str(error.value) and "secret" not in told(error.value)


def told(error):
    "All that is printed of an error, with those behind it"
    return "".join(traceback.format_exception(error)) + repr(error)


def test_what_will_not_pass_is_not_tried_again():
    with served(lambda n, body: (404, {}, b'{"error": "no model m"}')) as (url, seen):
        with pytest.raises(
            ValueError, match="HTTP 404: .*no model m.*check url, model"
        ):
            transfer_matrix(TOYS, quick(url, workers=1), **FEW | dict(scoring="exact"))
    assert len(seen) == 1


def test_without_log_probabilities_only_exact_match_is_left(llama):
    with served(lambda n, body: said(" a")) as (url, _):
        for scoring in ("likelihood", "perplexity"):
            server = quick(url, tokenizer=llama[1])
            with pytest.raises(ValueError, match="gives no log-prob.*scoring='exact'"):
                transfer_matrix(TOYS, server, scoring=scoring, **FEW)
            with pytest.raises(ValueError, match="need the tokenizer of the model"):
                transfer_matrix(TOYS, quick(url), scoring=scoring, **FEW)


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
    server = Endpoint(*transformers_serve, retries=2, stop=False, prompts=1)
    local = LocalModel(*llama)
    context = FLAN.context(TOYS[0], TOYS[0].examples[:3])
    queries = [FLAN.query.format(input=e.input) for e in TOYS[1].examples[:4]]
    found = server.generate(server.start(context), queries, 3)
    assert found == local.generate(local.start(context), queries, 3)
    assert server.tokens > 0


def test_a_real_server_gives_a_matrix_by_exact_match(transformers_serve, llama):
    few = FEW | dict(scoring="exact", queries=2, seeds=1, limit=3)
    server = Endpoint(*transformers_serve, retries=2, stop=False, prompts=1)
    found = transfer_matrix(TOYS[:2], server, **few)
    truth = transfer_matrix(TOYS[:2], llama, **few)
    np.testing.assert_array_equal(found.values, truth.values)


def test_a_real_server_without_log_probabilities_says_so(transformers_serve):
    server = Endpoint(*transformers_serve, retries=0, tokenizer=transformers_serve[1])
    with pytest.raises(ValueError, match="use scoring='exact'|HTTP 4"):
        transfer_matrix(TOYS[:2], server, **FEW)


DRIPS = {
    "head": b"HTTP/1.1 200 OK\r\n",
    "body": b"HTTP/1.1 200 OK\r\n\r\n",
    "an error's body": b"HTTP/1.1 500 No\r\n\r\n",
    "a long body": b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n",
}


@contextmanager
def pouring(start, part):
    "A server that sends a start, and then a part again and again; bytes sent"
    sent = [0]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run():
            try:
                while True:
                    link, _ = server.accept()
                    with link:
                        link.recv(9999)
                        link.sendall(start)
                        while True:
                            link.sendall(part)
                            sent[0] += len(part)
                            time.sleep(0.02 if len(part) == 1 else 0)
            except OSError:  # the client is gone, or the test is over
                pass

        threading.Thread(target=run, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", sent


@pytest.mark.parametrize("slow", DRIPS)
def test_the_deadline_covers_the_whole_answer(slow):
    "A server that sends a byte now and then is not waited for"
    with pouring(DRIPS[slow], b"x") as (url, _):
        with pytest.raises(ConnectionError, match="timed out after 0.2 s"):
            quick(url, timeout=0.2, retries=0).ask([{"prompt": "p"}])


LONG_BODIES = {
    "without end": b"HTTP/1.1 200 OK\r\n\r\n",
    "an error without end": b"HTTP/1.1 500 No\r\n\r\n",
    "in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
}


@pytest.mark.parametrize("kind", LONG_BODIES)
def test_an_answer_that_does_not_end_is_cut_off(kind, monkeypatch):
    monkeypatch.setattr(api_model, "LARGEST", 2**20)
    part = (
        b"10000\r\n" + b"x" * 2**16 + b"\r\n" if kind == "in chunks" else b"x" * 2**16
    )
    with pouring(LONG_BODIES[kind], part) as (url, sent):
        with pytest.raises(ValueError, match="sent more than 1 MiB"):
            quick(url).ask([{"prompt": "p"}])
    assert sent[0] < 2**26  # what lies in the buffers of both ends, and no more


def test_an_answer_that_says_it_is_too_large_is_not_read():
    "Not one byte of the body comes"
    with served(lambda n, body: (200, {"Content-Length": str(2**40)}, b"")) as (url, _):
        with pytest.raises(ValueError, match="sent more than 64 MiB"):
            quick(url).ask([{"prompt": "p"}])


@pytest.mark.parametrize("layers", [1, 2])
def test_an_answer_that_is_compressed_is_not_unpacked(layers):
    "A bomb: 20 MB of blanks in 20 kB, and in less when compressed again"
    bomb, seen_by = b" " * (2 * 10**7), []
    for _ in range(layers):
        bomb = gzip.compress(bomb)
    kind = {"Content-Encoding": ", ".join(["gzip"] * layers)}
    with served(lambda n, body: (200, kind, bomb)) as (url, seen):
        tracemalloc.start()
        with pytest.raises(ValueError, match="compresses its answers") as error:
            quick(url).ask([{"prompt": "p"}])
        seen_by.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert "\n" not in str(error.value) and seen_by[0] < 10**7  # half of it
    assert seen[0][0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("place", ["host", "port", "scheme", "itself", "nowhere"])
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_stays_at_home(place, code):
    with served(lambda n, body: said("a")) as (other, elsewhere):
        with served(lambda n, body: (code, {"Location": there}, b"")) as (url, seen):
            itself = f"{url}/v1/completions"
            there = {
                "host": itself.replace("127.0.0.1", "localhost"),
                "port": other,
                "scheme": itself.replace("http:", "https:"),
                "itself": itself,
                "nowhere": "http://[",
            }[place]
            with pytest.raises(ValueError, match=f"HTTP {code}") as error:
                quick(url, key="secret").ask([{"prompt": "p"}])
    assert f"redirects to {there!r}" in str(error.value)
    assert not elsewhere and len(seen) == 1  # it was asked once, and nobody else


SLY = 'x/yzzy "key" + 1'  # JSON, repr and addresses write it in other ways
SECRETS = {
    "key": (lambda url: url, {"key": SLY}),
    "password": (lambda url: url.replace("//", "//me:x%2Fyzzy-word@"), {}),
    "query": (lambda url: url + "?api-version=7-yzzy&api_key=x/yzzy-key", {}),
}
ECHOES = {
    "success": lambda text: (200, {}, json.dumps({"choices": [], "saw": text})),
    "401": lambda text: (401, {"X-Saw": text}, text),
    "401 in JSON": lambda text: (401, {}, json.dumps({"error": {"saw": text}})),
    "401, at the end of what is shown": lambda text: (401, {}, "-" * 185 + text),
    "garbage": lambda text: (200, {"X-Saw": text}, "-" * 70 + text),
    "500": lambda text: (500, {"X-Saw": text}, text),
    "redirect": lambda text: (307, {"Location": f"http://a/{quote(text)}"}, ""),
    "no status line": lambda text: (None, {}, text),
}


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("kind", SECRETS)
def test_no_secret_that_a_server_repeats_is_shown(kind, echo, tmp_path, caplog):
    "Not in the message, the errors behind it, the log, the model's name, the journal"
    journal, few = tmp_path / "journal", FEW | dict(scoring="exact", queries=1)
    address, more = SECRETS[kind]
    caplog.set_level(logging.DEBUG)
    with repeating(lambda n, text: ECHOES[echo](text) if n > 2 else said(" a")) as (
        url,
        seen,
    ):
        server = quick(address(url), workers=1, retries=1, **more)
        with pytest.raises((ValueError, ConnectionError)) as error:
            transfer_matrix(TOYS[:2], server, journal=journal, **few)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir()).decode("latin-1")
    shown = told(error.value) + repr(server) + server.identity() + caplog.text + kept
    given = [line for line in seen if "yzzy" in line or "Basic" in line]
    assert given, "the server was not given the secret"
    for hidden in ("yzzy", "x/", "7-", *(line.split(" ", 2)[-1] for line in given)):
        assert hidden not in shown
    assert "httpcore" in caplog.text  # the log was looked at


@contextmanager
def repeating(reply):
    "A server whose reply gets what it was sent: the address and Authorization"
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            text = " ".join([self.path, self.headers.get("Authorization", "")]).strip()
            seen.append(text)
            status, head, data = reply(len(seen), text)
            if status is None:
                self.wfile.write(text.encode())  # no HTTP
                return
            self.send_response(status, text if status == 500 else None)
            for name, value in head.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data if isinstance(data, bytes) else data.encode())

        def log_message(self, *_):
            pass

    with running(Handler) as url:
        yield url, seen


def test_password_and_query_are_sent_and_stay_when_settings_change():
    with repeating(lambda n, text: said("a")) as (url, seen):
        named = url.replace("//", "//me:hidden@") + "/base?api-version=7&api_key=k"
        server = replace(Endpoint(named, "m", retries=0), workers=1)
        server.ask([{"prompt": "p"}])
    path = "/base/v1/completions?api-version=7&api_key=k"
    assert seen == [f"{path} Basic {b64encode(b'me:hidden').decode()}"]
    shown = f"{url}/base/v1/completions?api-version=***&api_key=***"
    assert server.address == shown and server.identity() == f"{shown} m"
    assert shown in repr(server) and "hidden" not in repr(server)


WRONG = {
    "none": None,
    "NaN": math.nan,
    "infinite": math.inf,
    "minus infinite": -math.inf,
    "text": "-1",
    "yes": True,
    "list": [-1],
    "a probability above 1": 3.5,
    "long": -(10**400),
}


@pytest.mark.parametrize("scoring", ["likelihood", "perplexity"])
@pytest.mark.parametrize("value", WRONG)
def test_a_log_probability_that_is_no_number_is_no_answer(
    value, scoring, tmp_path, llama
):
    def reply(_, body):
        if body.get("echo"):
            return said(
                "",
                {"token_logprobs": [-1] * (len(body["prompt"]) - 1) + [WRONG[value]]},
            )
        shown = {f"token_id:{t}": WRONG[value] for t in body["allowed_token_ids"]}
        return said("", {"top_logprobs": [shown]})

    refused(reply, "as log-probabilities", scoring, tmp_path, llama)


def refused(reply, match, scoring, folder, pair):
    "A matrix is not measured, and no cell of it is kept"
    with served(reply) as (url, _), pytest.raises(ValueError, match=match) as error:
        journal, few = folder / "journal", FEW | dict(scoring=scoring)
        transfer_matrix(TOYS[:2], quick(url, tokenizer=pair[1]), journal=journal, **few)
    assert "\n" not in str(error.value)
    with closing(sqlite3.connect(journal)) as book:
        tables = [name for (name,) in book.execute("SELECT name FROM sqlite_master")]
        rows = [r for t in tables for r in book.execute(f"SELECT * FROM {t}")]
    assert "score" not in str(rows), rows


ODD = {
    "nothing": {},
    "a list": [-1.0],
    "too few numbers": {"token_logprobs": [-1, -1]},
    "too many numbers": {"token_logprobs": [-1] * 999},
    "other tokens": {"tokens": ["token_id:0"] * 999},
    "offsets alone": {"text_offset": [0, 5], "token_logprobs": None},
    "objects": {"text_offset": {"0": 1}, "token_logprobs": {"0": 1}},
    "words": {"text_offset": "abc", "token_logprobs": "abc"},
}


@pytest.mark.parametrize("odd", ODD)
def test_log_probabilities_in_another_form_are_none(odd, tmp_path, llama):
    def reply(_, body):
        size, more = len(body["prompt"]), ODD[odd]
        if odd == "other tokens":
            more = {"tokens": more["tokens"][:size], "token_logprobs": [-1] * size}
        return said("", more)

    refused(reply, "gives no log-probabilities", "likelihood", tmp_path, llama)


@pytest.mark.parametrize(
    "usage", [None, [], "7", 7, {}, *({"total_tokens": t} for t in ("7", math.nan, -1))]
)
def test_a_count_of_tokens_that_is_none_is_not_counted(usage):
    data = json.dumps({"choices": [{"text": "a"}], "usage": usage}).encode()
    with served(lambda n, body: (200, {}, data)) as (url, _):
        server = quick(url)
        server.ask([{"prompt": "p"}])
    assert server.tokens == 0


def noted_pauses(monkeypatch):
    "The pauses of an endpoint, which takes none of them"
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr(api_model.asyncio, "sleep", sleep)
    return pauses


def test_each_pause_is_twice_the_one_before(monkeypatch):
    pauses = noted_pauses(monkeypatch)
    with served(lambda n, body: (500, {}, b"")) as (url, seen):
        with pytest.raises(ConnectionError, match="no answer in 5 tries"):
            quick(url, retries=4, wait=0.5).ask([{"prompt": "p"}])
    assert pauses == [0.5, 1, 2, 4] and len(seen) == 5


def test_as_many_requests_as_workers_are_on_their_way_and_no_more():
    "The server answers once three of them wait, so fewer would never end"
    three, busy, most = threading.Barrier(3), [], []

    def reply(number, body):
        busy.append(number)
        most.append(len(busy))
        three.wait(60)
        busy.remove(number)
        return said("a")

    with served(reply) as (url, seen):
        quick(url, workers=3, timeout=90).ask([{"prompt": "p"}] * 9)
    assert len(seen) == 9 and max(most) == 3


def test_a_prompt_that_is_too_long_is_found_before_the_first_request(llama):
    told = []
    with served(lambda n, body: said("a")) as (url, seen):
        server = quick(url, tokenizer=llama[1], most_tokens=20)
        with pytest.raises(ValueError, match="is too long for the model, .* takes 20"):
            transfer_matrix(TOYS[:1], server, started=told.append, **FEW)
    assert not seen and not told


def test_what_it_will_take_is_told_before_the_first_request_and_comes_true(llama):
    "Questions, prompts and requests; tokens but for those that the server writes"
    told = []
    with vllm_like(llama) as (url, seen):
        server = Endpoint(url, "m", tokenizer=llama[1], prompts=4)
        begun = lambda load: told.append((load, len(seen["bodies"])))  # noqa: E731
        transfer_matrix(TOYS[:2], server, started=begun, **FEW)
    ((load, before),) = told
    assert before == 0 and load.questions == 2 * 2 * 2 * 9
    found = (seen["prompts"], len(seen["bodies"]), seen["tokens"])
    assert found == (load.prompts, load.requests, load.tokens)


@pytest.mark.parametrize("asked", ["inf", "nan", "1e400", "-5", "Fri, 31 Dec 9999"])
def test_no_pause_is_longer_than_five_minutes(asked, monkeypatch):
    pauses = noted_pauses(monkeypatch)
    with served(lambda n, body: (429, {"Retry-After": asked}, b"")) as (url, _):
        with pytest.raises(ConnectionError, match="HTTP 429"):
            quick(url, retries=30).ask([{"prompt": "p"}])
    assert len(pauses) == 30 and 0 < min(pauses) and max(pauses) <= 300


def read_request(link):
    "A whole request; head and body may arrive one after the other"
    data = b""
    while b"\r\n\r\n" not in data:
        data += link.recv(99999)
    head, body = data.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"content-length: (\d+)", head.lower())[1])
    while len(body) < length:
        body += link.recv(99999)


def test_a_connection_that_is_reset_is_tried_again():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run():
            for number in range(2):
                link, _ = server.accept()
                read_request(link)  # what is left unread would reset it too
                if number == 0:  # linger 0: a reset instead of an end
                    off = struct.pack("ii", 1, 0)
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, off)
                else:
                    link.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + said("a")[2])
                link.close()

        threading.Thread(target=run, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert quick(url).ask([{"prompt": "p"}])[0]["choices"][0]["text"] == "a"


def test_an_endpoint_can_be_asked_where_a_loop_is_running():
    import asyncio

    async def inside():
        return quick(url).ask([{"prompt": "p"}] * 3)

    with served(lambda n, body: said("a")) as (url, _):
        assert len(asyncio.run(inside())) == 3
