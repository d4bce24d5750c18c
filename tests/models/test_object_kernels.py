"""A kernel over arbitrary objects: labelled dependency graphs, compared by the random walks that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict

from rankrls import RankRLS, RankRLSCV
from rankrls.model_selection import leave_query_out
from tests.models.oracles import held_out_by_refits, query_rows
from tests.refusals import Refusal

WORDS = ("verb", "noun", "adjective", "determiner")
ROLES = ("subject", "object", "modifier")


@dataclass(frozen=True)
class DependencyGraph:
    """A parse: a word class for each token, and (head, dependent, role) arcs."""

    words: tuple[str, ...]
    arcs: tuple[tuple[int, int, str], ...]


def random_walk_kernel(left, right, decay=0.3):
    """Weighted count of the walks that two graphs share: e' (I - decay A_x)^-1 e on the direct product graph.

    The product graph's nodes are pairs of tokens with the same word, its arcs pairs of arcs with the same role.
    """
    nodes = {}
    for i, a in enumerate(left.words):
        for j, b in enumerate(right.words):
            if a == b:
                nodes[i, j] = len(nodes)
    A = np.zeros((len(nodes), len(nodes)))
    for i, i2, role in left.arcs:
        for j, j2, other in right.arcs:
            if role == other and (i, j) in nodes and (i2, j2) in nodes:
                A[nodes[i, j], nodes[i2, j2]] = 1.0
    return float(np.linalg.solve(np.eye(len(nodes)) - decay * A, np.ones(len(nodes))).sum())


def random_parse(rng):
    """A tree: each token but the first depends on an earlier one, so that walks end and the kernel is finite."""
    m = int(rng.integers(3, 7))
    words = tuple(rng.choice(WORDS, m).tolist())
    arcs = tuple((int(rng.integers(0, k)), k, str(rng.choice(ROLES))) for k in range(1, m))
    return DependencyGraph(words, arcs)


RNG = np.random.default_rng(60)
QID = RNG.permutation(np.repeat(np.arange(7), 4))  # a sentence has four candidate parses
PARSES = [random_parse(RNG) for _ in QID]
Y = np.array([sum(role == "subject" for *_, role in g.arcs) + 0.5 * len(g.words) for g in PARSES])
Y = np.round(Y + 0.3 * RNG.normal(size=len(Y)))
NEW = [random_parse(RNG) for _ in range(5)]
K = np.array([[random_walk_kernel(a, b) for b in PARSES] for a in PARSES])
K_NEW = np.array([[random_walk_kernel(a, b) for b in PARSES] for a in NEW])
ALPHAS = (0.1, 1.0, 100.0)


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_fit_and_predict_equal_the_precomputed_kernel(ties):
    model = RankRLS(0.5, kernel=random_walk_kernel, ties=ties).fit(PARSES, Y, qid=QID)
    matrix = RankRLS(0.5, kernel="precomputed", ties=ties).fit(K, Y, qid=QID)
    np.testing.assert_allclose(model.predict(PARSES), matrix.predict(K), atol=1e-9)
    np.testing.assert_allclose(model.predict(NEW), matrix.predict(K_NEW), atol=1e-9)
    assert model.score(PARSES, Y, qid=QID) == matrix.score(K, Y, qid=QID) > 0.8
    np.testing.assert_array_equal(model.rank(PARSES, qid=QID), matrix.rank(K, qid=QID))
    assert model.X_fit_ == PARSES


def test_parameters_of_the_kernel():
    model = RankRLS(kernel=random_walk_kernel, kernel_params={"decay": 0.9}).fit(PARSES, Y, qid=QID)
    other = RankRLS(kernel=lambda a, b: random_walk_kernel(a, b, 0.9)).fit(PARSES, Y, qid=QID)
    np.testing.assert_array_equal(model.predict(NEW), other.predict(NEW))


def test_zero_weights_drop_objects():
    w = np.ones(len(Y))
    w[[1, 8]] = 0.0
    kept = np.flatnonzero(w)
    model = RankRLS(kernel=random_walk_kernel).fit(PARSES, Y, qid=QID, sample_weight=w)
    expected = RankRLS(kernel=random_walk_kernel).fit([PARSES[k] for k in kept], Y[kept], qid=QID[kept])
    np.testing.assert_allclose(model.predict(NEW), expected.predict(NEW), atol=1e-12)


@pytest.mark.parametrize("as_array", [False, True])
def test_leave_query_out_equals_refits(as_array):
    items = np.empty(len(PARSES), dtype=object)
    items[:] = PARSES
    model = RankRLSCV(ALPHAS, kernel=random_walk_kernel).fit(items if as_array else PARSES, Y, qid=QID)
    for k, alpha in enumerate(model.cv_results_["alpha"]):
        make = lambda a=alpha: RankRLS(a, kernel=random_walk_kernel)
        scores = held_out_by_refits(make, items, Y, QID, query_rows(QID))
        np.testing.assert_allclose(leave_query_out(make(), PARSES, Y, qid=QID), scores, atol=1e-8)
        if alpha == model.alpha_:
            np.testing.assert_allclose(model.held_out_scores_, scores, atol=1e-8)
        matrix = RankRLSCV((alpha,), kernel="precomputed").fit(K, Y, qid=QID)
        assert model.cv_results_["mean_score"][k] == pytest.approx(matrix.best_score_)
    np.testing.assert_allclose(
        model.predict(NEW), RankRLS(model.alpha_, kernel=random_walk_kernel).fit(PARSES, Y, qid=QID).predict(NEW)
    )


def test_grid_search():
    cv, params = GroupKFold(3), {"qid": QID, "groups": QID}
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankRLS(kernel=random_walk_kernel), {"alpha": list(ALPHAS)}, cv=cv)
        search.fit(PARSES, Y, **params)
        held_out = cross_val_predict(RankRLS(kernel=random_walk_kernel), PARSES, Y, cv=cv, params=params)
    for k, alpha in enumerate(ALPHAS):
        for fold, (train, test) in enumerate(cv.split(PARSES, Y, QID)):
            model = RankRLS(alpha, kernel="precomputed").fit(K[np.ix_(train, train)], Y[train], qid=QID[train])
            expected = model.score(K[np.ix_(test, train)], Y[test], qid=QID[test])
            assert search.cv_results_[f"split{fold}_test_score"][k] == pytest.approx(expected)
            if alpha == RankRLS().alpha:
                np.testing.assert_allclose(held_out[test], model.predict(K[np.ix_(test, train)]))
    np.testing.assert_allclose(search.predict(NEW), search.best_estimator_.predict(NEW))


@pytest.mark.parametrize(
    ("kernel", "refusal"),
    [
        (lambda a, b: np.nan, Refusal("returned", "items 0", parameter="kernel")),
        (lambda a, b: None, Refusal("returned NoneType", parameter="kernel")),
        (lambda a, b: np.ones(2), Refusal("return", parameter="kernel")),
    ],
)
def test_kernels_that_are_none(kernel, refusal):
    with refusal:
        RankRLS(kernel=kernel).fit(PARSES, Y, qid=QID)


@pytest.mark.parametrize(
    ("X", "y", "refusal"),
    [
        ([], [], Refusal("empty", parameter="X")),
        (PARSES, Y[:-1], Refusal("28 items", "labels", parameter="y")),
        (PARSES, None, Refusal("requires", parameter="y")),
        (PARSES, [np.nan, *Y[1:]], Refusal("contains NaN", parameter="y", row=0)),
    ],
)
def test_bad_objects(X, y, refusal):
    for model in (RankRLS(kernel=random_walk_kernel), RankRLSCV(kernel=random_walk_kernel)):
        with refusal:
            model.fit(X, y)
