"""Run notebooks and store their outputs; leave out the cells that `nbdev_test` skips.

python -m tools.run [--flags "slow data"] [notebook ...]     (all notebooks by default)
"""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def notebooks(folder=ROOT / "nbs"):
    "Every chapter, in order; names with a leading _ or . are none"
    paths = sorted(folder.rglob("*.ipynb"))
    parts = [path.relative_to(folder).parts for path in paths]
    hidden = [any(part[0] in "_." for part in names) for names in parts]
    return [path for path, hide in zip(paths, hidden, strict=True) if not hide]


def run(path, flags=()):
    "Run a notebook in its own folder, store its outputs; stop at the first error"
    from execnb.nbio import read_nb, write_nb
    from execnb.shell import CaptureShell
    from fastcore.xtras import working_directory
    from nbdev.clean import clean_nb
    from nbdev.config import get_config
    from nbdev.process import extract_directives

    skip = set(get_config(path=ROOT).tst_flags.split()) - set(flags)

    def leave(cell):
        if cell.cell_type != "code" or "nbdev_export" + "(" in cell.source:
            return True
        directives = extract_directives(cell, remove=False)
        if directives.get("eval:", [""])[0].lower() == "false":
            return True
        return bool(skip & directives.keys())

    nb = read_nb(path)
    shell = CaptureShell(path, mpl_format="png")
    with working_directory(path.parent):
        try:
            shell.run_all(nb, exc_stop=True, preproc=leave)
        except Exception:
            sys.exit(shell.prettytb(fname=path))
    clean_nb(nb)
    write_nb(nb, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flags", default="", help='such as "slow data"')
    parser.add_argument("notebooks", nargs="*", type=Path)
    args = parser.parse_args()
    os.environ.update(IN_TEST="1", MPLBACKEND="agg")
    sys.path.insert(0, str(ROOT))
    for path in args.notebooks or notebooks():
        run(path.resolve(), args.flags.split())
