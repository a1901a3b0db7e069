"The papers' tables as data, and the results that are stored beside them"

import json
import math
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchnb.papers.published import (
    CELL,
    PAPERS,
    RESULT_COLUMNS,
    VERDICTS,
    allowed_difference,
    cells_json,
    count_verdicts,
    format_cells,
    printed_unit,
    printed_value,
    published_cells,
    side_by_side,
    store_results,
    stored_results,
    table_cells,
    verdict,
)

# rows x columns of each table, counted on the papers' pages
COUNTS = {
    "tailored_bench": {
        "table 1": 10 * 10,
        "table 2": 3 * 2,
        "table 3": 2 * 2,
        "table 4": 5 * 2,
        "table 5": 4 * 6,
        "table 6": 20 * 10,
        "table 7": 3 * 10,
        "table 8": 2 * 10,
        "table 9": 2 * 10,
        "table 10": 3 * 2,
        "table 11": 2 * 2,
        "table 12": 3 * 4,
        "table 13": 5 * 10,
        "section 1": 3,
        "section 4.2": 2,
        "section 4.4": 1,
        "section B.11": 4,
    },
    "bento": {
        "table 1": 14 * 4,
        "table 2": 6 * 11,
        "table 3": 6 * 13,
        "table 4": 6 * 3,
        "table 5": 5,
        "table 6": 10 * 5 * 2,
        "table 7": 12 * 5 * 2,
        "table 8": 9 * 2 * 2,
        "table 9": 6 * 7,
        "table 10": 6 * 9,
        "table 11": 14 * 3,
        "figure 1": 1,
        "section 5.1": 1,
        "section 5.2": 4 + 4,
        "section B": 1,
        "section C": 2,
    },
    "collaborative_filtering": {"table 1": 2 * 2, "table 2": 5 * 4, "table 3": 5 * 4},
    "predicting_big_bench": {
        "table 1": 6,
        "table 2": 5 * 6,
        "table 3": 3 * 4,
        "table 4": 3 * 6,
        "table 5": 8,
        "table 6": 5 * 7 * 4 * 2,
        "section 3.4": 4,
        "section 5.3": 2,
        "section D.3": 4,
    },
    "essence_bench": {
        "section: Main Results": 8 * 2 + 4,
        "section: Ranking Fidelity": 3,
        "section: Ablation Study": 2,
        "section: Comparison with SMART": 2,
        "section: TL;DR": 2,
        "section: Key Findings": 1,
    },
}

