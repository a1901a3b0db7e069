"What the chapter on API models does not show: faults, deadlines, secrets"

import gzip
import json
import logging
import math
import socket
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import numpy as np
import pytest
from helpers.language_models import FEW, TOYS
from helpers.vllm_server import STARTS, serving, tokenizer_like, vllm_like

import benchnb.bento.api_model as api_model
from benchnb.bento.api_model import Endpoint
from benchnb.bento.local_model import LocalModel, make_small_model
from benchnb.bento.prompts import FLAN, Task
from benchnb.bento.transfer import journal_cells, transfer_matrix


@contextmanager
def served(reply):
    "A server on a free port; reply gets the number of the request, its body and head"
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append((dict(self.headers), json.loads(sent or b"null")))
            status, head, data = reply(len(seen), *seen[-1][::-1])
            self.send_response(status)
            for name, value in head.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST  # of a client that follows redirects

        def log_message(self, *_):
            pass

    with serving(Handler) as url:
        yield url, seen


def written(text, logprobs=None):
    choice = {"text": text, "logprobs": logprobs}
    return 200, {}, json.dumps({"choices": [choice]}).encode()


def printed(error):
    "All that is printed of an error, with those behind it"
    return "".join(traceback.format_exception(error)) + repr(error)


def quick(url, **more):
    how = dict(retries=3, wait=0.001, workers=2, prompts=1) | more
    return Endpoint(url, "m", **how)


WORDS = "red green blue pink".split()
PAIRS = [(f"{a} or {b}", a, (a, b)) for a in WORDS for b in WORDS if a != b]
ASKS = [(f"Input:\n{q}\nOutput:", tuple(f" {o}" for o in os)) for q, _, os in PAIRS]


@pytest.fixture(scope="module", params=list(STARTS))
def spoken(request):
    "A model whose tokenizer begins a text with a token of its own, or with none"
    texts = [FLAN.context(task, task.examples) for task in [Task("pairs", PAIRS)]]
    tokenizer = tokenizer_like(request.param, [*texts, *WORDS])
    return make_small_model(texts, spread=0.2, tokenizer=tokenizer)


@pytest.mark.parametrize("scoring", ["likelihood", "perplexity", "last_character"])
def test_an_endpoint_scores_as_the_model_does(spoken, scoring):
    "Tokenizers with a start token and without, answers of one token and of several"
    few = FEW | dict(scoring=scoring, seeds=1, queries=4)
    long = [(q, a, (a, f"{a} or {b}", b)) for q, a, (_, b) in PAIRS]
    tasks = [Task("pairs", PAIRS), Task("long", long)]
    with vllm_like(spoken) as (url, seen):
        server = Endpoint(url, "m", workers=2, tokenizer=spoken[1])
        found = transfer_matrix(tasks, server, **few)
    truth = transfer_matrix(tasks, spoken, **few)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-3)
    assert 0 < seen["connections"] <= 2  # kept open from one cell to the next


@pytest.mark.parametrize("top", [1, None])
def test_log_probabilities_are_those_of_the_model(spoken, top):
    "With one token shown, the best option is known all the same"
    asks = ASKS + [(q, (*os, f"{os[0]} or{os[1]}")) for q, os in ASKS[:3]]
    local = LocalModel(*spoken)
    with vllm_like(spoken) as (url, _):
        server = Endpoint(url, "m", tokenizer=spoken[1], top=top or len(spoken[1]))
        found = server.logprobs(server.start("Input:\nred"), asks)
    truth = local.logprobs(local.start("Input:\nred"), asks)
    assert [f[:, 0].argmax() for f in found] == [t[:, 0].argmax() for t in truth]
    for one, two in zip(found, truth, strict=True):
        shown = np.isfinite(one)
        np.testing.assert_allclose(one[shown], two[shown], atol=1e-4)
        assert shown.all() or top


