"A server that answers as vLLM does, and tokenizers that begin a text in several ways"

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STARTS = {"none": None, "llama3": "<|begin_of_text|>", "llama2": "<s>"}


def tokenizer_like(kind, texts):
    "Words with their blank before them; llama2 marks blanks, and drops the first"
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    start, old = STARTS[kind], kind == "llama2"
    parts = {p for text in texts for p in re.findall(r"\n| ?[^\s]+| ", text)}
    parts |= {p.strip(" ") for p in parts} | {" " + p.strip(" ") for p in parts}
    words = sorted({p.replace(" ", "▁") if old else p for p in parts} - {""})
    named = ["<unk>", "<eos>", *words, *([start] if start else [])]
    known = {word: n for n, word in enumerate(named)}
    core = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
    cut = pre_tokenizers.Split(Regex(r"\n| ?[^\s]+| "), "isolated")
    if old:
        blanks = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        marked = pre_tokenizers.Split(Regex(r"\n|▁?[^\s▁]+|▁"), "isolated")
        core.pre_tokenizer = pre_tokenizers.Sequence([blanks, marked])
        core.decoder = decoders.Metaspace(prepend_scheme="first")
    else:
        core.pre_tokenizer, core.decoder = cut, decoders.Fuse()
    if start:
        special = [(start, known[start])]
        core.post_processor = TemplateProcessing(f"{start} $A", special_tokens=special)
    more = dict(unk_token="<unk>", eos_token="<eos>", bos_token=start)
    return PreTrainedTokenizerFast(tokenizer_object=core, **more)


def completion_logprobs(tokenizer, ids, shown, count, numbers):
    "As vLLM's _create_completion_logprobs: offsets are sums of decoded lengths"
    found = {"text_offset": [], "token_logprobs": [], "tokens": [], "top_logprobs": []}
    length = 0

    def name(token):
        return f"token_id:{token}" if numbers else tokenizer.decode([token])

    for token, top in zip(ids, shown, strict=True):
        before = found["text_offset"][-1] if found["text_offset"] else 0
        found["text_offset"].append(before + length)
        length = len(name(token))
        found["tokens"].append(name(token))
        found["token_logprobs"].append(None if top is None else top[token])
        kept = None if top is None else list(top.items())[: count + 1]
        found["top_logprobs"].append(kept and {name(t): v for t, v in kept})
    return found


def choice_of(pair, number, prompt, body):
    "One choice of an answer"
    import torch

    model, tokenizer = pair
    ids = tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else prompt
    with torch.inference_mode():
        steps = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    allowed = torch.zeros_like(steps[-1])
    if "allowed_token_ids" in body:  # it binds what is written, not what is shown
        allowed += -torch.inf
        allowed[body["allowed_token_ids"]] = 0
    new, count = int((steps[-1] + allowed).argmax()), body.get("logprobs") or 0
    tokens = [*ids, new] if body.get("echo") else [new]
    at = range(-1, len(ids)) if body.get("echo") else [len(ids) - 1]
    pairs = zip(at, tokens, strict=True)
    shown = [None if n < 0 else top_of(steps[n], t, count) for n, t in pairs]
    numbers = body.get("return_tokens_as_token_ids", False)
    logs = completion_logprobs(tokenizer, tokens, shown, count, numbers)
    text = tokenizer.decode([new])
    if body.get("echo"):
        text = (prompt if isinstance(prompt, str) else tokenizer.decode(ids)) + text
    return {"index": number, "text": text, "logprobs": logs if count else None}


def top_of(step, token, count):
    "The token itself, then the likeliest"
    best = step.topk(min(count, len(step))).indices.tolist()
    return {t: step[t].item() for t in [token, *best]}


@contextmanager
def serving(handler):
    "The address of a server with this handler"
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def vllm_like(pair):
    "The address of a server, and what it has seen: bodies and connections"
    seen = {"bodies": [], "connections": 0, "prompts": 0, "tokens": 0}
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open

        def setup(self):
            super().setup()
            seen["connections"] += 1

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            many = body["prompt"]
            alone = isinstance(many, str) or isinstance(many[0], int)
            many = [many] if alone else many
            with lock:
                choices = [choice_of(pair, n, p, body) for n, p in enumerate(many)]
                seen["bodies"].append(body)
                seen["prompts"] += len(many)
                seen["tokens"] += sum(map(len, many))
            usage = {"total_tokens": sum(map(len, many))}
            data = json.dumps({"choices": choices, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with serving(Handler) as url:
        yield url, seen