SPOTS = [  # read off the papers' pages
    (
        "tailored_bench",
        "table 6",
        "GSM8K / TailoredBench",
        "30 items / kendall",
        "0.863",
    ),
    ("tailored_bench", "table 6", "POPE / gp-IRT", "40 items / mae", "0.033"),
    (
        "tailored_bench",
        "table 6",
        "Winogrande / AnchorPoints",
        "35 items / mae",
        "0.087",
    ),
    ("tailored_bench", "table 1", "ARC / Best Baseline", "20 items / mae", "0.046"),
    ("tailored_bench", "table 5", "HellaSwag / gp-IRT", "150 items / mae", "0.012"),
    ("tailored_bench", "table 7", "Winogrande / Cosine", "kendall", "0.616"),
    ("tailored_bench", "table 8", "POPE / not calibrated", "mae", "0.043"),
    ("tailored_bench", "table 9", "GSM8K / dynamic number", "kendall", "0.875"),
    (
        "tailored_bench",
        "table 10",
        "free G-set, 10 + 30 items, 40 asked",
        "kendall",
        "0.745",
    ),
    ("tailored_bench", "table 11", "Mistral", "llama natives", "3.0"),
    ("tailored_bench", "table 12", "gp-IRT", "with llama / mae", "0.038"),
    ("tailored_bench", "table 13", "Winogrande / G-set 25", "kendall", "0.638"),
    (
        "tailored_bench",
        "section 4.2",
        "HellaSwag / TailoredBench",
        "pairwise accuracy %",
        "96.0",
    ),
    ("bento", "table 1", "MMLU / Gemma-7b", "ChatGPT / difference", "+9.0"),
    ("bento", "table 2", "MMLU / BENTo-le", "3 tasks / nrmse", "0.029"),
    ("bento", "table 3", "FLAN / BENTo-sim", "12 tasks / nrmse", "0.21"),
    ("bento", "table 4", "Big Bench Hard / cos-le", "best / nrmse", "0.20"),
    (
        "bento",
        "table 5",
        "MMLU / random + BENTo, 21 tasks, 2.0% of items",
        "nrmse",
        "0.026",
    ),
    ("bento", "table 6", "MMLU / BM25-sim", "3 tasks / nrmse sd", "0.017"),
    ("bento", "table 7", "FLAN / GPT4", "1 task / nrmse sd", "3.020"),
    ("bento", "table 8", "MMLU / Llama-3-8b", "selected tasks / accuracy % sd", "1.8"),
    ("bento", "table 10", "Big Bench Hard / random", "8 tasks / nrmse", "7.020"),
    ("bento", "table 11", "MMLU / GPT-4o", "reported / accuracy %", "88.7"),
    (
        "collaborative_filtering",
        "table 1",
        "clustering / semantic",
        "ranking / mae",
        "6.7",
    ),
    ("collaborative_filtering", "table 2", "TinyBenchmark", "low overhead", "no"),
    (
        "collaborative_filtering",
        "table 3",
        "MMLU / Random",
        "predict / seconds",
        "0.000782",
    ),
    ("predicting_big_bench", "table 1", "experiment records", "count", "56,143"),
    (
        "predicting_big_bench",
        "table 3",
        "true full BIG-bench",
        "GPT-3 Large wins / %",
        "30.4",
    ),
    (
        "predicting_big_bench",
        "table 4",
        "E2.1, hold out GPT-3 200B",
        "S2 / r2",
        "0.8187",
    ),
    (
        "predicting_big_bench",
        "table 4",
        "E2.2, hold out PaLM 535B",
        "S3 / rmse",
        "0.1668",
    ),
    ("predicting_big_bench", "table 5", "MLP (optimized for search)", "seconds", "28"),
    ("predicting_big_bench", "table 6", "L3 Composition / MLP", "r2", "0.8597"),
    (
        "predicting_big_bench",
        "table 6",
        "L2.2 / Task-task kNN",
        "task average / kendall sd",
        "0.0137",
    ),
    (
        "essence_bench",
        "section: Main Results",
        "GSM8K / EssenceBench",
        "500 items / rmse",
        "0.377",
    ),
    (
        "essence_bench",
        "section: Ranking Fidelity",
        "GSM8K / EssenceBench",
        "250 items / pearson",
        "1.000",
    ),
]

# plausible values by the last word of the column that names a metric
RANGES = {
    "kendall": (0, 1),
    "pearson": (0, 1),
    "spearman": (0, 1),
    "r2": (0, 1),
    "nrmse": (0, 8),
    "seconds": (0, 400),
    "accuracy %": (20, 100),
    "difference": (-20, 20),
}
PERCENT = {"essence_bench": 10}  # rmse in percentage points


def result(**changes):
    "One stored result, right in every respect"
    row = dict(
        paper="tailored_bench",
        table="table 6",
        row="GSM8K / TailoredBench",
        column="30 items / kendall",
        reproduced=0.8647,
        trials=100,
        stderr=0.0021,
        data="made up",
        verdict="",
        reason="",
    )
    return pd.DataFrame([row | changes])[RESULT_COLUMNS]


def cell(frame, column="30 items / kendall"):
    hit = frame[
        (frame["table"] == "table 6")
        & (frame["row"] == "GSM8K / TailoredBench")
        & (frame["column"] == column)
    ]
    assert len(hit) == 1
    return hit.iloc[0]


