"""The template behind `benchnb new`: its modules are made from its notebooks"""

import os
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
