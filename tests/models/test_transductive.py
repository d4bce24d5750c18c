"""TransductiveRankRLS through its public face."""

from __future__ import annotations

import numpy as np
import pytest

from rankrls import RankRLS, SparseRankRLS, TransductiveRankRLS
from rankrls.model_selection import leave_query_out
from tests.models.oracles import centred, ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(80, queries=9)
HIDDEN = np.isin(QID, np.unique(QID)[[0, 2, 5, 7]])
PARTLY = np.where(HIDDEN, np.nan, Y)
W = np.random.default_rng(81).random(len(Y)) + 0.3
KINDS = [
    {},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "rbf", "balance": "pairs"},
    {"balance": "queries", "regression_weight": 0.3},
]


def cross_validated_error(model, y):
    """``sum_U || F_U (y_U - f_U) ||^2`` by leave-query-out, for balance="examples": centred squares."""
    f = leave_query_out(model, X, y, qid=QID)
    return float((centred(y - f, QID) ** 2).sum())


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_no_other_labels_do_better(kind):
    alpha, penalty = 0.8, 0.6
    model = TransductiveRankRLS(alpha, penalty=penalty, **kind).fit(X, PARTLY, qid=QID)
    plain = RankRLS(alpha, **kind)
    supervised = RankRLS(alpha, **kind).fit(X[~HIDDEN], Y[~HIDDEN], qid=QID[~HIDDEN]).predict(X[HIDDEN])

    def objective(y):
        return cross_validated_error(plain, y) + penalty * ((y[HIDDEN] - supervised) ** 2).sum()

    np.testing.assert_array_equal(model.transduction_[~HIDDEN], Y[~HIDDEN])
    least = objective(model.transduction_)
    rng = np.random.default_rng(3)
    for size in (1e-3, 0.1, 1.0):
        step = np.where(HIDDEN, rng.normal(size=len(Y)), 0.0) * size
        up, down = objective(model.transduction_ + step), objective(model.transduction_ - step)
        assert least < min(up, down)
        assert up - least == pytest.approx(down - least, rel=1e-4)  # the gradient vanishes


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_large_penalty_is_the_supervised_model(kind, weighted):
    w = W if weighted else None
    model = TransductiveRankRLS(0.5, penalty=1e12, **kind).fit(X, PARTLY, qid=QID, sample_weight=w)
    rest = RankRLS(0.5, **kind).fit(
        X[~HIDDEN], Y[~HIDDEN], qid=QID[~HIDDEN], sample_weight=None if w is None else w[~HIDDEN]
    )
    np.testing.assert_allclose(model.transduction_[HIDDEN], rest.predict(X[HIDDEN]), atol=1e-8)
    new = np.random.default_rng(4).normal(size=(7, X.shape[1]))
    np.testing.assert_allclose(model.predict(new), rest.predict(new), atol=1e-8)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_everything_scored_is_rankrls(kind):
    model = TransductiveRankRLS(0.5, **kind).fit(X, Y, qid=QID)
    plain = RankRLS(0.5, **kind).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(model.transduction_, Y)