# ---- the data


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_has_all_its_cells(paper):
    cells = published_cells(paper)
    assert cells.groupby("table", sort=False).size().to_dict() == COUNTS[paper]
    assert (
        list(cells.columns) == [*CELL, "published", "value", "unit"]
        and (cells["paper"] == paper).all()
    )


def test_no_cell_comes_twice_or_is_blank():
    cells = published_cells()
    assert not cells.duplicated(CELL).any()
    for name in [*CELL, "published"]:
        assert (cells[name] != "").all() and (
            cells[name] == cells[name].str.strip()
        ).all()
    assert (
        cells["published"].map(str.isascii).all()
        and cells["column"].map(str.isascii).all()
    )


@pytest.mark.parametrize("spot", SPOTS, ids=lambda s: " | ".join(s[:4]))
def test_spot(spot):
    cells = published_cells(spot[0]).set_index(["table", "row", "column"])
    assert cells.loc[spot[1:4], "published"] == spot[4]


def test_values_are_plausible():
    cells = published_cells().dropna(subset=["value"])
    metric = cells["column"].str.split(" / ").str[-1]
    for name, (low, high) in RANGES.items():
        values = cells.loc[metric == name, "value"]
        assert len(values) and values.between(low, high).all(), name
    spreads = cells.loc[metric.str.endswith(" sd"), "value"]
    assert len(spreads) == 50 + 60 + 18 + 140 + 2 and spreads.between(0, 3.2).all()
    for paper, part in cells[metric.isin(["mae", "rmse"])].groupby("paper"):
        part = part[part["column"] != "ranking / mae"]
        assert part["value"].between(0, PERCENT.get(paper, 0.3)).all()


def test_text_cells_are_the_known_ones():
    cells = published_cells()
    words = (
        cells[cells["value"].isna()].groupby(["paper", "table"])["published"].agg(set)
    )
    assert words["collaborative_filtering", "table 2"] == {"yes", "no"}
    assert set(words.index) == {
        ("collaborative_filtering", "table 2"),
        ("predicting_big_bench", "table 1"),
        ("predicting_big_bench", "table 2"),
        ("predicting_big_bench", "table 3"),
        ("essence_bench", "section: Main Results"),
        ("essence_bench", "section: TL;DR"),
    }


def grid(paper, table):
    part = published_cells(paper)
    return part[part["table"] == table].pivot(
        index="row", columns="column", values="value"
    )


def test_tailored_best_baseline_is_the_best_of_three():
    best, full = grid("tailored_bench", "table 1"), grid("tailored_bench", "table 6")
    for bench in ["ARC", "HellaSwag", "GSM8K", "Winogrande", "POPE"]:
        three = full.loc[
            [f"{bench} / {m}" for m in ["Random", "AnchorPoints", "gp-IRT"]]
        ]
        for column in best:
            wanted = (
                three[column].max()
                if column.endswith("kendall")
                else three[column].min()
            )
            assert best.loc[f"{bench} / Best Baseline", column] == wanted
            assert (
                best.loc[f"{bench} / TailoredBench", column]
                == full.loc[f"{bench} / TailoredBench", column]
            )


def test_tailored_default_is_the_same_in_every_ablation():
    full = grid("tailored_bench", "table 6")
    rows = {
        "table 7": "Manhattan",
        "table 8": "calibrated",
        "table 9": "standardised number",
        "table 13": "G-set 10",
    }
    for table, name in rows.items():
        for bench in ["ARC", "HellaSwag", "GSM8K", "Winogrande", "POPE"]:
            for metric in ["kendall", "mae"]:
                assert (
                    grid("tailored_bench", table).loc[f"{bench} / {name}", metric]
                    == full.loc[f"{bench} / TailoredBench", f"30 items / {metric}"]
                )


@pytest.mark.parametrize("table", ["table 2", "table 3", "table 9", "table 10"])
def test_bento_best_is_the_least_of_its_row(table):
    errors = grid("bento", table)
    assert (
        errors.drop(columns="best / nrmse").min(axis=1) == errors["best / nrmse"]
    ).all()