def test_a_server_that_names_no_tokens_is_asked_by_echo(spoken, monkeypatch):
    import helpers.vllm_server as vllm

    plain, silent = vllm.choice_of, {"return_tokens_as_token_ids": False}
    monkeypatch.setattr(vllm, "choice_of", lambda *a: plain(*a[:3], a[3] | silent))
    with vllm_like(spoken) as (url, seen):
        server, local = Endpoint(url, "m", tokenizer=spoken[1]), LocalModel(*spoken)
        found = [server.logprobs(server.start("Input:"), ASKS) for _ in range(2)]
    truth = local.logprobs(local.start("Input:"), ASKS)
    np.testing.assert_allclose(found, [truth] * 2, atol=1e-4)
    assert seen["prompts"] == 12 + 24 + 24  # once in vain, then never again


def test_the_workload_comes_true(llama):
    "Questions, prompts and requests; tokens but for those that the server writes"
    loads = []
    with vllm_like(llama) as (url, seen):
        server = Endpoint(url, "m", tokenizer=llama[1], prompts=4)
        begun = lambda load: loads.append((load, len(seen["bodies"])))  # noqa: E731
        transfer_matrix(TOYS[:2], server, started=begun, **FEW)
    ((load, before),) = loads
    assert before == 0 and load.questions == 2 * 2 * 2 * 9
    found = (seen["prompts"], len(seen["bodies"]), seen["tokens"])
    assert found == (load.prompts, load.requests, load.tokens)


