"One result of a comparison: what commands write as JSON, and one way to show it"

import json
import math

import pytest

from benchnb.live.comparison import ComparisonResult, Outcome
from benchnb.live.gate import GateResult
from benchnb.live.paired import PairedResult
from benchnb.live.race import RaceResult
from benchnb.live.stopping import StoppingResult

INTERVAL = (-0.01, 0.2)
RUNS = "these_runs"
SHOWN = "evidence rules_out differ means"
RESULTS = {
    f"difference interval better items level note how least unscored {RUNS} {SHOWN}": (
        PairedResult(difference=0.1, interval=INTERVAL, better=0.97, items=40)
    ),
    f"decision interval items total within level pair waits decided {RUNS}": (
        StoppingResult(interval=INTERVAL, items=40, total=500)
    ),
    "outcome interval new old tasks total margin level note common waiting": GateResult(
        interval=INTERVAL, new=0.6, old=0.5, items=40, total=500, margin=0.05
    ),
    f"best items total within level learned share {RUNS} order ties "
    "undecided": RaceResult(
        winner="a",
        answered={"a": 40, "b": 20},
        beaten={"a": None, "b": "a"},
        items=40,
        total=100,
        margin=0.01,
    ),
}


@pytest.mark.parametrize("keys", RESULTS)
def test_each_result_has_its_keys_in_json_and_shows_its_outcome(keys):
    result = RESULTS[keys]
    values = json.loads(json.dumps(result.values()))
    assert [*values] == keys.split()
    assert result.verdict() in repr(result) and repr(result).endswith(result.verdict())
    page = result._repr_html_()
    assert result.title in page and f">{result.runs}<" in page


def test_the_outcome_follows_from_the_interval():
    outcomes = [result.outcome for result in RESULTS.values()]
    assert outcomes == [Outcome.OPEN, Outcome.OPEN, Outcome.PASS, Outcome.WITHIN]
    assert [result.decided for result in RESULTS.values()] == [False, False, True, True]
    failed = GateResult(
        interval=(-0.3, -0.06), new=0.4, old=0.6, items=40, total=500, margin=0.05
    )
    assert failed.outcome is Outcome.FAIL and failed.verdict().startswith(
        "FAIL: new is"
    )


def test_without_an_interval_nothing_is_decided():
    nothing = ComparisonResult(items=0)
    assert not nothing.decided and math.isnan(nothing.interval[0])
    assert "interval" not in nothing._repr_html_()
