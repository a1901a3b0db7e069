"The journal of a long computation: killed, locked, cut, and of somebody else"

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from benchnb.evaluation.journal import Journal

KILLED = """
import os, signal, sys
from benchnb.evaluation.journal import Journal
journal = Journal(sys.argv[1], "one")
for number in range(1000):
    journal.add(f"piece {number}", [number] * 100)
    print(number, flush=True)
"""


def write(path, count=3):
    with Journal(path, "one") as journal:
        for number in range(count):
            journal.add(f"piece {number}", {"score": [number / 2]})
    return path.read_bytes()


def test_no_file_before_the_first_piece(tmp_path):
    with Journal(tmp_path / "run.journal", "one"):
        assert list(tmp_path.iterdir()) == []
    with Journal(None, "one") as journal:
        journal.add("a", 1)
        assert journal.done == {"a": 1}


def test_a_kill_loses_nothing_that_was_added(tmp_path):
    path = tmp_path / "run.journal"
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        said = [int(run.stdout.readline()) for _ in range(20)]
        os.kill(run.pid, signal.SIGKILL)
    with Journal(path, "one") as journal:
        assert {f"piece {number}" for number in said} <= set(journal.done)


def test_two_runs_do_not_write_one_journal(tmp_path):
    "The second is kept out while the first is writing, and let in afterwards"
    path = tmp_path / "run.journal"
    with Journal(path, "one") as first:
        first.add("a piece", 1)
        for identity in ("one", "another"):
            with pytest.raises(ValueError, match="another run is writing"):
                Journal(path, identity)
        first.add("a second", 2)
    with Journal(path, "one") as second:
        assert list(second.done) == ["a piece", "a second"]


def test_two_runs_that_begin_together(tmp_path):
    "Both found no file; the second to finish a piece is refused, and nothing is mixed"
    path = tmp_path / "run.journal"
    with Journal(path, "one") as first, Journal(path, "one") as second:
        first.add("a piece", 1)
        with pytest.raises(ValueError, match="another run is writing"):
            second.add("a piece", 2)
    with Journal(path, "one") as journal:
        assert journal.done == {"a piece": 1}


def test_another_computation_is_refused_and_stays(tmp_path):
    before = write(tmp_path / "run.journal")
    with pytest.raises(ValueError, match="another computation: delete it"):
        Journal(tmp_path / "run.journal", "two")
    assert (tmp_path / "run.journal").read_bytes() == before


@pytest.mark.parametrize("text", ["diary\n", "[]\n", "{}\n", "\n", "\0" * 50, "3"])
def test_a_file_that_is_no_journal_is_refused_and_stays(text, tmp_path):
    path = tmp_path / "run.journal"
    path.write_text(text)
    with pytest.raises(ValueError, match="journal"):
        Journal(path, "one")
    assert path.read_text() == text


def test_a_data_base_of_somebody_else_is_refused_and_stays(tmp_path):
    path = tmp_path / "run.journal"
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE music (title TEXT)")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is no journal"):
        Journal(path, "one")
    assert path.read_bytes() == before


def test_a_journal_cut_anywhere_is_whole_or_refused(tmp_path):
    path, whole = tmp_path / "run.journal", write(tmp_path / "run.journal", 50)
    for cut in range(0, len(whole), 511):
        path.write_bytes(whole[:cut])
        try:
            with Journal(path, "one") as journal:
                assert all(value["score"] for value in journal.done.values())
        except ValueError as error:
            assert "delete it" in str(error)
