"""python -m tools.matrix: the table of harnesses and properties on the page Harnesses,
from what the tests try and what the classes declare"""

import json
import sys

from tools.programs import read_programs
from tools.run import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from helpers.variants import VARIANTS  # noqa: E402

from benchnb.harnesses.checks import PROPERTIES  # noqa: E402
from benchnb.harnesses.harness import get_harness  # noqa: E402

PAGE = ROOT / "nbs/harnesses/harness.ipynb"
START = "| harness |"
# what wrote the logs whose form the examples have: programs that the tests run, others
RUN = {
    name: f"{program.package} {program.version}, run"
    for name, program in read_programs().items()
}
WRITERS = RUN | {
    "tau": "tau2, its source",
    "eee": "every_eval_ever 0.3.0, run",
    "lighteval": "lighteval 0.13.0, its source",
    "opencompass": "opencompass 0.5.4, its source",
    "openllm": "published files of 2023",
    "py-irt": "published files",
    "wild": "published files",
    "measurement-db": "published files",
    "openeval": "published files",
    "table": "any program",
    "list": "any program",
}


def matrix() -> str:
    "The table in Markdown, with the reasons below it"
    columns = ["missing", "damage", *PROPERTIES]
    lines = [f"{START} written by | {' | '.join(columns)} |"]
    lines.append("|:--" * (len(columns) + 2) + "|")
    reasons: dict[str, int] = {}
    for name, writer in WRITERS.items():
        cells = []
        cannot = get_harness(name).cannot
        for column in columns:
            if reason := cannot.get(column):
                cells.append(f"no ({reasons.setdefault(reason, len(reasons) + 1)})")
            else:
                cells.append("tried")
        lines.append(f"| {name} | {writer} | {' | '.join(cells)} |")
    lines.append("")
    lines += [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join(lines)


def on_page() -> str:
    "The table as it stands on the page"
    for cell in json.loads(PAGE.read_text())["cells"]:
        if (text := "".join(cell["source"])).startswith(START):
            return text
    return ""


def main() -> None:
    "Write the table into the page"
    raw = json.loads(PAGE.read_text())
    for cell in raw["cells"]:
        if "".join(cell["source"]).startswith(START):
            cell["source"] = matrix().splitlines(keepends=True)
    PAGE.write_text(json.dumps(raw, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    assert {*VARIANTS} == {*WRITERS}
    main()
