"The harnesses' own environment (`make harnesses`), and how tests run programs in it"

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.run import ROOT

PYTHON = Path(os.environ.get("HARNESSES", ROOT / ".venv-harnesses")) / "bin/python"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
needed = pytest.mark.skipif(not PYTHON.exists(), reason="run `make harnesses` first")
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "INSPECT_DISPLAY": "none",
}


def start(*argv, cwd, **env):
    "A program in the harnesses' environment, to its end"
    here = {"HF_HOME": str(cwd / "hf"), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env=os.environ | OFFLINE | here | env,
        capture_output=True,
        text=True,
    )


def call(*argv, cwd, **env):
    "A program that must succeed"
    done = start(*argv, cwd=cwd, **env)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def benchnb(*argv, cwd):
    "A command of this library"
    return call(sys.executable, "-m", "benchnb", *argv, cwd=cwd)


def copy_sources(folder):
    "What a package is built from, in a folder of its own"
    source = folder / "source"
    junk = shutil.ignore_patterns("__pycache__", "images")
    for name in ["benchnb", "nbs"]:
        shutil.copytree(ROOT / name, source / name, ignore=junk)
    files = ["settings.ini", "setup.py", "README.md", "LICENSE"]
    for file in [*files, "MANIFEST.in", "copier.yml"]:
        shutil.copy(ROOT / file, source / file)
    return source


def build_wheel(folder):
    "The wheel, built from a copy of the sources"
    source = copy_sources(folder)
    build = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*PIP, *build, str(source)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def new_environment(folder, *packages, base=sys.executable):
    "A virtual environment with these packages, away from this checkout; its Python"
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    base, python = Path(base).resolve(), folder / "env/bin/python"
    subprocess.run([base, "-m", "venv", folder / "env"], env=env, check=True)
    packages = map(str, packages)
    subprocess.run([python, *PIP[1:], "install", *packages], env=env, check=True)
    return python


def wheel_unpacked(folder):
    "The wheel, unpacked into a folder of its own"
    site = folder / "site-packages"
    target = ["install", "--no-deps", "--target", str(site), str(build_wheel(folder))]
    subprocess.run([*PIP, *target], check=True)
    return site
