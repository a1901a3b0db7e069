"The plots on what does not teach: no value, one trial, many methods, bad input"

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from benchnb.evaluation import plots


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def made_summary(methods=("a", "b"), budgets=(20, 200), trials=3):
    "A summary with numbers that differ in every row"
    rng = np.random.default_rng(0)
    keys = ["method", "budget", "trial"]
    rows = pd.MultiIndex.from_product([methods, budgets, range(trials)], names=keys)
    table = pd.DataFrame(
        {m: rng.random(len(rows)) for m in plots.AXIS_LABELS}, index=rows
    )
    return table.reset_index()


def made_frame(methods=("a", "b"), targets=7, trials=2):
    "A comparison; method b has no intervals"
    rng = np.random.default_rng(0)
    keys = ["method", "budget", "trial", "target"]
    names = [f"m{i}" for i in range(targets)]
    levels = [methods, (20, 40), range(trials), names]
    frame = pd.MultiIndex.from_product(levels, names=keys).to_frame(index=False)
    frame["truth"] = frame["target"].str[1:].astype(float) / targets
    frame["score"] = (frame["truth"] + 0.1 * rng.standard_normal(len(frame))).clip(0, 1)
    known = frame["method"] != "b"
    frame["low"] = (frame["score"] - 0.1).where(known)
    frame["high"] = (frame["score"] + 0.1).where(known)
    return frame


def curves(ax):
    "What was drawn: label -> positions of the points, and of the bars' ends"
    out = {}
    for container in ax.containers:
        points, _, bars = container.lines
        ends = [np.array(bar.get_segments(), dtype=object) for bar in bars]
        out[container.get_label()] = (points.get_xydata(), ends)
    return out


def test_curves_show_mean_and_two_standard_errors():
    summary = made_summary()
    ax = plots.plot_curves(summary, "kendall")
    drawn = curves(ax)
    assert list(drawn) == ["a", "b"]
    values = summary[(summary["method"] == "a") & (summary["budget"] == 200)]["kendall"]
    points, (bars,) = drawn["a"]
    np.testing.assert_allclose(points[1, 1], values.mean())
    half = 2 * values.std(ddof=1) / np.sqrt(3)
    ends = np.array(bars[1], dtype=float)[:, 1]
    np.testing.assert_allclose(ends, [values.mean() - half, values.mean() + half])
    assert ax.get_xlabel() == "items asked of each target model"
    assert ax.get_ylabel() == "Kendall's tau (-1 to 1)"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["20", "200"]


@pytest.mark.parametrize("metric", plots.AXIS_LABELS)
def test_every_metric_has_a_label_with_its_unit(metric):
    label = plots.plot_curves(made_summary(), metric).get_ylabel()
    assert label == plots.AXIS_LABELS[metric][0]
    assert "(" in label or "share" in label


def test_unknown_metric_is_plotted_under_its_own_name_and_a_missing_one_refused():
    summary = made_summary().assign(regret=0.5)
    assert plots.plot_curves(summary, "regret").get_ylabel() == "regret"
    with pytest.raises(ValueError, match="no column 'rank'.*there: method, budget"):
        plots.plot_curves(summary, "rank")


def test_one_trial_has_points_and_no_bars():
    ax = plots.plot_curves(made_summary(trials=1))
    for points, (bars,) in curves(ax).values():
        assert np.isfinite(points).all()
        assert not np.isfinite(np.array(bars.tolist(), dtype=float)).any()


def test_missing_values_are_left_out_not_drawn_as_zero():
    summary = made_summary()
    summary.loc[summary["method"] == "b", "mae"] = np.nan
    summary.loc[(summary["method"] == "a") & (summary["budget"] == 20), "mae"] = np.nan
    drawn = curves(plots.plot_curves(summary))
    assert list(drawn) == ["a", "b: unknown"]
    assert np.isnan(drawn["b: unknown"][0][:, 1]).all()
    heights = drawn["a"][0][:, 1]
    assert np.isnan(heights[0]) and np.isfinite(heights[1])


def test_published_line_stands_at_the_budgets_themselves():
    table = pd.Series({200: 0.1, 20: 0.3}, name="table 1")
    points, _ = curves(plots.plot_curves(made_summary(), published=table))["table 1"]
    np.testing.assert_allclose(points, [[20, 0.3], [200, 0.1]])


def test_methods_keep_their_look_when_one_is_left_out():
    summary = made_summary(("a", "b", "c"))
    styles = plots.method_styles(summary["method"])
    ax = plots.plot_curves(summary[summary["method"] != "a"], styles=styles)
    colours = [container.lines[0].get_color() for container in ax.containers]
    assert colours == [styles["b"]["color"], styles["c"]["color"]]


@pytest.mark.parametrize("methods", [1, 12])
def test_comparison_has_two_panels_one_legend_and_is_written(methods, tmp_path):
    names = [f"method {i}" for i in range(methods)]
    fig = plots.plot_comparison(made_summary(names, trials=1))
    assert [len(ax.containers) for ax in fig.axes] == [methods, methods]
    assert [ax.get_legend() for ax in fig.axes] == [None, None]
    assert len(fig.legends[0].get_texts()) == methods
    fig.savefig(tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_scatter_shows_the_largest_budget_and_counts_what_holds():
    frame = made_frame()
    fig = plots.plot_scatter(frame)
    assert fig.get_supxlabel() == "true score (0 to 1), 40 items asked"
    assert fig.get_supylabel() == "estimate (0 to 1)"
    run = frame[(frame["method"] == "a") & (frame["budget"] == 40)]
    run = run[run["trial"] == 0]
    held = run["truth"].between(run["low"], run["high"]).mean()
    assert [ax.get_title() for ax in fig.axes] == [f"a, {held:.0%} hold", "b"]
    points = fig.axes[0].lines[1].get_xydata()
    np.testing.assert_allclose(points, run[["truth", "score"]])
    bars = fig.axes[0].collections[0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], run[["low", "high"]])


def test_scatter_without_any_interval_has_no_legend():
    fig = plots.plot_scatter(made_frame(("b",)), budget=20, trial=1)
    assert not fig.legends
    with pytest.raises(ValueError, match="no trial 5 in the frame: choose one of 0, 1"):
        plots.plot_scatter(made_frame(), trial=5)


def test_scatter_has_room_for_many_methods():
    fig = plots.plot_scatter(made_frame([f"m{i}" for i in range(7)]))
    assert sum(ax.get_visible() for ax in fig.axes) == 7
    fig.canvas.draw()


@pytest.mark.parametrize("plot", [plots.plot_scatter, plots.plot_comparison])
def test_bad_input_is_named(plot):
    with pytest.raises(TypeError, match="expected the data frame of `.*`, got list"):
        plot([1, 2])
    with pytest.raises(ValueError, match="no column 'method'"):
        plot(pd.DataFrame({"score": [1.0]}))
    frame = made_frame().merge(made_summary(), on=["method", "budget", "trial"])
    with pytest.raises(ValueError, match="nothing to plot"):
        plot(frame.head(0))


def test_style_can_be_set_twice():
    digits = pd.option_context("display.precision", 6)
    with np.printoptions(), digits, matplotlib.rc_context():
        plots.set_style()
        first = dict(matplotlib.rcParams)
        plots.set_style()
        assert dict(matplotlib.rcParams) == first
        assert repr(np.array([1 / 3])) == "array([0.333])"
