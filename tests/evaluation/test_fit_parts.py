"Copies of a method that are fitted on parts of the sources"

import numpy as np
from helpers.small import table

from benchnb.evaluation.left_out import left_out_errors
from benchnb.methods.guarded_irt import GuardedIRT


def test_parts_that_start_from_all_sources_are_fitted_as_those_that_do_not():
    source, method = table(1, 60), GuardedIRT(folds=0)
    kept = np.arange(60) % 4 > 0
    (warm,) = method.fit_parts(source, [kept])
    cold = GuardedIRT(folds=0).fit(source.select(models=kept))
    for one, two in zip(warm.models(), cold.models(), strict=True):
        assert np.abs(one.fitted - two.fitted).mean() < 0.01
    assert not hasattr(method, "banks_") and warm._start is None
    errors = left_out_errors(GuardedIRT(), source, 20, folds=4)
    assert (
        len(errors) == 60 and (errors["estimate"] - errors["truth"]).abs().mean() < 0.1
    )
