"""python -m tools.programs [--newest] [NAME ...]: the programs of tools/harnesses.txt,
each in an environment of its own; one that cannot be installed is said and left out"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tools.run import ROOT

PLACE = Path(os.environ.get("PROGRAMS", ROOT / ".venv-programs"))
NODE = "node@22.23.3"  # that promptfoo asks for
UV = "uv==0.13.8"  # resolves in seconds what takes pip half an hour


@dataclass(frozen=True)
class Program:
    "A program that writes logs"

    package: str  # its name on PyPI or npm
    version: str  # that is installed, unless the newest is asked for
    needs: str  # python3.12, torch (of this environment), npm, or nothing

    @property
    def name(self) -> str:
        "As it is called here: a harness, mostly"
        return self.package.removeprefix("crfm-").removesuffix("_ai")

    @property
    def folder(self) -> Path:
        "Of its environment"
        return PLACE / self.name

    @property
    def python(self) -> Path:
        "The Python of its environment"
        return self.folder / "bin/python"

    @property
    def is_installed(self) -> bool:
        "Can its script be run?"
        if self.needs == "npm":
            return (self.folder / "node_modules/.bin" / self.package).exists()
        return self.python.exists() and (self.folder / ".done").exists()


def read_programs() -> dict[str, Program]:
    "All programs of the list, by their names here"
    programs = {}
    for line in (ROOT / "tools/harnesses.txt").read_text().splitlines():
        if match := re.match(r"([\w-]+)(==|@)([\w.]+)\s*(\S*)", line):
            program = Program(match[1], match[3], match[4])
            programs[program.name] = program
    return programs


def make_uv() -> Path:
    "The installer, in an environment of its own"
    uv = PLACE / "uv/bin/uv"
    if not uv.exists():
        subprocess.run([sys.executable, "-m", "venv", PLACE / "uv"], check=True)
        pip = [PLACE / "uv/bin/python", "-m", "pip", "install", "-q"]
        subprocess.run([*pip, "--disable-pip-version-check", UV], check=True)
    return uv


def install(program: Program, newest: bool) -> None:
    "An environment of its own; whole or not at all"
    if program.is_installed and not newest:
        return
    shutil.rmtree(program.folder, ignore_errors=True)
    program.folder.mkdir(parents=True)
    if program.needs == "npm":
        (program.folder / "package.json").write_text("{}")
        wanted = f"{program.package}@{'latest' if newest else program.version}"
        command = ["npm", "install", "--no-audit", "--no-fund", NODE, wanted]
        subprocess.run(command, cwd=program.folder, check=True)
        return
    base = shutil.which(program.needs) if "python" in program.needs else None
    base = base or sys.executable
    subprocess.run([base, "-m", "venv", program.folder], check=True)
    wanted = program.package + ("" if newest else f"=={program.version}")
    uv = [make_uv(), "pip", "install", "-q"]
    command = [*uv, "--python", program.python, wanted]
    if program.needs == "torch":  # that of this environment is seen, not loaded again
        own = Path(sysconfig.get_path("purelib"))
        (path,) = program.folder.glob("lib/python*/site-packages")
        (path / "base.pth").write_text(f"{own}\n")
        (program.folder / "without.txt").write_text(
            "torch; sys_platform == 'never'\ntorchvision; sys_platform == 'never'\n"
        )
        command += ["--override", program.folder / "without.txt"]
    subprocess.run(command, check=True)
    (program.folder / ".done").touch()


def main() -> int:
    "Install what is named, or all but those of .venv-harnesses"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--newest", action="store_true", help="not the pinned versions")
    arguments = parser.parse_args()
    programs = read_programs()
    names = arguments.names or [n for n in programs if n not in ("lm-eval", "inspect")]
    failed = []
    for name in names:
        print(f"== {name}", flush=True)
        try:
            install(programs[name], arguments.newest)
        except (subprocess.CalledProcessError, OSError) as error:
            failed.append(name)
            shutil.rmtree(programs[name].folder, ignore_errors=True)
            print(f"{name} cannot be installed, its tests are skipped: {error}")
    return int(bool(failed) and arguments.newest)


if __name__ == "__main__":
    sys.exit(main())