def test_bento_tables_1_8_and_11_agree():
    one, eight, eleven = (grid("bento", f"table {n}") for n in (1, 8, 11))
    full = one["full benchmark / accuracy %"]
    estimate = (full + one["BENTo / difference"]).round(1)
    assert (eleven["measured / accuracy %"] == full).all()
    assert (eleven["BENTo-estimated / accuracy %"] == estimate).all()
    assert (eight["all tasks / accuracy %"] == full[eight.index]).all()
    assert (eight["selected tasks / accuracy %"] == estimate[eight.index]).all()


def test_sums_hold_within_rounding():
    shares = grid("predicting_big_bench", "table 3").drop(columns="conclusion")
    np.testing.assert_allclose(shares.sum(axis=1), 100, atol=0.051)
    times = grid("collaborative_filtering", "table 3")
    np.testing.assert_allclose(
        times["select / seconds"] + times["predict / seconds"],
        times["total / seconds"],
        rtol=0.005,
    )


@pytest.mark.parametrize(
    "name", ["tailored", "TailoredBench", "bento.csv", "", "../bento"]
)
def test_unknown_paper(name):
    with pytest.raises(ValueError) as error:
        published_cells(name)
    assert all(paper in str(error.value) for paper in PAPERS) and "Did you mean" in str(
        error.value
    )


def test_papers_cannot_be_changed():
    with pytest.raises(TypeError):
        PAPERS["bento"] = None


# ---- reading and judging


@given(st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_printing_loses_at_most_half_a_unit(number, decimals):
    exact = number / 10**4
    text = f"{exact:.{decimals}f}"
    assert printed_unit(text) == pytest.approx(10.0**-decimals)
    assert abs(printed_value(text) - exact) <= printed_unit(text) * (0.5 + 1e-6)
    assert (
        verdict(printed_value(text), exact, math.nan, printed_unit(text))
        == "reproduced"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes",
        ">7",
        "<5",
        "0.86.3",
        "0, 1, 2",
        "1e3",
        "nan",
        "inf",
        " 1",
        "2.8T tokens",
        ".5",
        "5.",
    ],
)
def test_text_is_no_number(text):
    assert math.isnan(printed_value(text)) and math.isnan(printed_unit(text))


@given(
    st.floats(0, 1),
    st.floats(-0.1, 0.1),
    st.floats(0, 0.05),
    st.sampled_from([1e-4, 1e-3, 1e-2]),
)
def test_verdict_is_symmetric_and_more_noise_never_contradicts(
    published, shift, stderr, unit
):
    up, down = (
        verdict(published, published + s, stderr, unit) for s in (shift, -shift)
    )
    band = float(allowed_difference(stderr, unit))
    if abs(abs(shift) - band) > 1e-6:
        assert up == down == ("reproduced" if abs(shift) <= band else "contradicted")
    if up == "reproduced":
        assert verdict(published, published + shift, 2 * stderr, unit) == "reproduced"


def test_verdict_knows_what_is_missing():
    assert (
        verdict(math.nan, 0.5) == "not published"
        and verdict(0.5, math.nan) == "not possible"
    )
    assert allowed_difference(math.nan, 0.001) == allowed_difference(0, 0.001) == 0.0005
    np.testing.assert_allclose(
        allowed_difference(np.array([np.nan, 1]), np.array([1, 1])), [0.5, 2]
    )


# ---- stored results


