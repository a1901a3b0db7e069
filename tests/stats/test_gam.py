"""What the chapter on curves does not show: pyGAM again, odd tables."""

import numpy as np
import pytest
from pygam import LinearGAM, s

from benchnb.stats.gam import (
    fill_gaps_by_level,
    fit_best_gam,
    fit_gam,
    make_roughness_penalty,
    spline_basis,
)


def curve_data(seed=0, models=40, features=1):
    "Features in no order and a score that bends"
    rng = np.random.default_rng(seed)
    x = rng.random((models, features))
    return x, np.sin(2 * x).sum(axis=1) / 3 + rng.normal(0, 0.03, models)


@pytest.mark.parametrize("features", [1, 2, 3])
def test_the_stored_curve_is_that_of_pygam_inside_and_outside(features):
    x, y = curve_data(features=features)
    curve, _ = fit_gam(x, y, 8)
    wide = np.random.default_rng(2).uniform(-0.5, 1.5, (200, features))
    bases = spline_basis(x, x.min(axis=0), x.max(axis=0), 8).reshape(len(x), -1)
    same = []
    for penalty in 10.0 ** np.arange(-2, 5):
        terms = [s(k, n_splines=8, lam=penalty) for k in range(features)]
        gam = LinearGAM(sum(terms[1:], terms[0])).fit(x, y)
        same.append(np.allclose(curve(wide), gam.predict(wide), atol=1e-5))
    assert any(same)
    assert bases.shape[1] == len(make_roughness_penalty(8, features))


def test_gaps_are_filled_row_by_row():
    rng = np.random.default_rng(0)
    values = rng.random((6, 9))
    values[rng.random(values.shape) < 0.4] = np.nan
    values[2] = np.nan
    easiness = np.nanmean(values, axis=0)
    filled = fill_gaps_by_level(values, easiness)
    for row, full in zip(values, filled, strict=True):
        known = ~np.isnan(row)
        if not known.any():
            assert np.isnan(full).all()
            continue
        level = (row - easiness)[known].mean()
        expected = np.where(known, row, np.clip(easiness + level, 0, 1))
        np.testing.assert_allclose(full, expected)


@pytest.mark.parametrize("models", range(0, 12))
def test_a_curve_for_any_number_of_models_names_what_it_is(models):
    x, y = curve_data(models=models, features=2)
    curve, loss, note = fit_best_gam(x, y)
    assert np.isfinite(curve(x)).all()
    wanted = "fewer than 3" if models < 3 else "fewer than 8" if models < 8 else ""
    assert note.startswith(wanted) and bool(note) == bool(wanted)
    assert np.isfinite(loss) == (models >= 3)


def test_a_gam_that_fails_becomes_a_line_and_is_named(monkeypatch):
    def broken(self, *args, **settings):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(LinearGAM, "fit", broken)
    x, y = curve_data()
    curve, _, note = fit_best_gam(x, y)
    assert note == "SVD did not converge: a line instead of a GAM"
    slope, constant = np.polyfit(x[:, 0], y, 1)
    np.testing.assert_allclose(curve(x), constant + slope * x[:, 0], atol=5e-3)
