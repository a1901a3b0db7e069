"""What the laboratory asks of benchnb: a table studied, and one model step by step"""

import json
import time

import numpy as np
import pandas as pd

from benchnb import compare, load, load_table
from benchnb.evaluation.compare import average_over_trials, summarize_trials
from benchnb.evaluation.planning import select_small_table
from benchnb.evaluation.recommend import QUICK_FORM, default_method, too_few
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import (
    drive_generator,
    finalize_estimate,
    prepare_method,
)

DRAWS = 20  # trials of methods that fit nothing
FITTED = 3  # trials of guarded_irt
NAMED = "swebench_verified terminal_bench helm_gsm8k helm_medqa ifeval".split()


def table(name):
    "A leaderboard of the package, or a file that was dropped"
    return load(name) if name in NAMED else load_table(name)


def plain(value):
    "As JSON has it: an unknown number is null"
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, str | int):
        return value
    return float(value) if np.isfinite(value) else None


class Text(str):
    "JSON that a page reads"

    def __new__(cls, value):
        return super().__new__(cls, json.dumps(plain(value)))

    def _repr_html_(self):
        return str(self)


def left_text(done, total, begun):
    "How far a study is, and what it will still take"
    text = f"{done} of {total} parts are done"
    if not 0 < done < total:
        return text
    seconds = (time.monotonic() - begun) / done * (total - done)
    return f"{text}, about {seconds:.0f} seconds to go"


def measured(table, methods, budgets):
    "A row per method, budget and held-out model, part by part"
    parts = [(name, trial) for trial in range(FITTED) for name in methods]
    rows, begun = [], time.monotonic()
    for done, (name, trial) in enumerate(parts):
        print(f"models are held out: {left_text(done, len(parts), begun)}")
        method = get_method(name).estimates_only()
        each = 1 if name == "guarded_irt" else DRAWS // FITTED
        for extra in range(each):
            seed = trial + FITTED * extra
            comparison = compare(
                table.scores,
                {name: method},
                budgets,
                trials=1,
                split=table.split,
                sources=table.sources,
                seed=seed,
                progress=False,
            )
            rows.append(comparison.frame.assign(trial=seed))
    return pd.concat(rows, ignore_index=True)


def advice(name, scores, errors, budget):
    "What to use, why, and its error beside that of random items"
    few = too_few("guarded_irt", scores)
    at = errors[errors["budget"] == budget].set_index("method")["mae"] * 100
    text = f"Use {name} with {budget} items: its error is {at[name]:.1f} points, "
    text += f"that of random items {at['random']:.1f}."
    if few:
        return f"{text} guarded_irt {few}; this table has {len(scores)}."
    if at[name] > at["random"]:
        text += " On this table that is no gain: a random sample does as well."
    return text


def study(name, budget):
    "Errors of the recommended method beside random items, and its list of items"
    scores = table(name)
    count = scores.values.shape[1]
    budget = min(budget, count // 2)
    if budget < 5 or len(scores) < 8:
        problem = f"{name} has {len(scores)} models and {count} items"
        raise ValueError(f"{problem}: a study needs 8 models and 10 items")
    chosen, _ = default_method(scores)
    methods = dict.fromkeys([chosen, "stratified", "random"])
    budgets = sorted({n for n in (10, 20, 40, 70, 100, budget) if n <= count // 2})
    small = select_small_table(scores, "random", most=QUICK_FORM["sources"])
    rows = measured(small, methods, budgets)
    means = average_over_trials(summarize_trials(rows))
    print("the list is drawn")
    method = get_method(chosen).estimates_only().fit(scores)
    items = prepare_method(method, budget, 0).coreset_
    columns = ["method", "budget", "mae", "mae_se"]
    return {
        "models": len(scores),
        "items": count,
        "budget": budget,
        "trials": int(rows.groupby("method")["trial"].nunique()[chosen]),
        "draws": int(rows.groupby("method")["trial"].nunique()["random"]),
        "method": chosen,
        "sentence": advice(chosen, scores, means, budget),
        "rows": means[columns].to_dict("records"),
        "list": [str(item) for item in scores.items.index[np.sort(items)]],
    }


def models(name):
    "Names of the models, the newest first, or the strongest; the first is typical"
    scores = table(name)
    order = scores.performance().rank(ascending=False, method="first")
    if "released" in scores.models and scores.models["released"].notna().all():
        dates = pd.to_datetime(scores.models["released"])
        order = dates.rank(ascending=False, method="first")
        return [str(model) for model in order.sort_values().index]
    names = [str(model) for model in order.sort_values().index]
    typical = names[len(names) // 4]
    return [typical, *(model for model in names if model != typical)]


def estimate_after(method, answers, scored):
    "The estimate when the first results of a list are in"
    seen = np.full(len(answers), np.nan)
    seen[scored] = answers[scored]
    estimate = drive_generator(method.run(np.random.default_rng(0)), lambda _: seen)
    return finalize_estimate(estimate, method, method.coreset_, seen)


def path(method, target, budget):
    "Score and interval as the results of a list come in, in random order"
    prepared = prepare_method(method, budget, 0)
    answers = target.values[0, prepared.coreset_].astype(float)
    order = np.random.default_rng(0).permutation(len(answers))
    steps = []
    for count in np.unique(np.linspace(5, len(answers), 8).astype(int)):
        estimate = estimate_after(prepared, answers, order[:count])
        low, high = estimate.interval
        flags = sorted(map(str, estimate.flags - {"unscored"}))
        step = {"items": int(count), "score": estimate.score, "low": low, "high": high}
        steps.append(step | {"said": estimate.interval_method, "flags": flags})
    return steps


def steps(name, model, method, budget):
    "One model: a method's estimates and those of random items, beside the truth"
    scores = table(name)
    place = scores.models.index.get_loc(model)
    copies = scores.near_copies()
    source = scores.select(models=copies != copies[place])
    target = scores.select(models=np.arange(len(scores)) == place)
    print(f"{method} learns from the {len(source)} other models")
    fitted = get_method(method).fit(source)
    print("its interval is calibrated, then the results come in")
    shown = {"method": method, "steps": path(fitted, target, budget)}
    beside = path(get_method("random").fit(source), target, budget)
    return shown | {"truth": target.truth().iloc[0], "random": beside}
