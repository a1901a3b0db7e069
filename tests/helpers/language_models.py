"Small language models and tasks for them"

from itertools import permutations

import numpy as np

from benchnb.bento.local_model import make_small_model
from benchnb.bento.prompts import FLAN, MMLU, Task, read_tasks
from benchnb.bento.transfer import Protocol


def tasks_and_model(folder, names, rows):
    "Small tasks in a folder, and beside them a small model that knows their words"
    (folder / "tasks").mkdir()
    rng = np.random.default_rng(0)
    for name in names:
        lines = [f"{name} {n},{rng.random():.2f},no,{'AB'[n % 2]}" for n in range(rows)]
        (folder / "tasks" / f"{name}.csv").write_text("\n".join(lines))
    tasks = read_tasks(folder / "tasks")
    pair = make_small_model([MMLU.context(t, t.examples) for t in tasks], spread=0.2)
    for part in pair:
        part.save_pretrained(folder / "model")
    return tasks, pair


def toy_tasks(count=60):
    "Four letters and a hidden rule: which of them is the answer? Of four rules, twelve"
    rules, tasks = ("first", "second", "third", "last"), []
    for number, (low, high) in enumerate(("ah", "ip", "qx")):
        every = list(permutations(map(chr, range(ord(low), ord(high) + 1)), 4))
        drawn = np.random.default_rng([0, number]).choice(
            len(every), count, replace=False
        )
        for place, rule in enumerate(rules):
            examples = [(" ".join(d), d[place], d) for d in (every[n] for n in drawn)]
            tasks.append(Task(f"{rule} of {low}-{high}", examples))
    return sorted(tasks, key=lambda task: rules.index(task.name.split()[0]))


TOYS = [toy_tasks(12)[place] for place in (0, 1, 9)]
FEW = dict(exemplars=3, seeds=2, prompt=FLAN)


def uneven():
    "Questions of very different length; options of one word and of several"
    words = "red green blue pink grey".split()
    rng = np.random.default_rng(3)
    examples = []
    for n in range(10):
        text = " ".join(rng.choice(words, 1 + 3 * n))
        options = ("red", "green blue", "pink grey red") if n % 2 else ("red", "blue")
        examples.append((f"{n} {text}", options[n % len(options)], options))
    return Task("uneven", examples)


LONG = uneven()
ALL = [*TOYS, LONG]


def made(kind="llama", **more):
    "A small model with weights large enough that exemplars matter"
    texts = [p.context(t, t.examples) for t in ALL for p in (FLAN, MMLU)]
    return make_small_model(texts, kind, spread=0.2, positions=400, **more)


def asks_of(task):
    return Protocol(prompt=FLAN).asks_of(task.examples)


def linked(folder, here, monkeypatch):
    "Go to an empty folder that sees the tasks and the model of another"
    monkeypatch.chdir(here)
    for name in ("tasks", "model"):
        (here / name).symlink_to(folder / name)
    return here
