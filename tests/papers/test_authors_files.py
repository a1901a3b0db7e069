"The papers' tables measured on small files of the shape that the authors' files have"

import numpy as np
import pytest

from benchnb.data.files import FileError
from benchnb.papers import reproduced, tailored_bench
from benchnb.papers.published import read_ledger_lines, table_cells
from benchnb.papers.verdicts import Verdict

FOLDERS = tailored_bench.AUTHORS_FOLDERS


def save_options(folder, benchmark, models=12, items=60, options=4):
    "Probabilities of every option, by models of growing skill, and the right options"
    rng = np.random.default_rng(1)
    place = folder / "BenchmarkDatasets" / FOLDERS[benchmark]
    place.mkdir(parents=True)
    right = rng.integers(options - 1, size=items)
    np.save(place / "gt_label.npy", right)
    for part in ("source", "target"):
        skill = np.linspace(0, 3, models)[:, np.newaxis, np.newaxis]
        ease = rng.normal(size=(1, items, 1))
        logit = rng.normal(size=(models, items, options))
        logit += (skill + ease) * (np.arange(options) == right[:, np.newaxis])
        chance = np.exp(logit) / np.exp(logit).sum(axis=2, keepdims=True)
        chance[:, ::3, -1] = np.nan  # every third item has one option less
        np.save(place / f"{part}_model_alldata.npy", chance)
    return place


def test_scores_are_probabilities_and_the_truth_counts_the_first_choice(tmp_path):
    place = save_options(tmp_path, "ARC")
    scores = tailored_bench.read_authors_scores(tmp_path, "ARC")
    right = np.load(place / "gt_label.npy")
    answers = np.load(place / "target_model_alldata.npy")
    target = scores.select(models=scores.models["part"].eq("target").to_numpy())
    for model in (0, 5, 11):
        mine = [answers[model, item, right[item]] for item in range(60)]
        assert target.values[model].tolist() == pytest.approx(mine)
        first = [np.nanargmax(answers[model, item]) for item in range(60)]
        assert target.truth().iloc[model] == pytest.approx(np.mean(first == right))


def test_a_matrix_of_right_and_wrong_needs_no_right_options(tmp_path):
    place = tmp_path / FOLDERS["Winogrande"]  # without the folder around it
    place.mkdir()
    answers = np.random.default_rng(0).integers(2, size=(2, 3, 9)).astype(float)
    for part, values in zip(("source", "target"), answers, strict=True):
        np.save(place / f"{part}_model_alldata_acc_0.npy", values)
    scores = tailored_bench.read_authors_scores(tmp_path, "Winogrande")
    assert scores.values.tolist() == np.vstack(answers).tolist()
    assert scores.truth().tolist() == pytest.approx(scores.values.mean(axis=1))


def test_python_objects_are_not_read_but_explained(tmp_path):
    place = save_options(tmp_path, "ARC")
    path = place / "source_model_alldata.npy"
    listed = np.empty((2, 2), dtype=object)
    for at in np.ndindex(2, 2):
        listed[at] = np.array([0.5, 0.5])
    np.save(path, listed, allow_pickle=True)
    with pytest.raises(FileError, match="holds Python objects.*allow_pickle"):
        tailored_bench.read_authors_scores(tmp_path, "ARC")


def test_right_options_must_fit_the_answers(tmp_path):
    place = save_options(tmp_path, "ARC")
    np.save(place / "gt_label.npy", np.zeros(7, dtype=int))
    with pytest.raises(ValueError, match=r"arc_challenge.*\(7,\)"):
        tailored_bench.read_authors_scores(tmp_path, "ARC")


def test_a_folder_without_the_files_says_which_are_wanted(tmp_path):
    for name, wanted in reproduced.authors_files().items():
        with pytest.raises(FileNotFoundError, match=wanted.split()[0]):
            reproduced.recompute_published_cells(
                name, folder=tmp_path / "new", authors=tmp_path
            )


@pytest.mark.slow
def test_tailored_benchs_tables_on_the_authors_files(tmp_path):
    save_options(tmp_path, "ARC")
    folder = reproduced.recompute_published_cells(
        "tailored_bench", trials=3, folder=tmp_path / "new", authors=tmp_path
    )
    cells = table_cells("tailored_bench", folder)
    mine = cells["row"].str.startswith("ARC / ") & (cells["published"].fillna("") != "")
    for table in ("table 6", "table 7", "table 8", "table 13", "table 1"):
        part = cells[mine & (cells["table"] == table)]
        assert len(part) and part["reproduced"].notna().all(), table
        assert not set(part["verdict"]) & {Verdict.OTHER_DATA, Verdict.CANNOT_TELL}
        assert part["data"].str.startswith("the authors' arc_challenge").all()
    numbers = read_ledger_lines("number", "tailored_bench", folder)
    figures = numbers[numbers["table"].isin(["figure 5", "figure 10", "figure 20"])]
    assert figures["reproduced"].notna().all() and len(figures)
    assert len(reproduced.report(folder))
