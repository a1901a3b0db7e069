"`benchnb compare`: what it leaves behind"

from helpers.small import table

from benchnb.cli.app import main


def test_a_comparison_without_results_touches_no_file(tmp_path, monkeypatch, capsys):
    "A file that only looks like a journal of nothing stays"
    monkeypatch.chdir(tmp_path)
    table().to_parquet("table.parquet")
    (tmp_path / "None.journal").write_text("mine")
    few = ["--methods", "random", "--budgets", "6", "--trials", "1"]
    assert main(["compare", "table.parquet", *few]) == 0
    assert (tmp_path / "None.journal").read_text() == "mine"
    assert main(["compare", "table.parquet", *few, "--out", "out.csv"]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["None.journal", "out.csv", "table.parquet"]
