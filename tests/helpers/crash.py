"""Stop a command at every call that changes a file, as SQLite tests its own journal.

`sweep` gives the command in copies of a folder. In copy n the n-th change does not
happen: the process is killed there (mode `kill`), no file can be made from there on
(`full`), or files can be made but take no byte (`cut`). Then the same command is given
again."""

import contextlib
import errno
import io
import json
import os
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pandas as pd

MODES = ("kill", "full", "cut")
CHANGES = "rename remove mkdir rmdir truncate link symlink chmod".split()
CHANGES = {f"os.{name}" for name in CHANGES} | {"helpers.sql"}
MAKES = {"open", "os.mkdir", "os.rename"}  # what a full disk refuses
CHANGING_SQL = "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "CREATE", "INSERT", "DELETE"
CHANGING_SQL += "COMMIT", "UPDATE"
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
TIMES = ["seconds", "ms", "seconds_per_target"]  # columns that differ between runs


class Run(NamedTuple):
    "What became of a command"

    status: int  # of the process; negative: the signal that ended it
    out: str
    err: str
    changes: int  # calls that changed a file


class Stop(NamedTuple):
    "A command that was stopped, and given again"

    at: int  # number of the change that did not happen
    first: Run
    between: dict  # files after the stop, by name
    left: list[str]  # unfinished files after the stop
    again: Run
    after: dict
    left_after: list[str]


def changes_a_file(event, args, folder):
    "Does this audit event change something below the folder?"
    if event != "open" and event not in CHANGES:
        return False
    if event == "open" and not (isinstance(args[2], int) and args[2] & WRITES):
        return False
    path = args[0]
    if isinstance(path, int):
        return False
    return (os.path.abspath(os.fsdecode(path)) + os.sep).startswith(folder + os.sep)


def on_sql(happens):
    "Call it with the path before each SQL statement that changes a database"
    connect = sqlite3.connect

    def traced(path, *args, **how):
        base = connect(path, *args, **how)
        name = unquote(str(path).removeprefix("file://").partition("?")[0])

        def note(statement):
            if statement.startswith(CHANGING_SQL):
                happens(name)

        base.set_trace_callback(note)
        return base

    sqlite3.connect = traced


def run(command, folder, stop=0, mode="kill"):
    "Run a command, or a function, in a folder in a child process"
    folder = os.path.realpath(folder)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            text = json.dumps(_in_child(command, folder, stop, mode))
        except BaseException as error:
            text = json.dumps([1, "", f"Traceback {error!r}", 0])
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return Run(*json.loads(text)) if text else Run(-os.WTERMSIG(status), "", "", stop)


def _in_child(command, folder, stop, mode):
    from benchnb.cli.app import main

    os.chdir(folder)
    seen = [0]

    def hook(event, args):
        if not changes_a_file(event, args, folder):
            return
        seen[0] += 1
        if not stop or seen[0] < stop:
            return
        if mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif mode == "cut":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        elif event in MAKES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), args[0])

    on_sql(lambda path: sys.audit("helpers.sql", path))
    sys.addaudithook(hook)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command() if callable(command) else main(list(command))
    return status or 0, out.getvalue(), err.getvalue(), seen[0]


def unfinished(folder):
    "Files and folders that a run left behind: not whole, and not the user's"
    paths = (path.relative_to(folder) for path in Path(folder).rglob("*"))
    return sorted(str(p) for p in paths if p.name.startswith(".") and p.name != ".lock")


def contents(folder):
    "What is in every visible file; locks, journals and times are left out"
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and "/." not in f"/{name}" and "journal" not in path.name:
            found[name] = _content(path)
    return found


def _content(path):
    if path.suffix == ".db":
        return database(path)
    if path.suffix not in (".csv", ".parquet"):
        return path.read_bytes()
    read = pd.read_csv if path.suffix == ".csv" else pd.read_parquet
    return read(path).drop(columns=TIMES, errors="ignore").to_csv()


def database(path):
    "What a database holds; what was left half written is undone in a copy"
    with tempfile.TemporaryDirectory() as place:
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, place)
        with contextlib.closing(sqlite3.connect(Path(place, path.name))) as base:
            return "\n".join(base.iterdump())


def sweep(command, start, place, mode="kill", stops=None):
    "Stop a command at every change, or at some; first a whole run, then every stop"
    whole = shutil.copytree(start, Path(place, "whole"), symlinks=True)
    tried = shutil.copytree(start, Path(place, "tried"), symlinks=True)
    with contextlib.chdir(tried), contextlib.redirect_stdout(io.StringIO()):
        from benchnb.cli.app import main

        assert main(list(command)) == 0  # imports all that it needs, once
    done = run(command, whole)
    assert done.status == 0, done.err
    wanted, found = contents(whole), []
    numbers = range(1, done.changes + 1)
    for at in numbers if stops is None else numbers[:: -(-len(numbers) // stops)]:
        folder = shutil.copytree(start, Path(place, f"stop-{at}"), symlinks=True)
        first = run(command, folder, at, mode)
        between, left = contents(folder), unfinished(folder)
        again = run(command, folder)
        after = contents(folder), unfinished(folder)
        found.append(Stop(at, first, between, left, again, *after))
        shutil.rmtree(folder)
    shutil.rmtree(whole)
    return wanted, found