def test_round_trip(tmp_path):
    rows = pd.concat(
        [
            result(reproduced=0.123456789, stderr=0.000123456789),
            result(
                column="30 items / mae",
                reproduced=math.nan,
                trials=math.nan,
                stderr=math.nan,
                data="",
                reason='no, "data"\nhere',
            ),
            result(column="20 items / mae", verdict="on other data", reason="π ≈ 3"),
        ],
        ignore_index=True,
    )
    path = store_results(
        rows.sample(frac=1, axis=1, random_state=0), "some_chapter", tmp_path / "new"
    )
    back = stored_results(tmp_path / "new")
    assert path == tmp_path / "new" / "some_chapter.csv" and [
        p.name for p in path.parent.iterdir()
    ] == ["some_chapter.csv"]
    assert (
        list(back.columns) == RESULT_COLUMNS
        and back["reproduced"][0] == 0.123457
        and back["stderr"][0] == 0.000123457
    )
    pd.testing.assert_frame_equal(
        back.drop(columns=["reproduced", "stderr"]),
        rows.drop(columns=["reproduced", "stderr"]),
        check_dtype=False,
    )
    assert np.isnan(back.loc[1, ["reproduced", "trials", "stderr"]].astype(float)).all()
    first = path.read_bytes()
    store_results(back, "some_chapter", tmp_path / "new")
    assert path.read_bytes() == first and b"100," in first and b"100.0" not in first


def test_empty_folder_and_package_folder(tmp_path):
    assert (
        len(stored_results(tmp_path / "none")) == 0 and not (tmp_path / "none").exists()
    )
    assert list(stored_results().columns) == RESULT_COLUMNS
    assert (
        table_cells(folder=tmp_path)["verdict"].isin(["not yet", "not possible"])
    ).all()


BAD = [  # changes to a right result, and what the error names
    (dict(paper="tailored"), "'tailored_bench'"),
    (dict(table=""), "empty"),
    (dict(row=None), "empty"),
    (dict(verdict="fine"), "verdict"),
    (dict(verdict="reproduced"), "verdict"),
    (dict(reproduced=math.inf), "finite"),
    (dict(stderr=-0.1), "stderr"),
    (dict(stderr=math.inf), "stderr"),
    (dict(trials=0), "trials"),
    (dict(trials=1.5), "trials"),
    (dict(verdict="not possible", reason="x"), "possible"),
    (dict(reproduced=math.nan), "reason"),
    (dict(reproduced=math.nan, verdict="on other data", reason="x"), "not possible"),
    (dict(verdict="contradicted"), "reason"),
    (dict(verdict="on other data", data=""), "data"),
    (dict(reproduced="about 0.8"), "'reproduced'"),
]


@pytest.mark.parametrize("changes, words", BAD, ids=lambda x: str(x)[:40])
def test_bad_result_is_named_and_nothing_is_written(tmp_path, changes, words):
    old = store_results(result(), "mine", tmp_path).read_bytes()
    with pytest.raises(ValueError) as error:
        store_results(result(**changes), "mine", tmp_path)
    assert "mine" in str(error.value) and words in str(error.value)
    assert (tmp_path / "mine.csv").read_bytes() == old and len(
        list(tmp_path.iterdir())
    ) == 1


@pytest.mark.parametrize(
    "frame",
    [
        result().drop(columns="data"),
        result().assign(extra=1),
        pd.concat([result(), result()["data"]], axis=1),
    ],
    ids=["missing", "extra", "twice"],
)
def test_bad_columns(tmp_path, frame):
    with pytest.raises(ValueError, match="columns missing, unknown or twice"):
        store_results(frame, "mine", tmp_path)


@pytest.mark.parametrize("name", ["", "../mine", "a/b", ".hidden", "a b"])
def test_bad_file_name(tmp_path, name):
    with pytest.raises(ValueError, match="plain file name"):
        store_results(result(), name, tmp_path)


def test_a_cell_stored_by_two_files_is_refused(tmp_path):
    store_results(result(), "one", tmp_path)
    store_results(result(), "two", tmp_path)
    with pytest.raises(ValueError, match="GSM8K / TailoredBench.*twice"):
        stored_results(tmp_path)


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "broken.csv").write_text("paper,table\nbento,table 1\n")
    with pytest.raises(ValueError, match="broken.csv"):
        stored_results(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    old = store_results(result(), "mine", tmp_path).read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError):
        store_results(result(reproduced=0.1), "mine", tmp_path)
    assert (tmp_path / "mine.csv").read_bytes() == old and len(
        list(tmp_path.iterdir())
    ) == 1