GAUSSIAN = {"kernel": "rbf", "gamma": 0.3}
SOME = np.flatnonzero(~HIDDEN)[::3]
NEW = np.random.default_rng(4).normal(size=(7, X.shape[1]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("basis", [{"n_basis": len(Y)}, {"basis_indices": np.arange(len(Y))[::-1]}], ids=["n", "rows"])
def test_a_basis_of_all_rows_is_the_kernel_model(basis, weighted):
    options = {"penalty": 0.4, "balance": "pairs", "regression_weight": 0.2, **GAUSSIAN}
    w = W if weighted else None
    a = TransductiveRankRLS(**options, **basis).fit(X, PARTLY, qid=QID, sample_weight=w)
    b = TransductiveRankRLS(**options).fit(X, PARTLY, qid=QID, sample_weight=w)
    np.testing.assert_allclose(a.transduction_, b.transduction_, atol=1e-8)
    np.testing.assert_allclose(a.predict(NEW), b.predict(NEW), atol=1e-8)
    assert a.basis_indices_.tolist() == list(basis.get("basis_indices", range(len(Y))))
    assert not hasattr(b, "basis_indices_")


def test_a_basis_in_every_kind_of_kernel():
    scored = TransductiveRankRLS(n_basis=20, **GAUSSIAN).fit(X, Y, qid=QID)
    np.testing.assert_allclose(
        scored.predict(NEW), SparseRankRLS(n_basis=20, **GAUSSIAN).fit(X, Y, qid=QID).predict(NEW)
    )
    w = np.where(np.arange(len(Y)) == SOME[1] + 1, 0.0, W)
    plain = TransductiveRankRLS(basis_indices=SOME).fit(X, PARTLY, qid=QID, sample_weight=w)
    full = TransductiveRankRLS().fit(X, PARTLY, qid=QID, sample_weight=w)
    np.testing.assert_allclose(plain.coef_, full.coef_, atol=1e-9)  # the items span all features
    K = X @ X.T
    given = TransductiveRankRLS(kernel="precomputed", basis_indices=SOME).fit(K, PARTLY, qid=QID, sample_weight=w)
    np.testing.assert_allclose(given.predict(K), plain.predict(X), atol=1e-7)
    called = TransductiveRankRLS(kernel=lambda a, b: float(a @ b), basis_indices=SOME)
    called.fit(list(X), PARTLY, qid=QID, sample_weight=w)
    np.testing.assert_allclose(called.predict(list(NEW)), plain.predict(NEW), atol=1e-7)


def test_the_model_is_rankrls_on_the_labels_found():
    for kind in KINDS:
        model = TransductiveRankRLS(0.5, penalty=0.2, **kind).fit(X, PARTLY, qid=QID)
        plain = RankRLS(0.5, **kind).fit(X, model.transduction_, qid=QID)
        np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-9)


def test_shifting_the_labels_of_a_scored_query_changes_no_ranking():
    shifted = np.where(QID[~HIDDEN][0] == QID, PARTLY + 7.0, PARTLY)
    a, b = (TransductiveRankRLS(penalty=0.3).fit(X, y, qid=QID).transduction_ for y in (PARTLY, shifted))
    np.testing.assert_allclose(centred(a, QID), centred(b, QID), atol=1e-9)


def test_targets_and_rows_of_weight_zero():
    two = np.column_stack((PARTLY, -2.0 * PARTLY))
    w = W.copy()
    w[[1, 5]] = 0.0
    both = TransductiveRankRLS().fit(X, two, qid=QID, sample_weight=w)
    one = TransductiveRankRLS().fit(X, PARTLY, qid=QID, sample_weight=w)
    assert both.transduction_.shape == (len(Y), 2)
    np.testing.assert_allclose(both.transduction_[:, 1], -2.0 * one.transduction_, atol=1e-10)
    assert np.flatnonzero(np.isnan(one.transduction_)).tolist() == [1, 5]
    kept = w > 0
    plain = TransductiveRankRLS().fit(X[kept], PARTLY[kept], qid=QID[kept], sample_weight=w[kept])
    np.testing.assert_allclose(one.transduction_[kept], plain.transduction_, atol=1e-12)
    K = X @ X.T
    precomputed = TransductiveRankRLS(kernel="precomputed").fit(K, PARTLY, qid=QID, sample_weight=w)
    np.testing.assert_allclose(precomputed.transduction_[kept], plain.transduction_[:], atol=1e-9)
    np.testing.assert_allclose(precomputed.predict(K), one.predict(X), atol=1e-9)


def with_nan(*rows):
    y = Y.copy()
    y[list(rows)] = np.nan
    return y


@pytest.mark.parametrize(
    ("parameters", "arguments", "refusal"),
    [
        ({"ties": "exclude"}, {}, Refusal("'exclude'", parameter="ties")),
        ({"penalty": 0.0}, {}, Refusal("got 0.0", "above", parameter="penalty")),
        ({"alpha": 0.0}, {}, Refusal("above 0", parameter="alpha")),
        (
            {"kernel": "sigmoid", "gamma": 3.0, "coef0": -2.0, "alpha": 1e-6},
            {},
            Refusal("not positive semidefinite", parameter="alpha"),
        ),
        ({}, {"y": with_nan(3)}, Refusal("which has labels", parameter="y", row=3, remedy="without a label.")),
        ({}, {"y": with_nan(3), "qid": None}, Refusal("NaN", parameter="y", row=3, remedy="or pass qid")),
        ({}, {"y": np.full(len(Y), np.nan)}, Refusal("needs labels", parameter="y")),
        ({}, {"y": np.where(HIDDEN, np.nan, 1.0)}, Refusal("Nothing to compare", parameter="y")),
        ({}, {"y": np.column_stack((PARTLY, Y))}, Refusal("some targets", parameter="y", row=1)),
    ],
)
def test_refusals(parameters, arguments, refusal):
    given = {"y": PARTLY, "qid": QID, **arguments}
    with refusal:
        TransductiveRankRLS(**parameters).fit(X, given.pop("y"), **given)


@pytest.mark.parametrize("y", [Y[:-1], with_nan(0)[:-1]])
@pytest.mark.parametrize("qid", [QID, None])
def test_labels_to_evaluate_are_one_per_row(y, qid):
    model = TransductiveRankRLS().fit(X, PARTLY if qid is not None else Y, qid=qid)
    with Refusal(f"y_score has {len(Y)} rows", f"y_true has {len(Y) - 1}", parameter="y_score"):
        model.score(X, y, qid=qid)
