"The report of an evaluation: its tasks, and what was asked of them"

from helpers.evaluations import evaluate


def test_tasks_have_intervals_and_counts():
    run = evaluate("aipw")
    rows = run.report()["tasks"]
    for task, part in rows.items():
        low, high = part["interval"]
        assert 0 <= low <= part["score"] <= high <= 1
        names = run.items["task"][list(run.answers)]
        assert part["items"] == (names == task).sum()
        assert part["few"] == (part["items"] < 5)
    assert run.method.budget_ == sum(part["items"] for part in rows.values())
    bare = evaluate("aipw", errors=False).report()
    assert all(part["interval"] == [None, None] for part in bare["tasks"].values())
