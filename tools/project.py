"""The template behind `benchnb new`: its modules are made from its notebooks. And the
address that pages and templates install from: `INSTALL_SOURCE` of benchnb/data/files.py
"""

import os
import re
import tempfile
from pathlib import Path

from tools.run import ROOT, notebooks

TEMPLATE = ROOT / "benchnb" / "resources" / "project" / "template"
PACKAGE = TEMPLATE / "@[ package ]@"


def template_modules():
    "Name and text of each module that the template's notebooks export"
    from fastcore.xtras import working_directory
    from nbdev.export import nb_export

    made = {}
    for path in notebooks(TEMPLATE / "nbs"):
        with tempfile.TemporaryDirectory() as folder, working_directory(folder):
            os.mkdir("nbs")  # as in a project: the module names its notebook
            copy = Path("nbs", path.name)
            copy.write_bytes(path.read_bytes())
            nb_export(str(copy), lib_path="package", name=path.stem)
            text = Path("package", f"{path.stem}.py").read_text("utf-8")
        made[f"{path.stem}.py.jinja"] = text.replace("\r\n", "\n")
    return made


def export_template():
    "Clean the notebooks, write the modules"
    from nbdev.clean import nbdev_clean

    for path in notebooks(TEMPLATE / "nbs"):
        nbdev_clean(fname=str(path))
    for name, text in template_modules().items():
        (PACKAGE / name).write_text(text, "utf-8")


INSTALL = re.compile(
    r"""pip install (\\?["'])?(?:benchnb|\.)(?:\[([\w,]+)])?"""
    r"""(?: @ [^\s"'\\`]+)?(?(1)\1)(?![-\w.])"""
)


def texts():
    "Files whose text says how to install this library"
    template = [path for path in TEMPLATE.parent.rglob("*") if path.is_file()]
    return [*notebooks(), *(ROOT / "benchnb/resources").rglob("*.md"), *template]


def with_address(path):
    "The text of a file, with the present address of this library"
    from benchnb.data.files import pip_install_command

    quote = '\\"' if ".ipynb" in path.name else '"'  # inside JSON

    def line(found):
        return pip_install_command(found[2] or "").replace('"', quote)

    return INSTALL.sub(line, path.read_text("utf-8"))


def write_address():
    "Pages and templates name the present address"
    for path in texts():
        path.write_text(with_address(path), "utf-8")
