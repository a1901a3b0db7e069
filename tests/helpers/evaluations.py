"Evaluations of the models of the small table: begun, told and finished"

import os

import numpy as np

from benchnb.evaluation.left_out import left_out_errors
from benchnb.evaluation.registry import get_method
from benchnb.live.evaluation import Evaluation
from helpers.small import halves, table


def known_answers(row=0, scores=None):
    "All answers of a target of the small table, by item"
    target = (scores or halves()[1]).values[row].astype(float)
    return dict(zip(halves()[1].items.index, target.tolist(), strict=True))


def tell_all(evaluation, answers):
    "Tell what is asked until nothing is; the sizes of the rounds"
    sizes = []
    while asked := evaluation.ask():
        sizes.append(len(asked))
        evaluation.tell({name: answers[name] for name in asked})
    return sizes


def evaluate(method, folder=None, row=0, budget=20, errors=True, many=False, **how):
    "A finished evaluation of a target of the small table, or of one of 80 models"
    source, target = table(1, 80).split("random", seed=0) if many else halves()
    left = left_out_errors(get_method(method), source, budget, 6) if errors else None
    one = get_method(method).fit(source)
    run = Evaluation(one, budget, folder=folder, errors=left, source=source, **how)
    answers = target.values[row].astype(float) if isinstance(row, int) else row
    tell_all(
        run, dict(zip(target.items.index, np.asarray(answers).tolist(), strict=True))
    )
    return run


def in_child(work):
    "Do it in a process of its own; its number"
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child
