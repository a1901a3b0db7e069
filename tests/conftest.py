"Settings of every test run: no window, no network, no torch behind POT"

import os
from pathlib import Path

for name, value in {
    "MPLBACKEND": "agg",
    "HF_HUB_OFFLINE": "1",
    "POT_BACKEND_DISABLE_PYTORCH": "1",
    "BENCHNB_PROGRESS": "0",  # lines that come after seconds, on a slow machine only
}.items():
    os.environ.setdefault(name, value)

# programs that a test starts find the helpers too
PATHS = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
os.environ["PYTHONPATH"] = os.pathsep.join(
    [*PATHS, *filter(None, [os.environ.get("PYTHONPATH")])]
)

LONG = ("tests/test_site.py", "tests/harnesses/", "tests/test_notebooks.py")


def pytest_collection_modifyitems(items):
    "What takes longest comes first, so that no processor waits for another at the end"

    def place(item):
        path = item.path.relative_to(item.config.rootpath).as_posix()
        return next((n for n, long in enumerate(LONG) if path.startswith(long)), 9)

    items.sort(key=place)  # stable: otherwise as they were
