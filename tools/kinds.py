"""Six kinds of models against every method: `python -m tools.kinds [METHOD ...]`

Targets like the sources, stronger, weaker, of another profile, constant and graded, on
tables that ship; for each: how often the interval holds, what it is labelled, how often
it is flagged, how often its answers cannot show that it is like the sources, and how
often a rank is told. Finished pieces are kept in a journal, so a run that was
interrupted goes on; the table is nbs/results/kinds.csv.
"""

import sys
import warnings
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.evaluation.guard import Guard
from benchnb.evaluation.journal import Journal
from benchnb.evaluation.method import Flag
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method, simulate

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "nbs/results/kinds.csv"
JOURNAL = ROOT / "out/kinds.journal"
TABLES = {"helm_medqa": 300, "ifeval": 300}  # items of each that are used
METHODS = (
    "random stratified difference aipw faq guarded_irt guarded_irt(rounds=5) "
    "adaptive_irt atlas p_irt gp_irt anchor_irt kmeans anchor_points metabench proeval "
    "lego_irt sort_and_search"
).split()
KINDS = ("like", "stronger", "weaker", "other profile", "constant", "graded")
SOURCES = 50  # at most
TARGETS = 20  # of each kind, a trial
TRIALS = 30  # so 600 runs a cell; those of a trial share their items
FEWEST = 15  # trials of a cell that is written; the others are made next time
BUDGET = 40


@cache
def load_once(
    data: str,  # of a table
) -> Scores:
    "A table, read once"
    return load(data)


def other_profile(
    row: np.ndarray,  # right and wrong answers of a real model
    ease: np.ndarray,  # mean score of the sources on each item
) -> np.ndarray:
    "The same model, had it found hard what the sources find easy"
    order = np.argsort(ease, kind="stable")
    turned = np.empty_like(row)
    turned[order] = row[order[::-1]]
    return turned


def split_sources(
    scores: Scores,
    kind: str,  # one of KINDS
    rng: np.random.Generator,
) -> tuple[Scores, np.ndarray]:  # sources, and the targets' rows
    "Sources and targets of one kind"
    n = len(scores)
    if kind == "graded":  # means of two models: 0, a half, 1
        values = scores.values.astype(float)
        values = (values + values[rng.permutation(n)]) / 2
        scores = Scores(values, scores.items, scores.models)
    order = rng.permutation(n)
    count = min(TARGETS, n // 4)
    if kind in ("stronger", "weaker"):
        strength = np.argsort(scores.truth().to_numpy(), kind="stable")
        strength = strength if kind == "stronger" else strength[::-1]
        best = rng.permutation(strength[-count:])
        order = np.append(best, rng.permutation(strength[:-count]))
    source = scores.select(models=order[count:][:SOURCES])
    rows = scores.values[order[:count]].astype(float)
    if kind == "other profile":
        ease = np.nanmean(source.values, axis=0)
        rows = np.array([other_profile(row, ease) for row in rows])
    if kind == "constant":
        rows = np.repeat([[0.0], [1.0]], [TARGETS // 2, TARGETS - TARGETS // 2], 0)
        rows = np.tile(rows, scores.shape[1])
    return source, rows


def simulate_kind(
    name: str,  # of a method
    data: str,  # of a table
    kind: str,
    trial: int,
) -> dict:
    "What one method makes of some targets of one kind"
    rng = np.random.default_rng([trial, KINDS.index(kind), sorted(TABLES).index(data)])
    scores = load_once(data)
    items = np.sort(rng.choice(scores.shape[1], TABLES[data], replace=False))
    source, rows = split_sources(scores.select(items=items), kind, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = prepare_method(get_method(name).fit(source), BUDGET, trial)
        guard = Guard("report", np.nanmean(source.values, axis=0))
        found = simulate(method, Scores(rows, source.items), guard=guard)
    truth = rows @ source.weights
    ends = np.array([e.interval for e in found])
    held = (ends[:, 0] - 1e-7 <= truth) & (truth <= ends[:, 1] + 1e-7)
    return {
        "held": held.astype(int).tolist(),
        "flagged": [int(bool(e.flags)) for e in found],
        "unchecked": [int(Flag.UNCHECKED in e.flags) for e in found],
        "ranked": [int(not np.isnan(e.rank)) for e in found],
        "label": [str(e.kind) for e in found],
        "width": np.ptp(ends, axis=1).round(4).tolist(),
        "error": np.abs([e.score for e in found] - truth).round(4).tolist(),
    }


def cell(
    pieces: list[dict],  # of one method, table and kind
) -> dict:
    "The figures of one row"
    runs = {name: np.concatenate([p[name] for p in pieces]) for name in pieces[0]}
    held = runs["held"].astype(bool)
    silent = ~runs["flagged"].astype(bool) | runs["ranked"].astype(bool)
    labels, counts = np.unique(runs["label"], return_counts=True)
    return {
        "runs": len(held),
        "coverage": round(held.mean(), 4),
        "flagged": round(runs["flagged"].mean(), 4),
        "unchecked": round(runs["unchecked"].mean(), 4),
        "ranked": round(runs["ranked"].mean(), 4),
        "silent_misses": round((silent & ~held).mean(), 4),
        "label": labels[counts.argmax()],
        "width": round(float(runs["width"].astype(float).mean()), 4),
        "error": round(float(runs["error"].astype(float).mean()), 4),
    }


def main(names: list[str]) -> None:
    "Simulate what is missing, and write the table"
    cells = [(n, d, k) for d in TABLES for n in names for k in KINDS]
    JOURNAL.parent.mkdir(exist_ok=True)
    identity = f"{TABLES} {SOURCES} {TARGETS} {BUDGET}"
    with Journal(JOURNAL, identity) as journal:
        for name, data, kind in cells:
            keys = [f"{name}|{data}|{kind}|{trial}" for trial in range(TRIALS)]
            left = [trial for trial, key in enumerate(keys) if key not in journal.done]
            made = joblib.Parallel(n_jobs=1)(
                joblib.delayed(simulate_kind)(name, data, kind, trial) for trial in left
            )
            for trial, piece in zip(left, made, strict=True):
                journal.add(keys[trial], piece)
        rows = []
        for name, data, kind in [
            (n, d, k) for n in METHODS for d in TABLES for k in KINDS
        ]:
            keys = [f"{name}|{data}|{kind}|{trial}" for trial in range(TRIALS)]
            pieces = [journal.done[key] for key in keys if key in journal.done]
            if len(pieces) >= FEWEST:
                rows.append({"method": name, "data": data, "kind": kind} | cell(pieces))
    pd.DataFrame(rows).to_csv(RESULT, index=False)


if __name__ == "__main__":
    main(sys.argv[1:] or list(METHODS))
