"Confidence sequences: fair games, the obvious computation, and peeking"

import itertools

import numpy as np
import pytest

from benchnb.stats.confidence_sequences import (
    BETS,
    PredictedAnswers,
    betting_capital,
    confidence_sequence,
    predict_answers_in_order,
    source_predictions,
)


def slow_capital(answers, mean, total, low, bets):
    "Equations 1 to 3, one answer after another"
    n = len(answers.seen)
    guess, rest, swing = (np.broadcast_to(x, n) for x in answers[1:])
    wealth, known = np.ones(len(bets)), []
    for t in range(n):
        mu = (total * mean - sum(known)) / (total - t)
        surprise = answers.seen[t] - guess[t] - (mu - rest[t])
        most = 0.9 / max(mu - low + swing[t], 1e-9)
        wealth *= [1 + min(bet, most) * surprise for bet in bets]
        known.append(answers.seen[t])
    return wealth.mean()


def predicted(order, truth, guess):
    "Answers in an order, with fixed predictions"
    seen, known = truth[order], guess[order]
    left = len(truth) - np.arange(len(truth))
    rest = (guess.sum() - known.cumsum(-1) + known) / left
    swing = np.maximum(guess.max() - rest, rest - guess.min())
    return PredictedAnswers(seen, known, rest, swing)


@pytest.mark.parametrize("low", [0.0, -1.0])
def test_the_capital_is_the_obvious_product(low):
    rng = np.random.default_rng(0)
    truth, guess = rng.integers(low, 2, 40).astype(float), rng.uniform(low, 1, 40)
    answers = predicted(rng.permutation(40)[np.newaxis], truth, guess)
    short = PredictedAnswers(*(part[0, :25] for part in answers))
    for mean in (truth.mean(), truth.mean() - 0.05):
        slow = slow_capital(short, mean, 40, low, BETS)
        assert betting_capital(short, mean, 40, low)[-1] == pytest.approx(slow)


def test_no_claim_that_is_true_can_be_refuted_on_average():
    "Over all orders the capital at the true mean is 1, and it is never below 0"
    orders = np.array(list(itertools.permutations(range(6))))
    truth, guess = np.array([1, 0, -1, 1, 0.5, 0]), np.array(
        [0.9, -0.8, 0.7, 0, 0, 0.1]
    )
    answers = predicted(orders, truth, guess)
    up = betting_capital(answers, truth.mean(), 6, -1.0)
    down = betting_capital(answers.mirrored(), -truth.mean(), 6, -1.0)
    for game in (up, down):
        np.testing.assert_allclose(game.mean(axis=0), 1)
        assert (game >= 0).all()
    lower = betting_capital(answers, truth.mean() + 0.1, 6, -1.0)
    assert (
        lower.mean(axis=0) <= 1 + 1e-9
    ).all()  # "at most more than it is" is true too


@pytest.mark.parametrize("helpful", [True, False])
def test_peeking_is_wrong_at_most_as_often_as_promised(helpful):
    rng, total = np.random.default_rng(1), 300
    truth = (rng.random(total) < 0.7).astype(float)
    guess = 0.8 * truth + 0.1 if helpful else rng.random(total)
    orders = rng.permuted(np.tile(np.arange(total), (1000, 1)), axis=1)
    answers = predicted(orders, truth, guess)
    up = betting_capital(answers, truth.mean(), total)
    down = betting_capital(answers.mirrored(), -truth.mean(), total, -1.0)
    wrong = (np.maximum(up, down)[:, :-1] >= 40).any(axis=1).mean()
    assert wrong <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 1000)


def test_the_sequence_narrows_to_the_truth_and_predictions_help():
    rng, total = np.random.default_rng(2), 200
    truth = (rng.random(total) < 0.6).astype(float)
    order = rng.permutation(total)
    known = predicted(order[np.newaxis], truth, 0.8 * truth + 0.1)
    ends = [
        confidence_sequence(one, total)
        for one in (
            PredictedAnswers(*(part[0] for part in known)),
            PredictedAnswers(truth[order]),
        )
    ]
    for low, high in ends:
        assert (np.diff(low) >= 0).all() and (np.diff(high) <= 0).all()
        assert low[-1] == pytest.approx(truth.mean(), abs=0.005) == high[-1]
    assert ends[0][1][60] - ends[0][0][60] < 0.7 * (ends[1][1][60] - ends[1][0][60])


def test_predictions_are_older_than_the_answers():
    "What was predicted of an item does not change with its answer, or with later ones"
    rng = np.random.default_rng(3)
    values, order = rng.integers(0, 2, (20, 50)).astype(float), rng.permutation(50)
    seen = rng.integers(0, 2, 50).astype(float)
    before = predict_answers_in_order(values, order, seen)
    for at in (0, 9, 10, 14, 30):
        other = seen.copy()
        other[at:] = 1 - other[at:]
        after = predict_answers_in_order(values, order, other)
        for one, two in zip(before[1:], after[1:], strict=True):
            np.testing.assert_array_equal(one[: at + 1], two[: at + 1])
    whole = source_predictions(values, order[:10], seen[:10], values.mean(axis=0))
    np.testing.assert_allclose(before.guess[10:15], whole[order[10:15]])
    assert before.rest[10] == pytest.approx(np.delete(whole, order[:10]).mean())


def test_predictions_are_ridge_regression():
    from sklearn.kernel_ridge import KernelRidge

    rng = np.random.default_rng(4)
    values = rng.integers(0, 2, (12, 30)).astype(float)
    asked, seen = rng.permutation(30)[:9], rng.random((2, 9))
    found = source_predictions(values, asked, seen, 0.0)
    apart = values - values.mean(axis=0)
    kernel = KernelRidge(alpha=3 * len(values) * (apart**2).mean(), kernel="linear")
    kernel.fit(apart.T[asked], seen.T)
    np.testing.assert_allclose(found, kernel.predict(apart.T).T, atol=1e-9)


@pytest.mark.parametrize("total", [20, 3000])
def test_no_end_is_out_of_reach_and_none_excludes_what_the_rest_decides(total):
    "After n answers the others are worth their lowest and highest, no more"
    rng = np.random.default_rng(0)
    for low, values in ((0.0, [0.0, 1.0]), (-1.0, [-1.0, 0.0, 1.0])):
        seen = rng.choice(values, total)
        ends = confidence_sequence(PredictedAnswers(seen), total, low=low)
        left = total - np.arange(1, total + 1)
        sums = seen.cumsum()
        lowest, highest = (sums + low * left) / total, (sums + left) / total
        assert (ends[0] >= lowest - 1e-9).all() and (ends[1] <= highest + 1e-9).all()
        assert ends[0][-1] == pytest.approx(seen.mean()) == pytest.approx(ends[1][-1])
        one_left = ends[0][-2], ends[1][-2]
        assert one_left == pytest.approx((lowest[-2], highest[-2]))
