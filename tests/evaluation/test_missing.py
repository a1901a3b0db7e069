"""An interval holds too where only some of the items that were asked have a score"""

import warnings

import numpy as np
import pytest

from benchnb import get_method, load
from benchnb.evaluation.guard import Guard
from benchnb.evaluation.left_out import source_guard
from benchnb.evaluation.simulate import Conversation, converse, ready

SCORED = (1, 3, 5, 10, 25, 50)  # of 50 items asked
FEW = {"essence_bench": dict(generations=5)} if False else {}
METHODS = ["random", "stratified", "difference", "aipw", "guarded_irt_static"]
METHODS += ["p_irt", "gp_irt", "anchor_irt", "kmeans", "anchor_points"]
METHODS += ["sort_and_search", "metabench", "essence_bench", "proeval"]
METHODS += ["guarded_irt", "adaptive_irt", "faq", "tailored_bench"]
METHODS += ["tailored_bench_published", "collaborative_filtering"]


def some_scored(row, keep):
    "Answers of which only those at the positions `keep` in the order asked are known"

    def answer(conversation):
        place = len(conversation.asked) + np.arange(len(conversation.wanted))
        answers = row[conversation.wanted]
        return np.where(np.isin(place, keep), answers, np.nan), None, None

    return answer


def estimates(name, table, sizes=SCORED, budget=50, splits=2, policy="aipw"):
    "Scores and intervals of new models, with `sizes` of their answers at random"
    found = []
    for seed in range(splits):
        rng = np.random.default_rng([seed, 36])
        order = rng.permutation(len(table))
        old, new = (table.select(models=np.sort(x)) for x in np.array_split(order, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method = ready(get_method(name).fit(old), budget, seed)
            guard = source_guard(get_method(name), old, budget, policy, folds=5)
            for row, truth in zip(new.values.astype(float), new.truth(), strict=True):
                for size in sizes:
                    keep = rng.choice(budget, size, replace=False)
                    run = Conversation(method)
                    converse(run, some_scored(row, keep))
                    e = (guard or Guard(None))(run)
                    found.append((size, truth, e.score, *e.interval))
    return np.array(found)


def coverage(found):
    "Share of the intervals that hold, for each number of scored items; NaN: none"
    size, truth, _, low, high = found.T
    holds = np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high))
    width = high - low
    return {
        int(n): (np.nanmean(holds[size == n]), np.nanmean(width[size == n]))
        for n in np.unique(size)
    }
