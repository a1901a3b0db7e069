"Bundles give the estimate that we would have made, and hold no table of sources"

import pickle

import pytest
from helpers.small import estimates, files_in, fitted, halves, prepared

from benchnb.live.bundles import kept_tables, load_bundle, publish


@pytest.mark.parametrize(
    "name", ["random", "aipw", "anchor_points", "gp_irt", "metabench"]
)
def test_a_bundle_gives_the_estimate_without_the_sources(name, tmp_path):
    target = halves()[1]
    method = prepared(fitted(name), 15)
    expected = estimates(method, target, None)[0]
    publish(method, tmp_path / "bundle", "A test")
    files = files_in(tmp_path / "bundle")
    assert {"README.md", "method.json", "arrays.npz", "subset.json"} <= set(files)
    for content in files.values():
        with pytest.raises(Exception):  # noqa: B017 (pickle has many ways to refuse)
            pickle.loads(content)
    run = load_bundle(tmp_path / "bundle")
    row = dict(zip(target.items.index, target.values[0].astype(float), strict=True))
    run.tell({n: row[n] for n in run.ask()})
    assert run.estimate().score == expected.score
    assert run.estimate().interval == expected.interval


def test_a_method_that_keeps_its_sources_says_so(tmp_path):
    method = prepared(fitted("tailored_bench"), 15)
    assert kept_tables(method) == ["table_"]
    with pytest.raises(TypeError, match="asks each model other items"):
        publish(method, tmp_path / "b")
    assert not (tmp_path / "b").exists()
