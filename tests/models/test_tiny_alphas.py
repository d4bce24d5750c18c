"""Held out at an alpha that is lost beside the spectrum: the solution of minimum norm, never the labels themselves.

Where a model has more features than rows it fits every label, and the error of a held-out item is a quotient of two
numbers as small as alpha. Rounding must not decide it.
"""

from __future__ import annotations

import numpy as np
import pytest

from rankrls import RankRLS, RankRLSCV
from rankrls.model_selection import leave_query_out
from tests.models.oracles import centred, held_out_by_refits, query_rows
from tests.models.test_selection_global import left_out_pairs

RNG = np.random.default_rng(95)
QID = np.repeat(np.arange(5), 4)
Y = np.round(RNG.normal(size=20), 1)
WIDE = RNG.normal(size=(20, 30))
KINDS = [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.1}]
EXPONENTS = [-20, -17, -15, -14, -13, -12, -11, -10, -9, -8]


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_leave_query_out(kind, ties, exponent):
    expected = held_out_by_refits(lambda: RankRLS(0.0, ties=ties, **kind), WIDE, Y, QID, query_rows(QID))
    scores = leave_query_out(RankRLS(10.0**exponent, ties=ties, **kind), WIDE, Y, qid=QID)
    np.testing.assert_allclose(centred(scores, QID), centred(expected, QID), atol=1e-4)


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_leave_pair_out(kind, exponent):
    features, y = WIDE[:10], Y[:10] + 0.01 * np.arange(10)
    expected, _ = left_out_pairs(y, lambda: RankRLS(0.0, **kind), features)
    assert RankRLSCV((10.0**exponent,), **kind).fit(features, y).best_score_ == pytest.approx(expected)


@pytest.mark.parametrize("scale", [1e4, 1e7])
@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_everyday_alphas_on_features_of_any_scale(kind, scale):
    model = RankRLSCV((1e-8, 1e-4, 1.0), **kind).fit(scale * WIDE, Y, qid=QID)
    for k, alpha in enumerate(model.cv_results_["alpha"]):
        plain = RankRLSCV((max(alpha / scale**2, 1e-9),), **kind).fit(WIDE, Y, qid=QID)
        assert model.cv_results_["mean_score"][k] == pytest.approx(plain.best_score_)


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("groups", [None, np.arange(14) % 4])
def test_left_out_preferences(kind, groups, exponent):
    i, j = np.arange(14), np.arange(14) + 3
    s = np.where(np.arange(14) % 3 == 0, -1.0, 1.0) * (1.0 + RNG.random(14))
    alphas = {"tiny": 10.0**exponent, "small": 1e-7}
    found = {
        name: RankRLSCV((alpha,), **kind).fit_pairs(WIDE, i, j, strength=s, groups=groups).best_score_
        for name, alpha in alphas.items()
    }
    assert found["tiny"] == pytest.approx(found["small"])


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_fewer_features_than_rows_need_no_care(kind, exponent):
    if "kernel" in kind:
        kind = {**kind, "gamma": 2.0}
    tall = np.random.default_rng(96).normal(size=(20, 3))
    expected = held_out_by_refits(lambda: RankRLS(0.0, **kind), tall, Y, QID, query_rows(QID))
    scores = leave_query_out(RankRLS(10.0**exponent, **kind), tall, Y, qid=QID)
    np.testing.assert_allclose(centred(scores, QID), centred(expected, QID), atol=1e-4)
