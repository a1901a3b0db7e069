"Splits: the authors' folds, nothing leaks, each record is tested once, refusals"

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, train_test_split

from benchnb.bigbench.records import check_records, make_synthetic_records
from benchnb.bigbench.splits import (
    EXTRAPOLATION,
    INTERPOLATION_SPLITS,
    SPLIT_KEYS,
    SPLIT_SETTINGS,
    beyond,
    fold_beyond,
    held_out_models,
    number_record_keys,
    product_folds,
    split_records,
)


def holey(seed):
    "Made-up records with holes, parts of tasks, unknown sizes, in a random order"
    rng = np.random.default_rng(seed)
    frame = make_synthetic_records(int(rng.integers(4, 8)), 3, 9, seed=seed)
    frame["subtask"] = frame["task"]
    frame["task"] = "big" + (frame["subtask"].str[1:].astype(int) // 2).astype(str)
    if seed % 2:
        frame.loc[frame["family"] == "B", "total_params"] = np.nan
    frame = frame.sample(frac=rng.uniform(0.5, 0.95), random_state=seed)
    return check_records(frame, unknown_size="keep")


def keys_of(records, columns, unit="subtask"):
    "Keys as tuples, by hand"
    size = records["total_params"].astype(str)
    size = size.where(records["total_params"].notna(), records["model"])
    table = pd.DataFrame({"subtask": records[unit], "family": records["family"]})
    table = table.assign(size=size, shots=records["shots"])
    return list(table[columns].itertuples(index=False, name=None))


@pytest.mark.parametrize("unit", ["subtask", "task"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", INTERPOLATION_SPLITS)
def test_no_key_leaks_and_every_record_is_tested_once(name, seed, unit):
    records = holey(seed)
    keys = keys_of(records, SPLIT_KEYS.get(name, SPLIT_KEYS["L3"]), unit)
    folds = split_records(records, name, seed=seed, unit=unit)
    for fold in folds:
        train, dev, test = ({keys[i] for i in part} for part in fold)
        assert not train & test and not dev & test and not train & dev
        assert sorted(np.concatenate(fold)) == list(range(len(records)))
        assert min(map(len, fold)) > 0
    tested = np.concatenate([fold.test for fold in folds])
    assert sorted(tested) == list(range(len(records)))


@pytest.mark.parametrize("seed", range(2))
def test_composition_holds_out_a_product(seed):
    records = holey(seed)
    folds = product_folds(records, seed=seed)
    for fold in folds:
        test, rest = records.iloc[fold.test], records.drop(index=fold.test)
        families, tasks = set(test["family"]), set(test["subtask"])
        inside = records["family"].isin(families) & records["subtask"].isin(tasks)
        assert set(np.flatnonzero(inside)) == set(fold.test)
        assert set(rest["family"]) == set(records["family"])  # on other tasks
    families = {frozenset(records["family"].iloc[fold.test]) for fold in folds}
    assert len(folds) == 9 and len(families) == 3


@pytest.mark.equation("predicting_big_bench", "section 4.1, D.2")
@pytest.mark.parametrize("name", SPLIT_KEYS)
def test_folds_are_the_authors(name):
    "Their scripts: groups in sorted order, KFold, train_test_split, all with seed 42"
    records = make_synthetic_records(6, 3, 12)
    columns = [{"size": "total_params"}.get(c, c) for c in SPLIT_KEYS[name]]
    keys = list(records.groupby(columns).groups.keys())
    own = list(records[columns].itertuples(index=False, name=None))
    folds = split_records(records, name)
    splits = KFold(n_splits=10, shuffle=True, random_state=42).split(keys)
    for fold, (rest, test) in zip(folds, splits, strict=True):
        test_keys = {keys[i] for i in test}
        rest_keys = [keys[i] for i in rest]
        _, dev_keys = train_test_split(rest_keys, test_size=0.1 / 0.9, random_state=42)
        in_test = [key in test_keys for key in own]
        in_dev = [key in set(dev_keys) for key in own]
        assert np.flatnonzero(in_test).tolist() == fold.test.tolist()
        assert np.flatnonzero(in_dev).tolist() == fold.dev.tolist()


@pytest.mark.parametrize("name", SPLIT_SETTINGS)
def test_the_seed_decides_and_the_index_does_not(name):
    records = make_synthetic_records(5, 3, 6)
    named = records.set_index(pd.Index(range(5000, 5000 + len(records))))
    first, again, other = (
        split_records(part, name, seed=seed)
        for part, seed in ((records, 1), (named, 1), (records, 2))
    )
    for f, g in zip(first, again, strict=True):
        assert all((a == b).all() for a, b in zip(f, g, strict=True))
    assert any(set(f.dev) != set(g.dev) for f, g in zip(first, other, strict=True))


@pytest.mark.parametrize("sizes", ["known", "unknown"])
@pytest.mark.parametrize("name", SPLIT_KEYS)
def test_the_order_of_the_records_does_not_matter(name, sizes):
    records = make_synthetic_records(5, 3, 6)
    if sizes == "unknown":
        records = records.assign(total_params=np.nan)
    mixed = records.sample(frac=1, random_state=0)
    there = pd.Series(
        number_record_keys(mixed, SPLIT_KEYS[name]), mixed.index
    ).sort_index()
    assert (there == number_record_keys(records, SPLIT_KEYS[name])).all()


# beyond the range


@pytest.mark.parametrize("name", EXTRAPOLATION)
@pytest.mark.parametrize("seed", range(2))
def test_scenarios_differ_as_described(name, seed):
    records = holey(2 * seed)
    outside = beyond(records, name)
    s1, s2, s3 = (fold_beyond(records, name, s, seed) for s in ("S1", "S2", "S3"))
    assert (s1.test == s2.test).all() and (s1.test == s3.test).all()
    assert outside[s1.test].all() and not outside[s1.train].any()
    assert not outside[s1.dev].any() and outside[s2.dev].all()
    assert (s2.train == s1.train).all() and (s3.dev == s1.dev).all()
    assert set(s3.train) == set(s1.train) | set(s2.dev)
    for fold in (s1, s2, s3):
        assert len(np.unique(np.concatenate(fold))) == sum(map(len, fold))
    assert sorted(np.concatenate(s3)) == list(range(len(records)))


def test_a_family_with_other_shots_only_is_no_test():
    "BIG-bench: 0 to 3 shots, and Gopher with 5 only; E1 tests 3 after 0, 1 and 2"
    records = make_synthetic_records(families=4, shots=(0, 1, 2, 3))
    gopher = records["family"] == "D"
    records = records[~gopher | (records["shots"] == 3)].reset_index(drop=True)
    records.loc[records["family"] == "D", "shots"] = 5
    fold, shots = fold_beyond(records, "E1"), records["shots"].to_numpy()
    assert set(shots[fold.test]) == {3}
    assert set(shots[np.concatenate(fold)]) == {0, 1, 2, 3}


def test_models_of_the_paper_are_held_out():
    sizes = {"GPT": [3e9, 2e11], "PaLM": [8e9, 5.35e11], "BIG-G T=0": [1e9, 2e9, 7e11]}
    rows = [
        [family, f"{size / 1e9:g}b", size, task, shots, 0.5]
        for family, many in sizes.items()
        for size in many
        for task in ("a", "b")
        for shots in (0, 3)
    ]
    names = ["family", "model", "total_params", "task", "shots", "score"]
    records = check_records(pd.DataFrame(rows, columns=names).assign(metric="acc"))
    held = held_out_models(records)
    assert held == {"E2.1": ("GPT", "200b"), "E2.2": ("PaLM", "535b")}
    assert set(records[beyond(records, "E2.2")]["total_params"]) == {5.35e11}


# what is refused


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"name": "L4"}, "setting is L1, L2.1, .*, E2.1 or E2.2, not 'L4'"),
        ({"name": "L1", "folds": 999}, "288 groups of records cannot make 999 folds"),
    ],
)
def test_bad_requests_are_refused_by_name(settings, words):
    with pytest.raises(ValueError, match=words):
        split_records(make_synthetic_records(), **settings)


NO_E1 = make_synthetic_records(shots=[0])
NO_E1.loc[NO_E1["task"] == "t3", "shots"] = 5  # shots differ between tasks only


@pytest.mark.parametrize(
    "records, name, words",
    [
        (make_synthetic_records(2), "L3 composition", "3 or more of family, but has 2"),
        (
            make_synthetic_records(1, tasks=1),
            "L3",
            "1 groups of records cannot make 10 folds",
        ),
        (NO_E1, "E1", "E1 needs a task asked with two or more"),
        (
            make_synthetic_records(3, 1),
            "E2.1",
            "E2 needs two families with two or more",
        ),
        (
            make_synthetic_records(4, 2, 1, [0]),
            "E2.1",
            "too few records to train or to test",
        ),
    ],
)
def test_tables_that_allow_no_split_are_refused(records, name, words):
    with pytest.raises(ValueError, match=words):
        split_records(records, name)
