"""Held out at tiny alphas: as refits down to 1e-9 of the largest eigenvalue; beyond, marked as not evaluated.

A model with more features than rows fits every label, and the error of a held-out item is a quotient of two numbers as
small as alpha. Rounding must not decide it.
"""

from __future__ import annotations

import numpy as np
import pytest

from rankrls import InputWarning, RankRLS, RankRLSCV
from rankrls.model_selection import leave_query_out
from tests.models.oracles import centred, held_out_by_refits, query_rows

RNG = np.random.default_rng(95)
QID = np.repeat(np.arange(5), 4)
Y = np.round(RNG.normal(size=20), 1)
WIDE = RNG.normal(size=(20, 30))
KINDS = [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.1}]


@pytest.mark.parametrize("exponent", [-8, -7, -4])
@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_leave_query_out(kind, ties, exponent):
    make = lambda: RankRLS(10.0**exponent, ties=ties, **kind)
    expected = held_out_by_refits(make, WIDE, Y, QID, query_rows(QID))
    scores = leave_query_out(make(), WIDE, Y, qid=QID)
    np.testing.assert_allclose(centred(scores, QID), centred(expected, QID), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_rounding_would_decide_is_not_evaluated(kind):
    with pytest.warns(InputWarning, match="not evaluated"):
        model = RankRLSCV((1e-20, 1e-3, 1.0), **kind).fit(WIDE, Y, qid=QID)
    np.testing.assert_array_equal(np.isnan(model.cv_results_["mean_score"]), [False, False, True])
    assert model.alpha_ >= 1e-3
    with pytest.warns(InputWarning, match="not evaluated"):
        assert np.isnan(leave_query_out(RankRLS(1e-20, **kind), WIDE, Y, qid=QID)).all()
