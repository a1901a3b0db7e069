"""The home page: README's first screen, and the numbers of the explorer."""

import re

import pandas as pd
import pytest

from benchnb.cli.app import ORDER
from tools.process import explorer_data
from tools.readme import relink, without_divs
from tools.run import ROOT

README = (ROOT / "README.md").read_text("utf-8")  # written from the home page
ROWS = re.findall(r"^\| `(\w+)` \| ([-\d.%| ]+) \|$", README, flags=re.M)
TABLE = {name: cells.split(" | ") for name, cells in ROWS}


@pytest.fixture(scope="module")
def explorer():
    found = explorer_data()
    return pd.DataFrame(found["rows"], columns=found["columns"])


def test_it_is_short_and_a_code_host_shows_all_of_it():
    text = re.sub(r"<!--.*?-->", "", README)
    assert not re.search(r"<\w+|^:::", text, flags=re.M)  # what it would drop or print
    prose = re.sub(r"(?ms)^```.*?^```$|^    .*?$|\]\([^)]*\)", "", text)
    assert 200 < len(prose.split()) <= 600
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert 5 < len(links) <= 20
    assert {link.rpartition(".")[2] for link in links} <= {"svg", "png", "ipynb"}
    assert not re.search(r"reproduced, \d|\d+ reversed|\d+ not decided", text)


def test_it_begins_with_a_command_and_a_picture_and_then_has_two_commands():
    first, second, *_ = README.split("\n## ")
    assert first.count("](nbs/images/readme-1.") == 1
    [start] = re.findall(r"```bash\n(.*?)```", first, flags=re.S)
    install, command = start.splitlines()
    assert install == "pip install ." and command.split()[1] in ORDER
    assert first.index(start) < first.index("](nbs/images/readme-1.")
    [block] = re.findall(r"```sh\n(.*?)```", second, flags=re.S)
    assert re.findall(r"(?m)^make (\w+)  +# ", block) == ["run", "test"]
    assert "Python 3.11 or newer, git and make" in second


def test_links_to_sources_that_nobody_reads_lead_to_the_site_or_nowhere():
    text = "[Score](score_your_agent.qmd#top), [first](tutorials/first_steps.ipynb)"
    first = "[first](nbs/tutorials/first_steps.ipynb)"
    assert relink(text, "nbs") == f"Score, {first}"
    page = "[Score](https://a.org/score_your_agent.html#top)"
    assert relink(text, "nbs", "https://a.org") == f"{page}, {first}"
    assert without_divs("::: {.door}\na\n:::\n") == "\na\n\n"


def test_the_headline_names_one_method_and_the_explorer_has_its_numbers(explorer):
    [bold] = re.findall(r"^\*\*(With .*?)\*\*$", README, flags=re.M)
    assert re.findall(r"`(\w+)`", bold) == ["guarded_irt"]
    here = explorer.query("data == 'swebench_verified' and split == 'date'")
    errors = here.set_index(["method", "budget"])["mae"] * 100
    wanted = errors["guarded_irt", 25], errors["random", 25], errors["random", 50]
    assert re.findall(r"\d+\.\d", bold) == [f"{error:.1f}" for error in wanted]
    assert len(TABLE) == 5 and {n: c[0] for n, c in TABLE.items()} == {
        name: f"{errors[name, 25]:.1f}" for name in TABLE
    }
    assert f"first figure is {errors['guarded_irt(rounds=5)', 25]:.1f}." in README


@pytest.mark.parametrize("split, at", [("random", 1), ("ability", 2)])
def test_errors_and_intervals_are_those_of_the_explorer(explorer, split, at):
    known = explorer[(explorer["split"] == split) & (explorer["budget"] == 50)]
    agents = ["swebench_verified", "swebench_pro", "terminal_bench", "gso"]
    known = known[~known["data"].isin(agents)]
    for name, cells in TABLE.items():
        part = known[known["method"] == name]
        assert part["data"].nunique() == len(part) == 10
        assert cells[at] == f"{100 * part['mae'].mean():.1f}"
        if split == "ability":
            assert cells[3] == f"{part['coverage'].mean():.0%}"