BOMB = gzip.compress(b" " * (2 * 10**7))
FAULTS = {
    "429": (429, {"Retry-After": "0.01"}, b"{}"),
    "500": (500, {}, b"oops"),
    "garbage": (200, {}, b"<html>gateway</html>"),
    "null inside": (200, {}, b'{"choices": [null]}'),
    "nested": (200, {}, b"[" * 200_000),
    "shorter than announced": (200, {"Content-Length": "999"}, written(" a")[2]),
    "a refusal broken off": (401, {"Content-Length": "999"}, b"o"),
    "a bomb": (200, {"Content-Encoding": "gzip"}, BOMB),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_is_none_and_one_that_stays_loses_nothing(tmp_path, fault):
    journal, few = tmp_path / "cells.journal", FEW | dict(scoring="exact", queries=2)

    def reply(number, *_):
        passes = number in (1, 3)
        return FAULTS[fault] if passes or number > 6 else written(" a")

    with served(reply) as (url, seen):
        tracemalloc.start()
        with pytest.raises(ConnectionError, match="no answer in 4 tries") as error:
            transfer_matrix(TOYS[:2], quick(url, workers=1), journal=journal, **few)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert "\n" not in str(error.value)
    assert len(seen) == 6 + 4 and len(journal_cells(journal)) == 2
    assert peak < 10**7  # half of the bomb


def test_pauses_double_and_are_what_the_server_asks_for(monkeypatch):
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr(api_model.asyncio, "sleep", sleep)
    heads = ["", "0.7", "999", "nan", "Fri, 31 Dec 9999", "-5", ""]
    with served(lambda n, *_: (429, {"Retry-After": heads[n - 1]}, b"")) as (url, seen):
        with pytest.raises(ConnectionError, match="no answer in 7 tries .HTTP 429"):
            quick(url, retries=6, wait=0.25).ask([{"prompt": "p"}])
    assert pauses == [0.25, 0.7, 300, 2, 4, 8] and len(seen) == 7


def test_as_many_requests_as_workers_are_on_their_way_and_no_more():
    "The server answers once three of them wait, so fewer would never end"
    three, busy, most = threading.Barrier(3), [], []

    def reply(number, *_):
        busy.append(number)
        most.append(len(busy))
        three.wait(60)
        busy.remove(number)
        return written("a")

    with served(reply) as (url, seen):
        quick(url, workers=3, timeout=90).ask([{"prompt": "p"}] * 9)
    assert len(seen) == 9 and max(most) == 3


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


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 500 No\r\n\r\n"])
def test_the_deadline_covers_the_whole_answer(start):
    "A server that sends a byte now and then, of its head or its body"
    with pouring(start, b"x") as (url, _):
        with pytest.raises(ConnectionError, match="timed out after 0.2 s"):
            quick(url, timeout=0.2, retries=0).ask([{"prompt": "p"}])


def test_an_answer_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(api_model, "LARGEST", 2**20)
    with pouring(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 2**16) as (url, sent):
        with pytest.raises(ValueError, match="sent over 1 MiB"):
            quick(url).ask([{"prompt": "p"}])
    assert sent[0] < 2**26  # what lies in the buffers of both ends, and no more


KEY = 'x/yzzy "key" + 1'


@pytest.mark.parametrize("place", ["host", "port", "itself"])
@pytest.mark.parametrize("code", [301, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_reaches_no_other_host(place, code):
    with served(lambda *_: written("a")) as (other, elsewhere):
        with served(lambda *_: (code, {"Location": there}, b"")) as (url, seen):
            itself = f"{url}/v1/completions"
            there = itself.replace("127.0.0.1", "localhost")
            there = {"host": there, "port": other, "itself": itself}[place]
            with pytest.raises(ValueError, match=f"redirects .HTTP {code}"):
                quick(url, key=KEY).ask([{"prompt": "p"}])
    assert not elsewhere and len(seen) == 1  # it was asked once, and nobody else
    assert seen[0][0]["Authorization"] == f"Bearer {KEY}"


REPEATS = {  # what a server does with the key that it was given
    "success": lambda key: (200, {}, json.dumps({"choices": [], "saw": key}).encode()),
    "401": lambda key: (401, {"X-Saw": key}, key.encode()),
    "redirect": lambda key: (307, {"Location": "http://a/?yzzy"}, b""),
    "no HTTP": lambda key: (f"yzzy {key}", {}, b""),
    "log-probabilities": lambda key: written("", {"token_logprobs": [key] * 999}),
}


@pytest.mark.parametrize("kind", REPEATS)
def test_no_secret_that_a_server_repeats_is_in_a_message(kind, tmp_path, caplog, llama):
    caplog.set_level(logging.INFO)
    scoring = "perplexity" if kind == "log-probabilities" else "exact"
    journal, few = tmp_path / "journal", FEW | dict(scoring=scoring, queries=1)
    with served(lambda n, body, head: REPEATS[kind](head["Authorization"])) as (url, _):
        server = quick(url, key=KEY, retries=1, tokenizer=llama[1])
        with pytest.raises((ValueError, ConnectionError)) as error:
            transfer_matrix(TOYS[:2], server, journal=journal, **few)
    shown = printed(error.value) + repr(server) + server.identity() + caplog.text
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert "yzzy" not in shown and b"yzzy" not in kept and url in shown


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(wait=math.nan), "wait must be a number between 0 and 300, got nan"),
        (dict(key="secret\n"), "^key must be one line of plain ASCII: strip its newl"),
        (dict(url="http://me:secret@a"), "url must be http://"),
        (dict(url="http://a/v1?key=secret"), "url must be http://"),
        (dict(url="ftp://a"), "url must be http://"),
    ],
)
def test_a_server_that_cannot_be_asked(change, message):
    with pytest.raises(ValueError, match=message) as error:
        Endpoint(**dict(url="http://localhost:1", model="m") | change)
    assert "\n" not in str(error.value) and "secret" not in printed(error.value)


def test_what_will_not_pass_is_not_tried_again():
    with served(lambda *_: (404, {}, b"{}")) as (url, seen):
        with pytest.raises(ValueError, match="HTTP 404.*check url, model and key"):
            transfer_matrix(TOYS, quick(url, workers=1), **FEW | dict(scoring="exact"))
    assert len(seen) == 1


def of_prompt(value):
    "What a server sends for a prompt whose last token has this log-probability"
    return lambda size: {"last": value, "token_logprobs": [-1] * (size - 1) + [value]}


ODD = {
    "NaN": of_prompt(math.nan),
    "text": of_prompt("-1"),
    "a probability above 1": of_prompt(3.5),
    "too few numbers": lambda size: {"token_logprobs": [-1, -1]},
    "objects": lambda size: {"token_logprobs": {"0": 1}},
    "other tokens": lambda n: {
        "tokens": ["token_id:0"] * n,
        "token_logprobs": [-1] * n,
    },
}


