"The page of reproduced tables: complete, made from stored results, and honest"

import re

import pandas as pd
import pytest

from benchnb.papers import reproduced, verdicts
from benchnb.papers.published import (
    PAPERS,
    published_cells,
    read_ledger_lines,
    read_stored_results,
    store_results,
)
from benchnb.papers.verdicts import Verdict, WhyNot
from tools.run import ROOT

# counted in the papers: numbered tables and figures
ITEMS = {
    "bento": (11, 4),
    "collaborative_filtering": (4, 8),
    "predicting_big_bench": (6, 10),
    "tailored_bench": (17, 23),
    "essence_bench": (0, 0),
}
NEEDS_A_REASON = [*verdicts.DISAGREEING_VERDICTS, Verdict.CANNOT_TELL]
FIVE = [Verdict.REPRODUCED, Verdict.SAME_ELSEWHERE, Verdict.PARTLY]
FIVE += [Verdict.DIFFERS, Verdict.CANNOT_TELL]


@pytest.fixture(scope="module")
def page():
    return reproduced.report()


def changed_page(results, folder, page):
    "The page of other results, and the lines whose verdict moved"
    for paper, part in results.groupby("paper"):
        store_results(part, paper, folder)
    found = reproduced.report(folder)
    moved = found[found["verdict"] != page["verdict"]]
    return found, dict(zip(moved["item"], moved["verdict"], strict=True))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_is_listed(page, paper):
    items = page.loc[page["paper"] == paper, "item"].str.partition(" (")[0]
    for kind, count in zip(("table", "figure"), ITEMS[paper], strict=True):
        wanted = {f"{kind} {number + 1}" for number in range(count)}
        assert set(items[items.str.match(rf"{kind} \d+$")]) == wanted
    assert set(published_cells(paper)["table"].str.partition(" (")[0]) <= set(items)


def test_lines_have_chapters_known_words_and_reasons(page):
    paths = {ROOT / "nbs" / f"{chapter}.ipynb" for chapter in page["chapter"]}
    assert all(path.is_file() for path in paths)
    assert set(page["verdict"]) <= set(FIVE)
    untold = page["verdict"] == Verdict.CANNOT_TELL
    assert ((page["why_not"] != WhyNot.NOTHING) == untold).all()
    assert not page.duplicated(["paper", "item"]).any()
    needs = page["verdict"].isin(NEEDS_A_REASON)
    assert (page.loc[needs, "reason"] != "").all()


def test_the_good_word_rests_on_stored_numbers(page):
    words = [Verdict.REPRODUCED, Verdict.SAME_ELSEWHERE]
    good = page[page["verdict"].isin(words)]
    assert len(good) and (good["agree"] > 0).all()
    assert (good["against"] == 0).all() and (good["agree"] >= good["unclear"]).all()
    assert good["reproduced"].notna().all() and (good["data"] != "").all()
    assert not good.loc[good["verdict"] == Verdict.REPRODUCED, "other"].any()


def test_every_headline_and_every_claim_finds_its_numbers(page):
    key = ["paper", "row", "column"]
    known = set(read_ledger_lines("number")[key].itertuples(index=False, name=None))
    given = page.loc[page["row"] != "", key].itertuples(index=False, name=None)
    assert set(given) <= known
    judged = page[page["how"] == verdicts.ComparedBy.CLAIM]
    claims = read_ledger_lines("claim")[["paper", "table"]].itertuples(
        index=False, name=None
    )
    judged_keys = judged[["paper", "item"]].itertuples(index=False, name=None)
    assert set(judged_keys) == set(claims)
    assert (judged["claim"] != "").all()


@pytest.mark.parametrize("paper", PAPERS)
def test_no_pair_of_a_claim_is_lost(paper):
    "Each line of a claim compares something, and a row that is not there is an error"
    claims, numbers = (read_ledger_lines(kind, paper) for kind in ("claim", "number"))
    for place in range(len(claims)):
        line = claims.iloc[place : place + 1]
        assert len(verdicts.claim_gains(line, numbers)), line["table"].item()
        wrong = line.assign(row=line["row"] + ", misspelt")
        with pytest.raises(ValueError, match="misspelt"):
            verdicts.claim_gains(wrong, numbers)


def test_an_item_with_an_unclear_claim_cannot_be_told():
    cell = dict(table="t", column="mae", better="lower", best=0, trials=50, verdict="")
    rows = {"a": (0.1, 0.001), "b": (0.2, 0.001), "c": (0.1001, 0.01)}
    cells = [cell | dict(row=r, reproduced=x, stderr=e) for r, (x, e) in rows.items()]
    line = dict(table="f", tables="t", column="", each="", other="", near=float("nan"))
    clear = [line | dict(row="a", than="b")] * 3
    for claims, word in (
        (clear, Verdict.REPRODUCED),
        ([*clear, line | dict(row="a", than="c")], Verdict.CANNOT_TELL),
    ):
        given = pd.DataFrame(claims), pd.DataFrame(), pd.DataFrame(cells)
        assert verdicts.judge_item(*given)[1] == word


@pytest.mark.slow
def test_a_planted_change_moves_its_line_only(page, tmp_path):
    results = read_stored_results()
    there = results["paper"] == "collaborative_filtering"
    there &= results["row"].str.startswith("Collaborative filtering")
    results.loc[there, "reproduced"] /= 10  # of a sudden it is the best method
    changed, moved = changed_page(results, tmp_path, page)
    assert moved == {"figure 5": Verdict.SAME_ELSEWHERE}
    name = "collaborative_filtering"
    assert reproduced.markdown_page(page, name) != reproduced.markdown_page(
        changed, name
    )


@pytest.mark.slow
def test_nothing_is_reproduced_without_results(tmp_path):
    empty = reproduced.report(tmp_path)
    assert set(empty["verdict"]) == {Verdict.CANNOT_TELL}
    assert all(reproduced.markdown_page(empty, paper) for paper in PAPERS)


def test_a_printed_list_is_said_beside_the_verdict(page):
    lines = page[page["basis"] == reproduced.Basis.PRINTED_LIST]
    assert set(lines["paper"]) == {"bento"} and len(lines) == 5
    for _, line in lines.iterrows():
        assert reproduced.verdict_text(line).endswith("printed list")


def test_every_square_leads_to_its_line(page):
    drawn = reproduced.squares(page)
    links = re.findall(r'href="#([^"]+)"', drawn)
    for paper in PAPERS:
        text = reproduced.markdown_page(page, paper)
        anchors = re.findall(r'<a id="([^"]+)">', text)
        mine = [link for link in links if link.startswith(paper.replace("_", "-"))]
        assert mine and set(mine) <= set(anchors)
        assert len(anchors) == len(set(anchors))


def test_no_text_breaks_a_row_and_all_items_count(page):
    text = reproduced.markdown_page(page, "tailored_bench")
    assert "[figure 20](../papers/tailored_bench" in text
    folded = reproduced.folded_page(page, "tailored_bench").split("\n\n")[2]
    for table in (text, folded):
        rows = table.splitlines()
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    counts = reproduced.verdict_counts(page)
    assert (counts.drop(columns="all").sum(axis=1) == counts["all"]).all()
    assert counts.loc["all papers", "all"] == 92
    drawn = reproduced.squares(page)
    assert drawn.count("<a ") == 92 and drawn.count("<p") == 1 + len(PAPERS)


def test_unknown_paper_cannot_be_recomputed(tmp_path):
    with pytest.raises(ValueError, match="no paper 'guarded_irt'"):
        reproduced.recompute_published_cells("guarded_irt", folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()
