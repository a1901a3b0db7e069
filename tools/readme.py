"""Write README.md and its pictures from nbs/index.ipynb: `python -m tools.readme`.

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
            told = re.search(r'^#\| *fig-alt: *"?(.*?)"? *$', cell.source, flags=re.M)
            cell.alt = told[1] if told else ""
            code = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M)
            cell.source = "" if hidden else code
    page.nb.cells = [c for c in cells if c.source.strip() or c.get("outputs")]
    return page.nb.frontmatter_, page.nb


def relink(text, folder, site=""):
    """Links from the notebook's folder, made to work from the folder of README.md

    A page whose source nobody reads leads to the site, or is named without a link."""

    def link(match):
        title, target = match[1], match[2]
        path, _, anchor = target.partition("#")
        if not (ROOT / folder / path).exists():
            return match[0]
        if not path.endswith(".qmd"):
            return f"[{title}]({folder}/{target})"
        page = path.removesuffix("qmd") + "html" + (f"#{anchor}" if anchor else "")
        return f"[{title}]({site}/{page})" if site else title

    return re.sub(r"(?<!!)\[([^][]*)\]\(([^):#]+(?:#[^)]*)?)\)", link, text)


def without_divs(text):
    "Fenced divs, which only Quarto knows, as plain paragraphs"
    return re.sub(r"^:{3,}.*\n", "\n", text, flags=re.M)


def put_pictures(text, pictures, alts, folder):
    "The text with its pictures as files in a folder, and these files"
    files = {}
    for number, (name, alt) in enumerate(zip(pictures, alts, strict=True), 1):
        kind = Path(name).suffix[1:]
        path = f"{folder}/images/readme-{number}.{kind}"
        files[path] = pictures[name]
        text = text.replace(f"![{kind}]({name})", f"![{alt}]({path})")
    return text, files


def readme():
    "Text of README.md and bytes of its pictures, from what the index notebook stores"
    import nbformat
    from execnb.nbio import nb2str
    from nbconvert import MarkdownExporter
    from nbdev.config import get_config
    from traitlets.config import Config

    os.environ.pop("IN_TEST", None)
    cfg = get_config(path=ROOT)
    front, page = index_page(cfg.nbs_path / cfg.readme_nb)
    outputs = [(cell, out) for cell in page.cells for out in cell.get("outputs", [])]
    images = {"image/svg+xml", "image/png"}
    alts = [cell.alt for cell, out in outputs if images & out.get("data", {}).keys()]
    nb = nbformat.reads(nb2str(page), as_version=4)
    nb.metadata["language_info"] = {"name": "python"}
    plain = ["text/markdown", *sorted(images), "text/plain"]  # tables not as HTML
    config = Config({"NbConvertBase": {"display_data_priority": plain}})
    body, extra = MarkdownExporter(config=config).from_notebook_node(nb)
    body = re.sub(r"```\w*\n+```\n", "", body)  # cells whose code is not shown
    body = re.sub(r'<div class="explorer.*?</div>|<script.*?</script>', "", body)
    body = without_divs(body)
    head = f"# {front['title']}\n\n"
    head += f"<!-- written from nbs/{cfg.readme_nb}: edit that notebook -->\n\n"
    head += f"> {front['description']}\n\n"
    body = re.sub(r"\n{3,}", "\n\n", re.sub(r"^ +$", "", body, flags=re.M)).strip()
    body = relink(body, cfg.nbs_path.name, cfg.d.get("site", ""))
    return put_pictures(head + body + "\n", extra["outputs"], alts, cfg.nbs_path.name)


def write_readme():
    "Write README.md and its pictures; pictures of an older one go"
    text, pictures = readme()
    (ROOT / "README.md").write_text(text, encoding="utf-8")
    for old in ROOT.glob("nbs/images/readme-*"):
        old.unlink()
    for path, data in pictures.items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_bytes(data)


if __name__ == "__main__":
    write_readme()