# ---- joined


def test_joined_cells(tmp_path):
    store_results(
        pd.concat(
            [
                result(),
                result(column="30 items / mae", reproduced=0.05, stderr=0.0005),
                result(
                    column="20 items / mae", reproduced=0.9, verdict="on other data"
                ),
                result(
                    column="20 items / kendall",
                    reproduced=0.852,
                    verdict="contradicted",
                    reason="tuned on targets",
                ),
                result(
                    column="25 items / mae", reproduced=math.nan, reason="no models"
                ),
                result(row="GSM8K / AIPW"),
                result(table="our table", row="x", column="mae"),
            ]
        ),
        "a",
        tmp_path,
    )
    store_results(
        pd.concat(
            [
                result(
                    paper="essence_bench",
                    table="section: Main Results",
                    row="MMLU / PPL",
                    column="300 items / rmse",
                    reproduced=8,
                ),
                result(
                    paper="essence_bench",
                    table="section: Main Results",
                    row="MMLU / GraNd",
                    column="300 items / rmse",
                    reproduced=8,
                    verdict="on other data",
                ),
            ]
        ),
        "b",
        tmp_path,
    )
    cells = table_cells("tailored_bench", tmp_path)
    assert list(cells.columns) == [
        *CELL,
        "published",
        "reproduced",
        "difference",
        "trials",
        "stderr",
        "data",
        "verdict",
        "reason",
    ]
    assert len(cells) == sum(COUNTS["tailored_bench"].values()) + 2
    verdicts = {
        c: cell(cells, c)["verdict"]
        for c in cells["column"].unique()
        if "items" in c and c[:2] in ("20", "25", "30")
    }
    assert verdicts == {
        "20 items / kendall": "contradicted",
        "20 items / mae": "on other data",
        "25 items / kendall": "not yet",
        "25 items / mae": "not possible",
        "30 items / kendall": "reproduced",
        "30 items / mae": "contradicted",
    }
    assert cell(cells)["difference"] == 0.0017 and cell(cells)["published"] == "0.863"
    variants = cells[cells["verdict"] == "not published"]
    assert (
        variants["row"].tolist() == ["GSM8K / AIPW", "x"]
        and variants["published"].isna().all()
    )
    tables = cells["table"].tolist()  # a variant stands at the end of its table
    assert sorted(set(tables), key=tables.index) == [
        t for i, t in enumerate(tables) if i == 0 or tables[i - 1] != t
    ]
    everything = table_cells(folder=tmp_path)
    assert len(everything) == sum(sum(c.values()) for c in COUNTS.values()) + 2
    essence = (
        everything[everything["published"] == ">7"]
        .set_index("row")["verdict"]
        .to_dict()
    )
    assert essence == {"MMLU / PPL": "not possible", "MMLU / GraNd": "on other data"}
    counts = count_verdicts(everything)
    assert counts.sum() == len(everything) and list(counts.index) == [
        v for v in VERDICTS if v in set(everything["verdict"])
    ]


def no_constant(name):
    raise AssertionError(name)


def test_json_is_strict(tmp_path):
    store_results(
        pd.concat([result(), result(row="GSM8K / AIPW", stderr=math.nan)]),
        "a",
        tmp_path,
    )
    cells = table_cells(folder=tmp_path)
    rows = json.loads(cells_json(cells), parse_constant=no_constant)
    assert [list(row) for row in rows] == [list(cells.columns)] * len(cells)
    by_address = {tuple(row[name] for name in CELL): row for row in rows}
    mine = by_address[
        "tailored_bench", "table 6", "GSM8K / TailoredBench", "30 items / kendall"
    ]
    assert (
        mine["published"],
        mine["reproduced"],
        mine["difference"],
        mine["trials"],
    ) == (0.863, 0.8647, 0.0017, 100)
    variant = by_address[
        "tailored_bench", "table 6", "GSM8K / AIPW", "30 items / kendall"
    ]
    assert (
        variant["published"] is None
        and variant["stderr"] is None
        and variant["difference"] is None
    )
    assert (
        by_address["predicting_big_bench", "table 1", "experiment records", "count"][
            "published"
        ]
        == 56143
    )
    assert (
        by_address["collaborative_filtering", "table 2", "Ours", "commonness"][
            "published"
        ]
        == "yes"
    )
    assert all(row["verdict"] in VERDICTS for row in rows)
    assert json.loads(cells_json(cells.iloc[:0])) == []


