"""Other programs beside this one, on the same data in one run: `make bench PEERS=1`, or
`python -m tools.peers [RESULTS.csv] [PROGRAM ...]`

Each program gets an environment of its own and is asked in a process of its own, on one
thread. What cannot be installed, or is not to be had, is left out with a line. Two
programs have no package: PEER_SOURCES names a folder with clones of their repositories,
cBMM (github.com/JackQuu/cBMM) and tinyBenchmarks (felipemaiapolo/tinyBenchmarks).
PEER_PYTHON is a Python for programs that need a newer one than this.

Four questions, a row of nbs/results/peers.csv for each program and size:

- bank: curves of made-up answers; error: of P(correct), root mean square
- subset: a score from 100 anchors of IFEval, curves and anchors given; error: mean
- score: the score on the whole benchmark from random answers, with earlier models as
  predictions or without; error: mean, and how often intervals of 95% hold
- difference: of two models on the same random items; the same, and how often zero is
  excluded, rightly or wrongly (`decided`, `wrong`)

nbs/results/item_banks.csv has more sizes of the first (`... bank PROGRAM MODELS ITEMS
SEED` prints its rows)."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parents[1] / "nbs/results/peers.csv"
PEERS = {  # program: what pip installs
    "cBMM": ["numpy", "scipy", "threadpoolctl"],
    "girth": ["girth==0.8.0"],
    "py-irt": ["torch==2.13.0", "py-irt==0.7.1"],
    "tinyBenchmarks": ["numpy", "scipy", "requests"],
    "glide-py": ["glide-py==0.11.0"],
    "evalsig": ["evalsig==0.1.2"],
    "paired-eval": ["paired-eval==0.4.0", "numpy"],
}
WITHOUT_PACKAGE = {"cBMM": "quickstart", "tinyBenchmarks": "."}  # where their code is
NEWER_PYTHON = {"glide-py"}  # 3.12
BUDGETS = (20, 50)


def logistic(x):
    return 1 / (1 + np.exp(-x))


# Curves of items


def made_up(models, items, seed):
    "Answers and their probabilities: curves of two parameters, one ability"
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(models, 1))
    slope = np.exp(rng.normal(0, 0.4, items))
    probability = logistic(slope * (theta - rng.normal(0, 1.2, items)))
    return (rng.random(probability.shape) < probability).astype(float), probability


def bank_benchnb(answers):
    from benchnb.stats.irt_fit import fit_irt

    bank = fit_irt(answers)
    return bank.probability(bank.theta)


def bank_girth(answers):
    from girth import ability_eap, twopl_mml

    columns = answers.T.astype(int)
    fit = twopl_mml(columns)
    slope, difficulty = fit["Discrimination"], fit["Difficulty"]
    theta = ability_eap(columns, difficulty, slope)
    return logistic(slope * (theta[:, None] - difficulty))


def bank_py_irt(answers):
    import pandas as pd
    import torch
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    torch.set_num_threads(1)
    frame = pd.DataFrame(answers.astype(int)).add_prefix("q")
    columns = [*frame]
    frame.insert(0, "model", [f"m{n}" for n in range(len(frame))])
    data = Dataset.from_pandas(frame, subject_column="model", item_columns=columns)
    config = IrtConfig(model_type="2pl", priors="hierarchical", epochs=2000)
    trainer = IrtModelTrainer(config=config, data_path=None, dataset=data)
    trainer.train(device="cpu")
    best = trainer.best_params
    models = np.argsort([int(best["subject_ids"][n][1:]) for n in range(len(frame))])
    items = np.argsort([int(best["item_ids"][n][1:]) for n in range(len(columns))])
    theta = np.array(best["ability"])[models, None]
    slope, difficulty = np.array(best["disc"])[items], np.array(best["diff"])[items]
    return logistic(slope * (theta - difficulty))


def bank_cbmm(answers):
    from cBMM import cBMM

    return logistic(cBMM(2 * answers - 1, r=1, verbose=0)["X_hat"])


BANKS = {
    "benchnb": bank_benchnb,
    "girth": bank_girth,
    "py-irt": bank_py_irt,
    "cBMM": bank_cbmm,
}


def bank_row(program, models, items, seed):
    "A row of item_banks.csv"
    answers, truth = made_up(models, items, seed)
    if program == "benchnb":
        bank_benchnb(answers[:30, :40])  # imports
    start = time.process_time()
    error = BANKS[program](answers) - truth
    row = {"program": program, "sources": models, "items": items, "seed": seed}
    row["cpu"] = round(time.process_time() - start, 3)
    return row | {"rmse": round(float(np.sqrt(np.mean(error**2))), 5)}


def measure_bank(program, data):
    "Fits of made-up answers: three, or one of what takes minutes"
    seeds = range(1 if program in ("girth", "py-irt") else 3)
    rows = [bank_row(program, 100, 500, seed) for seed in seeds]
    cpu, errors = (np.array([row[name] for row in rows]) for name in ("cpu", "rmse"))
    yield summary("curves", 500, 1000 * cpu.sum(), errors)


# Intervals


def summary(function, items, total_ms, errors, low=None, high=None, truth=None):
    "A row: errors and intervals of all trials, with standard errors"
    errors = np.asarray(errors, dtype=float)
    trials = len(errors)
    answered = errors[~np.isnan(errors)]
    row = {"function": function, "items": items, "trials": trials}
    row |= {"ms": total_ms / len(answered), "error": answered.mean()}
    if len(answered) > 1:
        row["error_se"] = answered.std(ddof=1) / np.sqrt(len(answered))
    if low is None:
        return row
    low, high, truth = map(np.asarray, (low, high, truth))
    held = (low - 1e-9 <= truth) & (truth <= high + 1e-9)  # NaN: does not hold
    row |= {"covered": held.mean(), "width": np.nanmean(high - low)}
    row["covered_se"] = np.sqrt(held.mean() * (1 - held.mean()) / trials)
    row["none"] = np.isnan(low).mean()
    return row


def score_benchnb(data):
    "Methods, fitted to the earlier models; new items for each new model"
    from benchnb.data.scores import Scores
    from benchnb.evaluation.registry import get_method
    from benchnb.evaluation.simulate import simulate

    sources = Scores(data["sources"])
    for name in ("random", "stratified", "difference", "aipw", "guarded_irt"):
        method = get_method(name).fit(sources)
        simulate(method, sources.select(models=[0]), BUDGETS[0])  # imports

        def estimates(answers, budget, seed, method=method):
            target = Scores(answers[np.newaxis])
            estimate = simulate(method, target, budget, seed=seed)[0]
            return estimate.score, *estimate.interval

        yield name, estimates


def score_glide(data):
    "Estimators of glide-py; the earlier models' mean on each item is the proxy"
    from glide import estimators
    from glide.samplers import StratifiedSampler

    sources = data["sources"].astype(float)
    proxy = sources.mean(axis=0)
    groups = np.argsort(np.argsort(proxy, kind="stable"), kind="stable")
    groups = groups * 4 // len(proxy)  # four strata, from hard to easy
    parts = np.argsort(np.argsort(sources.mean(axis=1))) * 3 // len(sources)
    proxies = np.array([sources[parts == n].mean(axis=0) for n in range(3)]).T
    stratified = estimators.StratifiedPPIMeanEstimator()

    def ends(result):
        interval = result.confidence_interval
        return result.mean, interval.lower_bound, interval.upper_bound

    def drawn(answers, budget, seed):
        asked = np.random.default_rng(seed).permutation(len(answers))[:budget]
        seen = np.full(len(answers), np.nan)
        seen[asked] = answers[asked]
        return seen

    def classical(answers, budget, seed):
        seen = drawn(answers, budget, seed)
        seen = seen[~np.isnan(seen)]
        return ends(estimators.ClassicalMeanEstimator().estimate(seen))

    def ppi(answers, budget, seed, tuned=False):
        seen = drawn(answers, budget, seed)
        estimator = estimators.PPIMeanEstimator()
        return ends(estimator.estimate(seen, proxy, power_tuning=tuned))

    def strata(answers, budget, seed):
        sampler = StratifiedSampler()
        asked = sampler.sample(proxy, groups, budget, "proportional", seed)
        seen = np.where(asked == 1, answers, np.nan)
        return ends(stratified.estimate(seen, proxy, groups))

    def several(answers, budget, seed):
        seen = drawn(answers, budget, seed)
        return ends(estimators.MultiPPIMeanEstimator().estimate(seen, proxies))

    yield "Classical", classical
    yield "PPI", ppi
    yield "PPI, power-tuned", lambda *given: ppi(*given, tuned=True)
    yield "StratifiedPPI", strata
    yield "MultiPPI", several


SCORES = {"benchnb": score_benchnb, "glide-py": score_glide}


def measure_score(program, data):
    "New models, each with items of its own; what a program refuses is no interval"
    targets = data["targets"].astype(float)
    for function, estimate in SCORES[program](data):
        for budget in BUDGETS:
            results, total_ms = [], 0.0
            for trial in range(int(data["rounds"])):
                for number, answers in enumerate(targets):
                    seed = 10_000 * trial + number
                    start = time.process_time()
                    try:
                        results.append(estimate(answers, budget, seed))
                    except ValueError:
                        results.append((np.nan,) * 3)
                    total_ms += 1000 * (time.process_time() - start)
            mean, low, high = np.array(results).T
            truth = np.tile(targets.mean(axis=1), int(data["rounds"]))
            errors = abs(mean - truth)
            yield summary(function, budget, total_ms, errors, low, high, truth)


def difference_benchnb(total):
    from benchnb.live.paired import paired

    def interval(a, b):
        names = [str(n) for n in range(len(a))]
        of_a, of_b = (dict(zip(names, x, strict=True)) for x in (a, b))
        result = paired(of_a, of_b, total=total)
        return result.difference, *result.interval

    yield "paired", interval


def difference_evalsig(total):
    from evalsig import ItemResult, RunFrame, compare

    def run(scores):
        items = tuple(ItemResult(f"{n}", float(x)) for n, x in enumerate(scores))
        return RunFrame("r", "m", "t", "accuracy", items)

    def interval(a, b, method):
        result = compare(run(b), run(a), method=method)
        return result.delta, *result.ci

    yield "compare (McNemar)", lambda a, b: interval(a, b, "auto")
    yield "compare, paired_t", lambda a, b: interval(a, b, "paired_t")
    yield "compare, paired_bootstrap", lambda a, b: interval(a, b, "paired_bootstrap")


def difference_paired_eval(total):
    from paired_eval import paired_compare

    def interval(a, b):
        result = paired_compare(a.tolist(), b.tolist())
        return result["mean_diff"], *result["diff_ci"]

    yield "paired_compare", interval


DIFFERENCES = {
    "benchnb": difference_benchnb,
    "evalsig": difference_evalsig,
    "paired-eval": difference_paired_eval,
}


def measure_difference(program, data):
    "Pairs of models on the same random items"
    truth, total = data["truth"], float(data["total"])
    for function, interval in DIFFERENCES[program](total):
        for budget in BUDGETS:
            pairs = [*zip(data[f"a{budget}"], data[f"b{budget}"], strict=True)]
            interval(*pairs[0])  # imports
            start = time.process_time()
            results = [interval(a.astype(float), b.astype(float)) for a, b in pairs]
            ms = 1000 * (time.process_time() - start)
            mean, low, high = np.array(results).T
            row = summary(function, budget, ms, abs(mean - truth), low, high, truth)
            row["decided"] = np.mean((low > 0) | (high < 0))
            row["wrong"] = np.mean((low > 0) & (truth <= 0) | (high < 0) & (truth >= 0))
            yield row


# A score from anchors


def measure_subset(program, data):
    "gp-IRT with given curves, anchors, weights and trust"
    targets, asked = data["targets"].astype(float), data["asked"]
    if program == "benchnb":
        from benchnb.methods.tiny_benchmarks import GPIRT, Anchors
        from benchnb.stats.irt import IRT

        method = GPIRT()
        kept = [name for name in data.files if name.startswith("bank ")]
        bank = IRT.from_arrays(
            (name.removeprefix("bank "), data[name]) for name in kept
        )
        method.weights_ = np.full(targets.shape[1], 1 / targets.shape[1])
        method.trust = lambda size: np.full(np.shape(size), float(data["trust"]))
        anchors = Anchors(asked, data["share"])

        def estimate(answers):
            return method.estimate_scores(bank, anchors, answers[np.newaxis, asked])[0]

    else:
        from tinyBenchmarks import evaluate

        every = [*range(targets.shape[1])]
        dims = len(data["slopes"])
        parts = {"seen_examples": [*asked], "examples_weights": {"mmlu": data["share"]}}
        parts["irt_parameters"] = {
            "A": data["slopes"][np.newaxis],
            "B": np.tile(-data["intercepts"] / dims, (1, dims, 1)),
        }
        parts["optimal_lambdas"] = {"mmlu": float(data["trust"])}
        parts["scenarios_position"] = {"mmlu": every}
        parts["subscenarios_position"] = {"mmlu": {"all": every}}
        Path("tinyBenchmarks.pkl").write_bytes(pickle.dumps({"mmlu": parts}))

        def estimate(answers):
            return evaluate(answers[asked], "mmlu")["mmlu"]["gpirt"]

    estimate(targets[0])
    start = time.process_time()
    results = [np.ravel(estimate(answers))[0] for answers in targets]
    ms = 1000 * (time.process_time() - start)
    errors = abs(np.array(results) - targets.mean(axis=1))
    yield summary("gp-IRT", len(asked), ms, errors)


# Data


def subset_data():
    "Half of IFEval's models as sources: curves, 100 anchors, their weights and trust"
    from benchnb import get_method, load
    from benchnb.evaluation.simulate import prepare_method

    sources, targets = load("ifeval").split("random", seed=0)
    method = prepare_method(get_method("gp_irt").fit(sources), 100, 0)
    bank = method.bank
    return {
        "targets": targets.values,
        "asked": method.coreset_,
        "share": method.share_,
        "trust": method.trust(np.array([100]))[0],
        "slopes": np.atleast_2d(bank.slopes.T),
        "intercepts": bank.intercepts,
    } | {f"bank {name}": array for name, array in method.bank_}


def score_data(name, split, rounds):
    "Sources and at most 50 targets of a benchmark"
    from benchnb import load

    sources, targets = load(name).split(split, seed=0)
    chosen = np.random.default_rng(0).permutation(len(targets))[:50]
    values = targets.values[chosen]
    return {"sources": sources.values, "targets": values, "rounds": rounds}


def real_pairs(name, trials):
    "Two models of a benchmark, at random items"
    from benchnb import load

    values, rng = load(name).values, np.random.default_rng(0)
    values = values[~np.isnan(values).any(axis=1)]
    pairs = np.array([rng.choice(len(values), 2, replace=False) for _ in range(trials)])
    a, b = values[pairs[:, 0]], values[pairs[:, 1]]
    data = {"truth": (a - b).mean(axis=1), "total": values.shape[1]}
    for budget in BUDGETS:
        asked = [rng.permutation(values.shape[1])[:budget] for _ in range(trials)]
        data[f"a{budget}"] = np.take_along_axis(a, np.array(asked), axis=1)
        data[f"b{budget}"] = np.take_along_axis(b, np.array(asked), axis=1)
    return data


def made_up_pairs(trials):
    "Two models of one ability each, on items of an endless benchmark"
    rng = np.random.default_rng(0)
    theta = rng.normal(0.5, 1, trials)
    theta = np.stack([theta, theta + rng.normal(0, 0.7, trials)])[..., np.newaxis]
    nodes, mass = np.polynomial.hermite_e.hermegauss(60)
    expected = logistic(theta - 1.2 * nodes) @ (mass / mass.sum())
    data = {"truth": expected[0] - expected[1], "total": np.inf}
    for budget in BUDGETS:
        chance = logistic(theta - 1.2 * rng.normal(size=(trials, budget)))
        right = rng.random(chance.shape) < chance
        data[f"a{budget}"], data[f"b{budget}"] = right.astype(float)
    return data


MEASURES = {
    "bank": measure_bank,
    "subset": measure_subset,
    "score": measure_score,
    "difference": measure_difference,
}
WORK = [  # question, data, how they are made, programs
    ("difference", "made up", lambda: made_up_pairs(400), [*DIFFERENCES]),
    ("difference", "ifeval", lambda: real_pairs("ifeval", 400), [*DIFFERENCES]),
    (
        "difference",
        "swebench_verified",
        lambda: real_pairs("swebench_verified", 400),
        [*DIFFERENCES],
    ),
    ("score", "ifeval", lambda: score_data("ifeval", "random", 4), [*SCORES]),
    (
        "score",
        "swebench_verified",
        lambda: score_data("swebench_verified", "random", 6),
        [*SCORES],
    ),
    (
        "score",
        "swebench_verified, stronger",
        lambda: score_data("swebench_verified", "ability", 6),
        [*SCORES],
    ),
    ("subset", "ifeval", subset_data, ["benchnb", "tinyBenchmarks"]),
    ("bank", "made up", dict, ["benchnb", "cBMM", "py-irt", "girth"]),
]


# Environments


def last_line(done):
    lines = [line for line in done.stderr.splitlines() if "WARNING" not in line]
    return (lines or ["it was stopped"])[-1]


def make_environment(program, folder):
    "Its Python and where its code is; text: why it is left out"
    code = ""
    if program in WITHOUT_PACKAGE:
        sources = os.environ.get("PEER_SOURCES", "")
        code = Path(sources, program, WITHOUT_PACKAGE[program]).resolve()
        if not sources or not code.is_dir():
            return f"no package: set PEER_SOURCES to a folder with a clone {program!r}"
    base = os.environ.get("PEER_PYTHON", "") if program in NEWER_PYTHON else ""
    python = Path(folder, program, "bin/python")
    commands = [[base or sys.executable, "-m", "venv", python.parents[1]]]
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    commands += [[*pip, requirement] for requirement in PEERS[program]]
    if not Path(folder, program, ".done").exists():
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                return last_line(done)
        Path(folder, program, ".done").touch()
    return python, str(code)


def ask(question, program, python, code, file, folder):
    "Rows of a program, in a process of its own"
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in threads}
    environment["PYTHONPATH"] = code
    command = [python, Path(__file__).resolve(), question, program, file]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        return last_line(done)
    return [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "{"]


def version_of(program, code=""):
    "Of the package, or the commit of its repository"
    try:
        return version(program)
    except PackageNotFoundError:
        command = ["git", "-C", code or ".", "rev-parse", "--short=7", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout.strip()


def main(target, chosen, work=None):
    "Everything in one run; returns the table"
    import pandas as pd

    kept, rows = os.environ.get("PEER_ENVIRONMENTS", ""), []
    root = str(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory() as temporary:
        homes = {"benchnb": (sys.executable, root)}
        for program in chosen or PEERS:
            home = make_environment(program, kept or temporary)
            if isinstance(home, str):
                print(f"{program}: left out: {home}", flush=True)
            else:
                homes[program] = home
        for question, name, make, programs in work or WORK:
            file = Path(temporary, "data.npz").resolve()
            np.savez(file, **make())
            for program in programs:
                if program not in homes:
                    continue
                answer = ask(question, program, *homes[program], file, temporary)
                if isinstance(answer, str):
                    print(f"{question}, {name}, {program}: failed: {answer}")
                    continue
                for row in answer:
                    first = {"question": question, "data": name, "program": program}
                    rows.append(first | row)
                    print(json.dumps(rows[-1]), flush=True)
    table = pd.DataFrame(rows)
    table.to_csv(target, index=False, float_format="%.4g")
    return table


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["bank"] and len(given) == 5:
        print(json.dumps(bank_row(given[1], *map(int, given[2:]))))
    elif given[:1] and given[0] in MEASURES:
        question, program, file = given
        data = np.load(file)
        code = os.environ.get("PYTHONPATH", "")
        for row in MEASURES[question](program, data):
            plain = {
                key: x.item() if hasattr(x, "item") else x for key, x in row.items()
            }
            text = json.dumps({"version": version_of(program, code)} | plain)
            print(f"\n{text}", flush=True)  # on a line of its own, whatever they print
    else:
        results = [name for name in given if name.endswith(".csv")]
        chosen = [name for name in given if name not in results]
        main(Path(results[0]) if results else RESULTS, chosen)
