"""The solutions of the course, for teachers: `make teachers` writes out/teachers.zip.

teachers/*.md hold a solution for every blank. The archive has these texts, and each
page of the course with its blanks filled in."""

import json
import re
from zipfile import ZIP_DEFLATED, ZipFile

from benchnb.tutorials.your_course import defined
from tools.run import ROOT

COURSE, TEXTS = ROOT / "nbs/course", ROOT / "teachers"
PAGES = sorted([*COURSE.glob("*.ipynb"), *COURSE.glob("homework/*.ipynb")])
BLANK = "...  # your code"


def solutions(page):
    "The code of the solutions to a page: those of its unit"
    text = (TEXTS / f"{page.stem}.md").read_text("utf-8")
    return re.findall(r"```python\n(.*?)\n```", text, flags=re.S)


def filled(page):
    "The text of a page's notebook with a solution in place of each blank"
    nb = json.loads(page.read_text("utf-8"))
    for cell in nb["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and BLANK in source:
            fits = [s for s in solutions(page) if defined(s) & defined(source)]
            cell["source"] = fits[0].splitlines(keepends=True)
    return json.dumps(nb, indent=1, ensure_ascii=False)


def main():
    (ROOT / "out").mkdir(exist_ok=True)
    with ZipFile(ROOT / "out/teachers.zip", "w", ZIP_DEFLATED) as archive:
        for text in sorted(TEXTS.glob("*.md")):
            archive.write(text, text.name)
        for page in PAGES:
            name = page.relative_to(COURSE).as_posix()
            archive.writestr(f"solved/{name}", filled(page))


if __name__ == "__main__":
    main()
