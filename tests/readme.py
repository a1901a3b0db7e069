"""Write README.md from nbs/index.ipynb: `python tests/readme.py`.

`nbdev_readme` does this with Quarto, which is no Python package. Where Quarto is
missing, this does the same from what nbdev itself prepares."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def index_page(path):
    "The front matter of a notebook, and its cells without the hidden ones"
    from nbdev import processors as procs
    from nbdev.process import NBProcessor

    keep = [procs.FrontmatterProc, procs.strip_ansi, procs.hide_line]
    keep += [procs.filter_stream_, procs.rm_export, procs.hide_]
    page = NBProcessor(path, keep)
    page.process()
    cells = [cell for cell in page.nb.cells if cell.cell_type != "raw"]
    for cell in cells:
        if cell.cell_type == "code":
            hidden = cell.directives_.get("echo:") == ["false"]
            code = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M)
            cell.source = "" if hidden else code
    page.nb.cells = [c for c in cells if c.source.strip() or c.get("outputs")]
    return page.nb.frontmatter_, page.nb


def relink(text, folder):
    "Links from the notebook's folder, made to work from the folder of README.md"

    def link(match):
        there = (ROOT / folder / match[2].split("#")[0]).exists()
        return f"{match[1]}{folder}/{match[2]})" if there else match[0]

    return re.sub(r"(\]\()([^):#]+(?:#[^)]*)?)\)", link, text)


def readme_text():
    "The Markdown of the index notebook: hidden cells dropped, stored outputs kept"
    import nbformat
    from execnb.nbio import nb2str
    from nbconvert import MarkdownExporter
    from nbdev.config import get_config
    from traitlets.config import Config

    os.environ.pop("IN_TEST", None)
    cfg = get_config(path=ROOT)
    front, page = index_page(cfg.nbs_path / cfg.readme_nb)
    nb = nbformat.reads(nb2str(page), as_version=4)
    nb.metadata["language_info"] = {"name": "python"}
    plain = ["text/markdown", "text/plain", "image/png"]  # tables as text, not as HTML
    config = Config({"NbConvertBase": {"display_data_priority": plain}})
    body, extra = MarkdownExporter(config=config).from_notebook_node(nb)
    body = re.sub(r"```\w*\n+```\n", "", body)  # cells whose code is not shown
    if extra["outputs"]:
        raise ValueError("the README holds pictures: keep them in files and link them")
    head = f"# {front['title']}\n\n"
    head += f"<!-- written from nbs/{cfg.readme_nb}: edit that notebook -->\n\n"
    head += f"> {front['description']}\n\n"
    body = relink(re.sub(r"\n{3,}", "\n\n", body).strip(), cfg.nbs_path.name)
    return head + body + "\n"


if __name__ == "__main__":
    (ROOT / "README.md").write_text(readme_text(), encoding="utf-8")
