"""Stop a command at every file-system call once: as SQLite tests its own journal.

`python -m helpers.crash FOLDER MODE COMMAND...` runs the command in copies of FOLDER.
In
copy n the n-th call that changes a file does not happen: the process is killed there
(mode `kill`), or the disk is full from there on (mode `full`). Then the same command is
given again. One JSON line is printed for every stop."""

import contextlib
import errno
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link")
CHANGES += ("os.symlink", "sqlite3.connect", "shutil.rmtree", "shutil.move")


def changes_a_file(event, args, folder):
    "Does this audit event change something below the folder?"
    if event == "open":
        path, mode, flags = args
        if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            return False
    elif event in CHANGES:
        path = args[0]
    else:
        return False
    if isinstance(path, int):
        return False
    return os.path.abspath(os.fsdecode(path)).startswith(folder)


def run(command, folder, stop=0, mode="kill"):
    "Run a command in a folder in a child process; its exit status, output and errors"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.chdir(folder)
        seen = [0]

        def hook(event, args):
            if stop and changes_a_file(event, args, folder):
                seen[0] += 1
                if mode == "kill" and seen[0] == stop:
                    os.kill(os.getpid(), signal.SIGKILL)
                if mode == "full" and seen[0] >= stop and event in ("open", "os.mkdir"):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), args[0])

        from benchnb.cli.app import main

        out, err = io.StringIO(), io.StringIO()
        sys.addaudithook(hook)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main(command)
        except SystemExit as end:
            status = end.code
        text = json.dumps([status or 0, out.getvalue(), err.getvalue(), seen[0]])
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if not text:
        return [-os.WTERMSIG(status), "", "", stop]
    return json.loads(text)


def contents(folder):
    "Every file below a folder and its bytes; what only locks or waits is left out"
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and path.name != ".lock":
            found[str(path.relative_to(folder))] = path.read_bytes().hex()[:4000]
    return found


def main():
    start, mode, *command = sys.argv[1:]
    import benchnb.cli.app  # noqa: F401  (imported once, before the forks)

    with tempfile.TemporaryDirectory() as place:
        whole = str(Path(place, "whole"))
        shutil.copytree(start, whole)
        status, out, err, _ = run(command, whole, stop=10**9)
        wanted = contents(whole)
        print(json.dumps({"stop": 0, "status": status, "out": out, "err": err}))
        for stop in range(1, 1000):
            folder = str(Path(place, f"stop-{stop}"))
            shutil.copytree(start, folder)
            first = run(command, folder, stop, mode)
            if first[0] == 0 and mode == "kill":  # it was over before
                break
            between = contents(folder)
            again = run(command, folder)
            print(
                json.dumps(
                    {
                        "stop": stop,
                        "status": first[0],
                        "err": first[2],
                        "files": sorted(between),
                        "again": again[0],
                        "again_err": again[2],
                        "same": contents(folder) == wanted,
                        "differ": sorted(
                            name
                            for name in {**wanted, **contents(folder)}
                            if wanted.get(name) != contents(folder).get(name)
                        ),
                    }
                ),
                flush=True,
            )
            shutil.rmtree(folder)
            if mode == "full" and first[0] == 0:
                break


if __name__ == "__main__":
    main()
