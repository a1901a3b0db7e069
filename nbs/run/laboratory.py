"""What the laboratory asks of benchnb: a table studied, and one model step by step"""

import json

import numpy as np

from benchnb import compare, load, load_table
from benchnb.evaluation.compare import over_trials, summary
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import ready, simulate
from benchnb.studies.recommend import recommend

METHODS = ["random", "stratified", "aipw", "p_irt"]  # guarded_irt takes minutes here
NAMED = "swebench_verified terminal_bench helm_gsm8k helm_medqa ifeval".split()


def table(name):
    "A leaderboard of the package, or a file that was dropped"
    return load(name) if name in NAMED else load_table(name)


def answer(found):
    "As JSON, in which an unknown number is null"
    if isinstance(found, dict):
        return {key: answer(value) for key, value in found.items()}
    if isinstance(found, list):
        return [answer(value) for value in found]
    if isinstance(found, str | int):
        return found
    return float(found) if np.isfinite(found) else None


class Text(str):
    "JSON that a page reads"

    def __new__(cls, found):
        return super().__new__(cls, json.dumps(answer(found)))

    def _repr_html_(self):
        return str(self)


def study(name, budget, trials=3):
    "Errors of some methods at some budgets, which one to take, and its items"
    scores = table(name)
    count = scores.values.shape[1]
    budget = min(budget, count // 2)
    if budget < 5 or len(scores) < 8:
        problem = f"{name} has {len(scores)} models and {count} items"
        raise ValueError(f"{problem}: a study needs 8 models and 10 items")
    budgets = sorted({n for n in (10, 20, 40, 70, 100, budget) if n <= count // 2})
    print(f"which method suits these {len(scores)} models and {count} items?")
    advice = recommend(scores, budget, METHODS, trials, progress=False)
    print(f"comparing {len(METHODS)} methods at {len(budgets)} numbers of items")
    rows = compare(scores, METHODS, budgets, trials, progress=False)
    means = over_trials(summary(rows))
    columns = ["method", "budget", "mae", "mae_se", "width", "coverage"]
    method = ready(get_method("stratified").fit(scores), budget, 0)
    return {
        "models": len(scores),
        "items": count,
        "budget": budget,
        "trials": trials,
        "method": advice.method,
        "sentence": advice.sentence(),
        "rows": means[columns].to_dict("records"),
        "list": [str(name) for name in scores.items.index[np.sort(method.coreset_)]],
    }


def models(name):
    "Names of the models of a table"
    return [str(model) for model in table(name).models.index]


def steps(name, model, method, budget):
    "Estimate and interval of one model after more and more items, beside the truth"
    scores = table(name)
    place = scores.models.index.get_loc(model)
    copies = scores.near_copies()
    source = scores.select(models=copies != copies[place])
    target = scores.select(models=np.arange(len(scores)) == place)
    fitted, found = get_method(method).fit(source), []
    for items in np.unique(np.linspace(5, budget, 8).astype(int)):
        (one,) = simulate(ready(fitted, int(items), 0), target)
        found.append(
            {
                "items": len(one.items),
                "score": one.score,
                "low": one.interval[0],
                "high": one.interval[1],
                "said": "; ".join([one.how, *one.notes]),
            }
        )
    return {"truth": target.truth().iloc[0], "steps": found}
