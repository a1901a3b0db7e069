"""Settings of every test run, and which tests `make test` leaves out.

What takes long or needs programs of others is marked `slow`: `make test` leaves it out,
`make test-all` runs it too, and every night what is marked `night`. Results that do not
ship are seen by tests that are marked `data` alone: all others are as a reader's."""

import os
import sys
from pathlib import Path

import pytest

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


@pytest.fixture(autouse=True)
def only_data_that_ship(request, monkeypatch):
    "BENCHNB_DATA is set in tests marked `data`, which are skipped where nobody set it"
    if not request.node.get_closest_marker("data"):
        monkeypatch.delenv("BENCHNB_DATA", raising=False)
    elif not os.environ.get("BENCHNB_DATA"):
        pytest.skip("needs BENCHNB_DATA")


@pytest.fixture
def few_trials(monkeypatch):
    "Random items are tried twice: where the figures do not matter"
    for module in ("evaluation.compare", "evaluation.recommend"):
        monkeypatch.setattr(f"benchnb.{module}.MIN_TRIALS", 2)


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    "A figure that one test leaves open would be part of what the next one shows"
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
