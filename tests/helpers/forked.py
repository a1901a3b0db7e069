"""A command in a process of its own, forked from this one: what it does with files,
signals and exit codes is that of a fresh start, without the seconds of its imports."""

import os
import signal
import subprocess
import sys
import tempfile
import traceback


def _in_child(words, streams, cwd, env, session, before):
    from benchnb.cli.app import main

    if session:
        os.setsid()
    for number, file in enumerate(streams, 1):
        os.dup2(file.fileno(), number)
    sys.stdout, sys.stderr = (
        os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2)
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if cwd is not None:
        os.chdir(cwd)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    if before is not None:
        before()
    sys.argv = ["benchnb", *words]
    return main(words)


def forked(words, cwd=None, env=None, session=False, before=None):
    "Give a command; its exit code and what it printed, as from subprocess.run"
    words = [str(word) for word in words]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            code = 1
            try:
                code = _in_child(words, (out, err), cwd, env, session, before)
            except SystemExit as stop:
                code = stop.code
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code or 0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = [file.seek(0) or file.read() for file in (out, err)]
    return subprocess.CompletedProcess(words, code, *texts)
