"""One method, one name, one number: what each door says of guarded_irt"""

import json
import re

import pandas as pd
import pytest

from benchnb.evaluation.registry import list_methods
from tools.demonstration import measured_errors
from tools.process import explorer_data
from tools.run import ROOT

NAME = "guarded_irt"
RESULTS = ROOT / "nbs/results"
FIFTY = pd.read_csv(RESULTS / "field.csv").query("budget == 50")
GUIDES = "first_steps your_agent your_model your_benchmark which_method".split()
DOORS = ["README.md", "nbs/index.ipynb"]
DOORS += [f"nbs/tutorials/{name}.ipynb" for name in GUIDES]
DOORS += [f"nbs/{name}.qmd" for name in "score_your_agent explorer laboratory".split()]


def reader_text(path):
    "What a reader sees of a page: prose, commands and results, without hidden cells"
    text = (ROOT / path).read_text("utf-8")
    if not path.endswith(".ipynb"):
        return text
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if re.search(r"^#\| *(hide|include: *false)", source, re.M):
            continue
        if cell["cell_type"] == "markdown" or not re.search(r"echo: *false", source):
            parts.append(source)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            kinds = ("text/markdown", "text/html", "text/plain")
            shown = next((data[kind] for kind in kinds if kind in data), "")
            parts.append("".join(shown) + "".join(output.get("text", "")))
    return "\n\n".join(parts)


def visible(path):
    "The same without the tags of HTML"
    text = re.sub(
        r"<style.*?</style>|<script.*?</script>", " ", reader_text(path), flags=re.S
    )
    return re.sub(r"<[^>]*>", " ", text)


def recommendations(text):
    "Methods that commands take and sentences recommend, in their order"
    names = "|".join(sorted(list_methods(), key=len, reverse=True))
    taken = rf"--methods? +({names})\b|\b[Tt]ake +`?({names})\b|`({names})`, our rec"
    return [next(filter(None, found)) for found in re.findall(taken, text)]


def statements(path):
    "Sentences and rows of tables that name the recommended method"
    parts = re.split(r"(?<=[.!?:])\s+(?=[A-Z*`|])|\n\s*\n|\n(?=\|)", visible(path))
    plain = [re.sub(r"\s+", " ", part) for part in parts]
    return [part for part in plain if re.search(rf"\b{NAME}\b", part)]


@pytest.fixture(scope="module")
def agents():
    "Stored errors of the newest agents on SWE-bench Verified, in points"
    rows = pd.read_csv(RESULTS / "agents_methods.csv")
    rows = rows[(rows["data"] == "swebench_verified") & (rows["split"] == "date")]
    return rows.set_index(["method", "budget"])["mae"] * 100


def relative_errors(name, split):
    "Stored relative errors at 50 items: mean, smallest and largest over the tables"
    each = FIFTY.query("split == @split and method == @name")["relative"]
    return [f"{value:.2f}" for value in (each.mean(), each.min(), each.max())]


@pytest.mark.parametrize("path", DOORS)
def test_the_first_method_that_a_door_takes_is_the_recommended_one(path):
    text = visible(path)
    assert (recommendations(text) or [NAME])[0] == NAME and NAME in text
    assert "guarded_irt_static" not in text


def mean_error(split):
    "Stored error at 50 items in points, the mean over the tables"
    each = FIFTY.query("split == @split and method == @NAME")["mae"]
    return f"{100 * each.mean():.1f}"


@pytest.mark.parametrize("path", ["README.md", "nbs/index.ipynb"])
def test_readme_and_home_have_the_stored_errors(path, agents):
    expected = f"{agents[NAME, 25]:.1f}"
    [headline] = re.findall(r"^\*\*(With 25 .*?)\*\*$", visible(path), re.M)
    figures = re.findall(r"\d+\.\d", headline)
    assert figures == [expected, *(f"{agents['random', n]:.1f}" for n in (25, 50))]
    [row] = {s for s in statements(path) if s.startswith(f"| `{NAME}`")}
    figures = re.findall(r"\d+\.\d+", row)
    assert figures == [expected, mean_error("random"), mean_error("ability")]


def test_a_sentence_about_25_tasks_of_new_agents_has_stored_figures(agents):
    "Also of another method or number of tasks in the same sentence"
    known = {f"{value:.1f}" for value in agents}
    of_ours = {f"{agents[name, 25]:.1f}" for name in (NAME, f"{NAME}(rounds=5)")}
    checked = 0
    for path in DOORS:
        for sentence in statements(path):
            about = re.search(r"\b25\b", sentence) and re.search(
                "new(est)? ag", sentence
            )
            figures = re.findall(r"(\d+\.\d)(?= points| at|,| \||;|\.\s|\.$)", sentence)
            if not about or not figures or sentence.startswith("|"):
                continue
            checked += 1
            assert {*figures} <= known, f"{path}: {sentence}"
            assert {*figures} & of_ours, f"{path}: {sentence}"
    assert checked >= 2


def test_relative_errors_in_the_guides_are_those_of_all_methods():
    "which_method: 'Take guarded_irt, relative error 0.79 (0.34 to 0.98)'"
    split = {"like the earlier ones;": "random", "or unknown;": "ability"}
    answer = rf"({'|'.join(split)}) 20 earlier models or more; [^;]*; a score; "
    answer += rf"right or wrong: Take ({NAME}(?:\(rounds=5\))?) *, relative error "
    answer += r"([\d.]+) \(([\d.]+) to ([\d.]+)\)"
    text = re.sub(r"\s+", " ", visible("nbs/tutorials/which_method.ipynb"))
    seen = set()
    for kind, name, *figures in re.findall(answer, text):
        assert figures == relative_errors(name, split[kind]), (kind, name)
        seen.add((name, split[kind]))
    assert {(NAME, "random"), (NAME, "ability")} <= seen


def test_the_explorer_and_the_chart_have_the_same_figures(agents):
    data = explorer_data()
    rows = pd.DataFrame(data["rows"], columns=data["columns"])
    here = rows[(rows["data"] == "swebench_verified") & (rows["split"] == "date")]
    errors = here.set_index(["method", "budget"])["mae"] * 100
    measured = measured_errors()
    for name in (NAME, "random"):
        for budget, points in measured[name]["points"].items():
            assert points == pytest.approx(agents[name, budget], abs=1e-3)
            assert points == pytest.approx(errors[name, budget], abs=1e-3)


def test_pages_with_scripts_begin_with_it():
    explorer = (ROOT / "nbs/explorer.js").read_text("utf-8")
    assert re.search(rf'^const START = \["{NAME}"', explorer, re.M)
    laboratory = (ROOT / "nbs/laboratory.qmd").read_text("utf-8")
    assert re.search(rf'<select id="method"><option>{NAME}</option>', laboratory)
    home = (ROOT / "nbs/index.ipynb").read_text("utf-8")
    assert home.index("guarded_irt.js") < home.index("score_your_agent.js")
