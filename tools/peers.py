"""python -m tools.peers PROGRAM SOURCES ITEMS SEED: an item bank, fitted by one of four
programs: CPU seconds on one thread, and the error of its probabilities. A row of
nbs/results/item_banks.csv. girth and py-irt come from PyPI, cBMM.py from its repository
(github.com/JackQuu/cBMM, folder quickstart), which has no package."""

import json
import sys
import time

import numpy as np


def made_up(models, items, seed):
    "Answers and their probabilities: curves of two parameters, one ability"
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(models, 1))
    slope = np.exp(rng.normal(0, 0.4, items))
    probability = logistic(slope * (theta - rng.normal(0, 1.2, items)))
    return (rng.random(probability.shape) < probability).astype(float), probability


def logistic(x):
    return 1 / (1 + np.exp(-x))


def benchnb(answers):
    from benchnb.stats.irt_fit import fit_irt

    bank = fit_irt(answers)
    return bank.probability(bank.theta)


def girth(answers):
    from girth import ability_eap, twopl_mml

    columns = answers.T.astype(int)
    fit = twopl_mml(columns)
    slope, difficulty = fit["Discrimination"], fit["Difficulty"]
    theta = ability_eap(columns, difficulty, slope)
    return logistic(slope * (theta[:, None] - difficulty))


def py_irt(answers):
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


def cbmm(answers):
    from cBMM import cBMM

    return logistic(cBMM(2 * answers - 1, r=1, verbose=0)["X_hat"])


if __name__ == "__main__":
    fit = {"benchnb": benchnb, "girth": girth, "py-irt": py_irt, "cBMM": cbmm}
    program, models, items, seed = sys.argv[1], *map(int, sys.argv[2:])
    answers, truth = made_up(models, items, seed)
    if program == "benchnb":
        benchnb(answers[:30, :40])  # imports
    start = time.process_time()
    error = fit[program](answers) - truth
    row = {"program": program, "sources": models, "items": items, "seed": seed}
    row["cpu"] = round(time.process_time() - start, 3)
    print(json.dumps(row | {"rmse": round(float(np.sqrt(np.mean(error**2))), 5)}))
