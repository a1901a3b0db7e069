"Build the package from `settings.ini`; edit that file, not this one."

import io
import json
import re
import tarfile
from configparser import ConfigParser
from glob import escape
from pathlib import Path

import setuptools
from setuptools.command.build_py import build_py

here = Path(__file__).parent
ini = ConfigParser(delimiters=["="])
ini.read(here / "settings.ini", encoding="utf-8")
cfg = ini["DEFAULT"]

licenses = {"apache2": "Apache-2.0", "mit": "MIT", "bsd3": "BSD-3-Clause"}
statuses = "1 - Planning,2 - Pre-Alpha,3 - Alpha,4 - Beta,5 - Production/Stable"
site, repository = cfg["site"], cfg["repository"]
extras = {
    name: cfg[f"{name}_requirements"].split()
    for name in ["plots", "papers", "llm", "inspect", "cluster", "hub", "new", "dev"]
    if f"{name}_requirements" in cfg
}


class WithChapters(build_py):
    "The notebooks travel with the package, without outputs: `benchnb copy` reads them"

    def run(self):
        super().run()
        if not self.editable_mode:
            place = Path(
                self.build_lib, cfg["lib_path"], "resources", "chapters.tar.xz"
            )
            pack_chapters(place)


def pack_chapters(file):
    "Title, text and code of every notebook, in one archive"
    nbs = here / cfg["nbs_path"]
    with tarfile.open(file, "w:xz") as archive:
        for path in sorted(nbs.rglob("[!_.]*.ipynb")):
            cells = json.loads(path.read_text("utf-8"))["cells"]
            kept = [[c["cell_type"], "".join(c["source"])] for c in cells]
            data = json.dumps(kept, ensure_ascii=False).encode()
            entry = tarfile.TarInfo(path.relative_to(nbs).with_suffix("").as_posix())
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def long_description():
    "README.md, with links that work on the package index, and no others"
    text = (here / "README.md").read_text(encoding="utf-8")
    if site:
        text = re.sub(r"\]\(nbs/([\w/]+)\.ipynb", rf"]({site}/\1.html", text)
    if repository:
        raw = repository.replace("github.com", "raw.githubusercontent.com")
        text = re.sub(r"\]\((?=nbs/)", f"]({raw}/v{cfg['version']}/", text)
    return re.sub(r"!?\[([^][]*)\]\((?!https?:)[^)]*\)", r"\1", text)


def addresses():
    "What the package index links to: what exists"
    pages = {"Documentation": site, "Source": repository}
    if repository:
        pages["Changelog"] = f"{repository}/blob/{cfg['branch']}/CHANGELOG.md"
        pages["Issues"] = f"{repository}/issues"
    return {name: page for name, page in pages.items() if page}


resources = here / cfg["lib_path"] / "resources"
files = [path for path in resources.rglob("*") if path.is_file()]
shipped = [path.relative_to(resources.parent).as_posix() for path in files]
shipped.append("py.typed")  # type checkers read the types of the package

setuptools.setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    keywords=cfg["keywords"].split(),
    author=cfg["author"],
    author_email=cfg["author_email"],
    url=site or repository,
    project_urls=addresses(),
    license=licenses.get(cfg["license"], cfg["license"]),
    classifiers=[
        f"Development Status :: {statuses.split(',')[int(cfg['status']) - 1]}",
        f"Intended Audience :: {cfg['audience']}",
        f"Natural Language :: {cfg['language']}",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: {one}" for one in cfg["pythons"].split()),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
    packages=setuptools.find_packages(
        include=[cfg["lib_path"], f"{cfg['lib_path']}.*"]
    ),
    # an editable installation then puts this folder on the path: `import benchnb` finds
    # the package in the folder that holds the checkout, too
    package_dir={"": "."},
    # what ships beside the code: tables, stored results, the template of a project
    package_data={cfg["lib_path"]: [escape(path) for path in shipped]},
    cmdclass={"build_py": WithChapters},
    python_requires=f">={cfg['min_python']}",
    install_requires=cfg["requirements"].split(),
    extras_require=extras,
    long_description=long_description(),
    long_description_content_type="text/markdown",
    entry_points={
        "console_scripts": ["benchnb=benchnb.cli.app:main"],
        # Inspect finds the task benchnb/small and the metric through this
        "inspect_ai": [f"{cfg['lib_path']}={cfg['lib_path']}.live.in_inspect"],
        # nbdev finds the documented names of every installed nbdev library through this
        "nbdev": [f"{cfg['lib_path']}={cfg['lib_path']}._modidx:d"],
    },
    zip_safe=False,
)
