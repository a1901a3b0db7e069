"""Kill a command at a moment that is typed beforehand, and note what it asked.

A file that Python reads at its start (`sitecustomize`) counts what the process does
and sends the signal itself: nothing waits, and the moment is the same each time.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

ASKED = "asked.jsonl"  # a line for each question that a model on this machine reads
START = """
import json, os, signal
from benchnb.evaluation.journal import Journal
from benchnb.bento.local_model import LocalModel

event, at, whom = os.environ.get("KILL", "never 0 self").split()
mine = os.environ.get("KILL_GPU") in (None, os.environ.get("CUDA_VISIBLE_DEVICES"))
seen, add, read = [0], Journal.add, LocalModel.row_logprobs

def happened(name):
    seen[0] += name == event
    if mine and name == event and seen[0] == int(at):
        os.kill(os.getpid() if whom == "self" else os.getppid(), signal.SIGKILL)

def counted(self, *given):
    add(self, *given)
    happened("record")

def noted(self, prefix, rows):
    lines = [json.dumps([prefix.ids, ids]) + "\\n" for ids, _ in rows]
    with open(os.environ["ASKED"], "a") as file:
        file.write("".join(lines))
    found = read(self, prefix, rows)
    happened("batch")
    return found

Journal.add, LocalModel.row_logprobs = counted, noted
"""


def environment(folder, kill=None, gpu=None):
    "Variables of a process that notes its questions; kill: event, number, whom"
    (folder / "start").mkdir(exist_ok=True)
    (folder / "start" / "sitecustomize.py").write_text(START)
    paths = os.pathsep.join([str(folder / "start"), os.environ["PYTHONPATH"]])
    more = {"PYTHONPATH": paths, "ASKED": str(folder / ASKED)}
    more |= {"KILL": kill} if kill else {}
    return os.environ | more | ({"KILL_GPU": gpu} if gpu else {})


def run(words, folder, **how):
    "A command to its end, and that of all processes that it started"
    return subprocess.run(
        [sys.executable, "-m", "benchnb", *words],
        cwd=folder,
        env=environment(folder, **how),
        capture_output=True,  # read until every process has closed it
        text=True,
        timeout=300,
    )


def killed(done):
    "Did the signal end it?"
    return done.returncode == -signal.SIGKILL


def asked(folder):
    "How often each question was read, after which exemplars"
    path = folder / ASKED
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter(json.dumps(json.loads(line)) for line in lines)
