"The remeasured collaborative filtering paper, on a small made-up table"

import numpy as np
import pandas as pd
import pytest
from helpers.small import table

from benchnb.data.scores import Scores
from benchnb.evaluation.per_task import PerTask
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.methods.collaborative_filtering import CollaborativeFiltering
from benchnb.papers import collaborative_filtering as chapter
from benchnb.papers.published import RunSettings, store_results, table_cells

FEW = {
    "Random": PerTask(get_method("random"), least=5),
    "Collaborative filtering": CollaborativeFiltering(held_out=3),
}


@pytest.fixture
def small(monkeypatch):
    "A setting on the small table, whose tasks have 10 to 30 items"
    setting = chapter.Setting(table, "random", targets=3, least=5)
    monkeypatch.setattr(chapter, "FIGURE_5", {"small": setting})
    return setting


def measure(*runs, ratios=(0.3,)):
    "The small setting with few methods"
    return chapter.measure_tasks(RunSettings(*runs), "e", "small", FEW, ratios)


def test_targets_are_complete_and_never_sources(small):
    scores = table()
    gaps = Scores(scores.values.copy(), scores.items, scores.models)
    gaps.values[::2, 0] = np.nan
    source, target = small.parts(gaps, 1)
    assert len(target) <= 3 and not np.isnan(target.values).any()
    assert not set(source.models.index) & set(target.models.index)


def test_a_trial_is_what_its_parts_give(small):
    parts = small.parts(table(), 0)
    given = (FEW["Random"], "Random", parts, (0.2, 0.5), 0)
    rows = pd.DataFrame(chapter.task_trial(*given, least=5))
    source, target = parts
    fitted = PerTask(get_method("random"), least=5).fit(source)
    found = simulate(
        prepare_method(fitted, 5 + 5 + 6, 0), target
    )  # of 10, 20 and 30 items
    guess = pd.DataFrame([estimate.per_task for estimate in found])
    truth = target.performance(by="task")[guess.columns]
    by_hand = np.abs(guess.to_numpy() - truth.to_numpy()).mean()
    assert rows["ratio"].tolist() == [0.2, 0.5]
    assert rows["mae"][0] == pytest.approx(by_hand)


def test_a_finished_piece_is_not_run_again(small, tmp_path, monkeypatch):
    first = measure(2, 1, tmp_path)
    again = measure(3, 1, tmp_path)
    same = again[again["trial"] < 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(first, same)
    pd.testing.assert_frame_equal(again, measure(3))
    monkeypatch.setattr(chapter, "task_trial", None)  # any new trial fails
    pd.testing.assert_frame_equal(again, measure(3, 1, tmp_path))
    with pytest.raises(ValueError, match="another computation"):
        measure(3, 1, tmp_path, ratios=(0.4,))


def test_who_is_asked_what_is_personal():
    source, target = table().split("given")
    random = prepare_method(PerTask(get_method("random")).fit(source), 15)
    assert not chapter.is_personal(random, target)
    ours = CollaborativeFiltering(held_out=0, task_similarity=0, quantile=0)
    assert chapter.is_personal(prepare_method(ours.fit(source), 15), target)


def swept():
    "Two trials of three settings: the last has half as much error again, then twice"
    rows = [
        (label, ratio, trial, ratio * (1 + (label == "quantile = 1") * (1 + trial) / 2))
        for label in ("rounds = 3", "task_similarity = 0.95", "quantile = 1")
        for ratio in (0.1, 0.2)
        for trial in (0, 1)
    ]
    frame = pd.DataFrame(rows, columns=["method", "ratio", "trial", "mae"])
    return frame.assign(weighted=0.1, setting="s")


def test_figure_8_is_a_change_against_the_default_in_the_same_trial():
    changes = chapter.sweep_changes(swept())
    assert changes["row"].unique().tolist() == ["quantile = 1"]
    assert changes["effect"].tolist() == pytest.approx([50, 100])


def test_cells_find_their_printed_neighbours(tmp_path):
    described = ["clustering / historical results", "Random"] * 2
    described = pd.DataFrame({"method": described, "trial": [0, 0, 1, 1], "rank": 2.0})
    described["mae"] = [0.03, 0.05, 0.05, 0.05]
    times = dict(deploy=1.0, select=2.0, predict=3.0, total=5.0)
    seconds = pd.DataFrame({"row": ["MMLU / Ours"] * 2, "trial": [0, 1], **times})
    errors = [
        (method, 0.5, trial, 0.1 + 0.2 * place + trial / 9)
        for place, method in enumerate(["Collaborative filtering", "Without transport"])
        for trial in (0, 1)
    ]
    errors = pd.DataFrame(errors, columns=["method", "ratio", "trial", "mae"])
    errors = errors.assign(weighted=0.2, rank=3.0, setting="s")
    cells = chapter.filtering_cells(errors, described, seconds, swept())
    name = "collaborative_filtering"
    store_results(cells.assign(paper=name), name, tmp_path)
    both = table_cells("collaborative_filtering", tmp_path).set_index(["row", "column"])
    cell = both.loc["clustering / historical results", "performance / mae"]
    assert cell["difference"] == pytest.approx(0.005) and cell["trials"] == 2
    assert both.loc["MMLU / Ours", "total / seconds"]["published"] == "25.2"
    gain = both.loc["Gain by transport, ratio 0.5", "s / gain"]  # of paired trials
    assert gain["reproduced"] == pytest.approx(0.2) and gain["stderr"] < 1e-9
    cell = both.loc["quantile = 1, ratio 0.2", "s / weighted mae"]
    assert cell["reproduced"] == pytest.approx(0.1)
