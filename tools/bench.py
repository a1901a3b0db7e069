"""Report how fast the library is: `make bench`, or this file with names of rows

Each measurement runs in a process of its own, on one processor unless it says so.
Times are CPU seconds without the making of the data; memory is the peak of the process.
A report, not a test: nothing here fails because a machine is slow."""

import json
import os
import resource
import subprocess
import sys
import time
import warnings

SIZE = {"models": 1000, "items": 100_000, "budget": 100}


def gsm8k_or_like():
    "GSM8K's halves; without the data a made-up table of the same size"
    import numpy as np

    from benchnb.data.scores import Scores
    from benchnb.data.sources import load

    try:
        return load("gsm8k").split("given")
    except (ValueError, OSError):
        scores = made_up(150, 1319)
        part = np.arange(150) % 2 == 0
        return scores.select(models=part), Scores(scores.values[~part])


def made_up(models, items, seed=0):
    "Right and wrong answers from abilities, difficulties and two hidden skills"
    import numpy as np

    from benchnb.data.scores import Scores

    rng = np.random.default_rng(seed)
    skill = rng.normal(size=(models, 3)).astype(np.float32)
    need = rng.normal(size=(3, items)).astype(np.float32)
    logit = skill[:, :1] * 1.5 + 0.7 * skill[:, 1:] @ need[1:] + 1.5 * need[:1]
    chance = rng.random((models, items), dtype=np.float32)
    return Scores((chance < 1 / (1 + np.exp(-logit))).astype(np.float32))


def cpu(work):
    "CPU seconds of a piece of work"
    start = time.process_time()
    work()
    return time.process_time() - start


def tailored_trial(budget):
    "One trial of TailoredBench as published: 75 targets of GSM8K"
    from benchnb.evaluation.simulate import ready, simulate
    from benchnb.methods.tailored_bench import TailoredBench

    source, target = gsm8k_or_like()
    method = TailoredBench(transductive=True).fit(source)
    simulate(ready(method, budget, 99), target.select(models=[0, 1]))  # warm up
    return cpu(lambda: simulate(method, target, budget, seed=0))


def large(name):
    "1,000 sources x 100,000 items at budget 100: fit, prepare and one target"
    from benchnb.evaluation.registry import get_method
    from benchnb.evaluation.simulate import simulate

    table = made_up(SIZE["models"] + 1, SIZE["items"])
    source, target = table.select(models=slice_of(0, -1)), table.select(models=[-1])
    del table

    def work():
        method = get_method(name).fit(source)
        simulate(method, target, SIZE["budget"])

    return cpu(work)


def slice_of(start, stop):
    "Positions of a slice of the models of the large table"
    import numpy as np

    return np.arange(SIZE["models"] + 1)[start:stop]


SAMPLING = ["random", "stratified", "difference", "aipw"]
CLUSTERS = ["kmeans", "anchor_points", "tailored_bench"]
LINE = ["sort_and_search"]  # item curves of this size take many minutes


def zoo_comparison(some):
    "compare on the zoo, 3 budgets, 5 trials, two processes (wall time)"
    from benchnb.data.sources import load
    from benchnb.evaluation.compare import compare
    from benchnb.evaluation.registry import list_methods

    zoo, start = load("zoo"), time.perf_counter()
    compare(zoo, some or list_methods(zoo), [20, 40, 80], trials=5, n_jobs=2)
    return time.perf_counter() - start


def mmlu_size(name, tasks, items):
    "One new model, task by task at a ratio of .1: choose, ask and predict"
    import numpy as np

    from benchnb.evaluation.per_task import PerTask
    from benchnb.evaluation.registry import get_method
    from benchnb.methods.collaborative_filtering import CollaborativeFiltering
    from benchnb.papers import collaborative_filtering as chapter

    chapter.transport_plan(np.eye(2))  # loading POT is nobody's time
    source, target = chapter.of_mmlu_size(tasks=tasks, items=items)
    sizes = source.items["task"].value_counts(sort=False).to_numpy()
    budget = chapter.ratio_budget(0.1, sizes, 20)
    if name == "collaborative_filtering":
        method = CollaborativeFiltering(held_out=0)
    else:
        method = PerTask(get_method(name), least=20)
    seconds = chapter.timed(method, source, target, budget)
    return seconds["select"] + seconds["predict"]


