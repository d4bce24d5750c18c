"""Forms in which data come in, and small data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from rankrls import CGRankRLS, CoRankRLS, RankRLS, RankRLSCV
from tests.models.forms import SPARSE
from tests.models.oracles import ranking_data

X, Y, QID = ranking_data(90, queries=8)
X = np.where(np.abs(X) < 0.4, 0.0, np.round(X, 2))
KINDS = [
    {"solver": "primal"},
    {"solver": "dual"},
    *({"kernel": k, "gamma": 0.2} for k in ("rbf", "laplacian", "polynomial", "sigmoid")),
]


@pytest.mark.parametrize("make", SPARSE.values(), ids=SPARSE)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_sparse_forms(kind, make):
    alpha = 5.0  # above the sigmoid's negative eigenvalues
    expected = RankRLS(alpha, ties="exclude", **kind).fit(X, Y, qid=QID)
    given = make(X)
    np.testing.assert_allclose(sparse.csr_array(given).toarray(), X, atol=1e-15)
    model = RankRLS(alpha, ties="exclude", **kind).fit(given, Y, qid=QID)
    np.testing.assert_allclose(model.predict(make(X)), expected.predict(X), atol=1e-9)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-9)
    np.testing.assert_allclose(expected.predict(make(X)), expected.predict(X), atol=1e-9)
    pairs = [RankRLS(alpha, **kind).fit_pairs(Z, [0, 1, 2, 3], [4, 5, 6, 7]) for Z in (given, X)]
    np.testing.assert_allclose(pairs[0].predict(X), pairs[1].predict(X), atol=1e-9)
    np.testing.assert_array_equal(sparse.csr_array(given).toarray(), sparse.csr_array(make(X)).toarray())


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_sparse_selection(kind):
    options = {"alphas": (5.0, 20.0), "balance": ("examples", "pairs"), **kind}
    a, b = (RankRLSCV(**options).fit(Z, Y, qid=QID) for Z in (sparse.csr_array(X), X))
    np.testing.assert_allclose(a.cv_results_["mean_score"], b.cv_results_["mean_score"])
    np.testing.assert_allclose(a.held_out_scores_, b.held_out_scores_, atol=1e-9)


@pytest.mark.parametrize("wrap", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, np.float32, np.ndarray.tolist])
def test_precomputed_matrices(wrap):
    K = X @ X.T
    expected = RankRLS(kernel="precomputed").fit(K, Y, qid=QID)
    model = RankRLS(kernel="precomputed").fit(wrap(K), Y, qid=QID)
    np.testing.assert_allclose(model.predict(wrap(K)), expected.predict(K), atol=1e-5)
    chosen = RankRLSCV((0.5, 5.0), kernel="precomputed").fit(wrap(K), Y, qid=QID)
    np.testing.assert_allclose(
        chosen.held_out_scores_, RankRLSCV((chosen.alpha_,)).fit(X, Y, qid=QID).held_out_scores_, atol=1e-4
    )


WHOLE = np.round(3 * X)


DENSE = {
    "lists": WHOLE.tolist(),
    "tuples": [tuple(row) for row in WHOLE],
    **{kind: WHOLE.astype(kind) for kind in ("int", "int8", "float16", "float32", "longdouble", "object")},
    "F": np.asfortranarray(WHOLE),
    "strided": np.repeat(WHOLE, 2, axis=0)[::2],
    "reversed": WHOLE[:, ::-1][:, ::-1],
    "csr": sparse.csr_array(WHOLE.astype(int)),
}


@pytest.mark.parametrize("given", DENSE.values(), ids=DENSE)
def test_dense_forms(given):
    for options in ({}, {"solver": "dual"}, {"kernel": "rbf"}):
        model, expected = (RankRLS(**options).fit(Z, Y, qid=QID) for Z in (given, WHOLE))
        np.testing.assert_allclose(model.predict(given), expected.predict(WHOLE), atol=1e-10)
        chosen, plain = (RankRLSCV((0.1, 1.0), **options).fit(Z, Y, qid=QID) for Z in (given, WHOLE))
        assert chosen.best_params_ == plain.best_params_


LABELS = {
    **{kind: Y.astype(kind) for kind in ("int", "int8", "float32", "object")},
    "list": Y.tolist(),
    "ints": Y.astype(int).tolist(),
    "words": [str(v) for v in Y],
    "series": pd.Series(Y, index=np.arange(len(Y))[::-1]),
    "strided": np.repeat(Y, 3)[::3],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels(labels):
    for options in ({}, {"ties": "exclude"}, {"kernel": "rbf"}):
        model = RankRLS(**options).fit(X, labels, qid=QID)
        expected = RankRLS(**options).fit(X, Y, qid=QID)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        assert model.score(X, labels, qid=QID) == expected.score(X, Y, qid=QID)


def test_binary_labels():
    y = Y > 1
    for options in ({}, {"ties": "exclude"}):
        expected = RankRLS(**options).fit(X, y.astype(float), qid=QID)
        for given in (y, y.tolist(), np.where(y, 1, 0)):
            np.testing.assert_array_equal(RankRLS(**options).fit(X, given, qid=QID).coef_, expected.coef_)


def test_labels_of_single_precision_are_tied_as_they_are():
    y = np.float32(0.1) * np.arange(len(Y), dtype=np.float32) % np.float32(0.3)
    a = RankRLS(ties="exclude").fit(X, y, qid=QID)
    b = RankRLS(ties="exclude").fit(X, y.astype(float), qid=QID)
    np.testing.assert_array_equal(a.coef_, b.coef_)


QIDS = {
    "negative": -QID - 100,
    "list": QID.tolist(),
    "series": pd.Series(QID, index=np.arange(len(QID))[::-1]),
    "tuples": [(int(q), "x") for q in QID],
    "words": np.array([f"q{q}" for q in QID]),
    "object words": np.array([f"q{q}" for q in QID], dtype=object),
    "categorical": pd.Categorical([f"q{q}" for q in QID]),
    "categorical series": pd.Series([f"q{q}" for q in QID], dtype="category"),
    "nullable": pd.Series(QID, dtype="Int64"),
    "strings of pandas": pd.Series([f"q{q}" for q in QID], dtype="string"),
    "dates": np.datetime64("2026-01-01") + QID.astype("m8[D]"),
    "floats": QID / 7,
    "int8": QID.astype(np.int8),
    "uint64": (QID + 1000).astype(np.uint64),
    "unsorted": np.random.default_rng(1).permutation(1000)[QID + 20],
}


def sorted_alike(qid):
    """Whether these ids come in the order of QID."""
    by_number = [dict(zip(QID.tolist(), list(qid), strict=True))[q] for q in np.unique(QID)]
    return by_number == sorted(by_number)


@pytest.mark.parametrize("qid", QIDS.values(), ids=QIDS)
def test_query_ids(qid):
    expected = RankRLS().fit(X, Y, qid=QID)
    model = RankRLS().fit(X, Y, qid=qid)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-12)
    np.testing.assert_array_equal(model.rank(X, qid=qid), expected.rank(X, qid=QID))
    assert model.score(X, Y, qid=qid) == expected.score(X, Y, qid=QID)
    folds = [None, 3] if sorted_alike(qid) else [None]  # folds are drawn in the order of ids
    for cv in folds:
        a, b = (RankRLSCV((0.1, 10.0), cv=cv).fit(X, Y, qid=ids) for ids in (qid, QID))
        np.testing.assert_allclose(a.cv_results_["mean_score"], b.cv_results_["mean_score"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_row_is_predicted_as_among_others(kind):
    model = RankRLS(5.0, **kind).fit(X, Y, qid=QID)
    together = model.predict(X)
    for row in (0, 7, len(Y) - 1):
        for one in (X[row : row + 1], sparse.csr_array(X[row : row + 1]), X[row : row + 1].tolist()):
            assert model.predict(one).shape == (1,)
            np.testing.assert_allclose(model.predict(one)[0], together[row], atol=1e-12)
        assert model.rank(X[row : row + 1], qid=["only"]).tolist() == [1]


@pytest.mark.parametrize("kind", [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf"}], ids=str)
def test_queries_of_one_item_in_cross_validation(kind):
    qid = np.arange(len(Y)) * 100
    qid[:12] = np.repeat([-1, -2, -3], 4)
    for ties in ("include", "exclude"):
        model = RankRLSCV((0.1, 1.0), ties=ties, **kind).fit(X, Y, qid=qid)
        assert model.selection_ == f"leave-query-out over {3 + len(Y) - 12} queries"
        assert np.isnan(model.query_scores_[3:]).all()
        assert not np.isnan(model.held_out_scores_).any()
        # nothing but the first three queries teaches: the other items' scores are those of the model itself
        np.testing.assert_allclose(model.held_out_scores_[12:], model.predict(X)[12:], atol=1e-9)
        few = RankRLSCV((0.1, 1.0), ties=ties, **kind, gamma=0.25).fit(X[:12], Y[:12], qid=qid[:12])
        np.testing.assert_allclose(model.cv_results_["mean_score"], few.cv_results_["mean_score"])


def test_the_smallest_data():
    model = RankRLS(1.0).fit([[0.0], [1.0]], [0, 1])
    np.testing.assert_allclose(model.coef_, [0.5 / 1.5])  # x'Lx = x'Ly = 1/2
    np.testing.assert_allclose(RankRLS(0.0).fit([[0.0], [1.0]], [0, 1]).coef_, [1.0])
    np.testing.assert_array_equal(RankRLS(0.0).fit(np.zeros((3, 2)), [0, 1, 2]).coef_, [0.0, 0.0])
    tied = RankRLS(1.0, regression_weight=1.0).fit([[1.0]], [2.0])
    np.testing.assert_allclose(tied.coef_, [1.0])


@pytest.mark.parametrize(
    ("make", "queries"),
    [
        (lambda rng: CGRankRLS((1.0, 10.0), random_state=rng), 600),
        (lambda rng: CoRankRLS(n_views=2, random_state=rng), 30),
    ],
    ids=["CGRankRLS", "CoRankRLS"],
)
def test_a_generator_draws(make, queries):
    """The same numbers as another Generator of the same seed, and others than those of another seed."""
    X, y, qid = ranking_data(3, queries=queries)
    models = [make(np.random.default_rng(seed)).fit(X, y, qid=qid) for seed in (1, 1, 2)]
    scores = [model.predict(X) for model in models]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert models[0].best_score_ != models[2].best_score_
