"""Report how fast the library is: `make bench`, or `python -m tools.bench copies ...`

Each row is measured in a process of its own, on one processor unless it says so: CPU
seconds without the making of the data, and the peak of the process. A report, not a
test: nothing here fails because a machine is slow.

`make bench` ends with guarded_irt's CPU seconds relative to those of the commit in
BASELINE, both divided by those of a piece of work that never changes. Better, where
that commit is checked out: `python -m tools.bench --against DIR` measures both in turns
and takes the least of three runs of each."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np


def cpu(work):
    "CPU seconds of a piece of work"
    start = time.process_time()
    work()
    return time.process_time() - start


def made_up(models, items, seed=0):
    "Right and wrong answers from abilities, difficulties and two hidden skills"
    from benchnb.data.scores import Scores

    rng = np.random.default_rng(seed)
    skill = rng.normal(size=(models, 3)).astype(np.float32)
    need = rng.normal(size=(3, items)).astype(np.float32)
    logit = skill[:, :1] * 1.5 + 0.7 * skill[:, 1:] @ need[1:] + 1.5 * need[:1]
    chance = rng.random((models, items), dtype=np.float32)
    return Scores((chance < 1 / (1 + np.exp(-logit))).astype(np.float32))


def tailored_trial(budget):
    "One trial of TailoredBench as published: 75 sources and 75 targets of GSM8K's size"
    from benchnb.evaluation.simulate import simulate
    from benchnb.methods.tailored_bench import TailoredBench

    table, odd = made_up(150, 1319), np.arange(150) % 2 == 1
    method = TailoredBench(transductive=True).fit(table.select(models=odd))
    simulate(method, table.select(models=[0]), budget)  # warm up
    return cpu(lambda: simulate(method, table.select(models=~odd), budget, seed=1)), ""


def one_target(name, models=1000, items=100_000, budget=100):
    "Fit, prepare and one target"
    from benchnb.evaluation.registry import get_method
    from benchnb.evaluation.simulate import simulate

    table = made_up(models + 1, items)
    order = np.argsort(table.performance().to_numpy())  # the target in the middle
    source = table.select(models=np.delete(order, models // 2))
    target, fitted = table.select(models=order[[models // 2]]), []
    del table
    fit = cpu(lambda: fitted.append(get_method(name).fit(source)))
    one = cpu(lambda: simulate(fitted[0], target, budget))
    return fit + one, f"of these {fit:.1f} s to fit"


def guarded(rounds):
    "guarded_irt in so many rounds, by the names of this version or of an older one"
    from benchnb.methods import guarded_irt

    if rounds == 1 and (static := getattr(guarded_irt, "GuardedStatic", None)):
        return static()
    return guarded_irt.GuardedIRT(rounds=rounds)


def prepared(method, budget):
    "The method, prepared, by the name of this version or of an older one"
    from benchnb.evaluation import simulate

    prepare = getattr(simulate, "prepare_method", None) or simulate.ready
    return prepare(method, budget, 0)


def calibration():
    "A piece of work that never changes: how fast this machine is today"
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, 500)).astype(np.float32)
    small = rng.normal(size=(500, 4, 4)) + 9 * np.eye(4)

    def work():
        for _ in range(300):
            np.linalg.inv(small)
            np.tanh(table) @ table.T

    return cpu(work), ""


def guarded_table(data):
    "Sources and targets: a data set, or the size of made-up sources and 12 targets"
    from benchnb.data.sources import load

    if isinstance(data, str):
        table = load(data)
        return table.split("random", seed=0)
    table = made_up(data[0] + 12, data[1])
    chosen = np.arange(len(table)) < data[0]
    return table.select(models=chosen), table.select(models=~chosen)


def fit_and_interval(data):
    "guarded_irt in five rounds: the fit with its parts, and the interval for 50 items"
    (source, _), method = guarded_table(data), guarded(5)
    return cpu(lambda: prepared(method.fit(source), 50)), ""


def guarded_targets(rounds):
    "Choice and estimate for the targets of SWE-bench Verified"
    from benchnb.evaluation.simulate import simulate

    source, targets = guarded_table("swebench_verified")
    method = prepared(guarded(rounds).fit(source), 50)
    simulate(method, targets.select(models=[0]))  # warm up
    return cpu(lambda: simulate(method, targets)), ""


def parts_of_a_plan(items):
    "What `benchnb plan` does with 200 sources and one round: ten parts left out"
    from benchnb.evaluation.left_out import left_out_errors

    table = made_up(200, items)
    return cpu(lambda: left_out_errors(guarded(1), table, 100)), ""


def every_method():
    "compare on HELM's GSM8K, 3 budgets, 5 trials, two processes (wall time)"
    from benchnb import compare, list_methods, load

    table, start = load("helm_gsm8k"), time.perf_counter()
    compare(table, list_methods(table), [20, 40, 80], trials=5, n_jobs=2)
    return time.perf_counter() - start, ""


def item_curves(models, items):
    from benchnb.stats.irt_fit import fit_irt

    table = made_up(models, items)
    return cpu(lambda: fit_irt(table.values, dims=2)), ""


def genetic(models, items):
    "EssenceBench's search of the paper's size: filters, curves, 500 generations"
    from benchnb.evaluation.simulate import prepare_method
    from benchnb.methods.essence_bench import EssenceBench

    settings = dict(population=200, generations=500, rounds=0, folds=0, sample=1.0)
    method = EssenceBench(**settings).fit(made_up(models, items))
    return cpu(lambda: prepare_method(method, 200)), ""


def facilities():
    "Facility location among 2,000 tasks"
    from benchnb.bento.facility_location import select_tasks
    from benchnb.bento.similarity import cosine_similarity

    points = np.random.default_rng(0).normal(size=(2000, 64))
    return cpu(lambda: select_tasks(cosine_similarity(points), 100)), ""


def questions(number, exemplars=5):
    "A prompt with exemplars of 80 tokens, and questions of some 60, four options"
    from benchnb.bento.prompts import MMLU, Task

    rng, options = np.random.default_rng(0), tuple("ABCD")
    sizes = [77] * exemplars + [*rng.integers(40, 77, size=number)]
    texts = [" ".join(f"w{n}" for n in rng.integers(500, size=k)) for k in sizes]
    rows = [(text, options[k % 4], options) for k, text in enumerate(texts)]
    task = Task("a", rows[exemplars:], dev=rows[:exemplars])
    letters = tuple(f" {option}" for option in options)
    asks = [(MMLU.query.format(input=e.input), letters) for e in task.examples]
    return MMLU.context(task, task.dev), asks


def model_for(context, asks, **size):
    "A random model that knows these words"
    from benchnb.bento.local_model import make_small_model

    texts = [context, *(query for query, _ in asks), "A B C D"]
    return make_small_model(texts, positions=2048, spread=0.05, **size)


def transfer(number=400, device="cpu", **size):
    "Log-probabilities of questions with the prefix cache; the note: without it"
    import torch

    from benchnb.bento.local_model import LocalModel

    if device == "cuda" and not torch.cuda.is_available():
        return 0.0, "no GPU here"
    context, asks = questions(number)
    model, tokenizer = model_for(context, asks, **size)
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    pair, found = (model.to(device, kind), tokenizer), []
    clock = time.perf_counter if device == "cuda" else time.process_time
    for how in (
        dict(batch=32),
        dict(batch=32, cache=False),
        dict(batch=1, cache=False),
    ):
        reader = LocalModel(*pair, **how)
        reader.logprobs(reader.start(context), asks[:2])  # warm up
        start = clock()
        rows = np.array(reader.logprobs(reader.start(context), asks))[..., 0]
        found.append((clock() - start, rows))
    (cached, ours), *others = found
    times = " and ".join(f"{seconds / cached:.1f}" for seconds, _ in others)
    apart = max(abs(ours - rows).max() for _, rows in others)
    note = f"{number / cached:.0f} questions/s; without the cache, in the same batches "
    return cached, note + f"and one by one, {times} times; differences to {apart:.0e}"


def many_cells():
    "64,980 questions in 570 cells of a transfer matrix, with the smallest model"
    from benchnb.bento.prompts import Task
    from benchnb.bento.transfer import transfer_matrix

    context, asks = questions(57 * 119)
    rows = [(query[:40], "A", tuple("ABCD")) for query, _ in asks]
    parts = [rows[n : n + 119] for n in range(0, len(rows), 119)]
    tasks = [Task(f"t{n}", p[5:], dev=p[:5]) for n, p in enumerate(parts)]
    pair = model_for(context, asks)  # the first of six shards: ten sources
    seconds = cpu(lambda: transfer_matrix(tasks, pair, seeds=1, shard=(1, 6)))
    return seconds, f"{570 * 114 / seconds:,.0f} questions/s"


def server():
    "200 questions to a server that answers as vLLM; the note: one request an option"
    from helpers.vllm_server import vllm_like

    from benchnb.bento.api_model import Endpoint

    context, asks = questions(200)
    pair, rows = model_for(context, asks), []
    for prompts in (32, 1):
        with vllm_like(pair) as (url, seen):
            model = Endpoint(url, "m", tokenizer=pair[1], prompts=prompts)
            model.echoes = prompts == 1  # score the prompt with each option
            prefix = model.start(context)
            seconds = cpu(lambda m=model, p=prefix: m.logprobs(p, asks))
            rows.append((seconds, len(seen["bodies"]), seen["tokens"] / len(asks)))
    note = "; ".join(f"{n} requests, {tokens:.0f} tokens each" for _, n, tokens in rows)
    return rows[0][0], note


def networks(count=100):
    "Small networks on records of BBH's size together; the note: one by one"
    from benchnb.bigbench.records import RecordFeatures, make_synthetic_records
    from benchnb.bigbench.regressors import MLP, fit_networks

    records = make_synthetic_records(families=25, sizes=3, tasks=27, shots=(0, 3))
    x, y = RecordFeatures().fit_transform(records), records["score"].to_numpy()
    rngs = [np.random.default_rng(seed) for seed in range(count)]
    part = np.stack([rng.permutation(len(x)) % 10 for rng in rngs])  # 0: dev, 1: test

    def single():
        for seed, some in enumerate(part):
            one = MLP(seed=seed)
            one.regress(x[some > 1], y[some > 1], (x[some == 0], y[some == 0]))

    fit_networks(x, y, part[:2] > 1, part[:2] == 0, epochs=1)  # warm up
    together = cpu(lambda: fit_networks(x, y, part > 1, part == 0))
    return together, f"one by one {cpu(single) / together:.1f} times as long"


def logs(models, jobs):
    "Logs of lm-eval with 1,319 long lines each to a table (wall time)"
    from benchnb.harnesses.harness import import_logs

    words, lines = " ".join(f"w{n}" for n in range(80)), []
    given = {"arguments": {"gen_args_0": {"arg_0": words, "arg_1": {}}}, "target": "12"}
    given |= {"resps": [[words]], "filtered_resps": ["12"], "filter": "none"}
    for n in range(1319):
        hashes = dict.fromkeys(("doc_hash", "prompt_hash", "target_hash"), f"{n:064x}")
        line = {"doc_id": n, "doc": {"question": f"{n} {words}"}, "exact_match": n % 2}
        lines.append(json.dumps(line | given | hashes | {"metrics": ["exact_match"]}))
    with tempfile.TemporaryDirectory() as folder:
        for model in range(models):
            path = Path(folder, f"m{model}/samples_gsm8k_2026-01-21T03-44-18.4.jsonl")
            path.parent.mkdir()
            path.write_text("\n".join(lines))
        start, size = time.perf_counter(), models * path.stat().st_size / 1e6
        import_logs("lm-eval", folder, n_jobs=jobs, progress=False)
        seconds = time.perf_counter() - start
    return seconds, f"{size / seconds:.0f} MB/s"


ROWS = {
    "import benchnb": (lambda: (cpu(lambda: __import__("benchnb")), ""), 1),
    **{f"TailoredBench, 75 targets, {n} items": (lambda n=n: tailored_trial(n), 1.5)
       for n in (20, 40)},
    **{f"1,000 x 100,000, {name}": (lambda name=name: one_target(name), aim)
       for name, aim in [("random", 5), ("stratified", 5), ("aipw", 5),
                         ("kmeans", None), ("tailored_bench", 120)]},
    "guarded_irt, 3,000 x 1,000": (lambda: one_target("guarded_irt", 3000, 1000), 60),
    "item curves, 75 x 1,319": (lambda: item_curves(75, 1319), 5),
    "item curves, 2,630 x 1,480": (lambda: item_curves(2630, 1480), 60),
    "genetic search, 135 x 1,319": (lambda: genetic(135, 1319), 20),
    "2,000 tasks, k = 100": (facilities, 5),
    "transfer, 400 questions": (lambda: transfer(width=256, layers=4), None),
    **{f"transfer, GPU, {what} weights": (
        lambda w=w, n=n: transfer(4000, "cuda", width=w, layers=n), None)
       for what, w, n in [("1.1B", 2048, 22), ("6.7B", 4096, 32)]},
    "transfer, 57 tasks x 10 sources": (many_cells, 30),
    "transfer, a server, 200 questions": (server, None),
    "100 networks together": (networks, 30),
    **{f"import lm-eval, 1,000 x 1,319, {n} cores": (lambda n=n: logs(1000, n), 9.5)
       for n in (1, 2)},
    "compare on HELM's GSM8K, all methods": (every_method, None),
}  # fmt: skip


RUNS = 3  # of each row that is compared; the least counts
PEAK = "peak memory, 1,000 x 10,000"
RATIOS = {
    "fit and interval, ifeval": (lambda: fit_and_interval("ifeval"), 0.2),
    "fit and interval, swebench_verified": (
        lambda: fit_and_interval("swebench_verified"), 0.2),
    "fit and interval, 3,000 x 1,000": (lambda: fit_and_interval((3000, 1000)), 0.3),
    "fit and interval, 1,000 x 10,000": (lambda: fit_and_interval((1000, 10_000)), 0.2),
    PEAK: (lambda: fit_and_interval((1000, 10_000)), 0.6),
    "targets, five rounds": (lambda: guarded_targets(5), 0.5),
    "targets, one round": (lambda: guarded_targets(1), 0.5),
    "plan, one round, 200 x 10,000": (lambda: parts_of_a_plan(10_000), 0.1),
    "plan, one round, 200 x 50,000": (lambda: parts_of_a_plan(50_000), 0.1),
}  # fmt: skip
SIZES = [(n, 500) for n in (250, 500, 1000, 2000, 4000)]
SIZES += [(250, n) for n in (1000, 2000, 4000, 8000, 16_000)]
GROWTH = {
    f"fit and interval, {models:,} x {items:,}": (
        lambda size=(models, items): fit_and_interval(size), None)
    for models, items in SIZES
}  # fmt: skip
CALIBRATION = "calibration"
EVERYTHING = ROWS | RATIOS | GROWTH | {CALIBRATION: (calibration, None)}
BASELINE = Path(__file__).with_name("bench.json")  # of an earlier commit


def measured(name, checkout=Path(".")):
    "CPU seconds, peak and note of a row, in a process of its own; text: it failed"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    folders = checkout.resolve(), checkout.resolve() / "tests"
    environment["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it was stopped"])[-1]
    return json.loads(done.stdout.splitlines()[-1])


def figure(name, found):
    "What is compared of a row: its peak, or its CPU seconds"
    return found[1] if name == PEAK else found[0]


def ratios(names, checkout=None, runs=RUNS):
    "Print guarded_irt's figures relative to those of an earlier commit"
    stored = {} if checkout else json.loads(BASELINE.read_text("utf-8"))
    title = f"relative to {checkout or stored['commit']}"
    print(f"{title:<42}{'ratio':>9}{'aim':>7}{'then':>10}{'now':>10}")
    speed = 1.0
    if not checkout:
        now = min(measured(CALIBRATION)[0] for _ in range(runs))
        speed = now / stored["rows"][CALIBRATION]
    for name in names or [n for n in RATIOS if checkout or n in stored["rows"]]:
        pairs = []
        for _ in range(runs):
            then = measured(name, checkout) if checkout else None
            pairs.append((then, measured(name)))
        failed = [one for pair in pairs for one in pair if isinstance(one, str)]
        if failed:
            print(f"{name:<42}failed: {failed[0]}")
            continue
        now = min(figure(name, one) for _, one in pairs)
        if checkout:
            then = min(figure(name, one) for one, _ in pairs)
        else:
            then = stored["rows"][name] * (1 if name == PEAK else speed)
        aim = RATIOS[name][1]
        print(f"{name:<42}{now / then:>9.2f}{aim:>7}{then:>10.2f}{now:>10.2f}")


def main(names):
    "Measure each in a fresh process and print the table"
    print(f"{'':<42}{'seconds':>9}{'aim':>7}{'peak GiB':>10}")
    for name in names or [*ROWS, *GROWTH]:
        found = measured(name)
        if isinstance(found, str):
            print(f"{name:<42}failed: {found}")
            continue
        seconds, peak, note = found
        aim = EVERYTHING[name][1] or "-"
        print(f"{name:<42}{seconds:>9.2f}{aim:>7}{peak:>10.2f}")
        print(*[f"  {note}\n"] * bool(note), end="", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--against"]:
        ratios(sys.argv[3:], Path(sys.argv[2]))
    elif sys.argv[1:2] != ["--one"]:
        main(sys.argv[1:])
        if not sys.argv[1:]:
            ratios([])
    else:
        warnings.simplefilter("ignore")
        seconds, note = EVERYTHING[sys.argv[2]][0]()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps([seconds, peak, note]))
