"The plots on what does not teach: no value, one trial, many methods, bad input"

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from benchnb.evaluation import plots
from benchnb.evaluation.registry import RECOMMENDED


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


def test_unknown_metric_is_plotted_under_its_own_name_and_a_missing_one_refused():
    summary = made_summary().assign(regret=0.5)
    assert plots.plot_curves(summary, "regret").get_ylabel() == "regret"
    with pytest.raises(ValueError, match="no column 'rank'"):
        plots.plot_curves(summary, "rank")


def test_missing_values_are_left_out_not_drawn_as_zero():
    summary = made_summary()
    summary.loc[summary["method"] == "b", "mae"] = np.nan
    summary.loc[(summary["method"] == "a") & (summary["budget"] == 20), "mae"] = np.nan
    drawn = curves(plots.plot_curves(summary))
    assert list(drawn) == ["a", "b: unknown"]
    assert np.isnan(drawn["b: unknown"][0][:, 1]).all()
    heights = drawn["a"][0][:, 1]
    assert np.isnan(heights[0]) and np.isfinite(heights[1])


@pytest.mark.parametrize("methods", [1, 12])
def test_comparison_has_two_panels_one_legend_and_is_written(methods, tmp_path):
    names = [f"method {i}" for i in range(methods)]
    fig = plots.plot_comparison(made_summary(names, trials=1))
    assert [len(ax.containers) for ax in fig.axes] == [methods, methods]
    assert [ax.get_legend() for ax in fig.axes] == [None, None]
    assert len(fig.legends[0].get_texts()) == methods
    fig.savefig(tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="no column 'method'"):
        plots.plot_curves(pd.DataFrame({"score": [1.0]}))
    with pytest.raises(ValueError, match="no rows"):
        plots.plot_curves(made_summary().head(0))


def test_colours_are_seen_on_light_and_on_dark_pages():
    def luminance(text):
        parts = np.array([int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        low, high = parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4
        return np.where(parts <= 0.03928, low, high) @ [0.2126, 0.7152, 0.0722]

    for page in ("#ffffff", "#222222"):
        for colour in plots.COLOURS:
            dark, light = sorted(map(luminance, (page, colour)))
            assert (light + 0.05) / (dark + 0.05) >= 3, (colour, page)
    assert len(set(plots.COLOURS)) == 10


def test_a_method_looks_the_same_in_every_plot():
    alone = plots.method_styles(["p_irt"])["p_irt"]
    mixed = plots.method_styles(["new", "random", "p_irt"])
    assert mixed["p_irt"] == alone
    assert len({tuple(style.values()) for style in mixed.values()}) == 3


def test_the_recommended_method_is_marked_and_errors_are_in_points():
    summary = made_summary(["random", RECOMMENDED])
    ax = plots.plot_curves(summary, "mae")
    drawn = curves(ax)
    assert list(drawn) == ["random", f"{RECOMMENDED} (recommended)"]
    widths = [container.lines[0].get_linewidth() for container in ax.containers]
    assert widths[1] > widths[0]
    one = summary[(summary["method"] == "random") & (summary["budget"] == 20)]
    np.testing.assert_allclose(drawn["random"][0][0, 1], 100 * one["mae"].mean())
    alone = plots.plot_curves(made_summary([RECOMMENDED]), "half_width")
    assert list(curves(alone)) == [RECOMMENDED]
    assert "(points)" in alone.get_ylabel()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="is not installed: pip install.*plots"):
        plots.import_pyplot()


def test_a_single_budget_stands_in_the_middle():
    low, high = plots.plot_curves(made_summary(budgets=(20,))).get_xlim()
    assert low < 17 and high > 23
