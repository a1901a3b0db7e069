"""A cluster instead of one machine: the same frame, the same table. Needs the extra
`cluster`."""

import pandas as pd
import pytest
from helpers.logs import write_lm_eval
from helpers.small import table

from benchnb.evaluation.compare import compare
from benchnb.harnesses.harness import import_logs

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow  # workers are started


@pytest.fixture(scope="module")
def cluster():
    "Two workers on this machine, through joblib"
    import joblib

    local = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    )
    with local, distributed.Client(local), joblib.parallel_config("dask"):
        yield local


def test_compare_gives_the_same_frame(cluster):
    argv = table(), ["random", "kmeans"], [6, 12], 2
    there, here = compare(*argv, n_jobs=2).frame, compare(*argv, n_jobs=1).frame
    same = ["seconds"]
    pd.testing.assert_frame_equal(there.drop(columns=same), here.drop(columns=same))


def test_logs_give_the_same_table(cluster, tmp_path):
    for number in range(4):
        write_lm_eval(tmp_path, f"m{number}", {"t": [number % 2, 1, 0]})
    there, here = (import_logs("lm-eval", tmp_path, n_jobs=n) for n in (2, 1))
    assert there.fingerprint() == here.fingerprint()