@pytest.mark.parametrize("paper", PAPERS)
def test_side_by_side_has_every_cell(paper, tmp_path):
    for table, count in COUNTS[paper].items():
        wide = side_by_side(paper, table, tmp_path)
        published = wide.xs("published", axis=1, level=1)
        assert (published != "").to_numpy().sum() == count and (
            wide.drop(columns="published", level=1) == ""
        ).all(axis=None)
        assert list(wide.columns.levels[1].sort_values()) == [
            "difference",
            "published",
            "reproduced",
        ]


def test_side_by_side_shows_one_digit_more(tmp_path):
    store_results(
        pd.concat([result(), result(row="GSM8K / AIPW", reproduced=0.5)]), "a", tmp_path
    )
    wide = side_by_side("tailored_bench", "table 6", tmp_path)
    assert wide.loc["GSM8K / TailoredBench", "30 items / kendall"].tolist() == [
        "0.863",
        "0.8647",
        "+0.0017",
    ]
    assert wide.loc["GSM8K / AIPW", "30 items / kendall"].tolist() == ["", "0.5000", ""]
    with pytest.raises(ValueError, match="Did you mean 'table 6'.*table 13"):
        side_by_side("tailored_bench", "Table6", tmp_path)


@pytest.mark.parametrize("width", [72, 80, 120])
def test_terminal_text_fits_and_holds_every_cell(tmp_path, width):
    long = "a reason that goes on " * 8
    tiny = dict(
        paper="collaborative_filtering",
        table="table 3",
        row="MMLU / Random",
        column="predict / seconds",
    )
    store_results(
        pd.concat(
            [
                result(reason=long),
                result(row="GSM8K / AIPW"),
                result(column="25 items / kendall", reproduced=math.nan, reason="why"),
                result(
                    reproduced=0.00078123,
                    stderr=1.2e-7,
                    verdict="on other data",
                    **tiny,
                ),
                result(
                    paper="predicting_big_bench",
                    table="table 1",
                    row="experiment records",
                    column="count",
                    reproduced=1234567.8,
                ),
            ]
        ),
        "a",
        tmp_path,
    )
    cells = table_cells(folder=tmp_path)
    text = format_cells(cells, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width and all(
        line == line.rstrip() for line in lines
    )
    last = " ".join(lines).split(f"{len(cells)} cells: ")[1]
    assert {
        name: int(count) for count, name in re.findall(r"(\d+) ([a-z ]+)", last)
    } == count_verdicts(cells).to_dict()
    assert (
        sum(line.startswith("---") for line in lines)
        == cells[["paper", "table"]].drop_duplicates().shape[0]
    )
    assert any("0.863   0.8647  ±0.0021  +0.0017 reproduced" in line for line in lines)
    assert " ".join(long.split()) in " ".join(text.split())


def test_terminal_text_of_nothing():
    assert format_cells(table_cells("bento").iloc[:0]).endswith("0 cells")


def test_files_are_tidy():
    import benchnb.papers.published

    folder = Path(benchnb.papers.published.__file__).parent / "data" / "published"
    assert {p.stem for p in folder.glob("*.csv")} == set(PAPERS)
    for path in folder.glob("*.csv"):
        raw = path.read_bytes()
        assert (
            raw.startswith(b"table,row,column,published\n")
            and b"\r" not in raw
            and raw.endswith(b"\n")
        )
