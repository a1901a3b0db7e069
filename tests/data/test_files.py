"Names that do not exist are answered with the one that was meant"

import pytest

from benchnb.cli.app import main
from benchnb.data.files import unknown_name_error
from benchnb.data.sources import load


@pytest.mark.parametrize("name", ["swebench", "SWEbench", "swe"])
def test_the_beginning_of_a_name_finds_the_best_known_one(name):
    with pytest.raises(ValueError, match="did you mean 'swebench_verified'"):
        load(name)


def test_the_command_line_finds_it_too(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "swebench"]) == 2
    assert "did you mean 'swebench_verified'?" in capsys.readouterr().err


def test_what_resembles_nothing_is_answered_with_the_list():
    error = unknown_name_error("method", "psychic", ["aipw"], "see the list")
    assert str(error) == "no method 'psychic': see the list"
    assert "see the list" in str(
        unknown_name_error("method", "a", ["aipw"], "see the list")
    )
