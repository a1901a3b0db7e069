"""The data of "Score your agent": answers of 134 agents, curves that left them out"""

import base64

import numpy as np

STEPS, FOLDS = 60, 5  # tasks of the longest test; parts of the agents left out in turn


def rounded_bank(values):
    "Item curves as the page gets them: two decimals"
    from benchnb.stats.irt import IRT, fit_bank

    bank = fit_bank(values)
    found = IRT(bank.slopes.round(2), bank.intercepts.round(2))
    found.theta = bank.theta.round(3)
    return found


def adaptive_test(bank, steps=STEPS):
    "The rules of adaptive_irt; equally useful tasks in the order of the benchmark"
    from benchnb.methods.adaptive_irt import AdaptiveTest

    late, count = np.where(bank.slopes[:, 0] < 0, 1e6, 0.0), len(bank.slopes)
    return AdaptiveTest(bank, np.full(count, 1 / count), late, steps)


def estimates(bank, values, asked):
    "Ability, score and standard error after each task, each agents x steps"
    from benchnb.stats.irt import score_error

    weights, columns = np.full(values.shape[1], 1 / values.shape[1]), []
    for count in range(1, asked.shape[1] + 1):
        part = asked[:, :count]
        seen = np.take_along_axis(values, part, axis=1)
        theta, _, covariance = bank.abilities(seen, part)
        score = bank.completed(theta, part, seen) @ weights
        error = score_error(bank, theta, covariance, part, seen, weights)
        columns.append((theta[:, 0], score, error))
    return np.moveaxis(np.array(columns), 0, 2)


def demonstration():
    "What the page needs; curves of fold k have not seen its agents or copies of them"
    from benchnb import load
    from benchnb.methods.adaptive_irt import take_test
    from benchnb.stats.hold_out import hold_out
    from benchnb.stats.intervals import conformal_radius

    table = load("swebench_verified")
    values, truth = table.values.astype(float), table.performance().to_numpy()
    parts = hold_out(values, FOLDS)
    banks = [rounded_bank(values[fit]) for fit, _ in parts]
    fold = np.zeros(len(values), int)
    score, error = np.zeros((2, len(values), STEPS))
    for k, (bank, (_, held)) in enumerate(zip(banks, parts, strict=True)):
        fold[held] = k
        asked, _ = take_test(adaptive_test(bank), values[held])
        _, score[held], error[held] = estimates(bank, values[held], asked)
    apart = score - truth[:, np.newaxis]
    surprise = apart / error

    def factors(others):  # half an interval in standard errors, after each task
        return [round(conformal_radius(column), 2) for column in surprise[others].T]

    banks.append(rounded_bank(values))  # of a report that somebody drops
    spread = [factors(fold != k) for k in range(len(banks))]
    holds = np.abs(apart) <= np.array(spread)[fold] * error
    return {
        "agents": [*table.models.index],
        "tasks": [*table.items.index],
        "answers": [
            base64.b64encode(np.packbits(row > 0.5)).decode() for row in values
        ],
        "fold": fold.tolist(),
        "banks": [
            {
                "slopes": bank.slopes[:, 0].tolist(),
                "intercepts": bank.intercepts.tolist(),
                "range": [bank.theta.min(), bank.theta.max()],
                "factors": own,
            }
            for bank, own in zip(banks, spread, strict=True)
        ],
        "error": np.abs(apart).mean(axis=0).round(4).tolist(),
        "holds": holds.mean(axis=0).round(3).tolist(),
    }
