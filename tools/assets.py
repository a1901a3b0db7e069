"""Scripts, styles and icons of the site: all its own, and no more than is used.

MathJax and PurgeCSS come from npm, in the versions of tools/package-lock.json, which
names their checksums; without npm formulas need the network, and styles stay whole."""

import os
import re
import shutil
import subprocess

from tools.run import ROOT

REMOTE = re.compile(r"https://cdn\.jsdelivr\.net/npm/mathjax@3/es5/")
OLD = re.compile(r'<script src="[^"]*/polyfill[^"]*"></script>')  # for browsers of 2015
NPM = ROOT / ".npm"


def install():
    "The folder of npm's packages, installed if need be; None without npm"
    files = [ROOT / "tools" / name for name in ("package.json", "package-lock.json")]
    NPM.mkdir(exist_ok=True)
    for file in files:
        shutil.copy(file, NPM / file.name)
    command = ["npm", "ci", "--silent", "--prefix", str(NPM)]
    if shutil.which("npm") and subprocess.run(command).returncode == 0:
        return NPM / "node_modules"
    return print("npm is missing or stopped: formulas of this site need the network")


def pages(site):
    "The pages of a site"
    return [p for p in site.rglob("*.html") if "site_libs" not in p.parts]


def own_mathjax(site, packages):
    "Formulas are set by a script of the site itself, with fonts of its own"
    source, target = packages / "mathjax/es5", site / "site_libs/mathjax"
    fonts = "output/chtml/fonts/woff-v2"
    shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)
    shutil.copy(source / "tex-chtml-full.js", target)
    for page in pages(site):
        text = OLD.sub("", page.read_text("utf-8"))
        place = os.path.relpath(target, page.parent) + "/"
        text = re.sub(r"<script (?=src=\"[^\"]*mathjax)", "<script defer ", text)
        page.write_text(REMOTE.sub(place, text), encoding="utf-8")


def used_styles(site, packages):
    "Rules of Bootstrap that no page and no script names are left out"
    scripts = [str(p) for p in site.rglob("*.js") if p.parent.name != "mathjax"]
    names = [str(path) for path in pages(site)] + scripts
    for sheet in site.glob("site_libs/bootstrap/bootstrap*.min.css"):
        command = [str(packages / ".bin/purgecss"), "--css", str(sheet), "--output"]
        command += [str(sheet), "--safelist", "mjx-container", "run-bar", "run-button"]
        command += ["--content", *names]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def used_icons(site):
    "The icons that a page, script or style names, of two thousand"
    from fontTools import subset

    folder = site / "site_libs/bootstrap"
    sheet, font = folder / "bootstrap-icons.css", folder / "bootstrap-icons.woff"
    files = [*pages(site), *site.rglob("*.js"), *folder.glob("bootstrap*.min.css")]
    text = "".join(path.read_text("utf-8") for path in files)
    used = set(re.findall(r"\bbi-[\w-]+", text))
    known = sheet.read_text("utf-8")
    rules = re.findall(r'\.(bi-[\w-]+)::before \{ content: "\\(\w+)"; \}', known)
    signs = {code for name, code in rules if name in used}
    signs |= set(re.findall(r'content: ?"\\(f[0-9a-f]{3})"', text))
    kept = [row for row in rules if row[1] in signs]
    head = known.partition(".bi-123::before")[0]
    lines = [f'.{name}::before {{ content: "\\{code}"; }}' for name, code in kept]
    sheet.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    codes = ",".join(f"U+{code}" for code in sorted(signs))
    options = [f"--unicodes={codes}", f"--output-file={font}", "--flavor=woff"]
    subset.main([str(font), *options])


def lighten(site):
    "Nothing from elsewhere, nothing that no page uses"
    if packages := install():
        own_mathjax(site, packages)
        used_styles(site, packages)
    used_icons(site)