def item_curves(models, items, dims):
    "A fit of item response theory; GSM8K's sources where the size is theirs"
    from benchnb.stats.irt import fit_irt

    gsm8k = (models, items) == (75, 1319)
    table = gsm8k_or_like()[0] if gsm8k else made_up(models, items)
    return cpu(lambda: fit_irt(table.values, dims=dims))


def genetic(models, items, budget):
    "EssenceBench's search of the paper's size: filters, curves, 500 generations"
    from benchnb.evaluation.simulate import ready
    from benchnb.methods.essence_bench import EssenceBench

    settings = dict(population=200, generations=500, rounds=0, folds=0, sample=1.0)
    method = EssenceBench(**settings).fit(made_up(models, items))
    return cpu(lambda: ready(method, budget))


def essence_bench(models, items, budget):
    "The whole method with its defaults: search, attribution, groups, interval"
    from benchnb.evaluation.simulate import ready
    from benchnb.methods.essence_bench import EssenceBench

    method = EssenceBench().fit(made_up(models, items))
    return cpu(lambda: ready(method, budget))


def guarded(models, items):
    "Factor models of two, three and four factors; the note: interval and one target"
    import numpy as np

    from benchnb.evaluation.simulate import ready, simulate
    from benchnb.methods.guarded_irt import GuardedIRT

    table = made_up(models + 1, items)
    order = np.argsort(table.performance().to_numpy())  # the target in the middle
    source = table.select(models=np.delete(order, models // 2))
    target = table.select(models=order[[models // 2]])
    del table
    found = []
    fit = cpu(lambda: found.append(GuardedIRT(folds=0).fit(source)))
    quick = ready(found[0], 100)
    one = cpu(lambda: simulate(quick, target))
    whole = cpu(lambda: found.append(ready(GuardedIRT().fit(source), 100)))
    return fit, f"with its interval {whole:.1f} s; one target {one:.2f} s"


def copies(models, items):
    "The largest redundancy of each item, without a table of all pairs"
    from benchnb.stats.item_filters import redundancy

    table = made_up(models, items)
    return cpu(lambda: redundancy(table.values))


def words(rng, count):
    "A text of so many made-up words"
    return " ".join(f"w{n}" for n in rng.integers(500, size=count))


def two_tasks(queries):
    "Tasks with exemplars of 80 tokens and questions of some 60, four options"
    import numpy as np

    from benchnb.tasks.prompts import Task

    rng, options = np.random.default_rng(0), tuple("ABCD")

    def some(count, low, high):
        sizes = rng.integers(low, high + 1, size=count)
        return [(words(rng, n), str(rng.choice(options)), options) for n in sizes]

    shown, asked = (77, 77), (40, 76)  # and what the prompt adds
    return [Task(name, some(queries, *asked), dev=some(9, *shown)) for name in "ab"]


def large_enough(tasks, **size):
    "A random model for them"
    from benchnb.tasks.local_model import small_model
    from benchnb.tasks.prompts import MMLU

    texts = [MMLU.context(task, [*task.examples, *task.dev]) for task in tasks]
    texts += [" ".join("ABCD")]
    return small_model(texts, positions=2048, spread=0.05, **size)


def read_all(pair, tasks, **how):
    "Seconds, log-probabilities, tokens: exemplars of one task, questions of both"
    import numpy as np

    from benchnb.tasks.local_model import LocalModel
    from benchnb.tasks.prompts import MMLU

    model, options = LocalModel(*pair, **how), tuple(f" {o}" for o in "ABCD")
    asks = [(MMLU.query.format(input=e.input), options)
            for task in tasks for e in task.examples]  # fmt: skip
    context = MMLU.context(tasks[0], tasks[0].dev[:5])
    model.logprobs(model.start(context), asks[:2])  # warm up
    gpu = pair[0].device.type == "cuda"
    clock = time.perf_counter if gpu else time.process_time
    start, model.tokens = clock(), 0
    found = model.logprobs(model.start(context), asks)
    return clock() - start, np.array(found)[..., 0], model.tokens


def transfer(queries):
    "Log-probabilities with the cache; the note tells what it is worth"
    tasks = two_tasks(queries)
    pair = large_enough(tasks, width=256, layers=4)
    ways = [dict(batch=32), dict(batch=32, cache=False), dict(batch=1, cache=False)]
    (cached, found, _), *others = (read_all(pair, tasks, **how) for how in ways)
    times = ", ".join(f"{seconds / cached:.1f}" for seconds, _, _ in others)
    apart = max(abs(found - other).max() for _, other, _ in others)
    return cached, (
        f"{2 * queries / cached:.0f} questions/s, {times} times without the cache "
        f"(same batches, one by one); differences to {apart:.0e}"
    )


def many_cells():
    "64,980 questions in 570 cells, with the smallest model"
    import numpy as np

    from benchnb.tasks.local_model import small_model
    from benchnb.tasks.prompts import MMLU, Task
    from benchnb.tasks.transfer import transfer_matrix

    rng, options = np.random.default_rng(0), tuple("ABCD")

    def some(name, count):
        return [
            (f"{name}{n} {words(rng, 8)}", options[n % 4], options)
            for n in range(count)
        ]

    tasks = [Task(f"t{n}", some("q", 114), dev=some("d", 5)) for n in range(57)]
    texts = [MMLU.context(task, [*task.examples, *task.dev]) for task in tasks]
    pair = small_model(texts, positions=512)
    seconds = cpu(lambda: transfer_matrix(tasks, pair, seeds=1, shard=(1, 6)))
    return seconds, f"{64_980 / seconds:,.0f} questions/s"


def to_a_server(queries):
    "Questions to a server that answers as vLLM; the note: one request for each option"
    import numpy as np

    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests"))
    from helpers.vllm_server import vllm_like

    from benchnb.tasks.api_model import Endpoint
    from benchnb.tasks.prompts import MMLU

    tasks, options = two_tasks(queries), tuple(f" {o}" for o in "ABCD")
    asks = [(MMLU.query.format(input=e.input), options)
            for task in tasks for e in task.examples]  # fmt: skip
    pair, context = large_enough(tasks), MMLU.context(tasks[0], tasks[0].dev[:5])
    rows = []
    for prompts in (32, 1):
        with vllm_like(pair) as (url, seen):
            server = Endpoint(url, "m", tokenizer=pair[1], prompts=prompts)
            server.echoes = prompts == 1  # score the prompt with each option
            prefix, found = server.start(context), []
            seconds = cpu(
                lambda s=server, f=found, p=prefix: f.extend(s.logprobs(p, asks))
            )
            sent = len(seen["bodies"]), seen["tokens"], seen["connections"]
        rows.append((seconds, np.array(found)[..., 0], *sent))
    (seconds, ours, *now), (_, echoed, *before) = rows
    same = np.mean(ours.argmax(axis=1) == echoed.argmax(axis=1))
    count, shown = len(asks), np.isfinite(ours)  # the likeliest tokens are
    return seconds, (
        f"{count} questions: {now[0]} requests and {now[1] / count:.0f} tokens for one "
        f"over {now[2]} connections; with a request for each option {before[0]} and "
        f"{before[1] / count:.0f}; the same answer to {same:.0%}, log-probabilities "
        f"differ by up to {abs(ours - echoed)[shown].max():.0e}"
    )


PEAK = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L4": 121e12}  # bfloat16


def attention_share(work):
    "Shares of the wall time: in attention on the GPU, and with an idle GPU (Python)"
    from torch.profiler import ProfilerActivity, profile

    start = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        work()
    seconds = 1e6 * (time.perf_counter() - start)
    events = [(e.key, e.self_device_time_total) for e in seen.key_averages()]
    busy = sum(spent for _, spent in events)
    named = ("attention", "flash", "fmha")
    inside = sum(t for key, t in events if any(n in key.lower() for n in named))
    return inside / seconds, 1 - min(1, busy / seconds)


def transfer_gpu(queries, width=2048, layers=22):
    "The same on a random model in bfloat16: 1.1B weights, or as the row says"
    import torch

    if not torch.cuda.is_available():
        return 0.0, "no GPU here"
    tasks = two_tasks(queries)
    model, tokenizer = large_enough(tasks, width=width, layers=layers)
    pair, rows = (model.to("cuda", torch.bfloat16), tokenizer), []
    size = sum(weight.numel() for weight in model.parameters())
    name = torch.cuda.get_device_name()
    peak = next((flops for key, flops in PEAK.items() if key in name), float("nan"))
    for how in (dict(batch=256), dict(batch=256, cache=False)):
        rows.append(read_all(pair, tasks, **how))
    (cached, _, read), (naive, _, without) = rows
    shares = (2 * size * n / t / peak for n, t in ((read, cached), (without, naive)))
    attention, idle = attention_share(lambda: read_all(pair, tasks, batch=256))
    hours = 57 * 10 * 14_042 * cached / (2 * queries) / 3600  # MMLU, L = 5, M = 10
    return cached, (
        f"{name}: {2 * queries / cached:.0f} questions/s, {naive / cached:.1f} times "
        f"without the cache; {read / cached:,.0f} and {without / naive:,.0f} tokens/s, "
        + " and ".join(f"{share:.0%}" for share in shares) + " of peak; "
        f"{attention:.0%} in attention, {idle:.0%} in Python; MMLU in {hours:.0f} h, "
        f"with 13B weights in {hours * 13e9 / size:.0f} h"
    )  # fmt: skip


def networks(count, device="cpu"):
    "Small networks on BBH's records, together; the note compares one by one"
    import numpy as np
    import torch

    from benchnb.prediction.public_records import load_records
    from benchnb.prediction.records import RecordFeatures, made_records
    from benchnb.prediction.regressors import MLP, build_network, fit_networks

    if device == "cuda" and not torch.cuda.is_available():
        return 0.0, "no GPU here"
    try:
        records = load_records("bbh")
    except (ValueError, OSError):  # as many models, tasks and prompts
        records = made_records(families=25, sizes=3, tasks=27, shots=(0, 3))
    x, y = RecordFeatures().fit_transform(records), records["score"].to_numpy()
    rngs = [np.random.default_rng(seed) for seed in range(count)]
    part = np.stack([rng.permutation(len(x)) % 10 for rng in rngs])  # 0: dev, 1: test
    clock = time.perf_counter if device == "cuda" else time.process_time
    fit_networks(x, y, part[:2] > 1, part[:2] == 0, epochs=1, device=device)  # warm up
    start = clock()
    many = fit_networks(x, y, part > 1, part == 0, device=device)
    together, found, start = clock() - start, [], clock()
    for seed, some in enumerate(part):
        one, rng = MLP(seed=seed, device=device), np.random.default_rng(seed)
        one.network_ = build_network(x.shape[1], one.hidden, one.dropout, rng)
        one.train(x[some > 1], y[some > 1], (x[some == 0], y[some == 0]), rng)
        with torch.no_grad():
            guess = one.network_(torch.tensor(x, device=device))[:, 0].clamp(0, 1)
        found.append(guess.cpu().numpy())
    single = clock() - start
    error = [(part == 1) * (guess - y) ** 2 for guess in (many.predict(x), found)]
    spread = np.array([y[some == 1].var() for some in part])
    r2 = 1 - np.sum(error, axis=2) / (part == 1).sum(axis=1) / spread
    return together, (
        f"{single:.1f} s one by one, {single / together:.1f} times as long; test R2 "
        f"{r2[0].mean():.4f} and {r2[1].mean():.4f}, "
        f"one network's differs by up to {abs(r2[0] - r2[1]).max():.4f}"
    )


def subsets(count=2000, size=8):
    "Subsets of BBH's tasks by the formula; the note compares networks one by one"
    import numpy as np

    from benchnb.prediction.public_records import load_records
    from benchnb.prediction.records import made_records
    from benchnb.prediction.recovery import Surrogate, evaluate_many, random_subsets
    from benchnb.prediction.small_bench import greedy_search

    try:
        records, dev, test = load_records("bbh"), "Qwen1.5", "OPT"
    except (ValueError, OSError):
        records = made_records(families=25, sizes=3, tasks=27, shots=(0, 3))
        dev, test = "A", "B"
    formula = Surrogate(records, dev, test)
    draws = random_subsets(27, size, count)
    formula(draws[:10])  # warm up
    quick = cpu(lambda: formula(draws))
    pair = [(test, dev)]  # the test family chooses the epoch
    evaluate_many(records, draws[:1], pair)  # warm up
    first = []
    single = cpu(
        lambda: first.extend(evaluate_many(records, [one], pair) for one in draws[:5])
    )
    greedy = cpu(lambda: greedy_search(formula, 27, 24))
    ratio = (single / 5) / (quick / count)
    return quick, (
        f"{1e6 * quick / count:.0f} us a subset; a network {single / 5:.2f} s, "
        f"{ratio:,.0f} times as long (mean R2 {np.mean(first):.3f}, "
        f"{formula(draws[:5]).mean():.3f}); greedy to 24 tasks {greedy:.1f} s"
    )


def write_logs(folder, models, items, pad):
    "A file of samples for each model; a line is a prompt of `pad` words and its score"
    import json
    from pathlib import Path

    import numpy as np

    right = np.random.default_rng(0).random((8, items)) < 0.5
    texts = []
    for row in right.astype(int).tolist():
        lines = []
        for number, score in enumerate(row):
            doc = {"question": f"{number} " + words(np.random.default_rng(number), pad)}
            line = {"doc_id": number, "doc": doc, "target": "12"}
            line["arguments"] = {"gen_args_0": {"arg_0": doc["question"], "arg_1": {}}}
            line |= {"resps": [[doc["question"][:200]]], "filtered_resps": ["12"]}
            line |= {"filter": "none", "metrics": ["exact_match"]}
            hashes = ("doc_hash", "prompt_hash", "target_hash")
            line |= dict.fromkeys(hashes, f"{number + 1:064x}")
            lines.append(json.dumps(line | {"exact_match": float(score)}))
        texts.append("\n".join(lines).encode() + b"\n")
    for model in range(models):
        place = Path(folder, f"org__model-{model:04d}")
        place.mkdir()
        name = "samples_gsm8k_2026-01-21T03-44-18.458309.jsonl"
        (place / name).write_bytes(texts[model % 8])
    return models / 8 * sum(map(len, texts))


def import_logs(models, items, pad, jobs):
    "Logs of lm-eval to a table (wall time); the note tells the rate"
    import tempfile
    from pathlib import Path

    from benchnb.harnesses.harness import import_logs

    with tempfile.TemporaryDirectory() as folder:
        size = write_logs(folder, models, items, pad)
        start = time.perf_counter()
        for path in Path(folder).glob("*/*"):  # what merely reading it takes
            with open(path, "rb", buffering=0) as file:
                while file.read(2**20):
                    pass
        raw, start = time.perf_counter() - start, time.perf_counter()
        work = time.process_time()
        scores = import_logs("lm-eval", folder, n_jobs=jobs, progress=False)
        seconds = time.perf_counter() - start
    assert scores.shape == (models, items)
    work, rate = time.process_time() - work, size / 1e6
    return seconds, (
        f"{rate:,.0f} MB at {rate / seconds:.0f} MB/s with {jobs} processes, merely "
        f"reading it {rate / raw:,.0f} MB/s; CPU seconds of this process: {work:.1f}"
    )


def readers(models, items, pad):
    "CPU seconds of our reader of lm-eval; the note compares parsers of each line"
    import json
    import tempfile
    from pathlib import Path

    import msgspec
    import orjson

    from benchnb.harnesses.lm_eval import LMEval, row_kind

    def lines(parse):
        for path in files:
            with open(path, "rb") as file:
                for line in file:
                    parse(line)

    typed = msgspec.json.Decoder(row_kind("exact_match", True)).decode
    parsers = {"json": json.loads, "orjson": orjson.loads, "typed msgspec": typed}
    with tempfile.TemporaryDirectory() as folder:
        size = write_logs(folder, models, items, pad) / 1e6
        files = list(Path(folder).glob("*/*"))
        LMEval().read(files[0])
        ours = cpu(lambda: [LMEval().read(path) for path in files])
        rates = {name: size / cpu(lambda p=p: lines(p)) for name, p in parsers.items()}
    said = ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
    return ours, f"{size:.0f} MB at {size / ours:.0f} MB/s of CPU time; {said}"


def import_time():
    "import benchnb"
    return cpu(lambda: __import__("benchnb"))


WORK = {
    "import benchnb": (import_time, (), 1),
    **{f"TailoredBench, 75 targets, {n} items": (tailored_trial, (n,), 1.5)
       for n in (20, 25, 30, 35, 40)},
    **{f"1,000 x 100,000, {name}": (large, (name,), aim)
       for name, aim in [*((name, 5) for name in SAMPLING),
                         *((name, None) for name in [*CLUSTERS[:2], *LINE]),
                         ("tailored_bench", 120)]},
    **{f"MMLU's size, one model, {name}": (mmlu_size, (name, 57, 14_000), aim)
       for name, aim in [("collaborative_filtering", 2.5), ("random", None),
                         ("sort_and_search", None), ("kmeans", None)]},
    "twice that, collaborative_filtering": (
        mmlu_size, ("collaborative_filtering", 114, 28_000), 5),
    "item curves, 75 x 1,319, D = 2": (item_curves, (75, 1319, 2), 5),
    "item curves, 2,630 x 1,480, D = 2": (item_curves, (2630, 1480, 2), 60),
    "genetic search, 135 x 1,319, k = 200": (genetic, (135, 1319, 200), 20),
    "genetic search, 2,000 x 12,000, k = 200": (genetic, (2000, 12_000, 200), 300),
    "EssenceBench, 135 x 1,319, k = 200": (essence_bench, (135, 1319, 200), None),
    **{f"guarded_irt, {models:,} x {items:,}": (guarded, (models, items), aim)
       for models, items, aim in [(75, 1319, 0.5), (3000, 1000, 20),
                                  (1000, 10_000, 40), (1000, 100_000, 600)]},
    "copies, 135 x 100,000": (copies, (135, 100_000), None),
    "transfer, 5 exemplars, 400 questions": (transfer, (200,), None),
    "transfer, GPU, 1.1B weights": (transfer_gpu, (2000,), None),
    "transfer, GPU, 6.7B weights": (transfer_gpu, (2000, 4096, 32), None),
    "transfer, 57 tasks x 10 sources": (many_cells, (), 30),
    "transfer, a server, 200 questions": (to_a_server, (100,), None),
    "100 networks on BBH together": (networks, (100,), 30),
    "100 networks on BBH together, GPU": (networks, (100, "cuda"), None),
    "2,000 subsets of BBH's tasks": (subsets, (), 5),
    **{f"import lm-eval, 1,000 x 1,319, {jobs} cores": (
        import_logs, (1000, 1319, 80, jobs), 9.5) for jobs in (1, 2)},
    "read lm-eval, 200 x 1,319": (readers, (200, 1319, 80), None),
    "compare on the zoo, seven methods": (zoo_comparison, (SAMPLING + CLUSTERS,), 60),
    "compare on the zoo, all methods": (zoo_comparison, (None,), None),
}  # fmt: skip


def one(name):
    "Measure in this process and print a line of JSON"
    warnings.simplefilter("ignore")
    function, arguments, _ = WORK[name]
    seconds, note = function(*arguments), ""
    if isinstance(seconds, tuple):
        seconds, note = seconds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "peak": peak, "note": note}))


def main(names):
    "Measure each in a fresh process and print the table"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    print(f"{'':<42}{'seconds':>9}{'aim':>7}{'peak GiB':>10}")
    for name in names or WORK:
        command = [sys.executable, __file__, "--one", name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            print(f"{name:<42}failed: {done.stderr.strip().splitlines()[-1]}")
            continue
        figures = json.loads(done.stdout.splitlines()[-1])
        aim = WORK[name][2]
        line = f"{name:<42}{figures['seconds']:>9.2f}{aim or '-':>7}"
        print(f"{line}{figures['peak']:>10.2f}", flush=True)
        if figures["note"]:
            print(f"  {figures['note']}", flush=True)


if __name__ == "__main__":
    one(sys.argv[2]) if sys.argv[1:2] == ["--one"] else main(sys.argv[1:])
