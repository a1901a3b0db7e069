"""The data of the live chart and of "Score your agent": guarded_irt fitted, one round.

The chart's agents are the newest quarter of SWE-bench Verified, its curves those of the
older ones, as in the figures beside it; a report is estimated by the bundle that ships.
"""

import base64

import numpy as np
from scipy.special import ndtri, stdtrit

from tools.run import ROOT

DATA, SPLIT = "swebench_verified", "date"
BUNDLE = "swebench-verified-50"
BUDGETS = (15, 25, 50, 100)  # those of agents_methods.csv
DRAWS = 3  # of each list


def floats(arrays):
    "Arrays one after another as 32-bit floats, as text"
    parts = [np.asarray(array, dtype="<f4").ravel() for array in arrays]
    return base64.b64encode(np.concatenate(parts).tobytes()).decode()


def bank_values(bank):
    "An item bank as the page gets it, with the noise of importance_sample"
    items, dims = bank.slopes.shape
    rows, columns = np.triu_indices(dims + 1)
    noise = np.random.default_rng(0).standard_normal((64, dims))
    params = np.column_stack([bank.intercepts, bank.slopes])
    covariance = bank.covariance[:, rows, columns]
    parts = (params, covariance, bank.theta, bank.fitted, bank.residual, noise)
    return {"dims": dims, "floats": floats(parts)}


def fitted_values(method, most):
    "A fitted guarded_irt, for lists of at most so many items"
    from benchnb.methods.guarded_irt import BALANCE_GAIN
    from benchnb.stats.irt import IRT

    assert not method.partial_ and np.ptp(method.weights_) < 1e-12
    assert (method.rounds, method.level) == (1, 0.95)
    banks = [IRT(**dict(arrays)) for arrays in method.banks_]
    level = (1 + method.level) / 2
    scores = method.source_scores_[:, 0]
    return {
        "banks": [bank_values(bank) for bank in banks],
        "sources": len(banks[0].theta),
        "easiness": method.ease_.round(9).tolist(),
        "ceiling": method.ceiling_,
        "limit": method.limit,
        "misfitLimit": method.misfit_limit,
        "balanceGain": BALANCE_GAIN,
        "z": float(ndtri(level)),
        "t": stdtrit(np.arange(1, most + 1), level).tolist(),
        "range": [float(scores.min()), float(scores.max())],
        "scores": scores.round(4).tolist(),
    }


def list_values(method, rng=None):
    "A prepared list: its items in the order in which results come in, at random"
    items = method.coreset_ if rng is None else rng.permutation(method.coreset_)
    return {
        "items": items.tolist(),
        "probabilities": method.inclusion_probabilities_[items].round(9).tolist(),
        "inflation": method.se_inflation_,
    }


def measured_errors():
    "Stored errors of the newest agents: method, number of tasks, points and coverage"
    import pandas as pd

    rows = pd.read_csv(ROOT / "nbs/results/agents_methods.csv")
    rows = rows[(rows["data"] == DATA) & (rows["split"] == SPLIT)]
    shown = {}
    for name in ("guarded_irt", "random"):
        own = rows[rows["method"] == name].set_index("budget")
        errors = own["mae"].mul(100).round(3)
        shown[name] = {
            "points": errors[[*BUDGETS]].to_dict(),
            "holds": own["coverage"][[*BUDGETS]].round(4).to_dict(),
            "trials": own["trials"][[*BUDGETS]].to_dict(),
        }
    return shown


def packed_answers(values):
    "A bit for each answer"
    return [base64.b64encode(np.packbits(row > 0.5)).decode() for row in values]


def usual_agent(method, agents, measured, order, budget=25):
    "Position of an agent whose errors are near the means of all: the first to be shown"
    from benchnb.evaluation.simulate import prepare_method, simulate

    truth = agents.truth().to_numpy()
    estimates = simulate(prepare_method(method, budget, 0), agents)
    scores = {
        "guarded_irt": np.array([estimate.score for estimate in estimates]),
        "random": agents.values[:, order[:budget]].mean(axis=1),
    }
    away = np.zeros(len(agents))
    for name, score in scores.items():
        errors = np.abs(score - truth) * 100
        away += np.abs(errors - measured[name]["points"][budget])
    return int(away.argmin())


def demonstration(budgets=BUDGETS, draws=DRAWS, method=None):
    "The newest agents, curves of the older ones (a fitted method), lists of tasks"
    from benchnb import get_method, load
    from benchnb.evaluation.simulate import prepare_method

    sources, newest = load(DATA).split(SPLIT)
    measured = measured_errors()
    method = method or get_method("guarded_irt").fit(sources)
    count = newest.shape[1]
    seeds = range(draws)
    orders = [np.random.default_rng(seed).permutation(count) for seed in seeds]
    lists = {}
    for budget in budgets:
        lists[budget] = []
        for seed in seeds:
            prepared = prepare_method(method, budget, seed)
            lists[budget].append(list_values(prepared, np.random.default_rng(seed)))
    return {
        "agents": [*newest.models.index],
        "tasks": [*newest.items.index],
        "answers": packed_answers(newest.values),
        "fitted": fitted_values(method, max(budgets)),
        "lists": lists,
        "measured": measured,
        "random": [order[: max(BUDGETS)].tolist() for order in orders],
        "first": usual_agent(method, newest, measured, orders[0]),
    }


def report_data(live=None):
    "What estimates a report: the bundle that ships (an Evaluation from it)"
    from benchnb.evaluation.guard import usual_source_range
    from benchnb.live.bundles import find_bundle, load_bundle

    live = live or load_bundle(find_bundle(BUNDLE))
    method, errors = live.method, live.left_out(live.method.budget_)
    fitted = fitted_values(method, method.budget_)
    fitted["ease"] = [*map(float, live.plan.ease)]
    fitted["usualFit"] = usual_source_range(errors["fit"])
    fitted["usualCorrection"] = usual_source_range(errors["correction"])
    return {"bundle": BUNDLE, "fitted": fitted, "list": list_values(method)}