@pytest.mark.parametrize("scoring", ["likelihood", "perplexity"])
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_log_probability_is_no_answer(odd, scoring, tmp_path, llama):
    "A matrix is not measured, and no cell of it is kept"

    def reply(_, body, head):
        logs = ODD[odd](len(body["prompt"]))
        if not body.get("echo") and "last" in logs:
            names = [f"token_id:{token}" for token in body["allowed_token_ids"]]
            logs = {"top_logprobs": [dict.fromkeys(names, logs["last"])]}
        return written("", logs)

    journal, few = tmp_path / "journal", FEW | dict(scoring=scoring)
    with served(reply) as (url, _):
        server = quick(url, tokenizer=llama[1])
        with pytest.raises(ValueError, match="gives no log-probabilities") as error:
            transfer_matrix(TOYS[:2], server, journal=journal, **few)
    assert "\n" not in str(error.value) and not journal.exists()


def test_an_endpoint_can_be_asked_where_a_loop_is_running():
    import asyncio

    async def inside():
        return quick(url).ask([{"prompt": "p"}] * 3)

    with served(lambda *_: written("a")) as (url, _):
        assert len(asyncio.run(inside())) == 3


@pytest.mark.slow
def test_a_real_server_writes_what_the_model_writes(llama, tmp_path):
    "transformers serve on a folder; the endpoint's own tries wait until it is up"
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    for part in llama:
        part.save_pretrained(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    code = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", code, "serve", str(tmp_path), "--device", "cpu"]
    context = FLAN.context(TOYS[0], TOYS[0].examples[:3])
    queries = [FLAN.query.format(input=e.input) for e in TOYS[1].examples[:4]]
    local, given = LocalModel(*llama), (url, str(tmp_path))
    server = Endpoint(*given, retries=8, stop=False, prompts=1)
    named = Endpoint(*given, retries=0, tokenizer=str(tmp_path))
    with subprocess.Popen([*command, "--port", url.split(":")[-1]]) as process:
        try:
            found = server.generate(server.start(context), queries, 3)
            with pytest.raises(ValueError, match="use scoring='exact'|HTTP 4"):
                transfer_matrix(TOYS[:2], named, **FEW)
        finally:
            process.kill()
    assert found == local.generate(local.start(context), queries, 3)


@pytest.mark.parametrize("change", ["reply", "tokenizer"])
def test_a_journal_goes_on_with_its_model_and_tokenizer_only(change, tmp_path, llama):
    "One name on the server, but other weights behind it"
    journal, few = tmp_path / "a.journal", FEW | dict(scoring="exact", queries=1)

    def reply(number, *_):
        later = number > 3 and change == "reply"
        answer = {"choices": [{"text": "a"}], "model": "other" if later else "one"}
        return (500, {}, b"") if number == 3 else (200, {}, json.dumps(answer).encode())

    texts = [(KEY * n) for n in range(9)]
    other = tokenizer_like(list(STARTS)[0], texts) if change == "tokenizer" else None
    with served(reply) as (url, seen):
        for tokenizer in (llama[1], other or llama[1]):
            server = quick(url, workers=1, retries=0, tokenizer=tokenizer)
            with pytest.raises((ConnectionError, ValueError)) as error:
                transfer_matrix(TOYS[:2], server, journal=journal, **few)
    wanted = {"reply": "name another model", "tokenizer": "of another computation"}
    assert wanted[change] in str(error.value) and "\n" not in str(error.value)
    assert len(journal_cells(journal)) == 2


def test_a_filtered_answer_is_no_answer(tmp_path):
    choice = {"text": "", "finish_reason": "content_filter"}
    data = json.dumps({"choices": [choice]}).encode()
    journal, few = tmp_path / "a.journal", FEW | dict(scoring="exact", queries=1)
    with served(lambda *_: (200, {}, data)) as (url, seen):
        with pytest.raises(ValueError, match="filters a question or its answer"):
            transfer_matrix(TOYS[:2], quick(url, workers=1), journal=journal, **few)
    assert len(seen) == 1 and not journal.exists()
